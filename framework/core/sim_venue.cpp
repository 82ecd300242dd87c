#include "sim_venue.hpp"

#include <chrono>

namespace hft {

namespace {

constexpr Ns kNap = 50'000;  // a sleep is 50 us late on a quiet machine: shorter waits spin

}  // namespace

SimVenue::SimVenue(SimVenueConfig config, const WallClock& clock)
    : config_(std::move(config)), clock_(&clock), sim_(config_.market), lost_(config_.market.instruments.size()) {}

void SimVenue::start() {
  running_.store(true, std::memory_order_relaxed);
  thread_ = std::thread([this] { loop(); });
}

void SimVenue::stop() {
  running_.store(false, std::memory_order_relaxed);  // a flag alone: nothing is published through it
  if (thread_.joinable()) thread_.join();
}

void SimVenue::loop() {
  while (running_.load(std::memory_order_relaxed)) {
    take_commands();
    const Ts now = clock_->now();
    Ts next = act(now);
    deliver(now);
    if (!leaving_rows_.empty()) next = std::min(next, leaving_rows_.front().ts);
    if (!leaving_answers_.empty()) next = std::min(next, leaving_answers_.front().ts);
    // Commands come at any time, so even a quiet market looks for them every nap.
    if (next - clock_->now() > 2 * kNap) std::this_thread::sleep_for(std::chrono::nanoseconds(kNap));
  }
}

void SimVenue::take_commands() {
  while (const Command* c = commands.poll()) {
    arriving_.push_back({c->ts_send + config_.entry_ns, *c});
    commands.release();
  }
}

/// Everything due by `now`, in order of time; returns when the next thing is due.
Ts SimVenue::act(Ts now) {
  for (;;) {
    const Ts crowd = sim_.next_ts();
    const Ts ours = arriving_.empty() ? kNever : arriving_.front().ts;
    if (std::min(crowd, ours) > now) return std::min(crowd, ours);
    if (ours < crowd) {
      Command c = arriving_.front().what;
      c.ts_arrive = ours;
      arriving_.pop_front();
      execute(c);
    } else {
      sim_.step(rows_, reports_);
    }
    collect();
  }
}

void SimVenue::execute(const Command& c) {
  switch (c.kind) {
    case Command::Kind::NEW:
      sim_.submit(c.instrument, c.order, static_cast<Side>(c.side), c.price, c.lots, c.tif, c.ts_arrive, rows_, reports_);
      break;
    case Command::Kind::CANCEL: sim_.cancel(c.instrument, c.order, c.ts_arrive, rows_, reports_); break;
    case Command::Kind::REPLACE:
      sim_.replace(c.instrument, c.order, c.price, c.lots, c.ts_arrive, rows_, reports_);
      break;
  }
}

void SimVenue::collect() {
  for (const Event& e : rows_) leaving_rows_.push_back({e.ts_event + config_.feed_ns, e});
  for (const SimReport& r : reports_) leaving_answers_.push_back({r.ts + config_.response_ns, answer_of(r)});
  rows_.clear();
  reports_.clear();
}

void SimVenue::deliver(Ts now) {
  while (!leaving_answers_.empty() && leaving_answers_.front().ts <= now) {
    Update* slot = answers.claim();
    if (slot == nullptr) break;  // answers are never lost: they wait
    *slot = leaving_answers_.front().what;
    answers.publish();
    leaving_answers_.pop_front();
  }
  while (!leaving_rows_.empty() && leaving_rows_.front().ts <= now && deliver_packet(now)) {
  }
}

/// Hands over one packet, or drops it whole and remembers that.
bool SimVenue::deliver_packet(Ts /*now*/) {
  const InstrumentId inst = leaving_rows_.front().what.instrument;
  if (lost_[inst]) {  // the reader must rebuild: what is still waiting is older than the snapshot
    std::vector<Event> resync;
    Event gap{};
    gap.ts_event = leaving_rows_.front().what.ts_event;
    gap.instrument = inst;
    gap.kind = Kind::STATUS;
    gap.ref_id = static_cast<std::int64_t>(Trading::GAP);
    gap.flags = SEEN_BY_US | SEEN_BY_VENUE | LAST;
    resync.push_back(gap);
    std::erase_if(leaving_rows_, [&](const auto& d) { return d.what.instrument == inst; });
    sim_.snapshot(inst, clock_->now(), resync);
    for (auto it = resync.rbegin(); it != resync.rend(); ++it) leaving_rows_.push_front({gap.ts_event, *it});
    lost_[inst] = 0;
  }
  while (!leaving_rows_.empty()) {
    Event* slot = market.claim();
    if (slot == nullptr) {
      lost_[inst] = 1;
      return false;
    }
    *slot = leaving_rows_.front().what;
    const bool last = slot->flags & LAST;
    market.publish();
    leaving_rows_.pop_front();
    if (last) return true;
  }
  return true;
}

Update SimVenue::answer_of(const SimReport& r) {
  Update u{};
  switch (r.kind) {
    case SimReportKind::ACK: u.kind = Update::Kind::ACCEPTED; break;
    case SimReportKind::REJECT: u.kind = Update::Kind::REJECTED; break;
    case SimReportKind::FILL: u.kind = Update::Kind::FILL; break;
    case SimReportKind::CANCELED: u.kind = Update::Kind::CANCELED; break;
    case SimReportKind::EXPIRED: u.kind = Update::Kind::EXPIRED; break;
    case SimReportKind::CANCEL_REJECT: u.kind = Update::Kind::CANCEL_REJECTED; break;
    case SimReportKind::REPLACED: u.kind = Update::Kind::REPLACED; break;
    case SimReportKind::REPLACE_REJECT: u.kind = Update::Kind::REPLACE_REJECTED; break;
  }
  u.reason = r.reason;
  u.fill_reason = r.fill_reason;
  u.maker = r.maker != 0;
  u.instrument = r.instrument;
  u.order = r.id;
  u.price = r.price;
  u.lots = r.lots;
  u.leaves = r.leaves;
  u.ahead = r.ahead;
  u.ts_venue = r.ts;
  return u;
}

}  // namespace hft
