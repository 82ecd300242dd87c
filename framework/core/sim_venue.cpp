#include "sim_venue.hpp"

namespace hft {

namespace {

constexpr Ns kNap = 50'000;  // at most, between looks at the commands
constexpr std::size_t kUnseen = 1 << 14;

}  // namespace

SimVenue::SimVenue(SimVenueConfig config, const WallClock& clock)
    : market(config.feed_rows),
      config_(std::move(config)),
      clock_(&clock),
      sim_(config_.market),
      positions_(config_.market.instruments.size()),
      lost_(config_.market.instruments.size()) {}

/// Making the market took a while: what the crowd did meanwhile is played unseen, and the feed
/// begins with the book as it stands, not with a burst of old rows.
void SimVenue::start() {
  const Ts now = clock_->now();
  while (sim_.next_ts() <= now) {
    sim_.step_until(now, rows_, reports_, kUnseen);
    rows_.clear();
  }
  for (const SimInstrument& i : config_.market.instruments) sim_.snapshot(i.id, now, rows_);
  collect();
  running_.store(true, std::memory_order_relaxed);
  thread_ = std::thread([this] {
    sharpen_naps();
    try {
      loop();
    } catch (...) {
      failure_ = std::current_exception();
      failed_.store(true, std::memory_order_release);  // pairs with check(): failure_ is whole
    }
  });
}

void SimVenue::stop() {
  running_.store(false,
                 std::memory_order_relaxed);  // a flag alone: nothing is published through it
  if (thread_.joinable()) thread_.join();
}

void SimVenue::check() const {
  if (failed_.load(std::memory_order_acquire)) std::rethrow_exception(failure_);
}

void SimVenue::loop() {
  while (running_.load(std::memory_order_relaxed)) {
    take_commands();
    const Ts now = clock_->now();
    Ts next = act(now);
    deliver(now);
    if (!leaving_rows_.empty()) next = std::min(next, leaving_rows_.front().ts);
    if (!leaving_answers_.empty()) next = std::min(next, leaving_answers_.front().ts);
    if (!arriving_.empty()) next = std::min(next, arriving_.front().ts);
    // Commands come at any time, so even a quiet market looks for them every nap.
    nap(std::min(next - clock_->now(), kNap));
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
      sim_.submit(c.instrument, c.order, static_cast<Side>(c.side), c.price, c.lots, c.tif,
                  c.ts_arrive, rows_, reports_);
      break;
    case Command::Kind::CANCEL:
      sim_.cancel(c.instrument, c.order, c.ts_arrive, rows_, reports_);
      break;
    case Command::Kind::REPLACE:
      sim_.replace(c.instrument, c.order, c.price, c.lots, c.ts_arrive, rows_, reports_);
      break;
  }
}

void SimVenue::collect() {
  for (const Event& e : rows_) {
    leaving_rows_.push_back({e.ts_event + config_.feed_ns, e});
    if (e.kind != Kind::DATUM || static_cast<Datum>(e.order_id) != Datum::FUNDING) continue;
    Update u{};  // our part of the settlement
    u.kind = Update::Kind::FUNDING;
    u.instrument = e.instrument;
    u.price = e.price;
    u.lots = positions_[e.instrument];
    u.money = e.ref_id;  // the rate [1e-9]: what it comes to is for whoever knows the contract
    u.ts_venue = e.ts_event;
    if (u.lots != 0) leaving_answers_.push_back({u.ts_venue + config_.response_ns, u});
  }
  for (const SimReport& r : reports_) {
    if (r.kind == SimReportKind::FILL) positions_[r.instrument] += r.side * r.lots;
    leaving_answers_.push_back({r.ts + config_.response_ns, answer_of(r)});
  }
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
  while (!leaving_rows_.empty() && leaving_rows_.front().ts <= now) deliver_packet();
  for (InstrumentId inst = 0; inst < lost_.size(); ++inst)
    if (lost_[inst] && 2 * market.room() >= market.capacity()) resync(inst, now);
}

/// Hands over one packet whole, or drops it whole and remembers that.
void SimVenue::deliver_packet() {
  const InstrumentId inst = leaving_rows_.front().what.instrument;
  std::ptrdiff_t rows = 1;
  while (!(leaving_rows_[static_cast<std::size_t>(rows - 1)].what.flags & LAST)) ++rows;
  if (lost_[inst] || market.room() < static_cast<std::size_t>(rows)) {
    lost_[inst] = 1;
    leaving_rows_.erase(leaving_rows_.begin(), leaving_rows_.begin() + rows);
    return;
  }
  for (; rows > 0; --rows) {
    *market.claim() = leaving_rows_.front().what;
    market.publish();
    leaving_rows_.pop_front();
  }
}

/// The reader learns of the loss now and gets the book after the feed's delay; rows still on their
/// way are older than that book.
void SimVenue::resync(InstrumentId inst, Ts now) {
  Event* gap = market.claim();
  *gap = {};
  gap->ts_event = now;
  gap->instrument = inst;
  gap->kind = Kind::STATUS;
  gap->ref_id = static_cast<std::int64_t>(Trading::GAP);
  gap->flags = SEEN_BY_US | SEEN_BY_VENUE | LAST;
  market.publish();
  std::erase_if(leaving_rows_, [&](const auto& d) { return d.what.instrument == inst; });
  sim_.snapshot(inst, now, rows_);
  collect();
  lost_[inst] = 0;
}

Update SimVenue::answer_of(const SimReport& r) {
  Update u{};
  switch (r.kind) {
    case SimReportKind::ACK:
      u.kind = Update::Kind::ACCEPTED;
      break;
    case SimReportKind::REJECT:
      u.kind = Update::Kind::REJECTED;
      break;
    case SimReportKind::FILL:
      u.kind = Update::Kind::FILL;
      break;
    case SimReportKind::CANCELED:
      u.kind = Update::Kind::CANCELED;
      break;
    case SimReportKind::EXPIRED:
      u.kind = Update::Kind::EXPIRED;
      break;
    case SimReportKind::CANCEL_REJECT:
      u.kind = Update::Kind::CANCEL_REJECTED;
      break;
    case SimReportKind::REPLACED:
      u.kind = Update::Kind::REPLACED;
      break;
    case SimReportKind::REPLACE_REJECT:
      u.kind = Update::Kind::REPLACE_REJECTED;
      break;
  }
  u.reason = r.reason;
  u.fill_reason = r.fill_reason;
  u.maker = r.maker != 0;
  u.instrument = r.instrument;
  u.order = r.id;
  u.price = r.price;
  u.lots = r.lots;
  u.ahead = r.ahead;
  u.ts_venue = r.ts;
  return u;
}

}  // namespace hft
