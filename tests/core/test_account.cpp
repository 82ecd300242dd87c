#include <doctest/doctest.h>

#include "account.hpp"
#include "bars.hpp"

using namespace hft;

namespace {

Instrument linear(double tick = 0.5, double lot = 0.1, double multiplier = 1) {
  Instrument i;
  i.symbol = "X";
  i.venue = "SIM";
  i.tick = tick;
  i.lot = lot;
  i.multiplier = multiplier;
  i.maker_e9 = -100'000;  // a rebate of 1 bp
  i.taker_e9 = 500'000;
  i.validate();
  return i;
}

Instrument inverse() {
  Instrument i = linear(0.5, 100);
  i.inverse = true;
  i.validate();
  return i;
}

}  // namespace

TEST_CASE("an account is the sum of its fills, to the last unit") {
  const Instrument inst = linear();
  Account a;
  a.apply(inst, BUY, 10, 200, 7);  // 1.0 at 100
  a.apply(inst, SELL, 4, 210, 5);  // 0.4 at 105
  CHECK(a.position == 6);
  CHECK(a.cash == -100 * kMoneyPerUnit + 42 * kMoneyPerUnit);
  CHECK(a.fees == 12);
  CHECK(a.fills == 2);
  CHECK(a.turnover == 142e9);
  CHECK(a.equity(inst, 2 * 205) == a.cash + 6 * 205 * inst.tick_value - 12);
  CHECK(a.equity(inst, kNoPrice) == a.cash - 12);  // nothing to mark it at
}

TEST_CASE("a lot whose tick is worth less than a money unit is rounded once a fill") {
  const Instrument inst = linear(0.01, 1e-8);  // a satoshi a lot, a cent a tick: 1e-10
  CHECK(inst.tick_value == 1);
  CHECK(inst.tick_value_lots == 10);
  CHECK(inst.worth(100'000'000, 23'600) == 236 * kMoneyPerUnit);
  CHECK(inst.worth(7, 23'605) == 16'524);    // 16,523.5
  CHECK(inst.worth(-7, 23'605) == -16'524);  // alike on both sides
  CHECK(inst.worth_half(3, 1) == 0);
  CHECK_THROWS_AS(linear(1e-9, 1e-10), ConfigError);
}

TEST_CASE("average cost moves with what is added, stays when reduced, restarts when turned") {
  const Instrument inst = linear();
  Account a;
  a.apply(inst, BUY, 10, 100, 0);
  a.apply(inst, BUY, 30, 104, 0);
  CHECK(a.avg_price == doctest::Approx(103));
  a.apply(inst, SELL, 20, 200, 0);
  CHECK(a.avg_price == doctest::Approx(103));
  a.apply(inst, SELL, 50, 90, 0);
  CHECK(a.position == -30);
  CHECK(a.avg_price == doctest::Approx(90));
  a.apply(inst, SELL, 10, 94, 0);
  CHECK(a.avg_price == doctest::Approx(91));
  a.apply(inst, BUY, 40, 50, 0);
  CHECK(a.avg_price == 0);
}

TEST_CASE("three tenths bought one by one and sold at once leave nothing") {
  const Instrument inst = linear(1, 0.1);
  Account a;
  for (int k = 0; k < 3; ++k) a.apply(inst, BUY, 1, 100, 0);
  a.apply(inst, SELL, 3, 100, 0);
  CHECK(a.position == 0);
  CHECK(a.cash == 0);
}

TEST_CASE("an inverse contract is worth its base currency, rounded once") {
  const Instrument inst = inverse();
  Account a;
  a.apply(inst, BUY, 1, 100, 0);  // 100 USD at 50: 2 coins
  CHECK(a.cash == 2 * kMoneyPerUnit);
  CHECK(inst.mark(1, 2 * 160) == -1'250'000'000);
  CHECK(a.equity(inst, 2 * 160) == 750'000'000);  // bought at 50, marked at 80: 2 - 1.25 coins
  Account s;
  s.apply(inst, SELL, 1, 100, 0);
  CHECK(s.equity(inst, 2 * 160) == -750'000'000);
}

TEST_CASE("fees round half away from zero, whoever pays") {
  Instrument inst = linear(1, 1);
  inst.taker_e9 = 1;
  inst.maker_e9 = -1;
  CHECK(inst.fee(false, 1, 1) == 1);  // 1e9 units * 1e-9
  inst.tick_value = 500'000'000;
  CHECK(inst.fee(false, 1, 1) == 1);
  CHECK(inst.fee(true, 1, 1) == -1);
  CHECK(inst.fee(false, 1, 0) == 0);
}

TEST_CASE("amounts beyond 64 bits on the way do not overflow") {
  const Instrument inst = linear(1, 1);
  CHECK(inst.fee(false, 1'000'000, 9'000) == 9'000'000'000 * kMoneyPerUnit / 2'000);
}

TEST_CASE("money that is not whole is refused when the instrument is made") {
  CHECK_THROWS_AS(linear(1e-10, 1e-10), ConfigError);
  CHECK_THROWS_AS(linear(0, 1), ConfigError);
  CHECK_THROWS_AS(linear(1, -1), ConfigError);
  CHECK_THROWS_AS(linear(1, 1, std::nan("")), ConfigError);
  CHECK_NOTHROW(linear(1e-5, 1e-4));
}

TEST_CASE("bars are made on the grid from what printed") {
  BarBuilder bars(100);
  CHECK(bars.due() == kNever);
  const auto print = [&](Ts ts, Ticks price, Lots lots, int side) {
    Event e{};
    e.ts_recv = ts;
    e.price = price;
    e.qty = lots;
    e.side = static_cast<std::int8_t>(side);
    bars.add(e);
  };
  print(150, 10, 1, BUY);
  print(170, 14, 2, SELL);
  print(200, 9, 4, NO_SIDE);  // on the grid: it belongs to the bar that ends there
  CHECK(bars.due() == 200);
  const Bar bar = bars.take();
  CHECK(bar.ts_open == 100);
  CHECK(bar.open == 10);
  CHECK(bar.high == 14);
  CHECK(bar.low == 9);
  CHECK(bar.close == 9);
  CHECK(bar.lots == 7);
  CHECK(bar.buy_lots == 1);
  CHECK(bar.prints == 3);
  CHECK(bars.due() == kNever);
  print(201, 8, 1, BUY);
  CHECK(bars.due() == 300);
}
