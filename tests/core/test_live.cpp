/// The live driver against the simulated venue, on the wall clock: seconds, not minutes.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include "deaf_strategy.hpp"
#include "live_driver.hpp"

using namespace hft;

namespace {

constexpr Ns kMs = 1'000'000;

/// A strategy in C++: what it does is put in by the test.
struct Desk final : DeafStrategy {
  std::function<void(InstrumentId)> book;
  std::function<void(Order&, const Update&)> fill;
  std::function<void(InstrumentId)> gap, ready;
  std::function<void(const Event&)> trade;
  void on_ready(InstrumentId i) override {
    if (ready) ready(i);
  }
  void on_book(InstrumentId i) override {
    if (book) book(i);
  }
  void on_trade(const Event& e) override {
    if (trade) trade(e);
  }
  void on_fill(Order& o, const Update& u) override {
    if (fill) fill(o, u);
  }
  void on_gap(InstrumentId i) override {
    if (gap) gap(i);
  }
  Desk() { wants = WANTS_BOOK | WANTS_TRADE | WANTS_FILL | WANTS_GAP | WANTS_READY; }
};

Instrument contract(InstrumentId id) {
  Instrument i;
  i.id = id;
  i.symbol = "I" + std::to_string(id);
  i.venue = "SIM";
  i.tick = 1.0;
  i.lot = 0.001;
  i.validate();
  return i;
}

struct Session {
  explicit Session(std::size_t instruments = 1, double messages_per_s = 500,
                   std::size_t feed_rows = 1 << 16) {
    SimVenueConfig venue;
    std::vector<Instrument> listed;
    for (std::size_t i = 0; i < instruments; ++i) {
      listed.push_back(contract(static_cast<InstrumentId>(i)));
      venue.market.instruments.emplace_back();
      venue.market.instruments.back().id = static_cast<InstrumentId>(i);
      venue.market.instruments.back().messages_per_s = messages_per_s;
    }
    venue.market.start_ts = WallClock().now();
    venue.entry_ns = 2 * kMs;
    venue.response_ns = kMs;
    venue.feed_ns = kMs;
    venue.feed_rows = feed_rows;
    engine = std::make_unique<Engine>(listed, EngineConfig{}, desk);
    driver = std::make_unique<LiveDriver>(*engine, LiveConfig{journal, market}, venue);
    driver->calls = {[] {}, [] {}, [this] { desk.wants = 0; }};
    driver->poll = [] {};
  }
  ~Session() {
    std::filesystem::remove(journal);
    std::filesystem::remove(market);
  }

  template <class T>
  static std::vector<T> read(const std::string& path) {
    std::vector<T> all(std::filesystem::file_size(path) / sizeof(T));
    std::ifstream(path, std::ios::binary)
        .read(reinterpret_cast<char*>(all.data()),
              static_cast<std::streamsize>(all.size() * sizeof(T)));
    return all;
  }

  /// Feeds the journal to `again`, a desk that acts as this one did, and counts the records that
  /// differ.
  std::size_t differences(Desk& again, const SessionCalls& calls, Engine& fresh) const {
    const auto records = read<Record>(journal);
    const auto rows = read<Event>(market);
    VerifyDriver verify(fresh);
    verify.calls = calls;
    verify.calls.silence = [&again] { again.wants = 0; };
    verify.run(records.data(), records.size(), rows.data(), rows.size());
    std::vector<Record> made(fresh.journal.size());
    fresh.journal.copy_to(made.data());
    std::size_t differ = made.size() == records.size() ? 0 : 1;
    for (std::size_t i = 0; i < std::min(made.size(), records.size()); ++i)
      differ += std::memcmp(&made[i], &records[i], sizeof(Record)) != 0;
    return differ;
  }

  std::string journal = name("journal"), market = name("market");
  Desk desk;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<LiveDriver> driver;

 private:
  static std::string name(const char* what) {
    return (std::filesystem::temp_directory_path() /
            ("hft_live_" + std::to_string(::getpid()) + what))
        .string();
  }
};

/// Buys at the touch again and again, so that it is filled as maker.
std::function<void(InstrumentId)> buys_at_touch(Engine& engine, Lots lots = 3,
                                                std::uint32_t tag = 0) {
  return [&engine, lots, tag](InstrumentId i) {
    Market& m = engine.market(i);
    if (m.live.empty() && m.book.two_sided())
      engine.submit(i, BUY, lots, m.book.bid(), Tif::GTC, tag, 0);
  };
}

}  // namespace

