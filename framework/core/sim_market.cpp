#include "sim_market.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace hft {

namespace {

constexpr std::uint64_t kFundingStream = 120;
constexpr Ns kFundingNs = 8LL * 3600 * 1'000'000'000;
constexpr Ticks kBand = 4;  // our prices: up to so many times the first price
constexpr double kNoAhead = std::numeric_limits<double>::quiet_NaN();
constexpr std::uint16_t kSeen = SEEN_BY_VENUE | SEEN_BY_US;

void require(bool ok, const std::string& message) {
  if (!ok) throw std::invalid_argument(message);
}

void check(const SimInstrument& i) {
  const std::string of = "instrument " + std::to_string(i.id) + ": ";
  const auto want = [&of](bool ok, const char* name, double value, const char* right) {
    require(ok, of + name + " must be " + right + ", was " + std::to_string(value));
  };
  const auto in = [](double x, double low, double high) { return x >= low && x <= high; };
  want(i.price0_ticks >= 1'000 && i.price0_ticks <= 100'000'000, "price0_ticks",
       static_cast<double>(i.price0_ticks), "1000 to 1e8");
  want(in(i.messages_per_s, 0.1, 1e6), "messages_per_s", i.messages_per_s, "0.1 to 1e6");
  want(in(i.alpha_half_life_s, 0.02, 1e6), "alpha_half_life_s", i.alpha_half_life_s, "0.02 to 1e6");
  want(in(i.alpha_strength, 0, 1), "alpha_strength", i.alpha_strength, "0 to 1");
  want(in(i.common_share, 0, 1), "common_share", i.common_share, "0 to 1");
  want(in(i.take_share, 0.001, 0.2), "take_share", i.take_share, "0.001 to 0.2");
  want(in(i.depth_orders, 20, 100'000), "depth_orders", i.depth_orders, "20 to 1e5");
  want(i.min_lots >= 1 && i.min_lots <= 1'000'000, "min_lots", static_cast<double>(i.min_lots),
       "1 to 1e6");
  want(in(static_cast<double>(i.feed_latency_ns), 0, 1e10), "feed_latency_ns",
       static_cast<double>(i.feed_latency_ns), "0 to 1e10");
}

void check(const SimRegimes& r) {
  require(r.calm_s > 0 && r.storm_s > 0, "calm_s and storm_s must be positive, were " +
                                             std::to_string(r.calm_s) + " and " +
                                             std::to_string(r.storm_s));
  require(r.storm_intensity_min > 1 && r.storm_intensity_max >= r.storm_intensity_min &&
              r.storm_intensity_max <= 100,
          "storm intensities must satisfy 1 < min <= max <= 100, were " +
              std::to_string(r.storm_intensity_min) + " and " +
              std::to_string(r.storm_intensity_max));
}

/// Long enough for the book to forget how it was first filled.
Ns warm_ns(const SimInstrument& instrument) {
  return static_cast<Ns>(std::clamp(20'000 / instrument.messages_per_s, 1.0, 60.0) * 1e9);
}

bool within_band(const SimInstrument& instrument, Ticks price) {
  return price == kNoPrice || (price >= 1 && price <= kBand * instrument.price0_ticks);
}

}  // namespace

class SimMarket::Packet {
 public:
  Packet(SimMarket& market, Venue& venue, Ts now, Rows& out, Reports& reports)
      : market_(market),
        venue_(venue),
        out_(out),
        reports_(reports),
        begin_(out.size()),
        ts_(std::max(now, venue.last_ts)),
        bid_(venue.book.best(BUY)),
        ask_(venue.book.best(SELL)) {
    market.touched_.clear();
  }

  /// Rests without matching: the caller has made sure that nothing is met.
  SimBook::Handle rest(Side side, Ticks price, Lots lots, OrderId venue_id, OrderId our_id) {
    const auto handle = venue_.book.add(side, price, lots, venue_id, our_id);
    row_l3(Kind::ADD, side, price, lots, venue_id, our_id != 0, static_cast<std::int64_t>(our_id));
    touch(price, side, our_id == 0);
    return handle;
  }

  /// Takes lots off a resting order; all of them: a cancel.
  void reduce(SimBook::Handle handle, Lots lots) {
    const SimOrder order = venue_.book.order(handle);
    venue_.book.reduce(handle, lots);
    const bool gone = lots == order.leaves;
    row_l3(gone ? Kind::CANCEL : Kind::MODIFY, order.side, order.price,
           gone ? lots : order.leaves - lots, order.venue_id, order.our_id != 0, 0);
    touch(order.price, order.side, order.our_id == 0);
  }

  /// Matches a taker down to `limit` (kNoPrice: any) and returns the lots left over.
  Lots take(Side side, Ticks limit, Lots lots, OrderId venue_id, OrderId our_id) {
    SimBook& book = venue_.book;
    while (lots > 0 && book.has(-side)) {
      if (limit != kNoPrice && book.best(-side) * side > limit * side) break;
      const auto handle = book.front(-side);
      const SimOrder resting = book.order(handle);
      if (our_id != 0 && resting.our_id != 0) {
        yield_own(handle, resting);
        continue;
      }
      const Lots filled = std::min(lots, resting.leaves);
      print(resting, side, filled, venue_id, our_id);
      book.reduce(handle, filled);
      touch(resting.price, resting.side, resting.our_id == 0);
      lots -= filled;
      if (resting.our_id != 0) fill_maker(resting, filled);
      if (our_id != 0) fill_taker(our_id, side, resting.price, filled);
    }
    return lots;
  }

  void report(SimReportKind kind, OrderId our_id, int side, Ticks price, Lots lots, Lots leaves,
              Reason reason = Reason::NONE, double ahead = kNoAhead) {
    reports_.push_back({our_id,
                        price,
                        lots,
                        leaves,
                        ahead,
                        ts_,
                        bid_ + ask_,
                        venue_.instrument.id,
                        kind,
                        reason,
                        FillReason::NONE,
                        static_cast<std::int8_t>(side),
                        0,
                        {}});
  }

  /// A side that ran dry is filled up behind its last best price, within the same packet.
  void refill() {
    for (const Side side : {BUY, SELL}) {
      while (venue_.book.market_orders(side).size() < SimFlow::kMinOrders) {
        const SimAction add = venue_.flow.refill(venue_.book, side, side > 0 ? bid_ : ask_);
        rest(side, add.price, add.lots, ++venue_.last_id, 0);
      }
    }
  }

  void close() {
    refill();
    for (const Touched& t : market_.touched_) {
      const SimLevel& level = venue_.book.level(t.price);
      const bool shown = level.side == t.side;
      row(Kind::LEVEL, t.side, t.price, shown ? level.lots : 0, 0, shown ? level.own_lots : 0,
          !t.others);
    }
    venue_.last_ts = ts_;
    if (out_.size() == begin_) return;
    const Ts ts_recv = venue_.flow.receive(ts_);
    ++venue_.seq;
    for (std::size_t i = begin_; i < out_.size(); ++i) {
      out_[i].ts_recv = ts_recv;
      out_[i].seq = venue_.seq;
    }
    out_.back().flags |= LAST;
  }

  void row(Kind kind, int side, Ticks price, Lots qty, std::int64_t order_id, std::int64_t ref_id,
           bool own, std::uint16_t more = 0) {
    const auto flags = static_cast<std::uint16_t>(kSeen | (own ? OWN : 0) | more);
    out_.push_back({ts_, ts_, price, qty, order_id, ref_id, 0, venue_.instrument.id, kind,
                    static_cast<std::int8_t>(side), flags});
  }

 private:
  bool l3() const { return market_.config_.feed == SimFeed::L3; }

  void row_l3(Kind kind, int side, Ticks price, Lots qty, OrderId id, bool own,
              std::int64_t ref_id) {
    if (l3()) row(kind, side, price, qty, static_cast<std::int64_t>(id), ref_id, own);
  }

  void print(const SimOrder& resting, Side taker, Lots lots, OrderId taker_id, OrderId our_id) {
    const bool own = resting.our_id != 0 || our_id != 0;
    if (l3())
      row(Kind::EXECUTE, resting.side, resting.price, lots,
          static_cast<std::int64_t>(resting.venue_id), static_cast<std::int64_t>(taker_id), own);
    else
      row(Kind::TRADE, taker, resting.price, lots, 0, own ? 1 : 0, own);
  }

  void touch(Ticks price, std::int8_t side, bool others) {
    if (l3()) return;
    for (Touched& t : market_.touched_) {
      if (t.price != price || t.side != side) continue;
      t.others |= others;
      return;
    }
    market_.touched_.push_back({price, side, others});
  }

  void fill_maker(const SimOrder& resting, Lots filled) {
    const auto found = market_.own_.find(resting.our_id);
    found->second.filled += filled;
    report(SimReportKind::FILL, resting.our_id, resting.side, resting.price, filled,
           resting.leaves - filled);
    reports_.back().fill_reason = FillReason::QUEUE;
    reports_.back().maker = 1;
    if (filled == resting.leaves) market_.own_.erase(found);
  }

  void fill_taker(OrderId our_id, Side side, Ticks price, Lots filled) {
    OwnOrder& own = market_.own_.at(our_id);
    own.filled += filled;
    report(SimReportKind::FILL, our_id, side, price, filled, own.total - own.filled);
    reports_.back().fill_reason = FillReason::TAKEN;
  }

  void yield_own(SimBook::Handle handle, const SimOrder& resting) {
    reduce(handle, resting.leaves);
    report(SimReportKind::EXPIRED, resting.our_id, resting.side, resting.price, resting.leaves, 0,
           Reason::WOULD_CROSS);
    market_.own_.erase(resting.our_id);
  }

  SimMarket& market_;
  Venue& venue_;
  Rows& out_;
  Reports& reports_;
  std::size_t begin_;
  Ts ts_;
  Ticks bid_, ask_;  // before the action
};

SimMarket::SimMarket(const SimMarketConfig& config) : config_(config) {
  require(!config.instruments.empty(), "a simulated market needs at least one instrument");
  check(config.regimes);
  venues_.reserve(config.instruments.size());
  for (const SimInstrument& i : config.instruments) {
    check(i);
    for (const Venue& v : venues_)
      require(v.instrument.id != i.id, "instrument id " + std::to_string(i.id) + " is used twice");
    const Ts start = config.start_ts - warm_ns(i);
    const Ts funding = (config.start_ts / kFundingNs + 1) * kFundingNs;
    venues_.push_back({i, SimFlow(config.seed, start, i, config.regimes), SimBook(i.price0_ticks),
                       start, config.funding ? funding : kNever, start});
    warm_up(venues_.back());
  }
}

Ts SimMarket::next_ts() const noexcept { return due(venues_[next_venue()]); }

void SimMarket::step(Rows& out, Reports& reports) {
  Venue& venue = venues_[next_venue()];
  if (!venue.told) return tell(venue, config_.start_ts, out);
  if (venue.next_funding <= venue.next_action) return fund(venue, out);
  Packet packet(*this, venue, venue.next_action, out, reports);
  act(venue, packet);
}

void SimMarket::step_until(Ts ts, Rows& out, Reports& reports, std::size_t max_rows) {
  while (out.size() < max_rows && next_ts() <= ts) step(out, reports);
}

void SimMarket::submit(InstrumentId instrument, OrderId our_id, Side side, Ticks price, Lots lots,
                       Tif tif, Ts now, Rows& out, Reports& reports) {
  require(lots > 0, "lots must be positive, was " + std::to_string(lots));
  require(side == BUY || side == SELL, "side must be +1 or -1, was " + std::to_string(side));
  require(our_id != 0 && !own_.contains(our_id),
          "order id " + std::to_string(our_id) + " is 0 or rests already");
  Venue& venue = prepared(instrument, now, out);
  const SimBook& book = venue.book;
  Packet packet(*this, venue, now, out, reports);
  const auto refuse = [&](SimReportKind kind, Reason reason) {
    packet.report(kind, our_id, side, price, lots, 0, reason);
    packet.close();
  };
  if (!within_band(venue.instrument, price))
    return refuse(SimReportKind::REJECT, Reason::PRICE_COLLAR);
  const bool meets = price == kNoPrice || book.best(-side) * side <= price * side;
  if (tif == Tif::POST_ONLY && meets) return refuse(SimReportKind::REJECT, Reason::WOULD_CROSS);
  packet.report(SimReportKind::ACK, our_id, side, price, lots, lots);
  if (tif == Tif::FOK && !book.offers(side, price, lots))
    return refuse(SimReportKind::EXPIRED, Reason::NO_LIQUIDITY);
  const std::size_t ack = reports.size() - 1;
  const OrderId venue_id = ++venue.last_id;
  own_[our_id] = {index_of(instrument), -1, price, lots, 0, side, tif};
  const Lots left = packet.take(side, price, lots, venue_id, our_id);
  const bool rests = price != kNoPrice && (tif == Tif::GTC || tif == Tif::POST_ONLY);
  if (left > 0 && rests) {
    OwnOrder& own = own_.at(our_id);
    own.handle = packet.rest(side, price, left, venue_id, our_id);
    reports[ack].ahead = static_cast<double>(book.ahead(own.handle));
  } else {
    own_.erase(our_id);
    if (left > 0)
      packet.report(SimReportKind::EXPIRED, our_id, side, price, left, 0, Reason::NO_LIQUIDITY);
  }
  packet.close();
}

void SimMarket::cancel(InstrumentId instrument, OrderId our_id, Ts now, Rows& out,
                       Reports& reports) {
  Venue& venue = prepared(instrument, now, out);
  Packet packet(*this, venue, now, out, reports);
  if (const OwnOrder* own = resting(instrument, our_id)) {
    const SimOrder order = venue.book.order(own->handle);
    packet.reduce(own->handle, order.leaves);
    packet.report(SimReportKind::CANCELED, our_id, order.side, order.price, order.leaves, 0,
                  Reason::CANCELED_BY_US);
    own_.erase(our_id);
  } else {
    packet.report(SimReportKind::CANCEL_REJECT, our_id, NO_SIDE, kNoPrice, 0, 0,
                  Reason::UNKNOWN_ORDER);
  }
  packet.close();
}

void SimMarket::replace(InstrumentId instrument, OrderId our_id, Ticks price, Lots new_total,
                        Ts now, Rows& out, Reports& reports) {
  require(price != kNoPrice, "a replaced order needs a price");
  Venue& venue = prepared(instrument, now, out);
  Packet packet(*this, venue, now, out, reports);
  OwnOrder* own = resting(instrument, our_id);
  if (own == nullptr) {
    packet.report(SimReportKind::REPLACE_REJECT, our_id, NO_SIDE, price, new_total, 0,
                  Reason::UNKNOWN_ORDER);
    return packet.close();
  }
  const Side side = own->side;
  const Lots before = own->total - own->filled;
  const Lots leaves = new_total - own->filled;
  const Reason refused = refusal(venue, *own, price, leaves);
  if (refused != Reason::NONE) {
    packet.report(SimReportKind::REPLACE_REJECT, our_id, side, price, new_total, before, refused);
    return packet.close();
  }
  packet.report(SimReportKind::REPLACED, our_id, side, price, new_total, leaves);
  const std::size_t answer = reports.size() - 1;
  const bool keeps_place = price == own->price && new_total <= own->total;
  own->price = price;
  own->total = new_total;
  if (!keeps_place) {
    packet.reduce(own->handle, before);
    const OrderId venue_id = ++venue.last_id;
    const Lots left = packet.take(side, price, leaves, venue_id, our_id);
    if (left == 0) {
      own_.erase(our_id);
      return packet.close();
    }
    own->handle = packet.rest(side, price, left, venue_id, our_id);
  } else if (leaves < before) {
    packet.reduce(own->handle, before - leaves);
  }
  reports[answer].ahead = static_cast<double>(venue.book.ahead(own->handle));
  packet.close();
}

void SimMarket::snapshot(InstrumentId instrument, Ts now, Rows& out) {
  tell(venues_[index_of(instrument)], now, out);
}

const SimBook& SimMarket::book(InstrumentId instrument) const {
  return venues_[index_of(instrument)].book;
}

const SimLatents& SimMarket::latents(InstrumentId instrument) const {
  return venues_[index_of(instrument)].flow.latents();
}

double SimMarket::ahead(OrderId our_id) const {
  const auto found = own_.find(our_id);
  if (found == own_.end()) return kNoAhead;
  return static_cast<double>(venues_[found->second.venue].book.ahead(found->second.handle));
}

/// Fills the book around the first price, then lets the crowd trade until start_ts, unseen.
void SimMarket::warm_up(Venue& venue) {
  Rows unseen;
  Reports none;
  for (int i = 0; i < static_cast<int>(venue.instrument.depth_orders); ++i) {
    for (const Side side : {BUY, SELL}) {
      const SimAction add = venue.flow.refill(venue.book, side, venue.instrument.price0_ticks);
      venue.book.add(side, add.price, add.lots, ++venue.last_id, 0);
    }
  }
  while (venue.next_action <= config_.start_ts) {
    unseen.clear();
    Packet packet(*this, venue, venue.next_action, unseen, none);
    act(venue, packet);
  }
  venue.seq = 0;
  venue.last_ts = config_.start_ts;
}

void SimMarket::act(Venue& venue, Packet& packet) {
  const SimAction action = venue.flow.decide(venue.book, venue.next_action);
  switch (action.kind) {
    case SimAction::Kind::ADD:
      packet.rest(action.side, action.price, action.lots, ++venue.last_id, 0);
      break;
    case SimAction::Kind::CANCEL:
      packet.reduce(action.handle, venue.book.order(action.handle).leaves);
      break;
    case SimAction::Kind::TAKE:
      packet.take(action.side, kNoPrice, action.lots, ++venue.last_id, 0);
      break;
  }
  packet.close();
  venue.next_action = venue.flow.next(venue.next_action);
}

/// Funding between -0.01 % and +0.02 %, drawn per settlement.
void SimMarket::fund(Venue& venue, Rows& out) {
  Reports none;
  Packet packet(*this, venue, venue.next_funding, out, none);
  const double u = draw_uniform(config_.seed, kFundingStream, venue.instrument.id,
                                static_cast<std::uint64_t>(venue.next_funding));
  const Ticks mark = (venue.book.best(BUY) + venue.book.best(SELL)) / 2;
  packet.row(Kind::DATUM, NO_SIDE, mark, 0, static_cast<std::int64_t>(Datum::FUNDING),
             static_cast<std::int64_t>(3e5 * u - 1e5), false);
  packet.close();
  venue.next_funding += kFundingNs;
}

void SimMarket::tell(Venue& venue, Ts now, Rows& out) {
  Reports none;
  const SimBook& book = venue.book;
  Packet packet(*this, venue, now, out, none);
  packet.row(Kind::SNAPSHOT_BEGIN, NO_SIDE, 0, 0, 0, 0, false, RECOVERED);
  for (const Side side : {BUY, SELL}) {
    const Ticks last = side > 0 ? book.lowest() : book.highest();
    for (Ticks p = book.best(side); p * side >= last * side; p -= side) {
      const SimLevel& level = book.level(p);
      if (level.orders == 0) continue;
      if (config_.feed == SimFeed::L2) {
        packet.row(Kind::LEVEL, side, p, level.lots, 0, level.own_lots, false, RECOVERED);
        continue;
      }
      for (auto h = level.head; h >= 0; h = book.order(h).next) {
        const SimOrder& o = book.order(h);
        packet.row(Kind::ADD, side, p, o.leaves, static_cast<std::int64_t>(o.venue_id),
                   static_cast<std::int64_t>(o.our_id), o.our_id != 0, RECOVERED);
      }
    }
  }
  packet.row(Kind::SNAPSHOT_END, NO_SIDE, 0, 0, 0, 0, false, RECOVERED);
  packet.close();
  venue.told = true;
}

std::size_t SimMarket::index_of(InstrumentId instrument) const {
  for (std::size_t i = 0; i < venues_.size(); ++i)
    if (venues_[i].instrument.id == instrument) return i;
  throw std::invalid_argument("instrument " + std::to_string(instrument) +
                              " is not in this market");
}

/// Our first action may come before the crowd's: the book is told first.
SimMarket::Venue& SimMarket::prepared(InstrumentId instrument, Ts now, Rows& out) {
  Venue& venue = venues_[index_of(instrument)];
  if (!venue.told) tell(venue, now, out);
  return venue;
}

Ts SimMarket::due(const Venue& venue) const noexcept {
  return venue.told ? std::min(venue.next_action, venue.next_funding) : config_.start_ts;
}

std::size_t SimMarket::next_venue() const noexcept {
  std::size_t first = 0;
  for (std::size_t i = 1; i < venues_.size(); ++i)
    if (due(venues_[i]) < due(venues_[first])) first = i;
  return first;
}

SimMarket::OwnOrder* SimMarket::resting(InstrumentId instrument, OrderId our_id) {
  const auto found = own_.find(our_id);
  if (found == own_.end()) return nullptr;
  return venues_[found->second.venue].instrument.id == instrument ? &found->second : nullptr;
}

/// Why a replace to `leaves` open lots at `price` is refused; NONE: it is not.
Reason SimMarket::refusal(const Venue& venue, const OwnOrder& own, Ticks price, Lots leaves) {
  if (leaves <= 0) return Reason::TOO_SMALL;
  if (!within_band(venue.instrument, price)) return Reason::PRICE_COLLAR;
  const bool meets = venue.book.best(-own.side) * own.side <= price * own.side;
  return meets && own.tif == Tif::POST_ONLY ? Reason::WOULD_CROSS : Reason::NONE;
}

}  // namespace hft
