/// What computes a source, and how one takes over from another.
#include <doctest/doctest.h>

#include <chrono>
#include <memory>

#include "deaf_strategy.hpp"
#include "engine.hpp"

using namespace hft;

namespace {

/// Says its own number, and how many rows it has seen.
struct Counting final : ModelStream {
  explicit Counting(float id, int* rests = nullptr, int* touches = nullptr)
      : id(id), rests(rests), touches(touches) {}
  std::size_t inputs() const noexcept override { return 1; }
  std::size_t outputs() const noexcept override { return 2; }
  void step(const double*, float* out) override {
    out[0] = id;
    out[1] = static_cast<float>(++rows);
  }
  void skip(const double*) override { ++rows; }
  void rest() noexcept override {
    if (rests) ++*rests;
  }
  void touch() const noexcept override {
    if (touches) ++*touches;
  }
  void reset() override { rows = 0; }
  float id;
  int rows = 0;
  int *rests, *touches;
};

/// Another library that gives up at its n-th row, or where it is reset.
struct Failing final : ModelStream {
  Failing(int at_row, bool at_reset) : at_row(at_row), at_reset(at_reset) {}
  std::size_t inputs() const noexcept override { return 1; }
  std::size_t outputs() const noexcept override { return 2; }
  void step(const double*, float* out) override {
    if (--at_row == 0) throw ModelError("gave up", {});
    out[0] = out[1] = 0.f;
  }
  void skip(const double*) override {}
  void reset() override {
    if (at_reset) throw ModelError("gave up", {});
  }
  int at_row;
  bool at_reset;
};

struct Bench {
  explicit Bench(std::unique_ptr<ModelStream> network, std::int64_t warm_up_rows = 0)
      : engine(listed(), {}, port) {
    Source s;
    s.features = std::make_unique<FeatureSet>(std::vector<FeatureSpec>{FeatureSpec{}},
                                              Trigger{Trigger::Kind::PACKET, false, 0});
    s.network = std::move(network);
    s.warm_up_rows = warm_up_rows;
    engine.add_source(0, std::move(s));
    engine.start(0);
    packet();  // a book of two sides
    engine.requests.clear();
  }
  static std::vector<Instrument> listed() {
    Instrument i;
    i.symbol = "X";
    i.venue = "SIM";
    i.tick = i.lot = 1;
    i.validate();
    return {i};
  }
  void packet() {
    Market& m = engine.market(0);
    ++now;
    for (const int side : {BUY, SELL}) {
      Event e{};
      e.kind = Kind::LEVEL;
      e.side = static_cast<std::int8_t>(side);
      e.price = side > 0 ? 100 : 101;
      e.qty = 10 + now % 7;
      e.ts_event = e.ts_recv = now;
      e.flags = side > 0 ? 3 : 7;
      engine.on_row(m, e, rows++);
    }
    engine.on_packet(m, now);
  }
  void status(Trading how) {
    Event e{};
    e.kind = Kind::STATUS;
    e.ref_id = static_cast<std::int64_t>(how);
    e.ts_event = e.ts_recv = ++now;
    e.flags = 7;
    engine.on_row(engine.market(0), e, rows++);
    engine.on_packet(engine.market(0), now);
  }
  Signal last() {
    const Signal s = engine.requests.back();
    engine.requests.clear();
    return s;
  }
  void swap(std::uint32_t number, std::unique_ptr<ModelStream> next, std::int64_t warm_up_rows) {
    swap(number, std::move(next), warm_up_rows, std::nullopt);
  }
  void swap(std::uint32_t number, std::unique_ptr<ModelStream> next, std::int64_t warm_up_rows,
            std::optional<Trails> trails) {
    Swap s{number, 0, 0x5a, warm_up_rows, {}, {}, std::move(trails)};
    s.streams.push_back(std::move(next));
    engine.swap(std::move(s), now);
  }
  std::vector<Record> swaps() {
    std::vector<Record> all(engine.journal.size()), out;
    engine.journal.copy_to(all.data());
    for (const Record& r : all)
      if (r.kind == RecordKind::SWAP) out.push_back(r);
    return out;
  }

  DeafStrategy port;
  Engine engine;
  std::int64_t rows = 0;
  Ts now = 100;
};

}  // namespace