TEST_CASE("the book of a live session is the market without us") {
  Session s;
  const Lots ours = 1'000;
  Ticks alone = kNoPrice;
  Lots shown = 0;
  bool rested = false, last_was_own = false;
  s.desk.book = [&](InstrumentId i) {
    Market& m = s.engine->market(i);
    if (alone == kNoPrice && m.book.two_sided()) {
      alone = m.book.bid() - 400;  // where nobody stands
      REQUIRE(m.book.lots_at(BUY, alone) == 0);
      s.engine->submit(i, BUY, ours, alone, Tif::GTC, 0, 0);
    }
    for (const Order* o : m.live)
      rested |= o->row.state == OrderState::NEW && o->row.price == alone;
    shown = std::max(shown, m.book.lots_at(BUY, alone));
  };
  s.desk.trade = [&](const Event& e) { last_was_own |= (e.flags & OWN) != 0; };
  s.driver->run(400 * kMs);
  CHECK(rested);
  CHECK(shown == 0);
  CHECK(!last_was_own);
  CHECK(s.driver->venue().truth().book(0).lots_at(BUY, alone) == 0);  // cancelled at the end
  for (const Event& e : Session::read<Event>(s.market)) {
    CHECK((e.flags & OWN) == 0);
    CHECK((e.kind == Kind::TRADE || e.ref_id == 0));
    if (e.kind == Kind::TRADE) CHECK(e.ref_id == 0);
  }
}

TEST_CASE("level by level and at every step, our book is the venue's less our lots") {
  SimMarketConfig config;
  config.instruments = {SimInstrument{}};
  SimMarket truth(config);
  Book ours;
  std::vector<Event> rows;
  std::vector<SimReport> reports;
  Lots own_seen = 0;
  std::int64_t packets_of_ours_alone = 0;
  const auto receive = [&] {
    std::vector<Event> packet;
    for (const Event& e : rows) {
      packet.push_back(e);
      if (!(e.flags & LAST)) continue;
      take_out_own(packet);
      packets_of_ours_alone += packet.empty();
      if (!packet.empty()) CHECK((packet.back().flags & LAST) != 0);
      for (const Event& seen : packet) ours.apply(seen);
      packet.clear();
    }
    CHECK(packet.empty());
    rows.clear();
    reports.clear();
  };
  const auto compare = [&] {
    const SimBook& book = truth.book(0);
    for (const Side side : {BUY, SELL})
      for (Ticks p = book.lowest(); p <= book.highest(); ++p) {
        const SimLevel& level = book.level(p);
        const Lots others = level.side == side ? level.lots - level.own_lots : 0;
        if (level.side == side) own_seen += level.own_lots;
        if (ours.lots_at(side, p) != others) {
          CAPTURE(p);
          CHECK(ours.lots_at(side, p) == others);
        }
      }
  };
  OrderId last = 0;
  for (int step = 0; step < 4'000; ++step) {
    truth.step(rows, reports);
    receive();
    const Ts now = truth.next_ts();
    const auto draw = [&](std::uint64_t of) {
      return draw_bits(7, 1, of, static_cast<std::uint64_t>(step));
    };
    const Side side = draw(0) % 2 ? BUY : SELL;
    const Ticks price = truth.book(0).best(-side) - side * static_cast<Ticks>(draw(1) % 6);
    switch (draw(2) % 6) {
      case 0:
        truth.submit(0, ++last, side, price, 1 + static_cast<Lots>(draw(3) % 40), Tif::GTC, now,
                     rows, reports);
        break;
      case 1:
        truth.cancel(0, 1 + draw(3) % (last + 1), now, rows, reports);
        break;
      case 2:
        truth.replace(0, 1 + draw(3) % (last + 1), price, 9, now, rows, reports);
        break;
      default:
        break;
    }
    receive();
    if (step % 10 == 0) compare();
  }
  CHECK(own_seen > 0);
  CHECK(packets_of_ours_alone > 0);
}

TEST_CASE("at the end our position is the venue's and nothing of ours is left") {
  Session s(2, 800);
  s.desk.book = buys_at_touch(*s.engine);
  s.driver->run(600 * kMs);
  for (InstrumentId i = 0; i < 2; ++i) {
    const Market& m = s.engine->market(i);
    CHECK(m.live.empty());
    CHECK(m.account.position == s.driver->venue().position(i));
    CHECK(m.exposure.open_lots[0] == 0);
    CHECK(m.exposure.open_orders == 0);
  }
  Lots filled = 0;
  for (const FillRow& f : s.driver->fills())
    if (f.instrument == 0) filled += f.side * f.lots;
  CHECK(filled == s.engine->market(0).account.position);
  CHECK(!s.driver->fills().empty());
  CHECK(s.driver->unanswered() == 0);
}

