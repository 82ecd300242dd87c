// Where cancels stood, and how depth and price went around prints.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "fits.hpp"

namespace hft {
namespace {

constexpr std::uint16_t kSeen = SEEN_BY_VENUE | SEEN_BY_US | LAST;

Event row(Ts ts, Kind kind, int side, Ticks price, Lots qty, std::int64_t id = 0) {
  Event e{};
  e.ts_event = e.ts_recv = ts;
  e.kind = kind;
  e.side = static_cast<std::int8_t>(side);
  e.price = price;
  e.qty = qty;
  e.order_id = id;
  e.flags = kSeen;
  return e;
}

std::vector<CancelSeen> cancels_of(const std::vector<Event>& rows, Ticks near = 10) {
  CancelPass pass(near, 1);
  std::vector<CancelSeen> out;
  for (const Event& e : rows) pass.apply(e, out);
  return out;
}

}  // namespace

TEST_CASE("a cancel's place is told in lots, and another order of its level is drawn beside it") {
  const auto seen = cancels_of({row(1, Kind::ADD, BUY, 10, 5, 1), row(1, Kind::ADD, BUY, 10, 7, 2),
                                row(1, Kind::ADD, BUY, 10, 9, 3), row(1, Kind::ADD, SELL, 11, 1, 4),
                                row(2, Kind::CANCEL, BUY, 10, 0, 2)});
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].level == 21);
  CHECK(seen[0].ahead == 5);
  CHECK(seen[0].gone == 7);
  const bool first = seen[0].ref_front == 0 && seen[0].ref_back == 16 && seen[0].ref_ahead == 0;
  const bool last = seen[0].ref_front == 12 && seen[0].ref_back == 0 && seen[0].ref_ahead == 1;
  CHECK((first || last));
}

TEST_CASE("what is no cancel of a trading market is not counted") {
  const Event bid = row(1, Kind::ADD, BUY, 10, 5, 1), more = row(1, Kind::ADD, BUY, 10, 5, 2);
  const Event ask = row(1, Kind::ADD, SELL, 11, 1, 4);
  Event halt = row(1, Kind::STATUS, NO_SIDE, 0, 0);
  halt.ref_id = static_cast<std::int64_t>(Trading::AUCTION);
  Event replay = row(2, Kind::CANCEL, BUY, 10, 0, 1), own = replay, told = replay;
  replay.flags |= RECOVERED;
  own.flags |= OWN;
  told = row(2, Kind::EXECUTE, BUY, 10, 5, 1);
  told.flags |= NO_CHANGE;
  const Event cancel = row(2, Kind::CANCEL, BUY, 10, 0, 1);
  CHECK(cancels_of({bid, more, ask, cancel}).size() == 1);
  CHECK(cancels_of({bid, more, ask, halt, cancel}).empty());
  CHECK(cancels_of({bid, more, cancel}).empty());
  CHECK(cancels_of({bid, more, ask, replay}).empty());
  CHECK(cancels_of({bid, more, ask, own}).empty());
  CHECK(cancels_of({bid, more, ask, told, cancel}).empty());
  CHECK(cancels_of({bid, more, ask, row(2, Kind::EXECUTE, BUY, 10, 5, 1)}).empty());
  CHECK(
      cancels_of({bid, ask, row(1, Kind::ADD, BUY, 5, 1, 9), row(2, Kind::CANCEL, BUY, 5, 0, 9)}, 4)
          .empty());
  CHECK(cancels_of({bid, ask, cancel}).at(0).ref_back == -1);
}

TEST_CASE("a sweep walks the levels shown before it, at most those there are") {
  TapePass tape(100, 5);
  tape.apply(row(1, Kind::LEVEL, SELL, 1000, 1));
  for (int i = 0; i < 60; ++i) tape.apply(row(1, Kind::LEVEL, BUY, 900 - i, 10));
  tape.apply(row(2, Kind::TRADE, SELL, 900, 9));
  tape.apply(row(2, Kind::TRADE, SELL, 890, 92));
  tape.apply(row(3, Kind::TRADE, SELL, 800, 1'000'000));
  tape.finish();
  REQUIRE(tape.sweeps.size() == 2);
  CHECK(tape.sweeps[0].lots == 101);
  CHECK(tape.sweeps[0].walked == 10);
  CHECK(tape.sweeps[1].walked == 21);  // the rest of the 32 that a walk sees
}

TEST_CASE("executions change the book themselves, so the next sweep begins where they left it") {
  TapePass tape(100, 5);
  tape.apply(row(1, Kind::ADD, SELL, 11, 5, 1));
  tape.apply(row(1, Kind::ADD, SELL, 12, 5, 2));
  tape.apply(row(1, Kind::ADD, SELL, 15, 5, 3));
  tape.apply(row(1, Kind::ADD, BUY, 10, 5, 4));
  tape.apply(row(2, Kind::EXECUTE, SELL, 11, 5, 1));
  tape.apply(row(2, Kind::EXECUTE, SELL, 12, 2, 2));
  tape.apply(row(5, Kind::EXECUTE, SELL, 12, 3, 2));
  tape.finish();
  REQUIRE(tape.sweeps.size() == 2);
  CHECK(tape.sweeps[0].walked == 1);
  CHECK(tape.sweeps[0].side == BUY);
  CHECK(tape.sweeps[1].walked == 3);
  CHECK(tape.sweeps[1].mid2 == 22);
}

TEST_CASE("no grid in a halt, nor beyond a minute without rows") {
  TapePass tape(1'000'000'000, 5);
  const Ts s = 1'000'000'000;
  Event halt = row(3 * s, Kind::STATUS, NO_SIDE, 0, 0), open = row(500 * s, Kind::STATUS, 0, 0, 0);
  halt.ref_id = static_cast<std::int64_t>(Trading::HALT);
  open.ref_id = static_cast<std::int64_t>(Trading::OPEN);
  tape.apply(row(0, Kind::LEVEL, BUY, 10, 5));
  tape.apply(row(0, Kind::LEVEL, SELL, 11, 5));
  tape.apply(halt);
  tape.apply(open);
  tape.apply(row(1000 * s, Kind::LEVEL, BUY, 10, 6));
  CHECK(tape.grid.size() == 3 + 60);
  CHECK(tape.grid.back().ts == 559 * s);
}

TEST_CASE("decayed sums are those of the formula") {
  const std::vector<Ts> at{0, 10, 15, 40}, ts{5, 10, 12};
  const std::vector<double> values{4.0, -1.0, 2.0};
  const auto sums = decayed_sum(at, ts, values, 10.0);
  for (std::size_t k = 0; k < at.size(); ++k) {
    double want = 0;
    for (std::size_t i = 0; i < ts.size(); ++i)
      if (ts[i] <= at[k]) want += values[i] * std::exp2(-static_cast<double>(at[k] - ts[i]) / 10.0);
    CHECK(sums[k] == doctest::Approx(want));
  }
}

}  // namespace hft