TEST_CASE("one takes over at the first packet at which it is warm") {
  Bench b(std::make_unique<Counting>(1.f));
  b.packet();
  CHECK(b.last().version == 0);
  b.swap(7, std::make_unique<Counting>(2.f), 3);
  for (int i = 0; i < 3; ++i) {
    b.packet();
    const Signal s = b.last();
    CHECK(s.outputs[0] == 1.f);
    CHECK(s.version == 0);
  }
  b.packet();
  const Signal s = b.last();
  CHECK(s.version == 7);
  CHECK(s.outputs == std::vector<float>{2.f, 4.f});  // it saw the three before, and this row
  const auto records = b.swaps();
  REQUIRE(records.size() == 2);
  CHECK(records[0].b == 0);
  CHECK(records[1].b == 1);
  for (const Record& r : records) {
    CHECK(r.order == 7);
    CHECK(r.a == 0x5a);
  }
  CHECK(b.engine.take_overs.size() == 1);
}

TEST_CASE("an answer keeps the version that it was computed by") {
  Bench b(std::make_unique<Counting>(1.f));
  b.packet();
  const Signal under_way = b.engine.requests.back();
  b.swap(1, std::make_unique<Counting>(2.f), 0);
  b.packet();
  b.packet();
  CHECK(b.last().version == 1);
  b.engine.on_signal(under_way, b.now);
  std::vector<Record> all(b.engine.journal.size());
  b.engine.journal.copy_to(all.data());
  CHECK(all.back().kind == RecordKind::SIGNAL);
  CHECK((all.back().lots >> 32) == 0);
}

TEST_CASE("one that needs no warm-up has seen a row before it takes over") {
  Bench b(std::make_unique<Counting>(1.f));
  b.swap(1, std::make_unique<Counting>(2.f), 0);
  b.packet();
  CHECK(b.last().outputs[0] == 1.f);
  b.packet();
  CHECK(b.last().outputs[0] == 2.f);
}

TEST_CASE("lost messages set back one that waits, too") {
  Bench b(std::make_unique<Counting>(1.f));
  b.swap(1, std::make_unique<Counting>(2.f), 2);
  b.packet();
  b.status(Trading::GAP);
  b.engine.requests.clear();
  Incoming& next = *b.engine.market(0).sources[0].incoming;
  CHECK(next.rows == 0);
  CHECK(static_cast<Counting&>(*next.network).rows == next.rows);
}

