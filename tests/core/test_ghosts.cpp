#include <doctest/doctest.h>

#include <deque>
#include <map>

#include "ghosts.hpp"
#include "rng.hpp"

using namespace hft;

namespace {

constexpr std::uint16_t kBoth = SEEN_BY_VENUE | SEEN_BY_US;
constexpr Ns kSecond = 1'000'000'000;

/// A venue that matches first in, first out, and writes what it does, in two dialects.
struct Fifo {
  struct Order {
    std::int64_t id;
    Lots lots;
  };
  bool told_thrice;  ///< print, executions, changes, each a row of its own
  std::map<std::int64_t, std::deque<Order>, std::greater<>> sides[2] = {};
  std::vector<Event> rows = {};
  Ts now = 0;
  std::int64_t ids = 0;

  void write(Kind kind, int side, Ticks price, Lots qty, std::int64_t id, std::uint16_t flags = 0) {
    Event e{};
    e.ts_event = e.ts_recv = now;
    e.kind = kind;
    e.side = static_cast<std::int8_t>(side);
    e.price = price;
    e.qty = qty;
    e.order_id = id;
    e.flags = static_cast<std::uint16_t>(kBoth | flags);
    rows.push_back(e);
  }
  void end_packet() { rows.back().flags |= LAST; }

