#include <doctest/doctest.h>

#include "book.hpp"
#include "risk.hpp"

using namespace hft;

namespace {

Book touch(Ticks bid, Ticks ask) {
  Book b;
  for (const int side : {BUY, SELL}) {
    Event e{};
    e.kind = Kind::LEVEL;
    e.side = static_cast<std::int8_t>(side);
    e.price = side == BUY ? bid : ask;
    e.qty = 1;
    e.flags = LAST;
    b.apply(e);
  }
  return b;
}

}  // namespace

TEST_CASE("without limits everything passes, even without a book") {
  RiskGate gate;
  CHECK(gate.check_new({}, {}, BUY, 100, 1'000'000, 0) == Reason::NONE);
}

TEST_CASE("position counts what is open as if it will fill, on its own side alone") {
  RiskLimits limits;
  limits.max_position_lots = 10;
  RiskGate gate(limits);
  const Book book = touch(99, 101);
  Exposure x;
  x.position = 4;
  x.open_lots[0] = 3;
  x.open_lots[1] = 9;
  CHECK(gate.check_new(x, book.mid2(), BUY, 100, 3, 0) == Reason::NONE);
  CHECK(gate.check_new(x, book.mid2(), BUY, 100, 4, 0) == Reason::POSITION_LIMIT);
  CHECK(gate.check_new(x, book.mid2(), SELL, 100, 5, 0) == Reason::NONE);  // -4 + 9 + 5 = 10 short
  CHECK(gate.check_new(x, book.mid2(), SELL, 100, 6, 0) == Reason::POSITION_LIMIT);
}

TEST_CASE("a replace is judged by what it adds") {
  RiskLimits limits;
  limits.max_position_lots = 10;
  RiskGate gate(limits);
  Exposure x;
  x.open_lots[0] = 10;
  CHECK(gate.check_replace(x, {}, BUY, 100, 10, 0, 0) == Reason::NONE);
  CHECK(gate.check_replace(x, {}, BUY, 100, 11, 1, 0) == Reason::POSITION_LIMIT);
  CHECK(gate.check_replace(x, {}, BUY, 100, 5, -5, 0) == Reason::NONE);
}

TEST_CASE("the collar is a distance from our mid, and needs one") {
  RiskLimits limits;
  limits.collar_bps = 100;  // 1 %
  RiskGate gate(limits);
  const Book book = touch(9'999, 10'001);
  CHECK(gate.check_new({}, book.mid2(), BUY, 10'100, 1, 0) == Reason::NONE);
  CHECK(gate.check_new({}, book.mid2(), BUY, 10'101, 1, 0) == Reason::PRICE_COLLAR);
  CHECK(gate.check_new({}, book.mid2(), SELL, 9'899, 1, 0) == Reason::PRICE_COLLAR);
  CHECK(gate.check_new({}, book.mid2(), BUY, kNoPrice, 1, 0) ==
        Reason::NONE);  // a market order has no price to judge
  CHECK(gate.check_new({}, kNoPrice, BUY, 10'000, 1, 0) == Reason::NO_REFERENCE);
  CHECK(gate.check_new({}, touch(99, 101).mid2(), BUY, 900'000'000'000'000, 1, 0) ==
        Reason::PRICE_COLLAR);
}

TEST_CASE("the message rate is a sliding window, and refusals do not count") {
  RiskLimits limits;
  limits.max_messages = 2;
  limits.window_ns = 100;
  RiskGate gate(limits);
  CHECK(gate.check_new({}, {}, BUY, 1, 1, 0) == Reason::NONE);
  CHECK(gate.check_replace({}, {}, BUY, 1, 1, 0, 50) == Reason::NONE);
  CHECK(gate.check_new({}, {}, BUY, 1, 1, 99) == Reason::MESSAGE_RATE);
  CHECK(gate.check_new({}, {}, BUY, 1, 1, 100) == Reason::NONE);
  CHECK(gate.check_new({}, {}, BUY, 1, 1, 149) == Reason::MESSAGE_RATE);
  CHECK(gate.check_new({}, {}, BUY, 1, 1, 150) == Reason::NONE);
}

TEST_CASE("size, number of open orders and the halt") {
  RiskLimits limits;
  limits.max_order_lots = 5;
  limits.max_open_orders = 2;
  RiskGate gate(limits);
  Exposure x;
  x.open_orders = 1;
  CHECK(gate.check_new(x, {}, BUY, 1, 5, 0) == Reason::NONE);
  CHECK(gate.check_new(x, {}, BUY, 1, 6, 0) == Reason::ORDER_SIZE);
  x.open_orders = 2;
  CHECK(gate.check_new(x, {}, BUY, 1, 5, 0) == Reason::OPEN_ORDERS);
  CHECK(gate.check_replace(x, {}, BUY, 1, 5, 0, 0) == Reason::NONE);
  gate.halted = true;
  CHECK(gate.check_replace(x, {}, BUY, 1, 5, 0, 0) == Reason::HALTED_BY_RISK);
}
