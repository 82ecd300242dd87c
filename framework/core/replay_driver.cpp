#include "replay_driver.hpp"

#include <chrono>

namespace hft {

namespace {

constexpr std::int64_t kPollEvery = 1 << 12;
constexpr std::size_t kPrefetchRows = 16;
constexpr std::size_t kMostWaiting = 1 << 14;  // changes of levels between the two books
// What could not be sold is tried again; as long as nothing goes, each time twice as long after.
constexpr Ns kFlattenAgain = 100'000'000, kFlattenSeldom = 10'000'000'000;

Ns wall_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

ReplayDriver::ReplayDriver(Engine& engine, ReplayConfig config, std::vector<VenueConfig> venues)
    : engine_(&engine),
      config_(std::move(config)),
      server_(config_.server),
      listings_(engine.markets().size()),
      is_active_(engine.markets().size()),
      wind_down_(engine.markets().size()) {
  server_.on_drop = [this](const Signal& row) { engine_->on_drop(row); };
  for (std::size_t v = 0; v < venues.size(); ++v) {
    entries_.emplace_back(venues[v]);
    venues_.push_back(std::make_unique<TapeVenue>(std::move(venues[v]), engine.orders(), fills_));
    least_response_ = std::min(least_response_, venues_.back()->least_response());
    venues_.back()->watch(&horizon_, &stirred_);
  }
  for (std::size_t i = 0; i < listings_.size(); ++i) {
    Market& m = engine.markets()[i];
    m.book.keeps = venues_[m.inst.venue_id]->keeps();
    const TapeVenue& venue = *venues_[m.inst.venue_id];
    venue.open(listings_[i], m.inst);
    if (engine.sees_own() && venue.leaves_marks()) m.own.follow(venue.marks(m.inst));
  }
}

ReplayDriver::Entry::Entry(const VenueConfig& venue)
    : legs{venue.entry, venue.entry_cancel.value_or(venue.entry),
           venue.entry_replace.value_or(venue.entry)},
      response(venue.response),
      channel(venue.ordering) {}

void ReplayDriver::Entry::send(Command& c) {
  const std::uint64_t n = nth(c.ts_send);
  const Latency& leg = legs[static_cast<std::size_t>(c.kind) - 1];
  c.ts_arrive = channel.deliver(c.ts_send, leg.of(c.order, c.ts_send, n));
  c.response_ns = response.of(c.order, c.ts_send, n);
  put_in_flight(wire, c, &Command::ts_arrive);
}

void ReplayDriver::add_stream(InstrumentId inst, Stream stream, bool one_book_of_orders) {
  if (inst != streams_.size()) throw CoreError("streams must be added in order of instrument");
  streams_.push_back(std::move(stream));
  if (!one_book_of_orders) return;
  listings_[inst].book.lead(engine_->market(inst).book);
  venues_lead_ = true;
}

void ReplayDriver::set_impact(InstrumentId inst, ImpactConfig impact) {
  impact.validate();
  listings_.at(inst).overlay = Overlay(std::move(impact));
}

void ReplayDriver::wind_down(InstrumentId inst, Ts ts) { wind_down_.at(inst).next = ts; }

void ReplayDriver::swap_at(Ts ts, Swap swap) {
  if (!swaps_.empty() && ts < swaps_.back().ts)
    throw CoreError("swaps must be added in order of time");
  swaps_.push_back({ts, std::move(swap)});
}

std::int64_t ReplayDriver::rows(InstrumentId inst) const noexcept {
  if (inst >= streams_.size()) return 0;
  return std::max(streams_[inst].venue.row(), streams_[inst].local.row());
}

std::int64_t ReplayDriver::rows() const noexcept {
  std::int64_t sum = 0;
  for (InstrumentId i = 0; i < streams_.size(); ++i) sum += rows(i);
  return sum;
}

void ReplayDriver::run() {
  const Ns began = wall_ns();
  start_ = kNever;
  for (Stream& s : streams_) {
    s.open();
    start_ = std::min({start_, s.venue.ts, s.local.ts});
  }
  if (start_ == kNever) throw DataError("there are no rows to replay");
  for (WindDown& w : wind_down_) w.next = std::max(w.next, start_);
  next_wind_down_ = std::ranges::min(wind_down_, {}, &WindDown::next).next;
  next_sample_ =
      config_.sample_ns > 0 ? start_ - start_ % config_.sample_ns + config_.sample_ns : kNever;
  handle(start_, [&] {
    engine_->start(engine_->now());
    if (on_start) on_start();
  });
  end_ = start_;
  while (step()) {
    if (++steps_ % kPollEvery == 0 && poll && !poll(rows(), engine_->now())) {
      interrupted_ = true;
      break;
    }
  }
  if (venues_lag_) catch_up_venues(end_);
  if (!interrupted_) count_the_rest();
  end_ = std::max(end_, engine_->now());
  handle(end_, [&] {
    engine_->stop(engine_->now());
    if (on_stop && !interrupted_) on_stop();
    engine_->risk().halted = true;  // as live: after on_stop only what flattens passes
  });
  drain();
  // Books run one after the other, a stretch each: in order of the venue's clock again.
  const auto earlier = [](const FillRow& a, const FillRow& b) {
    return a.ts_venue != b.ts_venue ? a.ts_venue < b.ts_venue : a.instrument < b.instrument;
  };
  if (streams_.size() > 1) std::stable_sort(fills_.begin(), fills_.end(), earlier);
  engine_->sample(end_);
  total_ns = wall_ns() - began;
}

/// Delivers the next input; false at the end of the data.
bool ReplayDriver::step() {
  if (venues_lag_ && !rows_for_us())
    catch_up_venues(end_);  // whether there is more to come depends on them
  Next next = next_input();
  if (next.what == Input::NONE || next.ts > config_.until) return false;
  // Timers and samples go on as long as there is market to come, not beyond it.
  if (next.what >= Input::DUE && !more_to_come()) return false;
  const bool profile = engine_->profile;
  const Ns t0 = profile ? wall_ns() : 0;
  // Whatever a venue has not done yet is answered from `quiet_until_` on: so far it may lag, and
  // many books run in long stretches instead of a packet at a time.
  venues_lag_ = next.ts < quiet_until_ && !venues_lead_;
  if (!venues_lag_) quiet_until_ = advance_venues(next.ts) + least_response_;
  if (answered_by(next.ts)) next = next_input();  // an answer came first: by time, or by rank
  const Ns t1 = profile ? wall_ns() : 0;
  if (!engine_->wants_packets()) {
    advance_books(next.ts, next.what != Input::UPDATE);
    if (venues_lag_ && !rows_for_us()) catch_up_venues(next.ts);
    if (next.what >= Input::DUE && next.ts > books_at_ && !more_to_come()) return false;
  }
  if (profile) {
    venue_ns += t1 - t0;
    book_ns += wall_ns() - t1;
  }
  end_ = next.ts;
  deliver(next);
  return true;
}

bool ReplayDriver::rows_for_us() const noexcept {
  return std::any_of(streams_.begin(), streams_.end(),
                     [](const Stream& s) { return s.local.ts != kNever; });
}

void ReplayDriver::catch_up_venues(Ts until) {
  venues_lag_ = false;
  advance_venues(until);
}

bool ReplayDriver::more_to_come() const noexcept {
  for (std::size_t i = 0; i < streams_.size(); ++i)
    if (streams_[i].local.ts != kNever || (is_active_[i] && streams_[i].venue.ts != kNever))
      return true;
  return in_flight();
}

bool ReplayDriver::answered_by(Ts ts) const noexcept {
  for (const auto& v : venues_)
    if (!v->responses().empty() && v->responses().front().ts_recv <= ts) return true;
  return false;
}

ReplayDriver::Next ReplayDriver::next_input() const noexcept {
  Next next;
  for (std::uint32_t v = 0; v < venues_.size(); ++v) {
    const auto& responses = venues_[v]->responses();
    if (!responses.empty() && responses.front().ts_recv < next.ts)
      next = {responses.front().ts_recv, Input::UPDATE, v};
  }
  if (engine_->wants_packets()) {
    for (std::uint32_t i = 0; i < streams_.size(); ++i)
      if (streams_[i].local.ts < next.ts) next = {streams_[i].local.ts, Input::PACKET, i};
    if (server_.due() < next.ts) next = {server_.due(), Input::SIGNAL, 0};
    if (!given_again_.empty() && given_again_.front().ts_end < next.ts)
      next = {given_again_.front().ts_end, Input::SIGNAL, 1};
  }
  const Ts due = engine_->next_due();
  if (due < next.ts) next = {due, Input::DUE, 0};
  if (!swaps_.empty() && swaps_.front().ts < next.ts) next = {swaps_.front().ts, Input::SWAP, 0};
  if (next_wind_down_ < next.ts) next = {next_wind_down_, Input::WIND_DOWN, 0};
  if (next_sample_ < next.ts) next = {next_sample_, Input::SAMPLE, 0};
  if (next.what == Input::NONE) {  // only rows that nobody listens to are left
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      const Ts ts = streams_[i].local.ts != kNever ? streams_[i].local.ts
                    : is_active_[i]                ? streams_[i].venue.ts
                                                   : kNever;
      if (ts < next.ts) next = {ts, Input::SAMPLE, 1};
    }
    for (std::uint32_t v = 0; v < entries_.size(); ++v)
      if (!entries_[v].wire.empty() && entries_[v].wire.front().ts_arrive < next.ts)
        next = {entries_[v].wire.front().ts_arrive, Input::SAMPLE, 1};
  }
  return next;
}

void ReplayDriver::deliver(const Next& next) {
  switch (next.what) {
    case Input::UPDATE: {
      auto& responses = venues_[next.which]->responses();
      const Update u = responses.front();
      responses.pop_front();
      if (u.fill >= 0) fills_[static_cast<std::size_t>(u.fill)].ts_recv = u.ts_recv;
      handle(u.ts_recv, [&] { engine_->on_update(u, engine_->now()); });
      break;
    }
    case Input::PACKET:
      apply_packet(next.which);
      break;
    case Input::SIGNAL:
      if (next.which == 1) {
        const Signal again = std::move(given_again_.front());
        given_again_.pop_front();
        handle(next.ts, [&] { engine_->on_signal(again, engine_->now()); });
        break;
      }
      for (const Signal& done : server_.complete())
        handle(next.ts, [&] { engine_->on_signal(done, engine_->now()); });
      break;
    case Input::DUE:
      handle(next.ts, [&] { engine_->on_due(engine_->now()); });
      ask(next.ts);
      break;
    case Input::SWAP: {
      SwapAt due = std::move(swaps_.front());
      swaps_.pop_front();
      handle(next.ts, [&] { engine_->swap(std::move(due.swap), engine_->now()); });
      break;
    }
    case Input::WIND_DOWN:
      end_trading(next.ts);
      break;
    case Input::SAMPLE:
      if (next.which == 0) {
        engine_->sample(next.ts);
        next_sample_ += config_.sample_ns;
      }
      break;
    case Input::NONE:
      break;
  }
}

void ReplayDriver::end_trading(Ts ts) {
  const auto at = std::ranges::find(wind_down_, ts, &WindDown::next);
  const auto inst = static_cast<InstrumentId>(at - wind_down_.begin());
  bool again = false;
  handle(ts, [&] { again = engine_->wind_down(inst, engine_->now()); });
  const Lots left = engine_->market(inst).account.position;
  at->wait =
      left == at->left ? std::clamp(2 * at->wait, kFlattenAgain, kFlattenSeldom) : kFlattenAgain;
  at->left = left;
  at->next = again ? ts + at->wait : kNever;
  next_wind_down_ = std::ranges::min(wind_down_, {}, &WindDown::next).next;
}

/// Gives one input to the engine at the time the strategy's thread is free, and sends what came out
/// when the compute time is over.
template <class F>
void ReplayDriver::handle(Ts ts, F&& input) {
  const Ts begins = std::max(ts, busy_until_);
  engine_->wake(begins);
  engine_->handled = false;
  input();
  engine_->settle(begins);
  if (!engine_->handled && engine_->outbox.empty()) return;
  const Ts handled = begins + config_.compute.at(begins, nth_call_(begins));
  busy_until_ = engine_->outbox.empty() ? handled : dispatch(handled);
}

/// Each message passes the gate in turn; the time when the last has left.
Ts ReplayDriver::dispatch(Ts handled) {
  Ts leave = handled;
  std::uint64_t n = 0;
  for (Command& c : engine_->outbox) {
    c.ts_send = leave += config_.risk.at(handled, n++);
    if (c.kind == Command::Kind::NEW) {
      OrderRow& row = engine_->orders()[c.order].row;
      row.ts_handled = handled;
      row.ts_send = c.ts_send;
    }
    entries_[engine_->market(c.instrument).inst.venue_id].send(c);
    activate(c.instrument);
  }
  engine_->outbox.clear();
  return leave;
}

// ---- the venue's clock ----

/// Moves every venue that holds something of ours to `until`, or to the first answer on the way.
Ts ReplayDriver::advance_venues(Ts until) {
  horizon_ = until;
  for (;;) {
    Ts command = kNever;
    std::uint32_t venue = 0;
    for (std::uint32_t v = 0; v < entries_.size(); ++v)
      if (!entries_[v].wire.empty() && entries_[v].wire.front().ts_arrive < command) {
        command = entries_[v].wire.front().ts_arrive;
        venue = v;
      }
    Ts limit = horizon_;
    if (active_.size() > 1) {
      // Several books may answer: an answer made after `next` reaches us no sooner than `next` +
      // the shortest response, so they may run that far apart. A venue's answers are put in order
      // after.
      Ts next = command;
      Ns least = kNever;
      for (const InstrumentId i : active_) next = std::min(next, streams_[i].venue.ts);
      for (const auto& v : venues_) least = std::min(least, v->least_response());
      if (next < limit) limit = std::min(limit, next + least);
    }
    const Ts stop = std::min(limit, command);
    const bool several = active_.size() > 1;
    if (several)
      for (const auto& v : venues_) v->hold();
    for (std::size_t k = 0; k < active_.size(); ++k) run_rows(active_[k], std::min(stop, horizon_));
    if (several)
      for (const auto& v : venues_) v->release();
    if (command <= std::min(limit, horizon_)) {
      const Command c = entries_[venue].wire.front();
      entries_[venue].wire.pop_front();
      run_rows(c.instrument, c.ts_arrive);
      venues_[venue]->on_command(listings_[c.instrument], c);
      continue;
    }
    if (limit >= horizon_) break;
  }
  std::erase_if(active_, [&](InstrumentId i) {
    if (listings_[i].busy()) return false;
    for (const Command& c : entries_[listings_[i].inst->venue_id].wire)
      if (c.instrument == i) return false;
    is_active_[i] = 0;
    return true;
  });
  return horizon_;
}

void ReplayDriver::run_rows(InstrumentId inst, Ts limit) {
  Stream& s = streams_[inst];
  Listing& l = listings_[inst];
  TapeVenue& venue = *venues_[l.inst->venue_id];
  for (;;) {
    const Ts stop = std::min({limit, horizon_, l.markouts.next_due()});
    stirred_ = false;
    while (s.venue.ts <= stop) {
      if (s.venue.end - s.venue.at > static_cast<std::ptrdiff_t>(kPrefetchRows))
        __builtin_prefetch(s.venue.at + kPrefetchRows);
      venue.on_row(l, *s.venue.at, s.venue.row());
      s.advance_venue();
      if (stirred_) [[unlikely]]
        break;
    }
    if (stirred_) continue;
    // Beyond the last row nobody knows the mid, whatever else there is to wait for.
    if (s.venue.ts != kNever && l.markouts.next_due() <= std::min(limit, horizon_)) {
      l.markouts.read(fills_, l.markouts.next_due(), l.book.mid2());
      continue;
    }
    return;
  }
}

/// A venue with nothing of ours may stay behind, but not so far that rows pile up.
void ReplayDriver::catch_up(InstrumentId inst, Ts until) {
  const Stream& s = streams_[inst];
  const bool near = s.venue.chunk >= s.local.chunk && listings_[inst].book.waiting() < kMostWaiting;
  if (is_active_[inst] || near) return;
  horizon_ = kNever;
  run_rows(inst, until);
}

/// Rows of books that held nothing of ours at the end: what the market traded there counts too.
void ReplayDriver::count_the_rest() {
  horizon_ = kNever;
  for (InstrumentId i = 0; i < streams_.size(); ++i)
    if (!is_active_[i]) run_rows(i, end_);
}

void ReplayDriver::activate(InstrumentId inst) {
  if (is_active_[inst]) return;
  horizon_ = kNever;  // it stayed behind; nothing of ours was there, so nothing answers on the way
  run_rows(inst, engine_->now());
  is_active_[inst] = 1;
  active_.push_back(inst);
}

// ---- our clock ----

void ReplayDriver::advance_books(Ts until, bool including) {
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    Stream& s = streams_[i];
    Market& m = engine_->markets()[i];
    const Ts stop = including ? until : until - 1;
    if (s.local.ts > stop) continue;
    Ts ts = s.local.ts;
    while (s.local.ts <= stop) {
      ts = s.local.ts;
      engine_->apply_quietly(m, *s.local.at);
      m.row = s.local.row();
      s.advance_local();
    }
    books_at_ = std::max(books_at_, ts);
    catch_up(static_cast<InstrumentId>(i), until);
  }
}

