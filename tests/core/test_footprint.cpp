#include <doctest/doctest.h>

#include <map>
#include <random>

#include "footprint.hpp"

using namespace hft;

namespace {

constexpr Ns kGuardNs = 1'000'000;

Event row_of(Kind kind, int side, Ticks price, Lots qty, Ts ts, std::int64_t id = 0) {
  Event e{};
  e.kind = kind;
  e.side = static_cast<std::int8_t>(side);
  e.price = price;
  e.qty = qty;
  e.order_id = id;
  e.ts_event = e.ts_recv = ts;
  e.flags = SEEN_BY_VENUE | SEEN_BY_US | LAST;
  return e;
}

FootprintConfig never_heals() {
  FootprintConfig config;
  config.half_life_ns = 0;
  return config;
}

/// The recorded side of sellers and what our takes left missing in it.
struct Tape {
  explicit Tape(FootprintConfig config = never_heals()) : footprint(config) {}

  void level(Ticks price, Lots qty, Ts ts) {
    const Lots before = book.lots_at(SELL, price);
    book.apply(row_of(Kind::LEVEL, SELL, price, qty, ts));
    footprint.on_level(book, SELL, -price, before, qty, ts);
  }
  void order(Kind kind, std::int64_t id, Ticks price, Lots qty, Ts ts) {
    const Event e = row_of(kind, SELL, price, qty, ts, id);
    if (kind == Kind::EXECUTE) footprint.on_execute(book, SELL, -price, qty, 0, ts);
    footprint.on_changes(book, e, book.apply_order(e));
  }
  Lots at(Ticks price, Ts ts) const { return footprint.available(book, SELL, -price, ts); }
  /// We buy up to `lots` in the effective book; returns what we got.
  Lots buy(Lots lots, Ts ts) {
    Lots got = 0;
    const Ladder& asks = book.side(SELL);
    for (auto k = asks.best(); k != kNoKey && got < lots; k = asks.next(k)) {
      const Lots found = std::min(footprint.available(book, SELL, k, ts), lots - got);
      if (found > 0) footprint.take(book, SELL, k, found, ts);
      got += found;
    }
    return got;
  }

  Book book;
  Footprint footprint;
};

/// Levels in which our takes really happened.
struct Truth {
  std::map<Ticks, Lots> levels;
  Lots at(Ticks price) const {
    const auto it = levels.find(price);
    return it == levels.end() ? 0 : it->second;
  }
  void walk(Lots lots) {
    for (auto& [price, there] : levels) {
      const Lots found = std::min(there, lots);
      there -= found;
      lots -= found;
    }
  }
};

constexpr Ticks kBest = 100, kWorst = 106;

/// One random life of a book of levels; true: what is available was always what was really there.
/// `spills` false is the mistake the rule avoids: what a print does not find is forgotten.
bool agrees_by_levels(std::uint32_t seed, bool spills) {
  std::mt19937 rng(seed);
  const auto upto = [&](Lots n) { return static_cast<Lots>(rng() % static_cast<unsigned>(n)); };
  Tape tape;
  Truth truth;
  Ts ts = 1'000;
  for (int step = 0; step < 60; ++step) {
    ts += upto(3) * kGuardNs / 2 + 1;
    const auto what = rng() % 10;
    const Ticks price = kBest + upto(kWorst - kBest);
    if (what < 4) {
      const Lots more = 1 + upto(20);
      tape.level(price, tape.book.lots_at(SELL, price) + more, ts);
      truth.levels[price] += more;
    } else if (what < 7) {
      const Lots lots = 1 + upto(25);
      const Lots got = tape.buy(lots, ts);
      truth.walk(got);
    } else {  // a market order of somebody else, through as many levels as it takes
      Lots all = 0;
      for (Ticks p = kBest; p < kWorst; ++p) all += tape.book.lots_at(SELL, p);
      if (all == 0) continue;
      Lots left = 1 + upto(std::min<Lots>(all, 40));
      truth.walk(left);
      const bool prints_first = rng() % 2;
      std::vector<std::pair<Ticks, Lots>> rows;
      for (Ticks p = kBest; p < kWorst && left > 0; ++p) {
        const Lots here = tape.book.lots_at(SELL, p), lots = std::min(here, left);
        if (lots == 0) continue;
        left -= lots;
        if (spills) {
          tape.footprint.on_print(tape.book, SELL, -p, lots, ts);
        } else {
          const Lots there = tape.at(p, ts);
          tape.footprint.on_print(tape.book, SELL, -p, std::min(there, lots), ts);
        }
        if (prints_first) {
          rows.emplace_back(p, here - lots);
        } else {
          tape.level(p, here - lots, ts + 10);
        }
      }
      for (const auto& [p, after] : rows) tape.level(p, after, ts + 10);
    }
    for (Ticks p = kBest; p < kWorst; ++p)
      if (tape.at(p, ts + 10) != truth.at(p)) return false;
  }
  return true;
}

/// Orders in their queues, each with what is left of it when our takes really happened.
struct TrueOrders {
  struct Order {
    std::int64_t id;
    Ticks price;
    Lots tape, left;
  };
  std::vector<Order> queue;  ///< in order of arrival