TEST_CASE("one that fails beside the old one is dropped, at a row or as it is reset") {
  for (const bool in_reset : {false, true}) {
    Bench b(std::make_unique<Counting>(1.f));
    b.swap(3, std::make_unique<Failing>(in_reset ? 1'000 : 2, in_reset), 1'000);
    b.packet();
    CHECK(b.engine.dropped.empty());
    b.packet();
    if (in_reset) b.status(Trading::GAP);
    REQUIRE(b.engine.dropped.size() == 1);
    CHECK(b.engine.dropped[0].number == 3);
    CHECK(b.engine.dropped[0].why == "gave up");
    CHECK(!b.engine.market(0).sources[0].incoming);
    const auto records = b.swaps();
    REQUIRE(records.size() == 2);
    CHECK(records[1].b == 2);
    CHECK(records[1].c == in_reset);
    CHECK(records[1].order == 3);
    CHECK(records[1].a == 0x5a);
    b.packet();
    CHECK(b.last().version == 0);
  }
}

TEST_CASE("a newer one takes the place of one that is not warm") {
  Bench b(std::make_unique<Counting>(1.f));
  b.swap(1, std::make_unique<Counting>(2.f), 1'000);
  b.packet();
  b.swap(2, std::make_unique<Counting>(3.f), 1);
  b.packet();
  b.packet();
  const Signal s = b.last();
  CHECK(s.outputs[0] == 3.f);
  CHECK(s.version == 2);
  CHECK(b.engine.take_overs.size() == 1);
}

TEST_CASE("those that stepped rest once, and only where the driver says that it rests") {
  int rests = 0;
  Bench b(std::make_unique<Counting>(1.f, &rests));
  b.packet();
  b.engine.rest();
  CHECK(rests == 0);
  b.engine.rests = true;
  b.packet();
  b.engine.rest();
  b.engine.rest();
  CHECK(rests == 1);
}

TEST_CASE("models of many instruments are touched by turns, for they share their weights") {
  DeafStrategy port;
  std::vector<Instrument> listed = Bench::listed();
  for (const char* symbol : {"Y", "Z"}) {
    listed.push_back(listed[0]);
    listed.back().symbol = symbol;
    listed.back().id = static_cast<InstrumentId>(listed.size() - 1);
  }
  Engine engine(listed, {}, port);
  int touches[3] = {}, incoming = 0;
  for (InstrumentId i = 0; i < 3; ++i) {
    Source s;
    s.features = std::make_unique<FeatureSet>(std::vector<FeatureSpec>{FeatureSpec{}},
                                              Trigger{Trigger::Kind::PACKET, false, 0});
    s.network = std::make_unique<Counting>(1.f, nullptr, &touches[i]);
    engine.add_source(i, std::move(s));
  }
  engine.start(0);
  engine.touch_models();
  CHECK(touches[0] + touches[1] + touches[2] == 1);
  for (int i = 0; i < 5; ++i) engine.touch_models();
  for (const int each : touches) CHECK(each == 2);
  Swap swap{1, 0, 0, 10, {}, {}, {}};
  for (int i = 0; i < 3; ++i)
    swap.streams.push_back(std::make_unique<Counting>(2.f, nullptr, &incoming));
  engine.swap(std::move(swap), 1);
  for (int i = 0; i < 3; ++i) engine.touch_models();
  CHECK(incoming == 3);
}

TEST_CASE("to change over to a warm network takes less than 100 us") {
  const auto network = [](std::size_t inputs) {
    const auto lstm = [](std::size_t k, std::size_t u) {
      return LstmLayer{k, u, std::vector<float>(k * 4 * u, 0.01f),
                       std::vector<float>(u * 4 * u, 0.01f), std::vector<float>(4 * u, 0.f)};
    };
    const DenseLayer head{64, 3, std::vector<float>(64 * 3, 0.1f), std::vector<float>(3, 0.f),
                          Activation::SOFTMAX};
    return Network::build({std::vector<double>(inputs, 0.0), std::vector<double>(inputs, 1.0)},
                          {lstm(inputs, 64), lstm(64, 64), head});
  };
  Bench b(std::make_unique<RunningNetwork>(network(1)));
  b.engine.rests = true;
  Ns least = kNever, plain = kNever;
  const auto timed = [&] {
    const auto began = std::chrono::steady_clock::now();
    b.packet();
    return static_cast<Ns>((std::chrono::steady_clock::now() - began).count());
  };
  for (std::uint32_t n = 1; n <= 20; ++n) {
    b.swap(n, std::make_unique<RunningNetwork>(network(1)), 5);
    for (int i = 0; i < 5; ++i) b.packet();
    const Ns took = timed();
    least = std::min(least, took);
    REQUIRE(b.engine.take_overs.size() == n);
    plain = std::min(plain, timed());
    b.engine.rest();
  }
  MESSAGE("LSTM 64x2: packet with a takeover " << least << " ns, the next one " << plain << " ns");
  CHECK((least - plain) < 100'000);
}

namespace {

/// Says the row that it is given.
struct Repeating final : ModelStream {
  std::size_t inputs() const noexcept override { return 1; }
  std::size_t outputs() const noexcept override { return 1; }
  void step(const double* row, float* out) override { out[0] = static_cast<float>(*row); }
  void skip(const double*) override {}
  void reset() override {}
};

Trails trails(Ns period_ns) { return {{period_ns, 800'000, 0}, {{0}, {100}, 5}}; }

/// The next answer; packets lie a nanosecond apart, blocks of kShort 100.
float next(Bench& b) {
  b.packet();
  return b.last().outputs[0];
}
constexpr Ns kShort = 800, kLong = 80'000;

}  // namespace

TEST_CASE("a model sees rows in its scaler's terms from the end of a block on, features as made") {
  Bench b(std::make_unique<Repeating>());
  b.engine.trail(0, trails(kShort));
  for (int i = 0; i < 100; ++i) CHECK_EQ(next(b), b.engine.market(0).sources[0].features->row()[0]);
  while (b.now < 399) next(b);
  CHECK_EQ(next(b), 0);  // the mid stands still: nothing is off its mean
  b.status(Trading::GAP);
  for (const Kind kind : {Kind::SNAPSHOT_BEGIN, Kind::SNAPSHOT_END}) {
    Event e{};
    e.kind = kind;
    b.engine.on_row(b.engine.market(0), e, b.rows++);
  }
  CHECK_EQ(next(b), 0);  // the scales outlive a gap
}

TEST_CASE("a bundle of the same rule takes over the estimates, one of another begins its own") {
  for (const bool same : {true, false}) {
    Bench b(std::make_unique<Repeating>());
    b.engine.rests = same;  // live, the sums are made later
    b.engine.trail(0, trails(kShort));
    while (b.now < 500) {
      next(b);
      b.engine.rest();
    }
    b.swap(1, std::make_unique<Repeating>(), 5, trails(same ? kShort : kLong));
    for (int i = 0; i < 10; ++i) next(b);
    CHECK_EQ(next(b), same ? 0 : b.engine.market(0).sources[0].features->row()[0]);
    b.engine.rest();
    b.swap(2, std::make_unique<Repeating>(), 5, std::nullopt);
    for (int i = 0; i < 10; ++i) next(b);
    CHECK_EQ(next(b), b.engine.market(0).sources[0].features->row()[0]);
    b.engine.rest();
  }
}