void ReplayDriver::apply_packet(InstrumentId inst) {
  Stream& s = streams_[inst];
  Market& m = engine_->market(inst);
  const Ts ts = s.local.ts;
  const Ns t0 = engine_->profile ? wall_ns() : 0;
  const Ns features = engine_->stages.features;
  bool last = false;
  while (!last && s.local.ts == ts) {  // a packet ends with LAST, or where our clock moves on
    const Event& e = *s.local.at;
    last = e.flags & LAST;
    engine_->on_row(m, e, s.local.row());
    s.advance_local();
  }
  if (engine_->profile) book_ns += wall_ns() - t0 - (engine_->stages.features - features);
  catch_up(inst, ts);
  handle(ts, [&] { engine_->on_packet(m, engine_->now()); });
  ask(ts);
}

/// Rows go to the server; an answer that is given again needs none and is there at once.
void ReplayDriver::ask(Ts ts) {
  if (engine_->requests.empty()) return;
  for (Signal& signal : engine_->requests) {
    if (!signal.reused) continue;
    signal.ts_start = signal.ts_end = ts;
    given_again_.push_back(std::move(signal));
  }
  std::erase_if(engine_->requests, [](const Signal& signal) { return signal.reused; });
  if (!engine_->requests.empty()) server_.offer(engine_->requests, ts);
}

