#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <numeric>
#include <stdexcept>

#include "sim_market.hpp"

using namespace hft;

namespace {

constexpr Ts kStart = 1'700'000'000'000'000'000;
constexpr Ns kSecond = 1'000'000'000;

SimMarketConfig one_instrument(std::uint64_t seed = 1) {
  SimMarketConfig config;
  config.seed = seed;
  config.start_ts = kStart;
  config.instruments = {SimInstrument{}};
  return config;
}

SimMarketConfig calm_only(std::uint64_t seed = 1) {
  SimMarketConfig config = one_instrument(seed);
  config.regimes.calm_s = 1e12;
  return config;
}

std::vector<Event> rows_of(const SimMarketConfig& config, Ns duration,
                           std::size_t chunk = 1 << 20) {
  SimMarket market(config);
  std::vector<Event> all, some;
  std::vector<SimReport> reports;
  while (market.next_ts() <= kStart + duration) {
    some.clear();
    market.step_until(kStart + duration, some, reports, chunk);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

bool same_bytes(const std::vector<Event>& a, const std::vector<Event>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(Event)) == 0;
}

/// A market with our orders in it, and the answers to the last call.
struct Desk {
  explicit Desk(const SimMarketConfig& config = calm_only()) : market(config) { step(); }

  void step() {
    clear();
    market.step(rows, reports);
  }
  void submit(OrderId id, Side side, Ticks price, Lots lots, Tif tif = Tif::GTC) {
    clear();
    market.submit(0, id, side, price, lots, tif, market.next_ts() - 1, rows, reports);
  }
  void cancel(OrderId id) {
    clear();
    market.cancel(0, id, market.next_ts() - 1, rows, reports);
  }
  void replace(OrderId id, Ticks price, Lots total) {
    clear();
    market.replace(0, id, price, total, market.next_ts() - 1, rows, reports);
  }
  void clear() {
    rows.clear();
    reports.clear();
  }
  std::vector<SimReportKind> kinds() const {
    std::vector<SimReportKind> found;
    for (const SimReport& r : reports) found.push_back(r.kind);
    return found;
  }
  Lots filled() const {
    Lots sum = 0;
    for (const SimReport& r : reports) sum += r.kind == SimReportKind::FILL ? r.lots : 0;
    return sum;
  }
  const SimBook& book() const { return market.book(0); }
  Ticks bid() const { return book().best(BUY); }
  Ticks ask() const { return book().best(SELL); }

  SimMarket market;
  std::vector<Event> rows;
  std::vector<SimReport> reports;
};

using Kinds = std::vector<SimReportKind>;
using enum SimReportKind;

/// A book kept from the rows alone, by a reader who knows nothing else.
struct Reader {
  std::map<std::pair<int, Ticks>, Lots> levels;  // L2
  std::map<std::int64_t, Event> orders;          // L3

  void apply(const Event& e) {
    if (e.kind == Kind::SNAPSHOT_BEGIN) levels.clear(), orders.clear();
    if (e.kind == Kind::LEVEL && e.qty == 0) levels.erase({e.side, e.price});
    if (e.kind == Kind::LEVEL && e.qty != 0) levels[{e.side, e.price}] = e.qty;
    if (e.kind == Kind::ADD) orders[e.order_id] = e;
    if (e.kind == Kind::MODIFY) orders.at(e.order_id).qty = e.qty;
    if (e.kind == Kind::CANCEL) take(e);
    if (e.kind == Kind::EXECUTE) take(e);
  }
  void take(const Event& e) {
    Event& resting = orders.at(e.order_id);
    REQUIRE(resting.price == e.price);
    REQUIRE(resting.qty >= e.qty);
    resting.qty -= e.qty;
    if (resting.qty == 0) orders.erase(e.order_id);
  }
  std::map<std::pair<int, Ticks>, Lots> sums() const {
    std::map<std::pair<int, Ticks>, Lots> found;
    for (const auto& [id, e] : orders) found[{e.side, e.price}] += e.qty;
    return found;
  }
};

std::map<std::pair<int, Ticks>, Lots> levels_of(const SimBook& book) {
  std::map<std::pair<int, Ticks>, Lots> found;
  for (Ticks p = book.lowest(); p <= book.highest(); ++p)
    if (book.level(p).orders > 0) found[{book.level(p).side, p}] = book.level(p).lots;
  return found;
}

/// Something of ours at random: submit, cancel or replace near the touch, now and then a sweep.
void act_at_random(Desk& desk, SimRng& rng, OrderId& last_id) {
  const OrderId some = last_id == 0 ? 1 : 1 + rng.below(last_id);
  const auto side = static_cast<Side>(rng.sign());
  const Ticks price = desk.book().best(side) - side * static_cast<Ticks>(rng.below(6)) + side * 2;
  const auto lots = static_cast<Lots>(1 + rng.below(rng.chance(0.02) ? 100'000 : 60));
  switch (rng.below(4)) {
    case 0:
      return desk.cancel(some);
    case 1:
      return desk.replace(some, price, lots);
    default:
      return desk.submit(++last_id, side, rng.chance(0.1) ? kNoPrice : price, lots,
                         static_cast<Tif>(rng.below(4)));
  }
}

}  // namespace

TEST_CASE("the same seed gives the same bytes, in chunks of any size") {
  const auto rows = rows_of(one_instrument(), 5 * kSecond);
  CHECK(rows.size() > 10'000);
  CHECK(same_bytes(rows, rows_of(one_instrument(), 5 * kSecond)));
  CHECK(same_bytes(rows, rows_of(one_instrument(), 5 * kSecond, 7)));
  CHECK_FALSE(same_bytes(rows, rows_of(one_instrument(2), 5 * kSecond)));
}

TEST_CASE("the bytes are these on every machine") {
  std::uint64_t hash = 0;
  for (const Event& e : rows_of(one_instrument(), 5 * kSecond)) {
    std::uint64_t words[8];
    std::memcpy(words, &e, sizeof e);
    for (const std::uint64_t word : words) hash = mix64(hash ^ word);
  }
  CHECK(hash == 7694635282932953684ULL);
}

TEST_CASE("another instrument changes nobody else's rows") {
  SimMarketConfig two = one_instrument();
  two.instruments.push_back({.id = 5, .price0_ticks = 30'000, .messages_per_s = 500});
  auto rows = rows_of(two, 3 * kSecond);
  CHECK(std::is_sorted(rows.begin(), rows.end(),
                       [](const Event& a, const Event& b) { return a.ts_event < b.ts_event; }));
  std::erase_if(rows, [](const Event& e) { return e.instrument != 0; });
  CHECK(same_bytes(rows, rows_of(one_instrument(), 3 * kSecond)));
}

TEST_CASE("packets: times never go back, one LAST and one seq each, prints before levels") {
  Ts ts_event = 0, ts_recv = 0;
  std::int64_t seq = 0;
  bool open = false, level_seen = false;
  double latency_ns = 0;
  const auto rows = rows_of(one_instrument(), 10 * kSecond);
  for (const Event& e : rows) {
    if (!open) {
      REQUIRE(e.seq == ++seq);
      level_seen = false;
    }
    REQUIRE(e.seq == seq);
    REQUIRE(e.ts_event >= ts_event);
    REQUIRE(e.ts_recv >= ts_recv);
    REQUIRE(e.ts_recv >= e.ts_event);
    if (e.kind == Kind::TRADE) REQUIRE_FALSE(level_seen);
    level_seen |= e.kind == Kind::LEVEL;
    open = (e.flags & LAST) == 0;
    ts_event = e.ts_event;
    ts_recv = e.ts_recv;
    latency_ns += static_cast<double>(e.ts_recv - e.ts_event);
  }
  CHECK_FALSE(open);
  latency_ns /= static_cast<double>(rows.size());
  CHECK(latency_ns > 150e3);
  CHECK(latency_ns < 500e3);
}

TEST_CASE("without feed latency both clocks are one") {
  SimMarketConfig config = one_instrument();
  config.instruments[0].feed_latency_ns = 0;
  for (const Event& e : rows_of(config, kSecond)) REQUIRE(e.ts_recv == e.ts_event);
}

TEST_CASE("funding settles every eight hours") {
  SimMarketConfig config = one_instrument();
  config.instruments[0].messages_per_s = 0.2;
  std::vector<Ts> times;
  for (const Event& e : rows_of(config, 86'400 * kSecond)) {
    if (e.kind != Kind::DATUM) continue;
    times.push_back(e.ts_event);
    CHECK(e.order_id == static_cast<std::int64_t>(Datum::FUNDING));
    CHECK(std::abs(e.ref_id) <= 200'000);
    CHECK(e.price > 500'000);
  }
  REQUIRE(times.size() == 3);
  for (const Ts ts : times) CHECK(ts % (8 * 3600 * kSecond) == 0);
}

TEST_CASE("the book is never crossed and never dry, whatever we do to it") {
  Desk desk(one_instrument(3));
  SimRng rng(1, 2, 3);
  OrderId last_id = 0;
  for (int i = 0; i < 60'000; ++i) {
    rng.chance(0.2) ? act_at_random(desk, rng, last_id) : desk.step();
    REQUIRE(desk.bid() < desk.ask());
    REQUIRE(desk.book().market_orders(BUY).size() >= SimFlow::kMinOrders);
    REQUIRE(desk.book().market_orders(SELL).size() >= SimFlow::kMinOrders);
  }
}

TEST_CASE("a reader of the rows has the venue's book, and prints explain what left it") {
  Desk desk(one_instrument(4));
  Reader reader;
  desk.clear();
  desk.market.snapshot(0, desk.market.next_ts() - 1, desk.rows);
  SimRng rng(4, 5, 6);
  OrderId last_id = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::map<Ticks, Lots> printed;
    for (const Event& e : desk.rows)
      if (e.kind == Kind::TRADE) printed[e.price] += e.qty;
    const bool own = std::any_of(desk.rows.begin(), desk.rows.end(),
                                 [](const Event& e) { return (e.flags & OWN) != 0; });
    const bool refilled = std::min(desk.book().market_orders(BUY).size(),
                                   desk.book().market_orders(SELL).size()) == SimFlow::kMinOrders;
    for (const Event& e : desk.rows) {
      if (!own && !refilled && e.kind == Kind::LEVEL && printed.contains(e.price))
        REQUIRE(reader.levels[{e.side, e.price}] - e.qty == printed[e.price]);
      reader.apply(e);
    }
    if (i % 100 == 0) REQUIRE(reader.levels == levels_of(desk.book()));
    rng.chance(0.1) ? act_at_random(desk, rng, last_id) : desk.step();
  }
}

TEST_CASE("a reader of the order-by-order rows has the venue's book") {
  SimMarketConfig config = one_instrument(4);
  config.feed = SimFeed::L3;
  Desk desk(config);
  Reader reader;
  SimRng rng(4, 5, 6);
  OrderId last_id = 0;
  for (int i = 0; i < 20'000; ++i) {
    for (const Event& e : desk.rows) reader.apply(e);
    if (i % 100 == 0) REQUIRE(reader.sums() == levels_of(desk.book()));
    rng.chance(0.1) ? act_at_random(desk, rng, last_id) : desk.step();
  }
}

TEST_CASE("reports add up: asked = filled + given up + open; open lots are the book's own") {
  Desk desk(one_instrument(5));
  SimRng rng(7, 8, 9);
  OrderId last_id = 0;
  std::map<OrderId, Lots> open, filled;
  Lots printed = 0;
  for (int i = 0; i < 30'000; ++i) {
    rng.chance(0.2) ? act_at_random(desk, rng, last_id) : desk.step();
    for (const SimReport& r : desk.reports) {
      if (r.kind == ACK) open[r.id] = r.lots;
      if (r.kind == REPLACED) open[r.id] = r.lots - filled[r.id];
      if (r.kind == FILL) filled[r.id] += r.lots;
      if (r.kind == FILL || r.kind == CANCELED || r.kind == EXPIRED) open[r.id] -= r.lots;
      if (r.kind != CANCEL_REJECT && r.kind != REJECT && r.kind != REPLACE_REJECT)
        REQUIRE(open[r.id] == r.leaves);
    }
    for (const Event& e : desk.rows)
      if (e.kind == Kind::TRADE && e.ref_id == 1) printed += e.qty;
    if (i % 200 != 0) continue;
    Lots own = 0, left = 0;
    for (Ticks p = desk.book().lowest(); p <= desk.book().highest(); ++p)
      own += desk.book().level(p).own_lots;
    for (const auto& [id, lots] : open) left += lots;
    REQUIRE(own == left);
  }
  Lots all = 0;
  for (const auto& [id, lots] : filled) all += lots;
  CHECK(all > 0);
  CHECK(all == printed);
}

TEST_CASE("our order waits its turn: what is ahead only shrinks, and it fills when none is left") {
  int fills = 0;
  for (OrderId id = 1; id <= 40; ++id) {
    Desk desk(calm_only(id));
    const Lots queue = desk.book().lots_at(BUY, desk.bid());
    desk.submit(id, BUY, desk.bid(), 5);
    REQUIRE(desk.kinds() == Kinds{ACK});
    REQUIRE(desk.reports[0].ahead == static_cast<double>(queue));
    double ahead = desk.reports[0].ahead;
    for (int i = 0; i < 3'000 && desk.filled() == 0; ++i) {
      const double now_ahead = desk.market.ahead(id);
      REQUIRE(now_ahead <= ahead);
      ahead = now_ahead;
      desk.step();
    }
    if (desk.filled() == 0) continue;
    ++fills;
    Lots before_us = 0;  // prints of the packet at our price that came before ours
    for (const Event& e : desk.rows) {
      if ((e.flags & OWN) != 0) break;
      if (e.kind == Kind::TRADE && e.price == desk.reports[0].price) before_us += e.qty;
    }
    REQUIRE(static_cast<double>(before_us) == ahead);
    CHECK(desk.reports[0].maker == 1);
    CHECK(desk.reports[0].fill_reason == FillReason::QUEUE);
  }
  CHECK(fills > 10);
}

TEST_CASE("a resting limit order is shown as ours") {
  Desk desk;
  const Ticks price = desk.bid();
  const Lots others = desk.book().lots_at(BUY, price);
  desk.submit(1, BUY, price, 7);
  REQUIRE(desk.rows.size() == 1);
  CHECK(desk.rows[0].kind == Kind::LEVEL);
  CHECK(desk.rows[0].qty == others + 7);
  CHECK(desk.rows[0].ref_id == 7);
  CHECK(desk.rows[0].flags == (SEEN_BY_VENUE | SEEN_BY_US | LAST | OWN));
  desk.cancel(1);
  CHECK(desk.kinds() == Kinds{CANCELED});
  CHECK(desk.rows[0].qty == others);
  CHECK(desk.rows[0].ref_id == 0);
  CHECK((desk.rows[0].flags & OWN) != 0);
}

TEST_CASE("a limit order through the touch takes, then rests at its price") {
  Desk desk;
  const Ticks ask = desk.ask();
  const Lots offered = desk.book().lots_at(SELL, ask);
  desk.submit(1, BUY, ask, offered + 10);
  CHECK(desk.kinds().front() == ACK);
  CHECK(desk.filled() == offered);
  CHECK(desk.bid() == ask);
  CHECK(desk.book().lots_at(BUY, ask) == 10);
  CHECK(desk.reports[0].ahead == 0);
  CHECK(desk.reports.back().leaves == 10);
  CHECK(desk.reports.back().fill_reason == FillReason::TAKEN);
  for (const Event& e : desk.rows)
    if (e.kind == Kind::TRADE) CHECK((e.ref_id == 1 && e.side == BUY));
}

TEST_CASE("IOC takes what is there and gives up the rest") {
  Desk desk;
  const Lots offered = desk.book().lots_at(SELL, desk.ask());
  desk.submit(1, BUY, desk.ask(), offered + 10, Tif::IOC);
  CHECK(desk.filled() == offered);
  CHECK(desk.reports.back().kind == EXPIRED);
  CHECK(desk.reports.back().reason == Reason::NO_LIQUIDITY);
  CHECK(desk.reports.back().lots == 10);
  desk.submit(2, BUY, desk.bid(), 1, Tif::IOC);
  CHECK(desk.kinds() == Kinds{ACK, EXPIRED});
}

TEST_CASE("FOK takes all or nothing") {
  Desk desk;
  const Lots offered = desk.book().lots_at(SELL, desk.ask());
  desk.submit(1, BUY, desk.ask(), offered + 1, Tif::FOK);
  CHECK(desk.kinds() == Kinds{ACK, EXPIRED});
  CHECK(desk.reports.back().reason == Reason::NO_LIQUIDITY);
  CHECK(desk.rows.empty());
  desk.submit(2, BUY, desk.ask(), offered, Tif::FOK);
  CHECK(desk.filled() == offered);
  CHECK(desk.reports.back().leaves == 0);
}

TEST_CASE("POST_ONLY never takes") {
  Desk desk;
  desk.submit(1, BUY, desk.ask(), 1, Tif::POST_ONLY);
  CHECK(desk.kinds() == Kinds{REJECT});
  CHECK(desk.reports[0].reason == Reason::WOULD_CROSS);
  CHECK(desk.rows.empty());
  desk.submit(2, BUY, desk.bid(), 1, Tif::POST_ONLY);
  CHECK(desk.kinds() == Kinds{ACK});
  desk.replace(2, desk.ask(), 1);
  CHECK(desk.kinds() == Kinds{REPLACE_REJECT});
  CHECK(desk.reports[0].reason == Reason::WOULD_CROSS);
  CHECK(desk.book().level(desk.bid()).own_lots == 1);
}

TEST_CASE("a market order walks the book; beyond its end the rest expires and makers come back") {
  Desk desk;
  const Ticks ask = desk.ask();
  desk.submit(1, BUY, kNoPrice, 10'000'000);
  CHECK(desk.filled() > 0);
  CHECK(desk.reports.back().kind == EXPIRED);
  CHECK(desk.reports.back().reason == Reason::NO_LIQUIDITY);
  CHECK(desk.filled() + desk.reports.back().lots == 10'000'000);
  CHECK(desk.book().market_orders(SELL).size() == SimFlow::kMinOrders);
  CHECK(desk.ask() > ask);
  Ticks last = 0;
  for (const Event& e : desk.rows)
    if (e.kind == Kind::TRADE) {
      CHECK(e.price >= last);
      last = e.price;
    }
}

TEST_CASE("replace: size down keeps the place, anything else goes to the back") {
  Desk desk;
  const Ticks price = desk.bid();
  desk.submit(1, BUY, price, 10);
  desk.submit(2, BUY, price, 10);
  const double ahead = desk.market.ahead(1);
  desk.replace(1, price, 4);
  CHECK(desk.kinds() == Kinds{REPLACED});
  CHECK(desk.reports[0].leaves == 4);
  CHECK(desk.market.ahead(1) == ahead);
  const auto front_of_ours = [&] {
    auto h = desk.book().level(price).head;
    while (desk.book().order(h).our_id == 0) h = desk.book().order(h).next;
    return desk.book().order(h).our_id;
  };
  CHECK(front_of_ours() == 1);
  desk.replace(1, price, 5);
  CHECK(front_of_ours() == 2);
  desk.replace(1, price - 1, 5);
  CHECK(desk.reports[0].price == price - 1);
  CHECK(desk.book().level(price).own_lots == 10);
  CHECK(desk.book().level(price - 1).own_lots == 5);
}

TEST_CASE("replace counts what is filled already") {
  Desk desk;
  const Lots offered = desk.book().lots_at(SELL, desk.ask());
  desk.submit(1, BUY, desk.ask(), offered + 10);
  desk.replace(1, desk.bid(), offered);
  CHECK(desk.kinds() == Kinds{REPLACE_REJECT});
  CHECK(desk.reports[0].reason == Reason::TOO_SMALL);
  CHECK(desk.reports[0].leaves == 10);
  desk.replace(1, desk.bid(), offered + 3);
  CHECK(desk.kinds() == Kinds{REPLACED});
  CHECK(desk.reports[0].leaves == 3);
  desk.replace(1, desk.ask(), offered + 5);
  CHECK(desk.filled() == 5);
  CHECK(std::isnan(desk.market.ahead(1)));
}

TEST_CASE("we never trade with ourselves: the resting order yields") {
  Desk desk;
  const Ticks inside = desk.bid();
  const Lots others = desk.book().lots_at(BUY, inside);
  desk.submit(1, BUY, inside, 10);
  desk.submit(2, SELL, inside, others + 10);
  CHECK(desk.filled() == others);
  CHECK(desk.kinds().back() == EXPIRED);
  CHECK(desk.reports.back().id == 1);
  CHECK(desk.reports.back().reason == Reason::WOULD_CROSS);
  CHECK(desk.book().lots_at(SELL, inside) == 10);
}

TEST_CASE("what the venue refuses, and what is a caller's mistake") {
  Desk desk;
  desk.cancel(99);
  CHECK(desk.kinds() == Kinds{CANCEL_REJECT});
  CHECK(desk.reports[0].reason == Reason::UNKNOWN_ORDER);
  desk.replace(99, desk.bid(), 1);
  CHECK(desk.kinds() == Kinds{REPLACE_REJECT});
  CHECK(desk.reports[0].reason == Reason::UNKNOWN_ORDER);
  desk.submit(1, SELL, 100'000'000, 1);
  CHECK(desk.kinds() == Kinds{REJECT});
  CHECK(desk.reports[0].reason == Reason::PRICE_COLLAR);
  desk.submit(1, BUY, desk.bid(), 1);
  CHECK_THROWS_AS(desk.submit(1, BUY, desk.bid(), 1), std::invalid_argument);
  CHECK_THROWS_AS(desk.submit(2, BUY, desk.bid(), 0), std::invalid_argument);
  CHECK_THROWS_AS(desk.market.book(7), std::invalid_argument);
  SimMarketConfig config = one_instrument();
  config.instruments[0].alpha_half_life_s = 0;
  CHECK_THROWS_WITH_AS(SimMarket{config},
                       "instrument 0: alpha_half_life_s must be 0.02 to 1e6, was 0.000000",
                       std::invalid_argument);
}

namespace {

constexpr Ns kGrid = 10'000'000;

/// What a patient observer writes down every 10 ms.
struct Path {
  std::vector<double> mid, imbalance, flow, packets, storm, signs, spread, touch_orders;
};

Path watch(const SimMarketConfig& config, double seconds) {
  SimMarket market(config);
  Path path;
  std::vector<Event> rows;
  std::vector<SimReport> reports;
  double flow = 0;
  const SimBook& book = market.book(0);
  for (Ts ts = kStart + kGrid; ts <= kStart + static_cast<Ns>(seconds * 1e9); ts += kGrid) {
    rows.clear();
    market.step_until(ts, rows, reports, static_cast<std::size_t>(-1));
    double packets = 0, sign = 0;
    for (const Event& e : rows) {
      packets += (e.flags & LAST) != 0;
      if (e.kind == Kind::TRADE) {
        flow += e.side * std::sqrt(static_cast<double>(e.qty));
        sign = e.side;
      } else if (sign != 0) {
        path.signs.push_back(sign);  // one a taker, not one a print
        sign = 0;
      }
    }
    flow *= std::exp(-0.01 / 0.3);
    double bids = 0, asks = 0;
    for (Ticks k = 0; k < 5; ++k) {
      bids += static_cast<double>(book.lots_at(BUY, book.best(BUY) - k));
      asks += static_cast<double>(book.lots_at(SELL, book.best(SELL) + k));
    }
    path.mid.push_back(0.5 * static_cast<double>(book.best(BUY) + book.best(SELL)));
    path.imbalance.push_back((bids - asks) / (bids + asks));
    path.flow.push_back(flow);
    path.packets.push_back(packets);
    path.storm.push_back(market.latents(0).storm());
    path.spread.push_back(static_cast<double>(book.best(SELL) - book.best(BUY)));
    path.touch_orders.push_back(book.level(book.best(BUY)).orders);
  }
  return path;
}

double mean(const std::vector<double>& x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}

double correlation(const std::vector<double>& x, const std::vector<double>& y) {
  const double mx = mean(x), my = mean(y);
  double xx = 0, yy = 0, xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mx) * (x[i] - mx);
    yy += (y[i] - my) * (y[i] - my);
    xy += (x[i] - mx) * (y[i] - my);
  }
  return xy / std::sqrt(xx * yy);
}

/// Chance that the score of a rise is above that of a fall.
double auc(const std::vector<double>& score, const std::vector<double>& move) {
  std::vector<std::pair<double, double>> pairs;
  for (std::size_t i = 0; i < score.size(); ++i)
    if (move[i] != 0) pairs.emplace_back(score[i], move[i]);
  std::sort(pairs.begin(), pairs.end());
  double falls = 0, below = 0, rises = 0;
  for (const auto& [s, m] : pairs) {
    if (m > 0)
      below += falls, ++rises;
    else
      ++falls;
  }
  return below / (rises * falls);
}

double sign_memory(const std::vector<double>& signs, std::size_t lag) {
  double sum = 0;
  for (std::size_t i = 0; i + lag < signs.size(); ++i) sum += signs[i] * signs[i + lag];
  return sum / static_cast<double>(signs.size() - lag);
}

}  // namespace

TEST_CASE("imbalance and trade flow predict the next move, and late they do not") {
  const Path path = watch(calm_only(11), 1'500);
  // z-scores summed with weights of about what a regression gives
  const auto deviation = [](const std::vector<double>& x) {
    double sum = 0;
    for (const double v : x) sum += v * v;
    return std::sqrt(sum / static_cast<double>(x.size()));
  };
  const double si = deviation(path.imbalance), sf = deviation(path.flow);
  const std::size_t h = 50;  // 0.5 s
  std::vector<double> skill;
  std::printf("  delay   correlation   AUC   mid's move over 0.5 s per sd of the score [ticks]\n");
  for (const std::size_t d : {0UL, 1UL, 10UL, 100UL, 500UL}) {
    std::vector<double> score, move;
    for (std::size_t i = 0; i + d + h < path.mid.size(); ++i) {
      score.push_back(path.imbalance[i] / si + 0.5 * path.flow[i] / sf);
      move.push_back(path.mid[i + d + h] - path.mid[i + d]);
    }
    skill.push_back(correlation(score, move));
    std::printf("%5zu ms   %11.3f   %.3f   %.2f\n", 10 * d, skill.back(), auc(score, move),
                skill.back() * deviation(move));
  }
  CHECK(skill[0] > 0.1);
  CHECK(skill[0] < 0.35);
  CHECK(skill[0] > skill[1]);
  CHECK(skill[1] > skill[2]);
  CHECK(skill[2] > 0.06);
  CHECK(std::abs(skill[3]) < 0.5 * skill[0]);
  CHECK(std::abs(skill[4]) < 0.35 * skill[0]);
}

TEST_CASE("calm: rate as asked, clustered arrivals, remembered signs, tight spread, deep queues") {
  const Path path = watch(calm_only(12), 600);
  CHECK(100 * mean(path.packets) == doctest::Approx(3'000).epsilon(0.03));
  double square = 0;
  for (const double n : path.packets) square += n * n;
  const double average = mean(path.packets);
  const double variance = square / static_cast<double>(path.packets.size()) - average * average;
  CHECK(variance / average > 1.4);
  for (const std::size_t lag : {1UL, 10UL, 100UL}) CHECK(sign_memory(path.signs, lag) > 0.015);
  CHECK(sign_memory(path.signs, 1) > sign_memory(path.signs, 300));
  const auto tight =
      std::count_if(path.spread.begin(), path.spread.end(), [](double s) { return s <= 2; });
  CHECK(static_cast<double>(tight) > 0.95 * static_cast<double>(path.spread.size()));
  CHECK(mean(path.touch_orders) > 5);
}

TEST_CASE("storms: three to six times the messages, and larger moves") {
  SimMarketConfig config = one_instrument(13);
  config.regimes = {.calm_s = 60, .storm_s = 30};
  const Path path = watch(config, 600);
  double packets[2] = {}, moves[2] = {}, n[2] = {};
  for (std::size_t i = 10; i < path.mid.size(); i += 10) {
    const auto storm = static_cast<std::size_t>(path.storm[i]);
    packets[storm] += path.packets[i];
    moves[storm] += std::pow(path.mid[i] - path.mid[i - 10], 2);
    ++n[storm];
  }
  REQUIRE(n[0] > 100);
  REQUIRE(n[1] > 100);
  const double busier = packets[1] / n[1] / (packets[0] / n[0]);
  CHECK(busier > 2.7);
  CHECK(busier < 6.6);
  CHECK(std::sqrt(moves[1] / n[1] / (moves[0] / n[0])) > 1.5);
}

TEST_CASE("instruments share part of their drive") {
  SimMarketConfig config = calm_only(14);
  config.instruments[0].common_share = 0.9;
  config.instruments.push_back(config.instruments[0]);
  config.instruments[1].id = 1;
  SimMarket market(config);
  std::vector<Event> rows;
  std::vector<SimReport> reports;
  std::vector<double> moves[2];
  double before[2] = {};
  for (int i = 0; i < 2'000; ++i) {
    rows.clear();
    market.step_until(kStart + i * kSecond / 5, rows, reports, static_cast<std::size_t>(-1));
    for (InstrumentId k = 0; k < 2; ++k) {
      const auto mid2 = static_cast<double>(market.book(k).best(BUY) + market.book(k).best(SELL));
      moves[k].push_back(mid2 - before[k]);
      before[k] = mid2;
    }
  }
  for (auto& m : moves) m.erase(m.begin());
  CHECK(correlation(moves[0], moves[1]) > 0.03);
}
