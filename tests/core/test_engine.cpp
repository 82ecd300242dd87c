#include <doctest/doctest.h>

#include <functional>

#include "deaf_strategy.hpp"
#include "engine.hpp"

using namespace hft;

namespace {

/// A strategy of lambdas.
struct Port final : DeafStrategy {
  void on_ready(InstrumentId) override { ++ready; }
  void on_book(InstrumentId) override {
    if (book) book();
  }
  void on_order(Order& o) override { states.push_back(o.row.state); }
  void on_fill(Order&, const Update&) override { ++fills; }
  void on_gap(InstrumentId) override { ++gaps; }
  void on_timer(std::uint32_t id) override { timers.push_back(id); }
  std::function<void()> book;
  std::vector<OrderState> states;
  std::vector<std::uint32_t> timers;
  int ready = 0, gaps = 0, fills = 0;
};

struct Bench {
  explicit Bench(EngineConfig config = {},
                 std::uint32_t wants = WANTS_ORDER | WANTS_FILL | WANTS_READY | WANTS_GAP)
      : engine(listed(), config, port) {
    port.wants = wants;
    engine.start(0);
  }
  static std::vector<Instrument> listed() {
    Instrument i;
    i.symbol = "X";
    i.venue = "SIM";
    i.tick = i.lot = 1;
    i.can_replace = true;
    i.validate();
    return {i};
  }
  Market& market() { return engine.market(0); }
  void row(Kind kind, int side, Ticks price, Lots qty, Ts ts, std::int64_t ref = 0,
           bool last = true) {
    Event e{};
    e.kind = kind;
    e.side = static_cast<std::int8_t>(side);
    e.price = price;
    e.qty = qty;
    e.ref_id = ref;
    e.ts_event = e.ts_recv = ts;
    e.flags = last ? 7 : 3;
    engine.on_row(market(), e, rows++);
    if (!last) return;
    engine.on_packet(market(), ts);
    engine.settle(ts);
  }
  void touch(Ticks bid, Ticks ask, Ts ts = 0) {
    row(Kind::LEVEL, BUY, bid, 10, ts, 0, false);
    row(Kind::LEVEL, SELL, ask, 10, ts);
  }
  Order& submit(Lots lots = 10, Ticks price = 100) {
    return engine.submit(0, BUY, lots, price, Tif::GTC, 0, 0);
  }
  void answer(Order& o, Update::Kind kind, Ticks price = 0, Lots lots = 0,
              Reason why = Reason::NONE) {
    Update u{};
    u.kind = kind;
    u.order = o.row.id;
    u.price = price;
    u.lots = lots;
    u.reason = why;
    u.ts_venue = u.ts_recv = ++now;
    engine.on_update(u, now);
  }
  Lots open(int side = BUY) { return market().exposure.open_lots[side_index(side)]; }

  Port port;
  Engine engine;
  std::int64_t rows = 0;
  Ts now = 100;
};

using K = Update::Kind;

}  // namespace

TEST_CASE("states of an order that rests, trades and ends") {
  Bench b;
  Order& o = b.submit();
  CHECK(o.row.state == OrderState::PENDING_NEW);
  CHECK(b.open() == 10);
  b.answer(o, K::ACCEPTED);
  CHECK(o.row.state == OrderState::NEW);
  b.answer(o, K::FILL, 100, 4);
  CHECK(o.row.state == OrderState::PARTIALLY_FILLED);
  CHECK(b.open() == 6);
  CHECK(b.market().account.position == 4);
  b.engine.cancel(o);
  CHECK(o.row.state == OrderState::PENDING_CANCEL);
  CHECK_FALSE(b.engine.cancel(o));
  b.answer(o, K::FILL, 100, 1);
  CHECK(o.row.state == OrderState::PENDING_CANCEL);  // the cancel still flies
  b.answer(o, K::CANCELED);
  CHECK(o.row.state == OrderState::CANCELED);
  CHECK(o.leaves() == 0);
  CHECK(b.open() == 0);
  CHECK(b.market().live.empty());
  CHECK_FALSE(b.engine.cancel(o));
}