  std::int64_t add(int side, Ticks price, Lots lots) {
    sides[side_index(side)][price * side].push_back({++ids, lots});
    write(Kind::ADD, side, price, lots, ids, LAST);
    return ids;
  }
  /// Cancels `lots` of the n-th order of a level, or all of it.
  void cancel(int side, Ticks price, std::size_t n, Lots lots = 0) {
    auto& level = sides[side_index(side)].at(price * side);
    Order& order = level[n];
    write(Kind::CANCEL, side, price, lots, order.id, LAST);
    order.lots -= lots == 0 ? order.lots : lots;
    if (order.lots == 0) level.erase(level.begin() + static_cast<std::ptrdiff_t>(n));
    if (level.empty()) sides[side_index(side)].erase(price * side);
  }
  /// Gives the n-th order of a level another size: a larger one goes to the back.
  void modify(int side, Ticks price, std::size_t n, Lots lots) {
    auto& level = sides[side_index(side)].at(price * side);
    const Order order{level[n].id, lots};
    write(Kind::MODIFY, side, price, lots, order.id, LAST);
    if (lots > level[n].lots) {
      level.erase(level.begin() + static_cast<std::ptrdiff_t>(n));
      level.push_back(order);
    } else {
      level[n].lots = lots;
    }
  }
  /// Somebody takes `lots` from `side`, a packet in all.
  void take(int side, Lots lots) {
    auto& book = sides[side_index(side)];
    if (book.empty()) return;
    while (lots > 0 && !book.empty()) {
      auto& [key, level] = *book.begin();
      const Ticks price = key * side;
      std::vector<Event> changes;
      const std::size_t print = rows.size();
      Lots printed = 0;
      if (told_thrice) write(Kind::TRADE, -side, price, 0, 0, NO_CHANGE);
      while (lots > 0 && !level.empty()) {
        Order& order = level.front();
        const Lots part = std::min(lots, order.lots);
        printed += part;
        lots -= part;
        order.lots -= part;
        const std::uint16_t flags = told_thrice ? NO_CHANGE | NO_PRINT : 0;
        write(Kind::EXECUTE, side, price, part, order.id, flags);
        if (told_thrice) {
          changes.push_back(rows.back());
          changes.back().kind = order.lots > 0 ? Kind::MODIFY : Kind::CANCEL;
          changes.back().flags = kBoth;
          if (order.lots > 0) changes.back().qty = order.lots;
        }
        if (order.lots == 0) level.pop_front();
      }
      if (told_thrice) rows[print].qty = printed;
      rows.insert(rows.end(), changes.begin(), changes.end());
      if (level.empty()) book.erase(book.begin());
    }
    end_packet();
  }
  void status(Trading state) {
    write(Kind::STATUS, 0, 0, 0, 0, LAST);
    rows.back().ref_id = static_cast<std::int64_t>(state);
  }
};

Fifo random_day(std::uint64_t seed, int steps) {
  Fifo venue{seed % 2 == 1};
  std::uint64_t n = 0;
  const auto below = [&](std::uint64_t limit) { return draw_bits(seed, 1, n++) % limit; };
  for (int i = 0; i < steps; ++i) {
    venue.now += static_cast<Ts>(below(4)) * 400'000;  // often within the guard of prints, or equal
    const int side = below(2) == 0 ? BUY : SELL;
    const Ticks price = 100 + (side == BUY ? -1 : 1) * static_cast<Ticks>(1 + below(3));
    auto& book = venue.sides[side_index(side)];
    const auto level = book.find(price * side);
    const std::uint64_t what = below(10);
    if (what < 4 || level == book.end()) {
      venue.add(side, price, 1 + static_cast<Lots>(below(9)));
    } else if (what < 7) {
      const std::size_t at = below(level->second.size());
      const Lots all = level->second[at].lots;
      const bool part = all > 1 && below(3) == 0;
      venue.cancel(side, price, at, part ? 1 + static_cast<Lots>(below(all - 1)) : 0);
    } else if (what < 8) {
      venue.modify(side, price, below(level->second.size()), 1 + static_cast<Lots>(below(9)));
    } else {
      venue.take(side, 1 + static_cast<Lots>(below(12)));
    }
  }
  return venue;
}

std::vector<std::int64_t> adds_of(const std::vector<Event>& rows) {
  GhostScan scan(9, Keeps::SMALLER, 1);
  for (const Event& e : rows) scan.apply(e);
  return scan.choose(1'000'000);
}

Ghosts run(const std::vector<Event>& rows, std::vector<std::int64_t> hidden,
           std::vector<QueueConfig> models, int particles = 1, bool removed = false,
           Ns horizon_ns = 60 * kSecond) {
  GhostConfig config;
  config.models = std::move(models);
  config.particles = particles;
  config.prints_removed = removed;
  config.horizon_ns = horizon_ns;
  Ghosts ghosts(config, std::move(hidden));
  for (const Event& e : rows) ghosts.apply(e);
  ghosts.finish();
  return ghosts;
}

/// The risk-averse fate of one hidden order, the long way: the levels and prints of a market that
/// never had it are written out and given to the engine's own queue.
Ts averse_fate(const std::vector<Event>& rows, std::int64_t hidden, bool removed, Ts until) {
  const Event mine = rows[static_cast<std::size_t>(hidden)];
  const std::int64_t key = mine.price * mine.side;
  const Queue queue({QueueModel::RISK_AVERSE, 1});
  Book book;
  Order::Resting shadow;
  Lots own = 0;
  bool resting = false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Event& e = rows[i];
    if (resting && e.ts_event > until) break;
    if (resting && is_print(e) && -aggressor(e) == mine.side) {
      Lots hit = e.kind == Kind::EXECUTE && e.order_id == mine.order_id ? e.qty : 0;
      for (std::size_t k = i + 1; k < rows.size() && e.kind == Kind::TRADE; ++k) {
        if (rows[k].kind != Kind::EXECUTE) break;
        if (rows[k].order_id == mine.order_id) hit += rows[k].qty;
      }
      if (own == 0) hit = 0;  // it has left, or stands elsewhere
      const Lots told = e.qty - (removed ? hit : 0);
      if (told > 0 && e.price * mine.side < key) return e.ts_event;
      if (told > 0 && e.price == mine.price) {
        if (queue.print(shadow, told, 0, e.ts_event) > 0) return e.ts_event;
        shadow.traded -= removed ? 0 : hit;
      }
    }
    const Lots before = book.lots_at(mine.side, mine.price) - own;
    book.apply(e);
    OrderBook::Resting x;
    if (static_cast<std::int64_t>(i) == hidden) {
      resting = true;
      own = mine.qty;
      shadow.ahead = static_cast<double>(before);
      shadow.arrival = book.orders()->find(mine.order_id, x) ? x.arrival : 0;
      continue;
    }
    if (!resting) continue;
    const bool still = book.orders()->find(mine.order_id, x) && x.arrival == shadow.arrival;
    own = still ? x.lots : 0;
    const Lots after = book.lots_at(mine.side, mine.price) - own;
    if (after != before) queue.resize(shadow, before, after, e.ts_event);
  }
  return kNever;
}

double share(const Ghosts& ghosts, std::size_t i, int particles) {
  return static_cast<double>(ghosts.forecasts()[i].filled) / particles;
}

}  // namespace

