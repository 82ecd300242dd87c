#include "tape_venue.hpp"

#include <utility>

namespace hft {

void VenueConfig::validate() const {
  impact.validate();
  slippage.validate();
  if (participation_window_ns <= 0)
    throw ConfigError("participation_window is " + std::to_string(participation_window_ns) +
                      " ns: expected more than 0");
  if (!(fade >= 0) || !(fade < 1))
    throw ConfigError("fade is " + std::to_string(fade) + ": expected a share below 1");
}

void TapeVenue::open(Listing& l, Instrument& inst) const {
  l.inst = &inst;
  l.book.keeps = config_.keeps;
  l.footprint = Footprint(marks(inst));
  l.overlay = Overlay(config_.impact);
  l.lately = Participation(config_.participation_window_ns);
}

FootprintConfig TapeVenue::marks(const Instrument& inst) const noexcept {
  return {config_.refill_half_life_ns, config_.refill_probability,
          config_.matching == Matching::PRO_RATA, config_.seed, inst.id};
}

// ---- the tape moves ----

void TapeVenue::on_hot_level(Listing& l, const Event& e, std::int64_t key, std::int64_t row) {
  const int s = side_index(e.side);
  const Lots before = l.book.side(e.side).set(key, e.qty);
  // A level that is only no longer shown may still be there: our place in it stays.
  const bool out_of_view = e.qty == 0 && (e.flags & UNCERTAIN);
  const auto own = std::ranges::find(l.own[s], key, &Listing::OwnLevel::key);
  if (own != l.own[s].end() && !out_of_view) {
    const double place = queue_.draws() ? Queue::draw(config_.seed, l.inst->id, row) : 0;
    for (Order* o : own->fifo) queue_.resize(o->venue, before, e.qty, e.ts_event, place);
  }
  if (!l.footprint.empty(e.side)) [[unlikely]]
    l.footprint.on_level(l.book, e.side, key, before, e.qty, e.ts_event);
}

/// A row about one order of the tape.
void TapeVenue::on_order(Listing& l, const Event& e, std::int64_t row) {
  if (e.kind == Kind::EXECUTE) {
    if (!(e.flags & NO_PRINT)) l.lately.on_print(e.qty, e.ts_event);
    if (l.own_best[side_index(e.side)] != kNoKey || !l.footprint.empty(e.side))
      on_execute(l, e, row);
  }
  const auto changes = l.book.apply_order(e);
  bool hot = false;
  for (const OrderBook::Change& c : changes) hot |= l.book.side(c.side).hot(c.key);
  if (hot) [[unlikely]]
    on_hot_changes(l, e, changes);
  for (const OrderBook::Change& c : changes)
    if (c.gone < 0 && l.own_best[1 - side_index(c.side)] >= -c.key) [[unlikely]]
      on_crossed(l, as_level(e, c), row);
}

/// An order of the tape came, left or changed where something of ours is: we know whether it stands
/// before us.
void TapeVenue::on_hot_changes(Listing& l, const Event& e,
                               std::span<const OrderBook::Change> changes) {
  for (const OrderBook::Change& c : changes) {
    const int s = side_index(c.side);
    const auto own = std::ranges::find(l.own[s], c.key, &Listing::OwnLevel::key);
    if (own == l.own[s].end()) continue;
    for (Order* o : own->fifo)
      if (c.arrival < o->venue.arrival)
        o->venue.ahead = std::max(o->venue.ahead - static_cast<double>(c.gone), 0.0);
  }
  if (!l.footprint.empty()) l.footprint.on_changes(l.book, e, changes);
}

/// The other side's size appeared at or through our price: in a market with us in it, it would have
/// met us first. It fills us up to what it shows and is used up by that, so that the same size seen
/// again fills nothing.
void TapeVenue::on_crossed(Listing& l, const Event& e, std::int64_t row) {
  if (!config_.fill_on_cross || l.book.trading != Trading::OPEN ||
      l.book.state == BookState::SYNCING)
    return;
  const int s = side_index(-e.side);
  const std::int64_t key = e.price * e.side;
  Lots left = config_.partial_fills ? l.footprint.available(l.book, e.side, key, e.ts_event) : 0;
  Lots used = 0;
  while (!l.own[s].empty() && l.own[s].front().key >= -key) {
    auto& level = l.own[s].front();
    for (Order* o : level.fifo) {
      const Lots lots =
          config_.partial_fills ? std::min(left, o->venue.leaves()) : o->venue.leaves();
      if (lots == 0) break;
      fill(l, *o, lots, o->venue.price, true, FillReason::CROSSED, e.ts_event, row);
      left -= lots;
      used += lots;
    }
    const std::size_t size = l.own[s].size();
    drop_finished(l, s, 0);
    if (l.own[s].size() == size) break;
  }
  if (config_.partial_fills && used > 0) l.footprint.take(l.book, e.side, key, used, e.ts_event);
}

/// A print goes to our better-priced orders first, then along the queue at its own price; each own
/// order gets what the ones before it left. On a tape of orders it is a hidden order's or a
/// cross's: the queue at its price stays as it is.
void TapeVenue::on_print(Listing& l, const Event& e, int resting, std::int64_t row) {
  if (l.book.trading != Trading::OPEN || (e.flags & NO_CHANGE)) return;
  const int s = side_index(resting);
  const std::int64_t key = e.price * resting;
  const bool by_size = config_.matching == Matching::PRO_RATA;
  const bool by_levels = l.book.orders() == nullptr;
  bool opened = false;
  const auto reached = [&](Listing::OwnLevel& level, Order& o, Lots shared) {
    const Lots left = std::max(e.qty - shared, Lots{0});
    if (level.key > key) return left;
    const Lots in_queue = queue_.print(o.venue, e.qty, shared, e.ts_event);
    if (!by_size) return in_queue;
    if (!std::exchange(opened, true)) open_pro_rata(l, s, level, left, e.ts_event);
    return pro_rata(l, s, level.key, o);
  };
  const Lots ours = share(l, e, s, key, by_levels, row, reached);
  if (by_levels && e.qty > ours)
    l.footprint.on_print(l.book, resting, key, e.qty - ours, e.ts_event);
}

/// Somebody took `qty` from one order of the tape. With us in the queue it would have met our
/// better-priced orders first, then those of ours that stand before that order. What the tape's
/// order lost it lost all the same: a recorded market does not react.
void TapeVenue::on_execute(Listing& l, const Event& e, std::int64_t row) {
  if (e.side == NO_SIDE) return;
  OrderBook::Resting x{e.price * e.side, 0, 0, e.side};
  const bool known = l.book.orders() && l.book.orders()->find(e.order_id, x);
  const int s = side_index(x.side);
  const bool by_size = config_.matching == Matching::PRO_RATA;
  bool opened = false;
  const auto reached = [&](Listing::OwnLevel& level, Order& o, Lots shared) {
    const Lots left = std::max(e.qty - shared, Lots{0});
    if (level.key > x.key) return left;
    if (by_size) {
      if (!std::exchange(opened, true)) open_pro_rata(l, s, level, left, e.ts_event);
      return pro_rata(l, s, level.key, o);
    }
    if (x.arrival >= o.venue.arrival) return left;
    // It stands before us; only a queue that was told anew may hold less than it trades.
    return std::max<Lots>(left - std::llround(o.venue.ahead), 0);
  };
  const bool open = l.book.trading == Trading::OPEN;
  const Lots ours = open ? share(l, e, s, x.key, known, row, reached) : e.qty;
  if (known && !l.footprint.empty(x.side)) [[unlikely]]
    l.footprint.on_execute(l.book, x.side, x.key, std::max(e.qty - ours, Lots{0}),
                           e.flags & NO_CHANGE ? e.qty : 0, e.ts_event);
}

/// Gives our orders of side `s` that are better than `key`, and `at_key` those at it, what
/// `reached(level, order, shared)` says reaches them when `shared` lots went to others of ours.
/// Returns what went to ours.
template <class F>
Lots TapeVenue::share(Listing& l, const Event& e, int s, std::int64_t key, bool at_key,
                      std::int64_t row, F&& reached) {
  auto& levels = l.own[s];
  Lots taken = 0;
  for (std::size_t i = 0; i < levels.size() && levels[i].key >= key + !at_key;) {
    const bool through = levels[i].key > key;
    for (Order* o : levels[i].fifo) {
      const Lots leaves = o->venue.leaves();
      Lots lots = reached(levels[i], *o, config_.share_prints ? taken : 0);
      if (through && config_.through_fills_all) lots = leaves;
      if (!config_.partial_fills && lots > 0) lots = leaves;
      lots = std::min(lots, leaves);
      if (lots == 0) continue;
      taken += lots;
      fill(l, *o, lots, o->venue.price, true, through ? FillReason::THROUGH : FillReason::QUEUE,
           e.ts_event, row);
    }
    const std::size_t size = levels.size();
    drop_finished(l, s, i);
    if (levels.size() == size) ++i;
  }
  return taken;
}

/// Executions of one instant at one level are shared as one: by what everybody had before the
/// first.
void TapeVenue::open_pro_rata(Listing& l, int s, const Listing::OwnLevel& level, Lots executed,
                              Ts ts) {
  if (l.shared_ts != ts) l.shared.clear();
  l.shared_ts = ts;
  auto at = std::ranges::find_if(
      l.shared, [&](const auto& each) { return each.s == s && each.key == level.key; });
  if (at == l.shared.end()) {
    Listing::Shared first{s, level.key, 0, l.book.side(s == 0 ? BUY : SELL).at(level.key), {}};
    for (const Order* o : level.fifo) {
      first.lots += o->venue.leaves();
      first.dues.push_back({o, o->venue.leaves(), 0});
    }
    at = l.shared.insert(at, std::move(first));
  }
  at->executed += executed;
}

/// What an order is due of them and has not been given, in whole lots; what rounding leaves goes to
/// others, and who came since the first has nothing.
Lots TapeVenue::pro_rata(Listing& l, int s, std::int64_t key, const Order& o) {
  for (auto& level : l.shared) {
    if (level.s != s || level.key != key) continue;
    for (auto& mine : level.dues) {
      if (mine.order != &o) continue;
      const auto all = static_cast<__int128>(level.executed) * mine.leaves / level.lots;
      const Lots lots = std::clamp(static_cast<Lots>(all) - mine.given, Lots{0}, o.venue.leaves());
      mine.given += lots;
      return lots;
    }
  }
  return 0;
}

void TapeVenue::on_rare(Listing& l, const Event& e, std::int64_t row) {
  if (e.kind == Kind::DATUM && static_cast<Datum>(e.order_id) == Datum::FUNDING)
    return fund(l, e, row);
  const Trading before = l.book.trading;
  l.book.apply_rare(e);
  const bool rebuilt = e.kind == Kind::SNAPSHOT_END || e.kind == Kind::BBO;
  const bool opened = before != Trading::OPEN && l.book.trading == Trading::OPEN;
  // A clear of levels says that they will be told again, not that the queue before us is gone; told
  // order by order, whoever stood there has left.
  if (rebuilt || (e.kind == Kind::CLEAR && l.book.orders())) cap_places(l, rebuilt);
  if (rebuilt || e.kind == Kind::CLEAR) l.footprint.forget_gone(l.book);
  if (!(rebuilt || opened) || l.book.state == BookState::SYNCING) return;
  for (const int side : {BUY, SELL}) meet_book(l, e, side, row);
}

/// Nobody's place can be worse than the size now shown; who stands in a book that was told anew
/// stands before us.
void TapeVenue::cap_places(Listing& l, bool told_anew) {
  for (const int side : {BUY, SELL})
    for (auto& level : l.own[side_index(side)])
      for (Order* o : level.fifo) {
        o->venue.ahead =
            std::min(o->venue.ahead, static_cast<double>(l.book.side(side).at(level.key)));
        if (told_anew && l.book.orders()) o->venue.arrival = l.book.orders()->arrivals();
      }
}

/// After a rebuild or an opening the book may stand through our price: it fills us as if it had
/// arrived level by level.
void TapeVenue::meet_book(Listing& l, const Event& e, int side, std::int64_t row) {
  const Ladder& ladder = l.book.side(side);
  for (std::int64_t k = ladder.best(); k != kNoKey && l.own_best[side_index(-side)] >= -k;
       k = ladder.next(k)) {
    Event level = e;
    level.kind = Kind::LEVEL;
    level.side = static_cast<std::int8_t>(side);
    level.price = k * side;
    level.qty = ladder.at(k);
    on_crossed(l, level, row);
  }
}

/// The level that an order joined, as a feed of levels would tell it.
Event TapeVenue::as_level(const Event& e, const OrderBook::Change& c) noexcept {
  Event level = e;
  level.kind = Kind::LEVEL;
  level.side = c.side;
  level.price = c.key * c.side;
  level.qty = c.after;
  return level;
}

void TapeVenue::fund(Listing& l, const Event& e, std::int64_t row) {
  if (l.account.position == 0) return;
  Update u{};
  u.kind = Update::Kind::FUNDING;
  u.instrument = l.inst->id;
  u.money = l.inst->funding(l.account.position, e.price, e.ref_id);
  u.ts_venue = e.ts_event;
  u.cause_row = row;
  l.account.funding += u.money;
  respond(u);
}

// ---- our messages arrive ----

void TapeVenue::on_command(Listing& l, const Command& c) {
  Order& o = (*orders_)[c.order];
  switch (c.kind) {
    case Command::Kind::NEW:
      o.row.ts_arrive = c.ts_arrive;
      accept(l, o, c);
      break;
    case Command::Kind::CANCEL:
      if (!o.venue.live) return answer(c, Update::Kind::CANCEL_REJECTED, Reason::UNKNOWN_ORDER, o);
      unrest(l, o);
      answer(c, Update::Kind::CANCELED, Reason::CANCELED_BY_US, o);
      break;
    case Command::Kind::REPLACE:
      if (!o.venue.live) return answer(c, Update::Kind::REPLACE_REJECTED, Reason::UNKNOWN_ORDER, o);
      replace(l, o, c);
      break;
  }
}

void TapeVenue::accept(Listing& l, Order& o, const Command& c) {
  o.venue = {};
  o.venue.price = c.price;
  o.venue.lots = c.lots;
  const bool passive_in_auction = l.book.trading == Trading::AUCTION && c.price != kNoPrice &&
                                  (c.tif == Tif::GTC || c.tif == Tif::POST_ONLY);
  if (l.book.trading != Trading::OPEN && !passive_in_auction)
    return answer(c, Update::Kind::REJECTED, Reason::MARKET_CLOSED, o);
  if (c.price == kNoPrice || c.tif == Tif::IOC || c.tif == Tif::FOK) {
    match(l, o, c);
    return;
  }
  if (c.tif == Tif::POST_ONLY && !passive_in_auction &&
      reachable(l, -c.side, c.price * -c.side, 1, c.ts_arrive, For::TEST) > 0)
    return answer(c, Update::Kind::REJECTED, Reason::WOULD_CROSS, o);
  // The answer precedes the fills it may cause, as venues report it.
  o.venue.ahead = static_cast<double>(l.book.lots_at(c.side, c.price));
  o.venue.live = true;
  answer(c, Update::Kind::ACCEPTED, Reason::NONE, o);
  if (passive_in_auction || match(l, o, c)) rest(l, o);
}

/// Takes what an arriving order may; false when nothing of it is left to rest.
bool TapeVenue::match(Listing& l, Order& o, const Command& c) {
  const int other = -c.side;
  const std::int64_t limit = c.price == kNoPrice ? kNoKey + 1 : c.price * other;
  const Lots leaves = c.lots - o.venue.cum;
  const bool rests = c.price != kNoPrice && (c.tif == Tif::GTC || c.tif == Tif::POST_ONLY);
  const Lots within = reachable(l, other, limit, leaves, c.ts_arrive, For::TAKER);
  if (config_.fade > 0)
    l.counters.faded += reachable(l, other, limit, leaves, c.ts_arrive, For::TEST) - within;
  const Lots wanted = allowed(l, within, c.ts_arrive);
  const bool too_little = c.tif == Tif::FOK && wanted < leaves;
  if (wanted > 0 && !too_little) take(l, o, other, limit, wanted, c.ts_arrive);
  if (o.venue.leaves() == 0) return false;
  if (rests) return true;
  l.counters.taker_unfilled += o.venue.leaves();
  o.venue.live = false;
  answer(c, Update::Kind::EXPIRED, Reason::NO_LIQUIDITY, o);
  return false;
}

/// What does not keep its place (`Keeps`) goes to the back, and may trade on the way.
void TapeVenue::replace(Listing& l, Order& o, const Command& c) {
  if (c.lots <= o.venue.cum) return answer(c, Update::Kind::REPLACE_REJECTED, Reason::TOO_SMALL, o);
  if (l.book.trading == Trading::HALT || l.book.trading == Trading::CLOSED)
    return answer(c, Update::Kind::REPLACE_REJECTED, Reason::MARKET_CLOSED, o);
  if (keeps_place(config_.keeps, c.price == o.venue.price, o.venue.lots, c.lots)) {
    o.venue.lots = c.lots;
    return answer(c, Update::Kind::REPLACED, Reason::NONE, o);
  }
  if (c.tif == Tif::POST_ONLY &&
      reachable(l, -c.side, c.price * -c.side, 1, c.ts_arrive, For::TEST) > 0)
    return answer(c, Update::Kind::REPLACE_REJECTED, Reason::WOULD_CROSS, o);
  unrest(l, o);
  o.venue.price = c.price;
  o.venue.lots = c.lots;
  o.venue.ahead = static_cast<double>(l.book.lots_at(c.side, c.price));
  answer(c, Update::Kind::REPLACED, Reason::NONE, o);
  if (l.book.trading == Trading::AUCTION || match(l, o, c)) rest(l, o);
}

/// Calls `level(key, lots)` for the levels at keys not worse than `limit_key`, from the touch, with
/// what is there for who asks. False ends it.
template <class F>
void TapeVenue::walk(Listing& l, int side, std::int64_t limit_key, Ts ts, For who,
                     F&& level) const {
  const Ladder& ladder = l.book.side(side);
  const bool fades = who == For::TAKER && config_.fade > 0;
  double share = 1;
  for (std::int64_t k = ladder.best(); k != kNoKey && k >= limit_key;) {
    const std::int64_t next = ladder.next(k);
    if (fades) share = (config_.fade_compounds ? share : 1.0) * (1.0 - config_.fade);
    if (!level(k, fades ? l.footprint.available(l.book, side, k, ts, share)
                        : l.footprint.available(l.book, side, k, ts)))
      return;
    k = next;
  }
}

/// Size on `side` at keys not worse than `limit_key`, counted up to `wanted`.
Lots TapeVenue::reachable(Listing& l, int side, std::int64_t limit_key, Lots wanted, Ts ts,
                          For who) const {
  if (takes_whole_) {  // the touch fills any size
    const std::int64_t best = l.book.side(side).best();
    return best != kNoKey && best >= limit_key ? wanted : 0;
  }
  Lots sum = 0;
  walk(l, side, limit_key, ts, who, [&](std::int64_t, Lots lots) {
    sum += lots;
    return sum < wanted;
  });
  return std::min(sum, wanted);
}

/// What the participation cap lets a taker have of `wanted`.
Lots TapeVenue::allowed(Listing& l, Lots wanted, Ts ts) const {
  if (config_.participation_cap <= 0 || wanted <= 0) return wanted;
  const double most =
      std::floor(config_.participation_cap * static_cast<double>(l.lately.market(ts)));
  const Lots lots = std::clamp(static_cast<Lots>(most) - l.lately.own(ts), Lots{0}, wanted);
  l.counters.capped += wanted - lots;
  return lots;
}

/// Walks the displayed levels from the touch, each up to what is left of it; `wanted` are there.
void TapeVenue::take(Listing& l, Order& o, int side, std::int64_t limit_key, Lots wanted, Ts ts) {
  if (takes_whole_)
    return fill(l, o, wanted, l.book.side(side).best() * side, false, FillReason::TAKEN, ts, -1);
  walk(l, side, limit_key, ts, For::TAKER, [&](std::int64_t key, Lots there) {
    const Lots lots = std::min(there, wanted);
    if (lots > 0) {
      l.footprint.take(l.book, side, key, lots, ts);
      fill(l, o, lots, key * side, false, FillReason::TAKEN, ts, -1);
    }
    wanted -= lots;
    return wanted > 0;
  });
}

/// What a taker pays beyond the tape's price: for the push of our takes, and for depth that the
/// data do not tell. Rounded once.
Money TapeVenue::price_of_taking(Listing& l, int side, Lots lots, Ticks price, Ts ts) const {
  double ticks = l.overlay.charge(side, lots, ts);
  if (config_.depth_is_touch) {
    const Ticks spread = l.book.two_sided() ? l.book.ask() - l.book.bid() : 0;
    ticks += config_.slippage.ticks(lots, spread, l.lately, ts);
  }
  return ticks == 0 ? 0
                    : std::llround(ticks * static_cast<double>(lots) * l.inst->tick_worth(price));
}

// ---- our resting orders ----

void TapeVenue::rest(Listing& l, Order& o) {
  const int side = o.row.side, s = side_index(side);
  const std::int64_t key = o.venue.price * side;
  o.venue.live = true;
  o.venue.ahead = o.venue.ahead_at_rest = static_cast<double>(l.book.side(side).at(key));
  o.venue.traded = 0;
  o.venue.arrival = l.book.orders() ? l.book.orders()->arrivals() : 0;
  auto& levels = l.own[s];
  auto at = std::find_if(levels.begin(), levels.end(),
                         [&](const auto& level) { return level.key <= key; });
  if (at == levels.end() || at->key != key) {
    at = levels.insert(at, {key, {}});
    l.book.side(side).heat(key);
  }
  at->fifo.push_back(&o);
  l.own_best[s] = levels.front().key;
}

void TapeVenue::unrest(Listing& l, Order& o) {
  const int s = side_index(o.row.side);
  const std::int64_t key = o.venue.price * o.row.side;
  o.venue.live = false;
  for (std::size_t i = 0; i < l.own[s].size(); ++i)
    if (l.own[s][i].key == key) {
      std::erase(l.own[s][i].fifo, &o);
      return drop_finished(l, s, i);
    }
}

/// Takes filled orders out of a level, and the level out when it is empty.
void TapeVenue::drop_finished(Listing& l, int s, std::size_t i) {
  auto& levels = l.own[s];
  std::erase_if(levels[i].fifo, [](const Order* o) { return !o->venue.live; });
  if (levels[i].fifo.empty()) {
    const std::int64_t key = levels[i].key;
    levels.erase(levels.begin() + static_cast<std::ptrdiff_t>(i));
    l.book.side(s == 0 ? BUY : SELL).cool(key);
  }
  l.own_best[s] = levels.empty() ? kNoKey : levels.front().key;
}

void TapeVenue::fill(Listing& l, Order& o, Lots lots, Ticks price, bool maker, FillReason reason,
                     Ts ts, std::int64_t row) {
  o.venue.cum += lots;
  if (o.venue.leaves() == 0) o.venue.live = false;
  const Money fee = l.inst->fee(maker, lots, price);
  const Money impact = maker ? 0 : price_of_taking(l, o.row.side, lots, price, ts);
  l.account.apply(*l.inst, o.row.side, lots, price, fee, impact);
  l.lately.on_own(lots, ts);
  const bool extrapolated = static_cast<double>(l.lately.own(ts)) >
                            config_.participation_flag * static_cast<double>(l.lately.market(ts));
  l.counters.extrapolated += extrapolated;
  if (l.book.two_sided()) l.last_mid2 = l.book.mid2();

  FillRow f{};
  f.order = o.row.id;
  f.price = price;
  f.lots = lots;
  f.fee = fee;
  f.impact = impact;
  f.ts_venue = ts;
  f.mid2 = l.last_mid2;
  f.ahead_at_accept = o.venue.ahead_at_rest;
  f.cause_row = row;
  f.position = l.account.position;
  std::fill(std::begin(f.markout_mid2), std::end(f.markout_mid2), kNoPrice);
  f.instrument = l.inst->id;
  f.side = o.row.side;
  f.maker = maker;
  f.reason = reason;
  f.extrapolated = extrapolated;
  const auto index = static_cast<std::uint32_t>(fills_->size());
  l.markouts.add(index, ts);

  Update u{};
  u.kind = Update::Kind::FILL;
  u.fill_reason = reason;
  u.maker = maker;
  u.instrument = l.inst->id;
  u.order = o.row.id;
  u.price = price;
  u.lots = lots;
  u.money = fee;
  u.impact = impact;
  u.extrapolated = extrapolated;
  u.leaves = o.venue.leaves() > 0;
  u.ts_venue = ts;
  u.cause_row = row;
  u.fill = index;
  fills_->push_back(f);
  respond(u);
}

void TapeVenue::answer(const Command& c, Update::Kind kind, Reason reason, const Order& o) {
  Update u{};
  u.kind = kind;
  u.reason = reason;
  u.instrument = c.instrument;
  u.order = c.order;
  u.price = o.venue.price;
  u.lots = o.venue.lots;
  if (kind == Update::Kind::ACCEPTED || kind == Update::Kind::REPLACED) u.ahead = o.venue.ahead;
  u.ts_venue = c.ts_arrive;
  respond(u, c.response_ns);
}

void TapeVenue::release() {
  held_ = false;
  if (waiting_.empty()) return;
  std::stable_sort(waiting_.begin(), waiting_.end(), [](const Update& a, const Update& b) {
    return a.ts_venue != b.ts_venue ? a.ts_venue < b.ts_venue : a.instrument < b.instrument;
  });
  for (const Update& u : waiting_) respond(u);
  waiting_.clear();
}

void TapeVenue::respond(Update u, Ns delay) {
  *stirred_ = true;  // a fill also brings the next markout nearer
  if (held_) return waiting_.push_back(u);
  if (delay < 0) delay = config_.response.at(u.ts_venue, nth_answer_(u.ts_venue));
  u.ts_recv = channel_.deliver(u.ts_venue, delay);
  put_in_flight(responses_, u, &Update::ts_recv);
  *horizon_ = std::min(*horizon_, u.ts_recv);
}

}  // namespace hft