TEST_CASE("a cancel that lost its race is answered late and changes nothing") {
  Bench b;
  Order& o = b.submit();
  b.answer(o, K::ACCEPTED);
  b.engine.cancel(o);
  b.answer(o, K::FILL, 100, 10);
  CHECK(o.row.state == OrderState::FILLED);
  const auto heard = b.port.states.size();
  b.answer(o, K::CANCEL_REJECTED);
  CHECK(o.row.state == OrderState::FILLED);
  CHECK(b.engine.counters.late_answers == 1);
  CHECK(b.port.states.size() == heard);
}

TEST_CASE("exposure counts the larger of what stands and what is asked while a replace flies") {
  Bench b;
  Order& o = b.submit();
  b.answer(o, K::ACCEPTED);
  b.engine.replace(o, 101, 20);
  CHECK(b.open() == 20);
  CHECK(o.row.price == 100);  // as confirmed
  b.answer(o, K::REPLACE_REJECTED, 0, 0, Reason::WOULD_CROSS);
  CHECK(b.open() == 10);
  CHECK(o.row.lots == 10);
  CHECK(o.row.state == OrderState::NEW);
  b.engine.replace(o, 101, 4);
  CHECK(b.open() == 10);
  b.answer(o, K::REPLACED, 101, 4);
  CHECK(b.open() == 4);
  CHECK(o.row.price == 101);
  CHECK(o.row.lots == 4);
}

TEST_CASE("a fill that fills what was left of a smaller size ends the order") {
  Bench b;
  Order& o = b.submit();
  b.answer(o, K::ACCEPTED);
  b.answer(o, K::FILL, 100, 4);
  b.engine.replace(o, 100, 6);
  b.answer(o, K::REPLACED, 100, 6);
  CHECK(o.row.state == OrderState::PARTIALLY_FILLED);
  b.answer(o, K::FILL, 100, 2);
  CHECK(o.row.state == OrderState::FILLED);
  CHECK(b.open() == 0);
}

TEST_CASE("answers to orders never sent are a broken promise") {
  Bench b;
  Update u{};
  u.kind = K::ACCEPTED;
  u.order = 7;
  CHECK_THROWS_AS(b.engine.on_update(u, 1), CoreError);
}

