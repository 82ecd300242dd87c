#include "live_driver.hpp"

#include <algorithm>

namespace hft {

namespace {

constexpr Ns kPollEvery = 1'000'000;
constexpr int kDueAPacket = 32;
constexpr Ns kWindDown = 1'000'000'000;
constexpr Ns kIdleNap = 50'000;
constexpr std::int64_t kStopped = 1, kAbandoned = 2;

/// Tells the core that its sibling may go first.
void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

/// What on_stop asks for still travels; what its answers lead to does not.
void stop_engine(Engine& engine, const SessionCalls& calls, Ts now) {
  engine.wake(now);
  engine.stop(now, kStopped);
  calls.stop();
  engine.risk().halted = true;
  for (Market& m : engine.markets()) {
    for (Target& t : m.targets) t.set = false;
    for (Order* o : m.live)
      if (o->row.tif == Tif::GTC || o->row.tif == Tif::POST_ONLY) engine.cancel(*o);
  }
}

bool any_alive(Engine& engine) noexcept {
  for (const Market& m : engine.markets())
    if (!m.live.empty()) return true;
  return false;
}

}  // namespace

void take_out_own(std::vector<Event>& packet) {
  std::erase_if(packet, [](const Event& e) { return (e.flags & OWN) != 0; });
  for (Event& e : packet) {
    if (e.kind != Kind::LEVEL) continue;
    e.qty -= e.ref_id;
    e.ref_id = 0;
  }
  if (!packet.empty()) packet.back().flags |= LAST;
}

std::int64_t digest_of(const Event* rows, std::size_t n) noexcept {
  std::uint64_t h = n;
  for (std::size_t i = 0; i < n; ++i) {
    std::uint64_t words[sizeof(Event) / 8];
    std::memcpy(words, rows + i, sizeof words);
    for (const std::uint64_t w : words) h = (h ^ w) * 0xff51afd7ed558ccdULL, h ^= h >> 32;
  }
  return static_cast<std::int64_t>(h);
}

Update update_of(const Record& r) noexcept {
  Update u{};
  u.kind = static_cast<Update::Kind>(r.a >> 24 & 0xff);
  u.reason = static_cast<Reason>(r.a >> 16 & 0xff);
  u.fill_reason = static_cast<FillReason>(r.a >> 8 & 0xff);
  u.maker = r.a & 1;
  u.leaves = r.a & 2;
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
    : engine_(&engine),
      config_(std::move(config)),
      venue_(std::move(venue), clock_),
      market_file_(config_.market_path),
      markouts_(engine.markets().size()) {
  engine_->journal.open(config_.journal_path);
  engine_->journal.keep = false;
  engine_->journal_every_timer = true;
  engine_->rests = true;
  engine_->clock = &clock_;
}

Ts LiveDriver::stamp() noexcept { return std::max(clock_.now(), engine_->now()); }

void LiveDriver::run(Ns duration_ns) {
  sharpen_naps();
  venue_.start();
  start_ = clock_.now();
  if (config_.sample_ns > 0) next_sample_ = start_ - start_ % config_.sample_ns + config_.sample_ns;
  next_poll_ = start_ + kPollEvery;
  try {
    engine_->wake(start_);
    engine_->start(start_, clock_.offset());
    calls.start();
    engine_->settle(engine_->now());
    send();
    trade(start_ + duration_ns);
    stop_engine(*engine_, calls, stamp());
    send();
    wind_down();
  } catch (const ModelError& e) {
    fail(&e.of);
    throw;
  } catch (...) {
    fail(nullptr);
    throw;
  }
}

void LiveDriver::fail(const ModelFailure* model) {
  trading_ = false;
  try {
    calls.silence();
    engine_->abandon(stamp(), kAbandoned, model);
    send();
    wind_down();
  } catch (...) {  // the venue is gone or the disk is full: what led here says more
    close();
  }
}

void LiveDriver::trade(Ts until) {
  trading_ = true;
  for (;;) {
    const bool worked = step();
    const Ts now = clock_.now();
    if (now >= next_sample_) {
      engine_->sample(next_sample_);
      next_sample_ += config_.sample_ns;
    }
    if (now >= next_poll_) {
      next_poll_ = now + kPollEvery;
      venue_.check();
      poll();
      if (lend) lend(0);
      if (!worked) engine_->touch_models();
      interrupted_ = asked_.load(std::memory_order_relaxed) > 0;
    }
    trading_ = !interrupted_ && now < until;
    if (!trading_) return;
    if (!worked) idle(now, until);
  }
}

void LiveDriver::idle(Ts now, Ts until) const {
  const Ns least =
      std::min({config_.nap_ns, std::min(engine_->next_due(), batch_due()) - now, until - now});
  if (lend) {
    lend(least);
  } else if (config_.nap_ns > 0) {
    nap(least);
  } else {
    relax();
  }
}

/// Answers first. A timer that is due comes before the next packet, which is stamped later, as it
/// would in replay; a few for each packet, so that neither starves the other. A batch when it is
/// due.
bool LiveDriver::step() {
  if (take_answer()) return true;
  bool worked = take_due();
  worked |= take_packet();
  if (engine_->waiting() != nullptr) worked |= take_batch();
  return worked;
}

bool LiveDriver::take_due() {
  const Ts now = stamp();
  if (engine_->next_due() > now) return false;
  fire_due(now);
  return true;
}

void LiveDriver::fire_due(Ts now) {
  engine_->wake(now);
  engine_->on_due(now);
  engine_->settle(engine_->now());
  speak();
  send();
  engine_->rest();
}

bool LiveDriver::swap(Swap swap) {
  if (!trading_) return false;
  const Ts now = stamp();
  engine_->wake(now);
  engine_->swap(std::move(swap), now);
  return true;
}

bool LiveDriver::take_answer() {
  const Update* u = venue_.answers.poll();
  if (u == nullptr) return false;
  const Update copy = *u;
  venue_.answers.release();
  answer(copy);
  return true;
}

void LiveDriver::answer(Update u) {
  const Ts now = stamp();
  u.ts_recv = now;
  const Instrument& inst = engine_->market(u.instrument).inst;
  if (u.kind == Update::Kind::FILL) {
    u.money = inst.fee(u.maker, u.lots, u.price);
    keep_fill(u);  // first: a handler may throw
  } else if (u.kind == Update::Kind::FUNDING) {
    u.money = inst.funding(u.lots, u.price, u.money);  // the venue gives the rate
  }
  engine_->wake(now);
  engine_->on_update(u, now);
  engine_->settle(engine_->now());
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
  Ts now = stamp();
  // A timer and the clock of a features row are often late together, and the row must not hold what
  // came after its instant: training's does not.
  for (int n = 0; n < kDueAPacket && engine_->next_due() <= now; ++n, now = stamp()) fire_due(now);
  take_out_own(packet_);
  if (packet_.empty()) return;
  for (Event& e : packet_) e.ts_recv = now;
  Market& m = engine_->market(packet_.front().instrument);
  Markouts& open = markouts_[m.inst.id];
  if (const Ts ts = packet_.front().ts_event; open.next_due() < ts)  // what stood until this packet
    open.read(fills_, ts - 1, m.book.live() ? m.book.mid2() : kNoPrice);
  market_file_.append(packet_.data(), packet_.size() * sizeof(Event));
  const auto rows = static_cast<std::int64_t>(packet_.size());
  engine_->journal.append({now, 0, 0, 0, rows_, rows, digest_of(packet_.data(), packet_.size()),
                           m.inst.id, RecordKind::PACKET, 0});
  engine_->wake(now);
  for (const Event& e : packet_) engine_->on_row(m, e, rows_++);
  packet_.clear();
  engine_->on_packet(m, now);
  engine_->settle(engine_->now());
  speak();
  send();
  engine_->rest();
}

Ts LiveDriver::batch_due() const noexcept {
  const Batcher* const waiting = engine_->waiting();
  if (waiting == nullptr || waiting->empty()) return kNever;
  return waiting->since() + config_.hold_ns;
}

bool LiveDriver::more_to_take() noexcept {
  return venue_.market.poll() != nullptr || engine_->next_due() <= stamp();
}

bool LiveDriver::take_batch() {
  const Batcher& waiting = *engine_->waiting();
  const Ts now = stamp();
  if (batch_due() > now && !waiting.full()) return false;
  if (std::exchange(waited_since_, waiting.since()) != waiting.since()) turns_waited_ = 0;
  if (config_.hold_ns == 0 && !waiting.full() && turns_waited_++ < waiting.most() && more_to_take())
    return false;
  engine_->wake(now);
  engine_->on_batch(now);
  speak();
  send();
  engine_->rest();
  return true;
}

/// Native models answered inside the engine; each result is an input of its own, stamped when it is
/// there.
void LiveDriver::speak() {
  for (std::size_t i = 0; i < engine_->requests.size(); ++i) {
    Signal s = std::move(engine_->requests[i]);
    if (!s.reused) {  // as in a replay: times of what was computed, of a batch one service
      waits_.add(s.ts_start - s.ts_features);
      if (s.ts_start != served_) services_.add(s.ts_end - s.ts_start);
      served_ = s.ts_start;
    }
    const Ts now = stamp();
    engine_->wake(now);
    engine_->on_signal(s, now);
    engine_->settle(engine_->now());
    engine_->done(std::move(s));
  }
  engine_->requests.clear();
}

void LiveDriver::send() {
  if (engine_->outbox.empty()) return;
  const Ts handled = stamp();
  for (Command& c : engine_->outbox) {
    c.ts_send = stamp();
    if (c.kind == Command::Kind::NEW) {
      OrderRow& row = engine_->orders()[c.order].row;
      row.ts_handled = handled;
      row.ts_send = c.ts_send;
    }
    Command* slot = venue_.commands.claim();
    if (slot == nullptr)
      throw CoreError("the venue's command queue is full: " +
                      std::to_string(venue_.commands.capacity()) + " messages unread");
    *slot = c;
    venue_.commands.publish();
  }
  engine_->outbox.clear();
}

/// What is on its way still arrives, so answers are taken until nothing of ours lives. The market
/// is over, as it is for a replay that has come to its last row.
void LiveDriver::wind_down() {
  const SimVenueConfig& wire = venue_.config();
  const Ts until = clock_.now() + kWindDown + 2 * (wire.entry_ns + wire.response_ns);
  const int asked = asked_.load(std::memory_order_relaxed);
  while (any_alive(*engine_) && clock_.now() < until) {
    if (take_answer()) continue;
    poll();
    if (asked_.load(std::memory_order_relaxed) > asked) {
      interrupted_ = true;
      break;
    }
    nap(kIdleNap);
  }
  close();
}

void LiveDriver::close() {
  if (end_ != kNoTime) return;
  end_ = stamp();
  venue_.stop();
  for (const Market& m : engine_->markets())
    for (Order* o : m.live) {
      o->row.state = OrderState::UNKNOWN;
      ++unanswered_;
    }
  engine_->sample(end_);
  const auto records = static_cast<std::int64_t>(engine_->journal.appended());
  engine_->journal.append({end_, 0, 0, 0, records, 0, 0, 0, RecordKind::END, 0});
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
  f.position = m.account.position + engine_->orders()[u.order].row.side * u.lots;
  std::fill(std::begin(f.markout_mid2), std::end(f.markout_mid2), kNoPrice);
  f.instrument = u.instrument;
  f.side = engine_->orders()[u.order].row.side;
  f.maker = u.maker;
  f.reason = u.fill_reason;
  markouts_[u.instrument].add(static_cast<std::uint32_t>(fills_.size()), f.ts_venue);
  fills_.push_back(f);
}

// ---- verification ----

void VerifyDriver::run(const Record* records, std::size_t n, const Event* rows,
                       std::size_t n_rows) {
  engine_->journal_every_timer = true;
  const auto failed_after = [&](std::size_t i) {
    while (++i < n)
      if (records[i].kind == RecordKind::STOP) return records[i].a == kAbandoned;
    return false;
  };
  bool silent = false;
  retelling_.emplace(records, n);
  retelling_->listen(*engine_, swaps);
  for (at_ = 0; at_ < n; ++at_) {
    retelling_->at(at_);
    try {
      feed(records[at_], rows, n_rows);
    } catch (const DataError&) {
      throw;
    } catch (...) {
      if (silent || !failed_after(at_)) throw;
      silent = true;
      calls.silence();
    }
    engine_->outbox.clear();
  }
}

void VerifyDriver::feed(const Record& r, const Event* rows, std::size_t n_rows) {
  Engine& e = *engine_;
  if (r.instrument >= e.markets().size())
    throw DataError("journal record " + std::to_string(at_) + " names instrument " +
                    std::to_string(r.instrument) + ", the run has " +
                    std::to_string(e.markets().size()));
  switch (r.kind) {
    case RecordKind::START:
      if (r.c != 0) e.batch(r.c);
      e.wake(r.ts);
      e.start(r.ts, r.b);
      calls.start();
      break;
    case RecordKind::PACKET:
      packet(r, rows, n_rows);
      break;
    case RecordKind::UPDATE:
      e.wake(r.ts);
      e.on_update(update_of(r), r.ts);
      break;
    case RecordKind::SIGNAL: {
      if (e.requests.empty())
        throw CoreError("journal record " + std::to_string(at_) +
                        " is a signal where the engine asked no model");
      const Signal s = std::move(e.requests.front());
      e.requests.erase(e.requests.begin());
      e.wake(r.ts);
      e.on_signal(s, r.ts);
      break;
    }
    case RecordKind::BATCH:
      e.wake(r.ts);
      e.on_batch(r.ts);
      return;
    case RecordKind::TIMER:
    case RecordKind::CLOCK:
      e.wake(r.ts);
      e.on_due(r.ts);
      break;
    case RecordKind::SWAP: {
      if (r.b != 0) return;  // an output
      const auto asked = std::ranges::find(swaps, r.order, &Swap::number);
      if (asked == swaps.end())
        throw DataError("journal record " + std::to_string(at_) + " (SWAP) asks for bundle " +
                        std::to_string(r.order) + ", which is not at hand");
      e.wake(r.ts);
      e.swap(std::move(*asked), r.ts);
      swaps.erase(asked);
      return;
    }
    case RecordKind::STOP:
      if (r.a == kAbandoned) {
        calls.silence();  // what ended it need not have been a handler
        const auto failed = model_failure_of(r);
        e.abandon(r.ts, r.a, failed ? &*failed : nullptr);
      } else {
        stop_engine(e, calls, r.ts);
      }
      return;
    case RecordKind::END:
      e.journal.append({r.ts, 0, 0, 0, static_cast<std::int64_t>(e.journal.appended()), 0, 0, 0,
                        RecordKind::END, 0});
      return;
    default:
      return;  // outputs: the engine makes its own
  }
  e.settle(e.now());
}

void VerifyDriver::packet(const Record& r, const Event* rows, std::size_t n_rows) {
  const auto first = static_cast<std::size_t>(r.a), size = static_cast<std::size_t>(r.b);
  const auto who = [&] { return "journal record " + std::to_string(at_) + " (PACKET)"; };
  if (r.a < 0 || r.b <= 0 || first + size > n_rows)
    throw DataError(who() + " points to market rows " + std::to_string(r.a) + " to " +
                    std::to_string(r.a + r.b) + ", the market file has " + std::to_string(n_rows));
  if (digest_of(rows + first, size) != r.c)
    throw DataError("market rows " + std::to_string(first) + " to " +
                    std::to_string(first + size - 1) + " are damaged: they are not what " + who() +
                    " saw");
  Engine& e = *engine_;
  Market& m = e.market(r.instrument);
  e.journal.append(r);
  e.wake(r.ts);
  for (std::size_t i = first; i < first + size; ++i)
    e.on_row(m, rows[i], static_cast<std::int64_t>(i));
  e.on_packet(m, r.ts);
}

}  // namespace hft