TEST_CASE("stamps of every order: the wires' delays are lower bounds, nothing goes back") {
  Session s;
  s.desk.book = buys_at_touch(*s.engine);
  s.driver->run(600 * kMs);
  REQUIRE(s.engine->orders().size() > 0);
  int answered = 0;
  for (OrderId id = 1; id <= s.engine->orders().size(); ++id) {
    const OrderRow& o = s.engine->orders()[id].row;
    CHECK(o.ts_cause_recv - o.ts_cause_event >= kMs);
    CHECK(o.ts_decide >= o.ts_cause_recv);
    CHECK(o.ts_send >= o.ts_decide);
    if (o.ts_ack == kNoTime) continue;
    ++answered;
    CHECK(o.ts_arrive - o.ts_send >= 2 * kMs);
    CHECK(o.ts_ack - o.ts_arrive >= kMs);
    CHECK(o.ts_done >= o.ts_ack);
  }
  CHECK(answered > 0);
  bool marked = false;
  for (const FillRow& f : s.driver->fills()) {
    CHECK(f.ts_recv - f.ts_venue >= kMs);
    marked |= f.markout_mid2[0] != kNoPrice;
  }
  CHECK((marked || s.driver->fills().empty()));
}

TEST_CASE(
    "a journal fed back gives the same records, and a strategy that acts otherwise does not") {
  Session s(2, 800);
  s.desk.book = buys_at_touch(*s.engine);
  SessionCalls calls;
  const auto start = [](Engine& e) { return [&e] { e.every(10 * kMs, TOUCH | ORDERS); }; };
  const auto stop = [](Engine& e) { return [&e] { e.flatten(0); }; };
  s.driver->calls.start = start(*s.engine);
  s.driver->calls.stop = stop(*s.engine);
  s.driver->run(600 * kMs);
  {
    Desk again;
    Engine fresh({contract(0), contract(1)}, {}, again);
    again.book = buys_at_touch(fresh);
    CHECK(s.differences(again, {start(fresh), stop(fresh), {}}, fresh) == 0);
  }
  Desk other;
  Engine fresh({contract(0), contract(1)}, {}, other);
  other.book = buys_at_touch(fresh, 3, 1);
  CHECK(s.differences(other, {start(fresh), stop(fresh), {}}, fresh) > 0);
}

TEST_CASE("what on_stop flattens reaches the market; what its fills ask for does not") {
  Session s;
  s.desk.book = buys_at_touch(*s.engine);
  bool stopped = false;
  OrderId last_of_trading = 0;
  s.driver->calls.stop = [&] {
    stopped = true;
    s.engine->flatten(0);
    last_of_trading = s.engine->orders().size();
  };
  s.desk.fill = [&](Order&, const Update&) {
    if (stopped) s.engine->submit(0, BUY, 1, s.engine->market(0).book.bid(), Tif::GTC, 0, 0);
  };
  s.driver->run(800 * kMs);
  for (OrderId id = last_of_trading + 1; id <= s.engine->orders().size(); ++id) {
    CHECK(s.engine->orders()[id].row.state == OrderState::REJECTED);
    CHECK(s.engine->orders()[id].row.reason == Reason::HALTED_BY_RISK);
  }
  CHECK(s.engine->market(0).live.empty());
  CHECK(s.engine->market(0).account.position == s.driver->venue().position(0));
}

