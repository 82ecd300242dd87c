/// Rows that wait for company: in the batcher, and in an engine beside one whose rows never wait.
#include <doctest/doctest.h>

#include <map>
#include <memory>

#include "deaf_strategy.hpp"
#include "engine.hpp"
#include "errors.hpp"

using namespace hft;

namespace {

struct Readied final : DeafStrategy {
  void on_ready(InstrumentId i) override { ready.push_back(i); }
  std::vector<InstrumentId> ready;
};

/// Sums its rows; tells how many each call had.
struct Summing final : ModelStream {
  Summing(const void* company, std::vector<std::size_t>& calls, std::size_t width = 1)
      : of(company), calls(&calls), width(width) {}
  std::size_t inputs() const noexcept override { return width; }
  std::size_t outputs() const noexcept override { return width; }
  const void* company() const noexcept override { return of; }
  void step(const double* x, float* out) override {
    for (std::size_t i = 0; i < width; ++i) out[i] = sum += static_cast<float>(x[i]);
  }
  void step_together(ModelStream* const* streams, std::size_t n, const double* x,
                     float* out) override {
    calls->push_back(n);
    if (n == fails_at) throw std::runtime_error("the library's");
    ModelStream::step_together(streams, n, x, out);
  }
  void skip(const double*) override {}
  void reset() override { sum = 0; }
  const void* of;
  std::vector<std::size_t>* calls;
  std::size_t width, fails_at = 0;
  float sum = 0;
};

std::shared_ptr<const Network> lstm(float weight) {
  const auto layer = [&](std::size_t k, std::size_t u) {
    LstmLayer l{k, u, std::vector<float>(k * 4 * u), std::vector<float>(u * 4 * u),
                std::vector<float>(4 * u, 0.1f)};
    for (std::size_t i = 0; i < l.kernel.size(); ++i)
      l.kernel[i] = weight * static_cast<float>(i % 13) - 0.3f;
    for (std::size_t i = 0; i < l.recurrent.size(); ++i)
      l.recurrent[i] = weight * static_cast<float>(i % 7) - 0.2f;
    return l;
  };
  const DenseLayer head{16, 3, std::vector<float>(16 * 3, 0.1f), std::vector<float>(3, 0.f),
                        Activation::SOFTMAX};
  return Network::build({{1.0}, {0.5}}, {layer(1, 16), layer(16, 16), head});
}

/// An engine of some instruments with a model each, on books whose spread moves.
struct Desk {
  using MakeStream = std::function<std::unique_ptr<ModelStream>(InstrumentId)>;
  Desk(std::size_t instruments, std::int64_t most, const MakeStream& make, std::int64_t warm_up = 0)
      : engine(listed(instruments), {}, port) {
    port.wants = WANTS_READY;
    if (most > 1) engine.batch(most);
    for (InstrumentId i = 0; i < instruments; ++i) {
      Source s;
      s.features = std::make_unique<FeatureSet>(std::vector<FeatureSpec>{FeatureSpec{}},
                                                Trigger{Trigger::Kind::PACKET, false, 0});
      s.network = make(i);
      s.warm_up_rows = warm_up;
      engine.add_source(i, std::move(s));
    }
    engine.start(0);
  }
  static std::vector<Instrument> listed(std::size_t n) {
    std::vector<Instrument> all(n);
    for (std::size_t i = 0; i < n; ++i) {
      all[i].id = static_cast<InstrumentId>(i);
      all[i].symbol = "I" + std::to_string(i);
      all[i].venue = "SIM";
      all[i].tick = all[i].lot = 1;
      all[i].validate();
    }
    return all;
  }
  void packet(InstrumentId i) {
    ++now;
    const Ticks ask =
        101 + static_cast<Ticks>(draw_bits(3, 0, i, static_cast<std::uint64_t>(now)) % 5);
    row(i, Kind::SNAPSHOT_BEGIN, 0, 0);
    row(i, Kind::LEVEL, BUY, 100);
    row(i, Kind::LEVEL, SELL, ask);
    row(i, Kind::SNAPSHOT_END, 0, 0);
    engine.on_packet(engine.market(i), now);
    engine.settle(now);
  }
  void row(InstrumentId i, Kind kind, int side, Ticks price) {
    Event e{};
    e.kind = kind;
    e.side = static_cast<std::int8_t>(side);
    e.price = price;
    e.qty = 10;
    e.ts_event = e.ts_recv = now;
    e.flags = kind == Kind::SNAPSHOT_END ? 7 : 3;
    engine.on_row(engine.market(i), e, rows++);
  }
  void gap(InstrumentId i) {
    Event e{};
    e.kind = Kind::STATUS;
    e.ref_id = static_cast<std::int64_t>(Trading::GAP);
    e.ts_event = e.ts_recv = ++now;
    e.flags = 7;
    engine.on_row(engine.market(i), e, rows++);
    engine.on_packet(engine.market(i), now);
  }
  void batch() {
    if (engine.waiting() != nullptr && !engine.waiting()->empty()) engine.on_batch(now);
  }
  std::vector<Signal> take() { return std::exchange(engine.requests, {}); }

