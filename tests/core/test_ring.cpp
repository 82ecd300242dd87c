#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

#include "message.hpp"
#include "ring.hpp"
#include "sim_venue.hpp"

using namespace hft;

namespace {

/// A slot as wide as a market row, all words equal: a torn read shows.
struct Row {
  std::uint64_t words[8];
};

void write(Row& row, std::uint64_t n) {
  for (auto& word : row.words) word = n;
}

bool is(const Row& row, std::uint64_t n) {
  for (const auto word : row.words)
    if (word != n) return false;
  return true;
}

template <class F>
void wait(F&& ready, std::uint64_t& waits) {
  while (!ready()) {
    ++waits;
    std::this_thread::yield();
  }
}

/// Both sides as fast as they can, so that the ring is now full and now empty.
void stress(std::size_t capacity, std::uint64_t count) {
  CAPTURE(capacity);
  SpscRing<Row> ring(capacity);
  std::uint64_t full = 0, empty = 0, wrong = 0;
  std::thread producer([&] {
    for (std::uint64_t n = 0; n < count; ++n) {
      Row* slot = nullptr;
      wait([&] { return (slot = ring.claim()) != nullptr; }, full);
      write(*slot, n);
      ring.publish();
    }
  });
  for (std::uint64_t n = 0; n < count; ++n) {
    const Row* slot = nullptr;
    wait([&] { return (slot = ring.poll()) != nullptr; }, empty);
    wrong += !is(*slot, n);
    ring.release();
  }
  producer.join();
  CHECK(wrong == 0);
  CHECK(ring.poll() == nullptr);
  CHECK(ring.room() == capacity);
  if (capacity == 1) CHECK(full + empty > 0);
}

}  // namespace

TEST_CASE("a ring of one slot is full after one and empty after none") {
  SpscRing<int> ring(1);
  CHECK(ring.poll() == nullptr);
  CHECK(ring.room() == 1);
  *ring.claim() = 7;
  ring.publish();
  CHECK(ring.claim() == nullptr);
  CHECK(ring.room() == 0);
  REQUIRE(ring.poll() != nullptr);
  CHECK(*ring.poll() == 7);  // polling does not consume
  ring.release();
  CHECK(ring.poll() == nullptr);
  CHECK(ring.claim() != nullptr);
}

TEST_CASE("a full ring takes exactly its capacity, in order, and one more for each released") {
  SpscRing<int> ring(8);
  for (int n = 0; n < 8; ++n) {
    REQUIRE(ring.claim() != nullptr);
    *ring.claim() = n;
    ring.publish();
  }
  CHECK(ring.claim() == nullptr);
  for (int n = 0; n < 3; ++n) {
    CHECK(*ring.poll() == n);
    ring.release();
  }
  CHECK(ring.room() == 3);
  for (int n = 8; n < 11; ++n) {
    *ring.claim() = n;
    ring.publish();
  }
  CHECK(ring.claim() == nullptr);
  for (int n = 3; n < 11; ++n) {
    CHECK(*ring.poll() == n);
    ring.release();
  }
  CHECK(ring.poll() == nullptr);
}

TEST_CASE("what was claimed but not published is not seen") {
  SpscRing<int> ring(2);
  *ring.claim() = 1;
  CHECK(ring.poll() == nullptr);
  ring.publish();
  CHECK(*ring.poll() == 1);
}

TEST_CASE("a capacity that is no power of two is refused") {
  for (const std::size_t capacity : {0, 3, 6, 100})
    CHECK_THROWS_WITH_AS(
        SpscRing<int>{capacity},
        ("a ring's capacity must be a power of two, was " + std::to_string(capacity)).c_str(),
        std::invalid_argument);
}