TEST_CASE("a queue that is known tells the fate of every hidden order") {
  std::size_t orders = 0, filled = 0, wrong = 0, places = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Fifo day = random_day(seed, 120);
    const Ghosts ghosts = run(day.rows, adds_of(day.rows), {});
    for (const GhostRow& g : ghosts.rows()) {
      ++orders;
      filled += g.ts_fill != kNever;
      wrong += g.ts_exact != g.ts_fill;
      places += g.ts_place_fill != kNever;
      if (g.ts_fill != kNever) CHECK(g.ts_place_fill == g.ts_fill);
    }
  }
  CHECK(wrong == 0);
  CHECK(orders > 15'000);
  CHECK(filled > orders / 4);
  CHECK(places > filled + orders / 10);
}

TEST_CASE("without the prints of the hidden order even a known queue fills late or never") {
  std::size_t less = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Fifo day = random_day(seed, 120);
    const Ghosts ghosts = run(day.rows, adds_of(day.rows), {}, 1, true);
    for (const GhostRow& g : ghosts.rows()) {
      CHECK(g.ts_exact >= g.ts_fill);
      less += g.ts_exact > g.ts_fill;
    }
  }
  CHECK(less > 100);
}

TEST_CASE("a ghost sees the market that never had its order") {
  for (const bool removed : {false, true})
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      const Fifo day = random_day(1000 + seed, 80);
      const auto hidden = adds_of(day.rows);
      const Ghosts ghosts = run(day.rows, hidden, {{QueueModel::RISK_AVERSE, 1, true}}, 1, removed);
      for (std::size_t i = 0; i < hidden.size(); ++i) {
        const GhostRow& row = ghosts.rows()[i];
        const Ts fate = averse_fate(day.rows, hidden[i], removed, row.ts_place_end);
        CHECK(ghosts.forecasts()[i].ts_place_filled == fate);
      }
    }
}

TEST_CASE("the window ends with the order, by row and not by stamp") {
  Fifo v{false};
  v.now = 1;
  v.add(SELL, 102, 5);
  const auto mine = static_cast<std::int64_t>(v.rows.size());
  v.add(SELL, 101, 3);
  v.add(SELL, 101, 4);
  v.now = 7;
  v.cancel(SELL, 101, 0);
  v.take(SELL, 1);  // the same stamp, a later row
  const Ghosts ghosts = run(v.rows, {mine}, {{QueueModel::UNIFORM, 1, true}}, 8);
  const GhostRow& g = ghosts.rows()[0];
  CHECK(g.end == GhostEnd::CANCELED);
  CHECK(g.ts_end == 7);
  CHECK(g.ts_fill == kNever);
  CHECK(g.ts_exact == kNever);
  CHECK(g.ts_place_fill == 7);  // its place was first in the queue
  CHECK(g.level == 0);
  CHECK(ghosts.forecasts()[0].filled == 0);
  CHECK(ghosts.forecasts()[0].place_filled == 8);
}

TEST_CASE("windows end with the horizon, a halt, and a change that loses the place") {
  const auto fate = [](auto&& then) {
    Fifo v{false};
    v.now = 1;
    v.add(BUY, 99, 5);
    v.add(BUY, 99, 2);
    then(v);
    v.take(BUY, 6);
    return run(v.rows, {1}, {{QueueModel::RISK_AVERSE, 1, true}}, 4, false, 100);
  };
  const Ghosts in_time = fate([](Fifo& v) { v.now = 101; });
  CHECK(in_time.rows()[0].ts_fill == 101);
  CHECK(in_time.rows()[0].end == GhostEnd::HORIZON);
  CHECK(in_time.forecasts()[0].filled == 4);
  const Ghosts late = fate([](Fifo& v) { v.now = 102; });
  CHECK(late.rows()[0].ts_fill == kNever);
  CHECK(late.rows()[0].ts_end == 101);
  CHECK(late.forecasts()[0].filled == 0);
  const Ghosts halted = fate([](Fifo& v) {
    v.now = 50;
    v.status(Trading::HALT);
    v.status(Trading::OPEN);
  });
  CHECK(halted.rows()[0].end == GhostEnd::STOPPED);
  CHECK(halted.rows()[0].ts_end == 50);
  CHECK(halted.rows()[0].ts_place_end == 50);
  const Ghosts moved = fate([](Fifo& v) {
    v.now = 50;
    v.modify(BUY, 99, 1, 3);
  });
  CHECK(moved.rows()[0].end == GhostEnd::MOVED);
  CHECK(moved.rows()[0].ts_end == 50);
  const Ghosts smaller = fate([](Fifo& v) {
    v.now = 50;
    v.modify(BUY, 99, 1, 1);
  });
  CHECK(smaller.rows()[0].end == GhostEnd::HORIZON);
  CHECK(smaller.rows()[0].ts_fill == 50);
}