  Readied port;
  Engine engine;
  std::int64_t rows = 0;
  Ts now = 100;
};

bool same(const Signal& a, const Signal& b) {
  return a.instrument == b.instrument && a.version == b.version && a.outputs == b.outputs &&
         a.ts_features == b.ts_features && a.ts_event == b.ts_event && a.cause_row == b.cause_row;
}

}  // namespace

TEST_CASE("streams of one company go in one call, in the order in which they came") {
  std::vector<std::size_t> calls;
  int red = 0, blue = 0;
  Summing a(&red, calls), b(&blue, calls, 2), c(&red, calls), d(&red, calls);
  Batcher batcher(8);
  const double row[] = {1, 2};
  for (Summing* s : {&a, &b, &c, &d}) batcher.add(*s, {row, s->width}, 5).is_heard = s != &c;
  CHECK(batcher.size() == 4);
  CHECK(batcher.since() == 5);
  const auto rows = batcher.compute();
  CHECK(calls == std::vector<std::size_t>{3, 1});
  CHECK(batcher.empty());
  CHECK(batcher.since() == kNever);
  REQUIRE(rows.size() == 4);
  CHECK(rows[0].signal.outputs == std::vector<float>{1});
  CHECK(rows[1].signal.outputs == std::vector<float>{1, 3});
  CHECK_FALSE(rows[2].is_heard);
  CHECK(rows[3].is_heard);
}

TEST_CASE("rows and batches make no room after the first ones") {
  std::vector<std::size_t> calls;
  int all = 0;
  Summing a(&all, calls), b(&all, calls);
  Batcher batcher(2);
  const double row[] = {1};
  std::vector<const void*> before;
  for (int round = 0; round < 5; ++round) {
    batcher.add(a, row, round);
    batcher.add(b, row, round);
    CHECK(batcher.full());
    std::vector<const void*> used;
    for (Batcher::Row& r : batcher.compute()) {
      used.push_back(r.features.data());
      used.push_back(r.signal.outputs.data());
      batcher.give_back(std::exchange(r.signal.outputs, {}));
    }
    std::ranges::sort(used);
    if (round > 0) CHECK(used == before);
    before = used;
  }
}

TEST_CASE("a batch of one row is none, nor is one of more than a recipe allows") {
  for (const std::int64_t most : {std::int64_t{-1}, std::int64_t{1}, std::int64_t{1} << 60})
    CHECK_THROWS_AS(Batcher{most}, ConfigError);
}

TEST_CASE("what waits is answered as it would have been at once, to the bit") {
  const auto network = lstm(0.05f);
  const auto running = [&](InstrumentId) { return std::make_unique<RunningNetwork>(network); };
  const auto windowed = [&](InstrumentId) { return std::make_unique<WindowedNetwork>(network, 5); };
  for (const Desk::MakeStream& make : {Desk::MakeStream(running), Desk::MakeStream(windowed)}) {
    Desk at_once(20, 1, make, 3), batched(20, 17, make, 3);
    batched.engine.rests = true;
    std::map<InstrumentId, std::vector<Signal>> heard[2];
    std::size_t most = 0;
    for (std::uint64_t i = 0; i < 2'000; ++i) {
      const auto inst = static_cast<InstrumentId>(draw_bits(1, 0, i, 0) % 20);
      at_once.packet(inst);
      batched.packet(inst);
      most = std::max(most, batched.engine.waiting()->size());
      if (draw_bits(2, 0, i, 0) % 12 == 0) batched.batch();
      if (draw_bits(4, 0, i, 0) % 3 == 0) batched.engine.rest();
      if (draw_bits(5, 0, i, 0) % 100 == 0)
        for (Desk* desk : {&at_once, &batched}) desk->gap(inst);
      for (const Signal& s : at_once.take()) heard[0][s.instrument].push_back(s);
      for (const Signal& s : batched.take()) heard[1][s.instrument].push_back(s);
    }
    batched.batch();
    for (const Signal& s : batched.take()) heard[1][s.instrument].push_back(s);
    CHECK(most > 8);
    CHECK(at_once.engine.counters.gaps > 10);
    CHECK(at_once.engine.counters.inferences == batched.engine.counters.inferences);
    CHECK(batched.engine.counters.batches < batched.engine.counters.inferences / 3);
    CHECK(at_once.port.ready == batched.port.ready);
    for (InstrumentId i = 0; i < 20; ++i) {
      REQUIRE(heard[0][i].size() > 20);
      REQUIRE(heard[0][i].size() == heard[1][i].size());
      for (std::size_t k = 0; k < heard[0][i].size(); ++k)
        CHECK(same(heard[0][i][k], heard[1][i][k]));
    }
  }
}

TEST_CASE("answers of a batch are given in the order of their rows") {
  std::vector<std::size_t> calls;
  int red = 0, blue = 0;
  Desk desk(4, 8, [&](InstrumentId i) {
    return std::make_unique<Summing>(i % 2 ? static_cast<void*>(&red) : &blue, calls);
  });
  for (const InstrumentId i : {2u, 1u, 0u, 3u}) desk.packet(i);
  CHECK(desk.take().empty());
  desk.batch();
  std::vector<InstrumentId> order;
  for (const Signal& s : desk.take()) order.push_back(s.instrument);
  CHECK(order == std::vector<InstrumentId>{2, 1, 0, 3});
  CHECK(calls == std::vector<std::size_t>{2, 2});
}

