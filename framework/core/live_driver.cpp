#include "live_driver.hpp"

namespace hft {

namespace {

constexpr Ns kPollEvery = 1'000'000;
constexpr Ns kWindDown = 1'000'000'000;
constexpr std::int64_t kStopped = 1, kAbandoned = 2;

/// The market without us: our lots leave the level, our prints are marked by the feed already.
void take_out_own(Event& e) noexcept {
  if (e.kind != Kind::LEVEL) return;
  e.qty -= e.ref_id;
  e.ref_id = 0;
}

void stop_engine(Engine& engine, const SessionCalls& calls, Ts now) {
  engine.wake(now);
  engine.stop(now, kStopped);
  calls.stop();
  for (const Market& m : engine.markets()) engine.cancel_all(m.inst.id);
}

}  // namespace

void after_input(Engine& engine) { engine.settle(engine.now()); }

Update update_of(const Record& r) noexcept {
  Update u{};
  u.kind = static_cast<Update::Kind>(r.a >> 24 & 0xff);
  u.reason = static_cast<Reason>(r.a >> 16 & 0xff);
  u.fill_reason = static_cast<FillReason>(r.a >> 8 & 0xff);
  u.maker = r.a & 1;
  u.instrument = r.instrument;
  u.order = r.order;
  u.price = r.price;
  u.lots = r.lots;
  if (u.kind == Update::Kind::ACCEPTED || u.kind == Update::Kind::REPLACED) {
    std::memcpy(&u.ahead, &r.b, sizeof u.ahead);
  } else {
    u.money = r.b;
  }
  u.ts_venue = r.c;
  u.ts_recv = r.ts;
  return u;
}

LiveDriver::LiveDriver(Engine& engine, LiveConfig config, SimVenueConfig venue)
    : engine_(&engine), config_(std::move(config)), venue_(std::move(venue), clock_), market_file_(config_.market_path),
      markouts_(engine.markets().size()) {
  engine_->journal.open(config_.journal_path);
  engine_->journal.keep = false;
  engine_->journal_idle_timers = true;
}

Ts LiveDriver::stamp() noexcept { return std::max(clock_.now(), engine_->now()); }

void LiveDriver::run(Ns duration_ns) {
  venue_.start();
  start_ = clock_.now();
  const Ts until = start_ + duration_ns;
  next_sample_ = start_ - start_ % config_.sample_ns + config_.sample_ns;
  try {
    engine_->wake(start_);
    engine_->start(start_, clock_.offset());
    calls.start();
    after_input(*engine_);
    send();
    Ts next_poll = start_ + kPollEvery;
    for (;;) {
      const bool worked = step();
      const Ts now = clock_.now();
      if (now >= next_sample_) {
        engine_->sample(next_sample_);
        next_sample_ += config_.sample_ns;
      }
      if (now >= next_poll) {
        next_poll = now + kPollEvery;
        if (!poll(rows_)) {
          interrupted_ = true;
          break;
        }
      }
      if (now >= until) break;
      if (!worked) __builtin_ia32_pause();
    }
    stop_engine(*engine_, calls, stamp());
    send();
    wind_down();
  } catch (...) {
    silence();
    engine_->abandon(stamp(), kAbandoned);
    send();
    wind_down();
    throw;
  }
}

/// Handles one input if there is one: answers first, then market, then timers.
bool LiveDriver::step() {
  if (const Update* u = venue_.answers.poll()) {
    const Update copy = *u;
    venue_.answers.release();
    take_answer(copy);
    return true;
  }
  if (take_packet()) return true;
  const Ts now = stamp();
  if (engine_->next_due() > now) return false;
  engine_->wake(now);
  engine_->on_due(now);
  after_input(*engine_);
  speak();
  send();
  return true;
}

void LiveDriver::take_answer(Update u) {
  const Ts now = stamp();
  u.ts_recv = now;
  if (u.kind == Update::Kind::FILL) u.money = engine_->market(u.instrument).inst.fee(u.maker, u.lots, u.price);
  engine_->wake(now);
  engine_->on_update(u, now);
  if (u.kind == Update::Kind::FILL) keep_fill(u);
  after_input(*engine_);
  send();
}

bool LiveDriver::take_packet() {
  bool any = false;
  while (const Event* e = venue_.market.poll()) {
    packet_.push_back(*e);
    venue_.market.release();
    any = true;
    if (packet_.back().flags & LAST) {
      give_packet();
      break;
    }
  }
  return any;
}

void LiveDriver::give_packet() {
  const Ts now = stamp();
  Market& m = engine_->market(packet_.front().instrument);
  for (Event& e : packet_) {
    e.ts_recv = now;
    take_out_own(e);
  }
  market_file_.append(packet_.data(), packet_.size() * sizeof(Event));
  engine_->journal.append({now, 0, 0, 0, rows_, static_cast<std::int64_t>(packet_.size()), 0, m.inst.id, RecordKind::PACKET, 0});
  engine_->wake(now);
  for (const Event& e : packet_) engine_->on_row(m, e, rows_++, now);
  packet_.clear();
  Markouts& open = markouts_[m.inst.id];
  if (open.next_due() <= now) open.read(fills_, now, m.book.mid2());
  engine_->on_packet(m, now);
  after_input(*engine_);
  speak();
  send();
}

/// Native models answered inside the engine; each result is an input of its own, stamped when it is there.
void LiveDriver::speak() {
  if (engine_->requests.empty()) return;
  std::vector<Signal> said;
  said.swap(engine_->requests);
  for (const Signal& s : said) {
    const Ts now = stamp();
    engine_->wake(now);
    engine_->on_signal(s, now);
    after_input(*engine_);
  }
}

void LiveDriver::send() {
  for (Command& c : engine_->outbox) {
    c.ts_send = clock_.now();
    if (c.kind == Command::Kind::NEW) engine_->orders()[c.order].row.ts_send = c.ts_send;
    Command* slot = venue_.commands.claim();
    if (slot == nullptr) throw CoreError("the venue's command queue is full: 16,384 messages unread");
    *slot = c;
    venue_.commands.publish();
  }
  engine_->outbox.clear();
}

/// What is on its way still arrives: answers are taken until nothing of ours lives, for a second at most.
void LiveDriver::wind_down() {
  const Ts until = clock_.now() + kWindDown;
  const auto any_alive = [&] {
    for (const Market& m : engine_->markets())
      if (!m.live.empty()) return true;
    return false;
  };
  while (any_alive() && clock_.now() < until)
    if (const Update* u = venue_.answers.poll()) {
      const Update copy = *u;
      venue_.answers.release();
      take_answer(copy);
    } else {
      take_packet();
    }
  end_ = stamp();
  engine_->sample(end_);
  venue_.stop();
  engine_->journal.close();
  market_file_.close();
}

void LiveDriver::keep_fill(const Update& u) {
  const Market& m = engine_->market(u.instrument);
  FillRow f{};
  f.order = u.order;
  f.price = u.price;
  f.lots = u.lots;
  f.fee = u.money;
  f.ts_venue = u.ts_venue;
  f.ts_recv = u.ts_recv;
  f.mid2 = m.book.mid2();  // ours: the venue's is not known to a live run
  f.ahead_at_accept = engine_->orders()[u.order].row.ahead_at_accept;
  f.cause_row = m.row;
  f.position = m.account.position;
  std::fill(std::begin(f.markout_mid2), std::end(f.markout_mid2), kNoPrice);
  f.instrument = u.instrument;
  f.side = engine_->orders()[u.order].row.side;
  f.maker = u.maker;
  f.reason = u.fill_reason;
  markouts_[u.instrument].add(static_cast<std::uint32_t>(fills_.size()), f.ts_venue);
  fills_.push_back(f);
}

// ---- verification -----------------------------------------------------------------------------------

void VerifyDriver::run(const Record* records, std::size_t n, const Event* rows, std::size_t n_rows) {
  engine_->journal_idle_timers = true;
  for (std::size_t i = 0; i < n; ++i) {
    try {
      feed(records[i], rows, n_rows);
    } catch (const DataError&) {
      throw;
    } catch (...) {  // the handler that failed live fails again: the ABANDON record comes next
      silence();
    }
    engine_->outbox.clear();
  }
}

void VerifyDriver::feed(const Record& r, const Event* rows, std::size_t n_rows) {
  Engine& e = *engine_;
  switch (r.kind) {
    case RecordKind::START:
      e.wake(r.ts);
      e.start(r.ts, r.b);
      calls.start();
      break;
    case RecordKind::PACKET: {
      const auto first = static_cast<std::size_t>(r.a), size = static_cast<std::size_t>(r.b);
      if (first + size > n_rows)
        throw DataError("the journal points to market row " + std::to_string(first + size) + ", the market file has " +
                        std::to_string(n_rows));
      Market& m = e.market(r.instrument);
      e.journal.append(r);
      e.wake(r.ts);
      for (std::size_t i = first; i < first + size; ++i) e.on_row(m, rows[i], static_cast<std::int64_t>(i), r.ts);
      e.on_packet(m, r.ts);
      break;
    }
    case RecordKind::UPDATE:
      e.wake(r.ts);
      e.on_update(update_of(r), r.ts);
      break;
    case RecordKind::SIGNAL: {
      if (e.requests.empty()) throw DataError("the journal has a signal where the engine asked no model");
      const Signal s = std::move(e.requests.front());
      e.requests.erase(e.requests.begin());
      e.wake(r.ts);
      e.on_signal(s, r.ts);
      break;
    }
    case RecordKind::TIMER:
    case RecordKind::CLOCK:
      e.wake(r.ts);
      e.on_due(r.ts);
      break;
    case RecordKind::STOP:
      if (r.a == kAbandoned) {
        e.abandon(r.ts, r.a);
        return;
      }
      stop_engine(e, calls, r.ts);
      return;
    default: return;  // outputs: the engine makes its own
  }
  after_input(e);
}

}  // namespace hft