TEST_CASE("lots that hit the hidden order explain no later cancel") {
  // The ten before it are cancelled, so that the print of four meets it; a model that still sees
  // six of ten before the shadow must take the four that leave at once for cancelled, not for
  // printed.
  Fifo v{false};
  v.now = 1;
  v.add(BUY, 99, 10);
  v.add(BUY, 99, 8);  // hidden
  v.add(BUY, 99, 4);
  v.add(BUY, 99, 6);
  const int n = 4000;
  v.now = 10'000'000;
  v.cancel(BUY, 99, 0);
  v.now = 20'000'000;
  v.take(BUY, 4);
  const std::size_t before = v.rows.size();
  v.now = 20'500'000;
  v.cancel(BUY, 99, 1);
  v.now = 40'000'000;
  v.take(BUY, 3);
  const std::vector<QueueConfig> risky{{QueueModel::POWER3, 1, true}};
  const double early = share(
      run({v.rows.begin(), v.rows.begin() + static_cast<std::ptrdiff_t>(before)}, {1}, risky, n), 0,
      n);
  // Ten of twenty lots left: before the shadow in half of all draws, and the print reaches it.
  CHECK(early == doctest::Approx(0.5).epsilon(0.1));
  // Else six stand before it, four behind: the four leave before it with 6/10, and two are left.
  CHECK(share(run(v.rows, {1}, risky, n), 0, n) == doctest::Approx(0.5 + 0.5 * 0.6).epsilon(0.05));
}

TEST_CASE("a changed order that takes is not filled where it rested") {
  Fifo v{true};
  v.now = 1;
  v.add(SELL, 103, 5);
  v.add(BUY, 99, 2);
  v.now = 5;  // it is changed to buy at 103, and trades there
  v.write(Kind::TRADE, BUY, 103, 2, 0, NO_CHANGE);
  v.write(Kind::EXECUTE, SELL, 103, 2, 1, NO_CHANGE | NO_PRINT);
  v.write(Kind::EXECUTE, BUY, 103, 2, 2, NO_CHANGE | NO_PRINT);
  v.write(Kind::MODIFY, SELL, 103, 3, 1);
  v.write(Kind::CANCEL, BUY, 99, 2, 2, LAST);
  const Ghosts ghosts = run(v.rows, {1}, {});
  CHECK(ghosts.rows()[0].ts_fill == kNever);
  CHECK(ghosts.rows()[0].end == GhostEnd::MOVED);
}

TEST_CASE("who may be hidden") {
  Fifo v{false};
  v.status(Trading::AUCTION);
  v.add(BUY, 95, 1);  // an auction
  v.status(Trading::OPEN);
  for (Ticks price = 100; price > 96; --price) v.add(BUY, price, 1);
  v.add(SELL, 100, 1);  // meets the bid
  GhostScan all(9, Keeps::SMALLER, 1), two(2, Keeps::SMALLER, 1);
  for (const Event& e : v.rows) {
    all.apply(e);
    two.apply(e);
  }
  CHECK(all.choose(99) == std::vector<std::int64_t>{3, 4, 5, 6});
  CHECK(two.choose(99) == std::vector<std::int64_t>{3, 4});
  CHECK(all.choose(3).size() == 3);
}

TEST_CASE("hiding other orders changes nothing for one") {
  const Fifo day = random_day(3, 400);
  const auto hidden = adds_of(day.rows);
  const std::vector<QueueConfig> models{{QueueModel::POWER3, 2.5, true},
                                        {QueueModel::LOG1, 1, true}};
  const Ghosts together = run(day.rows, hidden, models, 16);
  for (std::size_t i = 0; i < hidden.size(); i += 7) {
    const Ghosts alone = run(day.rows, {hidden[i]}, models, 16);
    for (std::size_t m = 0; m < 2; ++m) {
      CHECK(alone.forecasts()[m].filled == together.forecasts()[2 * i + m].filled);
      CHECK(alone.forecasts()[m].ts_place_filled ==
            together.forecasts()[2 * i + m].ts_place_filled);
    }
  }
}