  Lots at(Ticks price) const {
    Lots sum = 0;
    for (const Order& o : queue) sum += o.price == price ? o.left : 0;
    return sum;
  }
  void walk(Lots lots) {
    for (Ticks p = kBest; p < kWorst; ++p)
      for (Order& o : queue)
        if (o.price == p) {
          const Lots found = std::min(o.left, lots);
          o.left -= found;
          lots -= found;
        }
  }
};

bool agrees_by_orders(std::uint32_t seed, bool by_place) {
  std::mt19937 rng(seed);
  const auto upto = [&](std::size_t n) { return static_cast<Lots>(rng() % n); };
  FootprintConfig config = never_heals();
  config.by_size = !by_place;
  Tape tape(config);
  TrueOrders truth;
  std::int64_t ids = 0;
  Ts ts = 1'000;
  for (int step = 0; step < 80; ++step) {
    ts += 1 + upto(1'000);
    const auto what = rng() % 10;
    if (what < 4 || truth.queue.empty()) {
      const TrueOrders::Order o{++ids, kBest + upto(kWorst - kBest), 0, 1 + upto(12)};
      tape.order(Kind::ADD, o.id, o.price, o.left, ts);
      truth.queue.push_back({o.id, o.price, o.left, o.left});
    } else if (what < 6) {
      truth.walk(tape.buy(1 + upto(15), ts));
    } else if (what < 8) {
      auto& o = truth.queue[static_cast<std::size_t>(upto(truth.queue.size()))];
      const Lots gone = 1 + upto(static_cast<std::size_t>(o.tape));
      tape.order(Kind::CANCEL, o.id, o.price, gone, ts);
      o.tape -= gone;
      o.left = std::max(o.left - gone, Lots{0});
    } else {  // a market order: the tape's first orders, one row each
      Lots all = 0;
      for (const auto& o : truth.queue) all += o.tape;
      Lots left = 1 + upto(static_cast<std::size_t>(std::min<Lots>(all, 30)));
      truth.walk(left);
      for (Ticks p = kBest; p < kWorst; ++p)
        for (auto& o : truth.queue) {
          const Lots lots = o.price == p ? std::min(o.tape, left) : 0;
          if (lots == 0) continue;
          tape.order(Kind::EXECUTE, o.id, p, lots, ts);
          o.tape -= lots;
          left -= lots;
        }
    }
    std::erase_if(truth.queue, [](const auto& o) { return o.tape == 0; });
    for (Ticks p = kBest; p < kWorst; ++p)
      if (tape.at(p, ts) != truth.at(p)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("levels: what is available is what our takes would really have left") {
  int wrong = 0;
  for (int seed = 0; seed < 3'000; ++seed)
    wrong += !agrees_by_levels(static_cast<std::uint32_t>(seed), true);
  CHECK(wrong == 0);
}

TEST_CASE("levels: without the spill it is not, most of the time") {
  int wrong = 0;
  for (int seed = 0; seed < 300; ++seed)
    wrong += !agrees_by_levels(static_cast<std::uint32_t>(seed), false);
  CHECK(wrong > 200);
}

TEST_CASE("orders: what is available is what our takes would really have left") {
  int wrong = 0;
  for (int seed = 0; seed < 3'000; ++seed)
    wrong += !agrees_by_orders(static_cast<std::uint32_t>(seed), true);
  CHECK(wrong == 0);
}

TEST_CASE("orders: by proportion, as for levels, it is not") {
  int wrong = 0;
  for (int seed = 0; seed < 300; ++seed)
    wrong += !agrees_by_orders(static_cast<std::uint32_t>(seed), false);
  CHECK(wrong > 200);
}

TEST_CASE("a flicker of a level that we emptied gives nothing back; new size is real") {
  Tape tape;
  tape.level(100, 100, 0);
  CHECK(tape.buy(100, 1) == 100);
  tape.level(100, 99, 5 * kGuardNs);  // 99 of 99 are missing
  CHECK(tape.at(100, 5 * kGuardNs) == 0);
  tape.level(100, 150, 6 * kGuardNs);
  CHECK(tape.at(100, 6 * kGuardNs) == 51);
}

TEST_CASE("a cancel takes our share of the level, a print at most what is then left") {
  Tape tape;
  tape.level(100, 100, 0);
  tape.buy(40, 1);
  tape.level(100, 50, 5 * kGuardNs);
  CHECK(tape.footprint.missing(SELL, -100, 5 * kGuardNs) == doctest::Approx(20));
  tape.footprint.on_print(tape.book, SELL, -100, 10, 6 * kGuardNs);
  CHECK(tape.at(100, 6 * kGuardNs) == 20);
  CHECK(tape.at(100, 8 * kGuardNs) ==
        30);  // no row has shown it: the print was none of ours to tell
  tape.level(100, 40, 9 * kGuardNs);
  CHECK(tape.at(100, 9 * kGuardNs) == 20);
}

TEST_CASE("a print that finds too little goes on to the levels behind it") {
  Tape tape;
  tape.level(100, 10, 0);
  tape.level(101, 10, 0);
  tape.level(103, 10, 0);
  tape.buy(8, 1);
  tape.footprint.on_print(tape.book, SELL, -100, 10, 2);
  CHECK(tape.at(100, 2) == 0);
  CHECK(tape.at(101, 2) == 2);
  CHECK(tape.at(103, 2) == 10);
  tape.level(100, 0, 3);
  tape.footprint.on_print(tape.book, SELL, -101, 5, 4);
  CHECK(tape.at(101, 4) == 0);
  CHECK(tape.at(103, 4) == 7);
}

TEST_CASE("what we took heals by half-lives, however often one asks") {
  FootprintConfig config;
  config.half_life_ns = 1'000'000;
  Tape often(config), once(config);
  for (Tape* tape : {&often, &once}) {
    tape->level(100, 1'000, 0);
    CHECK(tape->buy(1'000, 0) == 1'000);
  }
  for (Ts ts = 1; ts <= 1'000; ++ts) often.at(100, ts * 3'000);
  for (const double half_lives : {1.0, 2.5, 3.0}) {
    const Ts ts = static_cast<Ts>(half_lives * 1e6);
    CHECK(often.footprint.missing(SELL, -100, ts) ==
          doctest::Approx(1'000 * std::exp2(-half_lives)).epsilon(1e-14));
    CHECK(often.footprint.missing(SELL, -100, ts) == once.footprint.missing(SELL, -100, ts));
  }
  CHECK(once.at(100, 10'900'000) == 1'000 - 1);
  CHECK(once.at(100, 11'100'000) == 1'000);  // less than half a lot is nothing
}

TEST_CASE("what does not heal, by a draw a take, stays away until the tape moves") {
  FootprintConfig config;
  config.half_life_ns = 1'000;
  config.heals = 0.4;
  const Ts later = 1'000'000'000;
  Tape tape(config);
  int healed = 0;
  constexpr int kTakes = 4'000;
  for (int i = 0; i < kTakes; ++i) {
    tape.level(100, 0, i);
    tape.level(100, 10, i);
    tape.buy(10, i);
    healed += tape.at(100, later) == 10;
    CHECK((tape.at(100, later) == 0 || tape.at(100, later) == 10));
  }
  CHECK(healed / double{kTakes} == doctest::Approx(0.4).epsilon(0.06));  // 3 standard errors
  Ts ts = later;
  do {
    tape.level(100, 0, ++ts);
    tape.level(100, 10, ts);
    tape.buy(10, ts);
  } while (tape.at(100, ts + later) == 10);
  tape.level(100, 5, ts + later);  // half was cancelled, half of what we took with it
  CHECK(tape.footprint.missing(SELL, -100, ts + 2 * later) == doctest::Approx(5));
}

TEST_CASE("never more is missing than is shown, and nobody is offered less than nothing") {
  std::mt19937 rng(7);
  FootprintConfig config;
  config.half_life_ns = 3'000'000;
  config.heals = 0.5;
  Tape tape(config);
  Ts ts = 0;
  for (int step = 0; step < 20'000; ++step) {
    ts += rng() % 2'000'000;
    const Ticks price = kBest + rng() % 6;
    const auto what = rng() % 3;
    const Lots shown = tape.book.lots_at(SELL, price);
    if (what == 0) tape.level(price, rng() % 30, ts);
    if (what == 1) tape.buy(1 + rng() % 20, ts);
    if (what == 2 && shown > 0) {
      tape.footprint.on_print(tape.book, SELL, -price, 1 + rng() % shown, ts);
    }
    for (Ticks p = kBest; p < kWorst; ++p) {
      const double missing = tape.footprint.missing(SELL, -p, ts);
      REQUIRE(missing <= static_cast<double>(tape.book.lots_at(SELL, p)) + 1e-6);
      REQUIRE(tape.at(p, ts) >= 0);
      REQUIRE(tape.at(p, ts) <= tape.book.lots_at(SELL, p));
    }
  }
}

TEST_CASE("an order that leaves takes what we had of it, one that goes to the back nothing") {
  Tape tape;
  tape.order(Kind::ADD, 1, 100, 5, 0);
  tape.order(Kind::ADD, 2, 100, 5, 0);
  tape.order(Kind::ADD, 3, 100, 5, 0);
  tape.buy(7, 1);  // all of 1, two of 2
  tape.order(Kind::CANCEL, 3, 100, 0, 2);
  CHECK(tape.at(100, 2) == 3);
  tape.order(Kind::CANCEL, 2, 100, 3, 3);  // two left, both of which we had
  CHECK(tape.at(100, 3) == 0);
  tape.order(Kind::MODIFY, 1, 100, 6, 4);  // to the back, one more
  CHECK(tape.at(100, 4) == 1);
  tape.order(Kind::CANCEL, 2, 100, 0, 5);
  CHECK(tape.footprint.missing(SELL, -100, 5) == 5);
  tape.order(Kind::CANCEL, 1, 100, 0, 6);
  CHECK(tape.footprint.empty());
}

TEST_CASE("levels are hot as long as something is missing there") {
  FootprintConfig config;
  config.half_life_ns = 1'000;
  Tape tape(config);
  tape.level(100, 10, 0);
  tape.level(101, 10, 0);
  tape.buy(5, 0);
  CHECK(tape.book.side(SELL).hot(-100));
  tape.book.side(SELL).heat(-100);  // an order of ours as well
  tape.level(100, 0, 1);
  CHECK(tape.book.side(SELL).hot(-100));
  tape.book.side(SELL).cool(-100);
  CHECK_FALSE(tape.book.side(SELL).hot(-100));
  tape.buy(5, 2);
  CHECK(tape.book.side(SELL).hot(-101));
  tape.level(101, 11, 1'000'000);  // long healed
  CHECK_FALSE(tape.book.side(SELL).hot(-101));
}