TEST_CASE("two threads: every row once, whole and in order, through many wraps") {
  for (const std::size_t capacity : {1, 2, 4, 64}) stress(capacity, 20'000);
  stress(1 << 12, 300'000);
}

TEST_CASE("a consumer that sleeps finds the ring full, a producer that sleeps empty") {
  SpscRing<Row> ring(16);
  std::atomic<bool> done{false};
  std::uint64_t sent = 0, refused = 0, taken = 0, wrong = 0;
  std::thread producer([&] {
    for (int burst = 0; burst < 20; ++burst) {
      for (int n = 0; n < 40; ++n) {
        Row* slot = ring.claim();
        if (slot == nullptr) {
          ++refused;
          continue;
        }
        write(*slot, sent++);
        ring.publish();
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    done.store(true, std::memory_order_release);
  });
  const auto drain = [&] {
    while (const Row* slot = ring.poll()) {
      wrong += !is(*slot, taken++);
      ring.release();
    }
  };
  while (!done.load(std::memory_order_acquire)) {
    drain();
    std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
  producer.join();
  drain();
  CHECK(wrong == 0);
  CHECK(taken == sent);
  CHECK(refused > 0);
}

// ---- the venue's thread, here because `make tsan` runs this file ----

namespace {

SimVenueConfig busy_venue(std::size_t feed_rows = 1 << 16) {
  SimVenueConfig config;
  config.market.start_ts = WallClock().now();
  config.market.instruments = {SimInstrument{}, SimInstrument{}};
  for (std::size_t i = 0; i < 2; ++i) {
    config.market.instruments[i].id = static_cast<InstrumentId>(i);
    config.market.instruments[i].messages_per_s = 5'000;
  }
  config.entry_ns = 100'000;
  config.response_ns = 100'000;
  config.feed_rows = feed_rows;
  return config;
}

Command order(OrderId id, Command::Kind kind, Ticks price, Lots lots) {
  Command c{};
  c.kind = kind;
  c.tif = Tif::GTC;
  c.side = BUY;
  c.order = id;
  c.price = price;
  c.lots = lots;
  return c;
}

}  // namespace

TEST_CASE("the venue's thread answers every command, whatever happens to the feed") {
  const WallClock clock;
  SimVenue venue(busy_venue(1 << 12), clock);
  venue.start();
  const Ticks low = SimInstrument{}.price0_ticks / 2;  // far below the market: it rests
  constexpr int kOrders = 200;
  int accepted = 0, replaced = 0, canceled = 0;
  const auto send = [&](Command c) {
    c.ts_send = clock.now();
    Command* slot = venue.commands.claim();
    REQUIRE(slot != nullptr);
    *slot = c;
    venue.commands.publish();
  };
  for (OrderId id = 1; id <= kOrders; ++id) {
    send(order(id, Command::Kind::NEW, low, 5));
    send(order(id, Command::Kind::REPLACE, low + 1, 7));
    send(order(id, Command::Kind::CANCEL, low, 0));
  }
  const Ts until = clock.now() + 20'000'000'000;
  while (canceled < kOrders && clock.now() < until) {
    while (const Update* u = venue.answers.poll()) {
      accepted += u->kind == Update::Kind::ACCEPTED;
      replaced += u->kind == Update::Kind::REPLACED;
      canceled += u->kind == Update::Kind::CANCELED;
      venue.answers.release();
    }
    std::this_thread::yield();
  }
  venue.check();
  venue.stop();
  CHECK(accepted == kOrders);
  CHECK(replaced == kOrders);
  CHECK(canceled == kOrders);
  CHECK(venue.position(0) == 0);
}

TEST_CASE("a reader that is too slow is told of the gap and gets the venue's book") {
  const WallClock clock;
  SimVenue venue(busy_venue(1 << 11), clock);
  venue.start();
  std::vector<Event> seen;
  const auto drain = [&] {
    while (const Event* e = venue.market.poll()) {
      seen.push_back(*e);
      venue.market.release();
    }
  };
  const auto gaps = [&] {
    return std::count_if(seen.begin(), seen.end(),
                         [](const Event& e) { return e.kind == Kind::STATUS; });
  };
  const Ts until = clock.now() + 30'000'000'000;
  while (gaps() < 3 && clock.now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    drain();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    drain();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  drain();
  venue.stop();
  CHECK(gaps() >= 3);
  // Packets are never split: what follows a LAST is another packet, and a gap stands alone.
  bool inside = false;
  InstrumentId of = 0;
  int after_gap[2] = {0, 0};
  for (const Event& e : seen) {
    if (inside) CHECK(e.instrument == of);
    if (!inside && after_gap[e.instrument]) {
      CHECK((e.kind == Kind::SNAPSHOT_BEGIN || e.kind == Kind::STATUS));
      after_gap[e.instrument] = e.kind == Kind::STATUS;
    }
    if (e.kind == Kind::STATUS) after_gap[e.instrument] = 1;
    of = e.instrument;
    inside = !(e.flags & LAST);
  }
  CHECK(!inside);
}

TEST_CASE("the venue settles funding on our position") {
  constexpr Ts kEightHours = 8LL * 3600 * 1'000'000'000;
  const Ts now = WallClock().now();
  const WallClock clock((now / kEightHours + 1) * kEightHours - now - 300'000'000);
  SimVenueConfig config = busy_venue();
  config.market.start_ts = clock.now();
  SimVenue venue(config, clock);
  venue.start();
  Command buy = order(1, Command::Kind::NEW, kNoPrice, 5);
  buy.tif = Tif::IOC;
  buy.ts_send = clock.now();
  *venue.commands.claim() = buy;
  venue.commands.publish();
  std::vector<Update> settled;
  const Ts until = clock.now() + 20'000'000'000;
  while (settled.empty() && clock.now() < until) {
    while (const Update* u = venue.answers.poll()) {
      if (u->kind == Update::Kind::FUNDING) settled.push_back(*u);
      venue.answers.release();
    }
    std::this_thread::yield();
  }
  venue.stop();
  REQUIRE(settled.size() == 1);  // the other instrument's position is flat
  CHECK(settled[0].instrument == 0);
  CHECK(settled[0].lots == 5);
  CHECK(settled[0].ts_venue % kEightHours == 0);
  CHECK(std::abs(settled[0].money) <= 200'000);  // the rate [1e-9]
}

TEST_CASE("the venue starts and stops again and again, with and without orders") {
  const WallClock clock;
  for (int round = 0; round < 5; ++round) {
    SimVenue venue(busy_venue(), clock);
    if (round > 0) venue.start();
    if (round > 1) {
      *venue.commands.claim() = order(1, Command::Kind::NEW, 100, 1);
      venue.commands.publish();
    }
    venue.stop();
    venue.stop();
  }
}