// ---- the end ----

bool ReplayDriver::in_flight() const noexcept {
  for (const auto& v : venues_)
    if (!v->responses().empty()) return true;
  for (const auto& e : entries_)
    if (!e.wire.empty()) return true;
  return (server_.busy() || !given_again_.empty()) && engine_->wants_packets();
}

/// The market is over; what was sent still travels, meets the last book and is answered.
void ReplayDriver::drain() {
  // A strategy that flattens whenever it is refused would never end; answers always do.
  const std::size_t most = 4 * engine_->orders().size() + 64;
  for (std::size_t arrivals = 0; arrivals < most;) {
    Ts ts = kNever;
    for (const auto& v : venues_)
      if (!v->responses().empty()) ts = std::min(ts, v->responses().front().ts_recv);
    for (const auto& e : entries_)
      if (!e.wire.empty() && e.wire.front().ts_arrive <= ts) {
        ts = e.wire.front().ts_arrive;
        ++arrivals;
      }
    if (ts == kNever) return;
    advance_venues(ts);
    Next next;
    for (std::uint32_t v = 0; v < venues_.size(); ++v)
      if (!venues_[v]->responses().empty() && venues_[v]->responses().front().ts_recv < next.ts)
        next = {venues_[v]->responses().front().ts_recv, Input::UPDATE, v};
    if (next.what == Input::UPDATE && next.ts <= std::max(ts, horizon_)) deliver(next);
    end_ = std::max(end_, engine_->now());
  }
}

}  // namespace hft