TEST_CASE(
    "a stream's second row ends the wait of all, and so does a row for which there is no room") {
  std::vector<std::size_t> calls;
  int all = 0;
  Desk desk(4, 3, [&](InstrumentId) { return std::make_unique<Summing>(&all, calls); });
  for (const InstrumentId i : {0u, 1u, 0u}) desk.packet(i);
  CHECK(calls == std::vector<std::size_t>{2});
  CHECK(desk.engine.waiting()->size() == 1);
  for (const InstrumentId i : {1u, 2u, 3u}) desk.packet(i);
  CHECK(calls == std::vector<std::size_t>{2, 3});
  CHECK(desk.engine.waiting()->size() == 1);
  CHECK(desk.take().size() == 5);
}

TEST_CASE("a row that waits is the old bundle's; rows after the change are the new one's") {
  std::vector<std::size_t> old_calls, new_calls;
  int old = 0, next = 0;
  Desk desk(2, 4, [&](InstrumentId) { return std::make_unique<Summing>(&old, old_calls); });
  desk.packet(0);
  Swap swap{1, 0, 0x5a, 1, {}, {}, {}};
  for (int i = 0; i < 2; ++i) swap.streams.push_back(std::make_unique<Summing>(&next, new_calls));
  desk.engine.swap(std::move(swap), desk.now);
  desk.packet(1);  // the new one has seen it, too
  CHECK(desk.engine.requests.empty());
  desk.packet(1);  // it takes over; what waited was for the old one
  std::vector<Signal> said = desk.take();
  REQUIRE(said.size() == 2);
  CHECK(said[0].version == 0);
  CHECK(said[1].version == 0);
  CHECK(old_calls == std::vector<std::size_t>{2});
  desk.batch();
  said = desk.take();
  REQUIRE(said.size() == 1);
  CHECK(said[0].instrument == 1);
  CHECK(said[0].version == 1);
}

TEST_CASE("a bundle that fails while rows wait is dropped, and they are answered by the old one") {
  struct Failing final : ModelStream {
    std::size_t inputs() const noexcept override { return 1; }
    std::size_t outputs() const noexcept override { return 1; }
    void step(const double*, float*) override { throw ModelError("gave up", {}); }
    void skip(const double*) override {}
    void reset() override {}
  };
  std::vector<std::size_t> old_calls, new_calls;
  int old = 0, next = 0;
  Desk desk(2, 4, [&](InstrumentId) { return std::make_unique<Summing>(&old, old_calls); });
  desk.engine.rests = true;
  Swap swap{1, 0, 0x5a, 1, {}, {}, {}};
  swap.streams.push_back(std::make_unique<Summing>(&next, new_calls));
  swap.streams.push_back(std::make_unique<Failing>());
  desk.engine.swap(std::move(swap), desk.now);
  for (const InstrumentId i : {0u, 1u}) desk.packet(i);
  REQUIRE(desk.engine.dropped.size() == 1);
  CHECK(desk.engine.waiting()->size() == 2);
  desk.packet(0);  // it was warm here, but is gone
  desk.batch();
  desk.engine.rest();
  CHECK(desk.engine.take_overs.empty());
  CHECK(old_calls == std::vector<std::size_t>{2, 1});
  for (const Signal& s : desk.take()) CHECK(s.version == 0);
}

TEST_CASE("while a row waits, its stream's answer is under way") {
  ReuseRule rule;
  rule.scaler = {{0}, {1}, 10};
  rule.classes = 2;
  rule.sensitivity = 1;
  rule.epsilon = 100;
  rule.shadow = 0;
  SimilarityCache cache(rule, 1, 0, 0);
  const double row[] = {1};
  REQUIRE_FALSE(cache.answers(row, 1, 1, 1));
  Signal asked;
  cache.ask(asked);  // it waits
  CHECK_FALSE(cache.answers(row, 1, 2, 2));
  CHECK(cache.seconds().back().under_way == 1);
  asked.outputs = {0.9f, 0.1f};
  cache.said(asked);  // computed, not yet heard
  CHECK_FALSE(cache.answers(row, 1, 3, 3));
  cache.publish(asked, 4);
  CHECK(cache.answers(row, 1, 5, 5));
}

TEST_CASE("what a library throws in a batch goes on, and nobody waits after it") {
  std::vector<std::size_t> calls;
  int all = 0;
  Desk desk(3, 4, [&](InstrumentId) {
    auto stream = std::make_unique<Summing>(&all, calls);
    stream->fails_at = 3;
    return stream;
  });
  for (const InstrumentId i : {0u, 1u, 2u}) desk.packet(i);
  CHECK_THROWS_WITH(desk.engine.on_batch(desk.now), "the library's");
  CHECK(desk.engine.waiting()->empty());
  CHECK(desk.take().empty());
  CHECK_THROWS_AS(desk.engine.on_batch(desk.now), CoreError);
}
