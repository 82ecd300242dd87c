#include <doctest/doctest.h>

#include <random>

#include "mids.hpp"

namespace hft {
namespace {

constexpr auto kBoth = static_cast<std::uint16_t>(SEEN_BY_VENUE | SEEN_BY_US | LAST);

Event row(Ts ts, Kind kind, int side = 0, Ticks price = 0, Lots lots = 0, std::int64_t id = 0) {
  Event e{};
  e.ts_event = e.ts_recv = ts;
  e.kind = kind;
  e.side = static_cast<std::int8_t>(side);
  e.price = price;
  e.qty = lots;
  e.order_id = id;
  e.flags = kBoth;
  return e;
}

}  // namespace

TEST_CASE("touches: a time counts all rows that bear it, and asks no more than it must") {
  TouchesAt touches({5, 10, 10, 15});
  CHECK(touches.on_row(row(10, Kind::LEVEL, BUY, 99, 1)));
  CHECK(touches.on_row(row(10, Kind::LEVEL, SELL, 101, 1)));
  CHECK(touches.on_row(row(15, Kind::LEVEL, SELL, 101, 0)));
  CHECK_FALSE(touches.on_row(row(16, Kind::LEVEL, BUY, 100, 1)));
  const auto& found = touches.finish();
  CHECK(found[0].bid == kNoPrice);
  CHECK(found[1].bid == 99);
  CHECK(found[1].ask == 101);
  CHECK(found[2].ask == 101);
  CHECK(found[3].bid == 99);
  CHECK(found[3].ask == kNoPrice);
}

TEST_CASE("touches: orders of the feed make the touch; without times nothing is asked") {
  TouchesAt touches({1, 2, 3});
  touches.on_row(row(1, Kind::ADD, BUY, 99, 5, 1));
  touches.on_row(row(2, Kind::ADD, SELL, 102, 5, 2));
  touches.on_row(row(3, Kind::EXECUTE, SELL, 102, 5, 2));
  const auto& found = touches.finish();
  CHECK(found[0].bid == 99);
  CHECK(found[1].ask == 102);
  CHECK(found[2].ask == kNoPrice);
  TouchesAt none({});
  CHECK_FALSE(none.on_row(row(1, Kind::LEVEL, BUY, 99, 1)));
  CHECK(none.finish().empty());
}

TEST_CASE("touches: random rows agree with a book asked on the way") {
  std::mt19937_64 rng(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<Event> rows;
    std::vector<Ts> times;
    for (Ts ts = 0; ts < 60;) {
      ts += static_cast<Ts>(rng() % 3);
      const int side = rng() % 2 ? BUY : SELL;
      rows.push_back(row(ts, Kind::LEVEL, side, 100 - side * static_cast<Ticks>(1 + rng() % 4),
                         static_cast<Lots>(rng() % 3)));
    }
    for (Ts t = -1; t < 63; t += static_cast<Ts>(rng() % 3)) times.push_back(t);
    TouchesAt touches(times);
    for (const Event& e : rows)
      if (!touches.on_row(e)) break;
    const auto& found = touches.finish();
    for (std::size_t i = 0; i < times.size(); ++i) {
      Book book;
      for (const Event& e : rows)
        if (e.ts_event <= times[i]) book.apply(e);
      CHECK(found[i].bid == book.bid());
      CHECK(found[i].ask == book.ask());
    }
  }
}

}  // namespace hft