TEST_CASE(
    "a handler that throws: orders are cancelled, fills are kept, and the journal replays to the "
    "failure") {
  Session s;
  const auto failing = [](Engine& e) {
    return [&e, buy = buys_at_touch(e)](InstrumentId i) {
      buy(i);
      if (e.counters.packets == 150) throw std::runtime_error("the handler's");
    };
  };
  s.desk.book = failing(*s.engine);
  CHECK_THROWS_WITH(s.driver->run(5'000 * kMs), "the handler's");
  CHECK(s.engine->market(0).live.empty());
  CHECK(s.engine->market(0).account.position == s.driver->venue().position(0));
  Desk again;
  Engine fresh({contract(0)}, {}, again);
  again.book = failing(fresh);
  CHECK(s.differences(again, {[] {}, [] {}, {}}, fresh) == 0);
}

TEST_CASE("a session that ends for another reason than a handler's replays as well") {
  Session s;
  const auto trading = [](Desk& desk, Engine& e) {
    desk.book = [&e](InstrumentId i) {
      if (e.market(i).live.empty()) e.submit(i, BUY, 1, kNoPrice, Tif::IOC, 0, 0);
    };
    desk.fill = [&e](Order& o, const Update&) {
      if (o.row.side == BUY) e.submit(o.row.instrument, SELL, 1, kNoPrice, Tif::IOC, 0, 0);
    };
  };
  trading(s.desk, *s.engine);
  s.driver->poll = [&] {  // while a buy is on its way: its fill comes after the end
    const auto& live = s.engine->market(0).live;
    if (s.engine->counters.packets > 100 && !live.empty() && live.back()->row.side == BUY)
      throw std::runtime_error("not the handler's");
  };
  CHECK_THROWS_WITH(s.driver->run(5'000 * kMs), "not the handler's");
  Desk again;
  Engine fresh({contract(0)}, {}, again);
  trading(again, fresh);
  CHECK(s.differences(again, {[] {}, [] {}, {}}, fresh) == 0);
}

TEST_CASE("a fill whose handler throws is in the fills all the same") {
  Session s(1, 2'000);
  s.desk.book = buys_at_touch(*s.engine, 1);
  s.desk.fill = [](Order&, const Update&) { throw std::runtime_error("on the first fill"); };
  try {
    s.driver->run(3'000 * kMs);
  } catch (const std::runtime_error&) {
  }
  Lots filled = 0;
  for (const FillRow& f : s.driver->fills()) filled += f.side * f.lots;
  CHECK(filled == s.driver->venue().position(0));
  CHECK(filled == s.engine->market(0).account.position);
}

TEST_CASE("a handler that sleeps: the feed has a gap, then a new book, and the journal replays") {
  Session s(1, 20'000, 1 << 10);
  int gaps = 0, ready = 0, naps = 0;
  s.desk.gap = [&](InstrumentId) { ++gaps; };
  s.desk.ready = [&](InstrumentId) { ++ready; };
  s.desk.book = [&](InstrumentId i) {
    buys_at_touch (*s.engine)(i);
    if (s.engine->counters.packets % 2'000 == 1'000 && ++naps < 6)
      std::this_thread::sleep_for(std::chrono::milliseconds(150));
  };
  s.driver->run(1'500 * kMs);
  CHECK(gaps > 0);
  CHECK(ready >= gaps);
  CHECK(s.engine->market(0).live.empty());
  CHECK(s.engine->market(0).account.position == s.driver->venue().position(0));
  Desk again;
  Engine fresh({contract(0)}, {}, again);
  again.book = buys_at_touch(fresh);
  CHECK(s.differences(again, {[] {}, [] {}, {}}, fresh) == 0);
}

TEST_CASE("asked to stop, a session winds down; asked again, it does not wait") {
  Session s;
  s.desk.book = buys_at_touch(*s.engine);
  int polls = 0;
  s.driver->poll = [&] {
    if (++polls == 100) s.driver->ask_to_stop();
  };
  s.driver->run(60'000 * kMs);
  CHECK(s.driver->interrupted());
  CHECK(s.driver->unanswered() == 0);

  Session hasty;
  hasty.desk.book = buys_at_touch(*hasty.engine);
  polls = 0;
  hasty.driver->poll = [&] {
    if (++polls >= 300 && !hasty.engine->market(0).live.empty()) hasty.driver->ask_to_stop();
  };
  hasty.driver->run(60'000 * kMs);
  CHECK(hasty.driver->interrupted());
  const auto records = Session::read<Record>(hasty.journal);
  REQUIRE(records.size() > 2);
  CHECK(records.back().kind == RecordKind::END);
  CHECK(records.back().a == static_cast<std::int64_t>(records.size()) - 1);
  for (const Record& r : records) REQUIRE(r.check == checksum(r));
}

TEST_CASE("rows that wait for company do not wait for a timer that is always due") {
  struct Silent final : ModelStream {
    std::size_t inputs() const noexcept override { return 1; }
    std::size_t outputs() const noexcept override { return 1; }
    void step(const double*, float* out) override { *out = 0; }
    void skip(const double*) override {}
    void reset() override {}
  };
  Session s(8, 0.1);  // hardly more than snapshots
  s.engine->batch(64);
  for (InstrumentId i = 0; i < 8; ++i) {
    Source source;
    source.features = std::make_unique<FeatureSet>(std::vector<FeatureSpec>{FeatureSpec{}},
                                                   Trigger{Trigger::Kind::PACKET, false, 0});
    source.network = std::make_unique<Silent>();
    s.engine->add_source(i, std::move(source));
  }
  s.driver->calls.start = [&] { s.engine->every(10, 0); };
  s.driver->run(200 * kMs);
  CHECK(s.engine->counters.rows_features >= 8);
  CHECK(s.engine->waiting()->empty());
}

TEST_CASE("market rows that are not those journaled are named") {
  Session s;
  s.desk.book = buys_at_touch(*s.engine);
  s.driver->run(200 * kMs);
  const auto records = Session::read<Record>(s.journal);
  auto rows = Session::read<Event>(s.market);
  REQUIRE(rows.size() > 40);
  const auto feed = [&] {
    Desk desk;
    Engine fresh({contract(0)}, {}, desk);
    VerifyDriver verify(fresh);
    verify.calls = {[] {}, [] {}, [] {}};
    verify.run(records.data(), records.size(), rows.data(), rows.size());
  };
  rows[30].qty ^= 1;
  CHECK_THROWS_AS(feed(), DataError);
  rows[30].qty ^= 1;
  rows.resize(rows.size() / 2);
  CHECK_THROWS_AS(feed(), DataError);
}