TEST_CASE("timers due together fire in order of time, then of making") {
  Bench b;
  const auto late = b.engine.at(300), first = b.engine.at(200), second = b.engine.at(200),
             again = b.engine.every(150, 0);
  for (Ts due = b.engine.next_due(); due <= 300; due = b.engine.next_due()) b.engine.on_due(1'000);
  CHECK(b.port.timers == std::vector<std::uint32_t>{again, first, second, late, again});
}

TEST_CASE("ready, gap, ready again: once each") {
  Bench b;
  b.touch(100, 102);
  CHECK(b.port.ready == 1);
  const auto gap = static_cast<std::int64_t>(Trading::GAP);
  b.row(Kind::STATUS, 0, 0, 0, 1, gap);
  b.row(Kind::STATUS, 0, 0, 0, 2, gap);
  CHECK(b.port.gaps == 1);
  b.row(Kind::SNAPSHOT_BEGIN, 0, 0, 0, 3, 0, false);
  b.touch(100, 102, 3);
  CHECK(b.port.ready == 1);
  b.row(Kind::SNAPSHOT_END, 0, 0, 0, 4);
  CHECK(b.port.ready == 2);
  CHECK(b.engine.counters.gaps == 1);
}

TEST_CASE("a quote stops at the touch, moves by replace and never doubles") {
  Bench b;
  b.touch(100, 103);
  b.engine.ladder(0, BUY, 101.5, 1, 1, 5);
  Order& o = b.engine.orders()[1];
  CHECK(o.row.price == 100);
  b.engine.ladder(0, BUY, 99.0, 1, 1, 5);
  CHECK(b.engine.orders().size() == 1);  // in flight: it waits
  b.answer(o, K::ACCEPTED);
  CHECK(o.row.state == OrderState::PENDING_REPLACE);
  b.answer(o, K::REPLACED, 99, 5);
  const auto sent = b.engine.outbox.size();
  b.engine.ladder(0, BUY, 99.0, 1, 1, 5);
  CHECK(b.engine.outbox.size() == sent);
  CHECK(b.open() == 5);
}

TEST_CASE("quotes of both sides never meet at one price") {
  Bench b;
  b.touch(100, 101);
  b.engine.ladder(0, BUY, 100, 1, 1, 5);
  b.touch(99, 100, 1);  // the market fell onto our bid
  b.engine.ladder(0, SELL, 100, 1, 1, 5);
  CHECK(b.engine.orders().size() == 1);
}

TEST_CASE("refusals are told after the handler, not within submit") {
  EngineConfig config;
  config.risk.max_order_lots = 5;
  Bench b(config);
  Order& o = b.submit(10);
  CHECK(o.row.state == OrderState::REJECTED);
  CHECK(b.port.states.empty());
  b.engine.settle(0);
  CHECK(b.port.states == std::vector<OrderState>{OrderState::REJECTED});
  CHECK(b.engine.outbox.empty());
  CHECK(b.engine.counters.refused == 1);
}

TEST_CASE("prices that no venue has are the caller's mistake") {
  Bench b;
  b.touch(100, 102);
  CHECK_THROWS_AS(b.submit(1, 0), OrderError);
  CHECK_THROWS_AS(b.submit(1, -3), OrderError);
  CHECK_THROWS_AS(b.submit(1, 9'000'000'000'000'000), OrderError);
  Bench spread;
  spread.touch(-5, -2);
  CHECK_NOTHROW(spread.submit(1, -6));
}

TEST_CASE("the same inputs leave the same journal") {
  const auto play = [] {
    Bench b;
    b.touch(100, 102);
    b.engine.ladder(0, BUY, 99, 1, 3, 5);
    for (OrderId id = 1; id <= 3; ++id) b.answer(b.engine.orders()[id], K::ACCEPTED);
    b.engine.cancel_all(0);
    std::vector<Record> out(b.engine.journal.size());
    b.engine.journal.copy_to(out.data());
    return out;
  };
  const auto one = play(), two = play();
  REQUIRE(one.size() == two.size());
  CHECK(std::memcmp(one.data(), two.data(), one.size() * sizeof(Record)) == 0);
}

TEST_CASE("a side that is empty for a moment does not book the position as a loss") {
  Bench b;
  b.touch(99, 101);
  Order& o = b.submit();
  b.answer(o, Update::Kind::ACCEPTED);
  b.answer(o, Update::Kind::FILL, 100, 10);
  b.engine.sample(1);
  b.row(Kind::LEVEL, SELL, 101, 0, 2);
  b.engine.sample(2);
  REQUIRE(b.engine.samples.size() == 2);
  CHECK(b.engine.samples[0].equity == 0);
  CHECK(b.engine.samples[1].ask == kNoPrice);
  CHECK(b.engine.samples[1].equity == 0);
}

TEST_CASE("a second gap is told even before the features are warm again") {
  Bench b;
  FeatureSpec slow;
  slow.kind = FeatureKind::OFI;
  slow.window_ns = 1'000;
  Source source;
  source.features = std::make_unique<FeatureSet>(std::vector<FeatureSpec>{slow}, Trigger{});
  b.engine.add_source(0, std::move(source));
  for (const Ts ts : {0, 10}) {
    b.touch(99, 101, ts);
    b.row(Kind::STATUS, 0, 0, 0, ts + 1, static_cast<std::int64_t>(Trading::GAP));
    b.row(Kind::SNAPSHOT_BEGIN, 0, 0, 0, ts + 2, 0, false);
    b.row(Kind::SNAPSHOT_END, 0, 0, 0, ts + 2);
  }
  CHECK(b.port.gaps == 2);
  CHECK(b.engine.counters.gaps == 2);
}
