#include <doctest/doctest.h>

#include <memory>

#include "latency.hpp"
#include "stream.hpp"

using namespace hft;

TEST_CASE("a constant leg shifts every message by itself") {
  Latency leg(30);
  CHECK(leg.at(0) == 30);
  CHECK(leg.at(1'000'000) == 30);
  CHECK(leg.least() == 30);
  CHECK_THROWS_AS(Latency(-1), ConfigError);
}

TEST_CASE("a series holds its last row, before the first the first, and is never interpolated") {
  Latency leg({100, 200, 200, 300}, {5, 9, 7, 1}, 1.0);
  CHECK(leg.at(0) == 5);
  CHECK(leg.at(100) == 5);
  CHECK(leg.at(199) == 5);
  CHECK(leg.at(200) == 7);  // of two rows at one time the later
  CHECK(leg.at(299) == 7);
  CHECK(leg.at(10'000) == 1);
  CHECK(leg.at(150) == 5);  // asked about the past again
  CHECK(leg.least() == 1);
  CHECK(Latency({0}, {5}, 2.5).at(7) == 12);
}

TEST_CASE("a damaged series is refused") {
  CHECK_THROWS_AS(Latency({1, 2}, {1}, 1.0), ConfigError);
  CHECK_THROWS_AS(Latency({}, {}, 1.0), ConfigError);
  CHECK_THROWS_AS(Latency({2, 1}, {1, 1}, 1.0), ConfigError);
  CHECK_THROWS_AS(Latency({1, 2}, {1, -1}, 1.0), ConfigError);
}

TEST_CASE("a channel never reorders, however the leg falls") {
  Channel channel(Latency({0, 100}, {1'000, 10}, 1.0));
  CHECK(channel.deliver(50) == 1'050);
  CHECK(channel.deliver(100) == 1'050);  // on its own it would have overtaken
  CHECK(channel.deliver(1'200) == 1'210);
}

namespace {

/// Events at the given times, in chunks of `size`.
Stream stream_of(const std::vector<Event>& rows, std::size_t size, int* released) {
  auto at = std::make_shared<std::size_t>(0);
  return Stream(
      [&rows, size, at](Chunk& chunk) {
        if (*at == rows.size()) return false;
        chunk = {rows.data() + *at, std::min(size, rows.size() - *at)};
        *at += chunk.size;
        return true;
      },
      [released] { ++*released; });
}

Event at(Ts event, Ts recv, std::uint16_t flags = 7) {
  Event e{};
  e.ts_event = event;
  e.ts_recv = recv;
  e.flags = flags;
  return e;
}

}  // namespace

TEST_CASE("two cursors read the rows that are theirs, whatever the chunks") {
  const std::vector<Event> rows = {at(1, 5),
                                   at(2, 6, SEEN_BY_US),
                                   at(3, 7, SEEN_BY_VENUE),
                                   at(4, 8),
                                   at(4, 9),
                                   at(5, 9, SEEN_BY_VENUE),
                                   at(6, 11),
                                   at(7, 12, SEEN_BY_US)};
  for (std::size_t size = 1; size <= rows.size(); ++size) {
    int released = 0;
    Stream s = stream_of(rows, size, &released);
    s.open();
    std::vector<std::int64_t> venue, local;
    for (; s.venue.ts != kNever; s.advance_venue()) venue.push_back(s.venue.row());
    for (; s.local.ts != kNever; s.advance_local()) local.push_back(s.local.row());
    CHECK(venue == std::vector<std::int64_t>{0, 2, 3, 4, 5, 6});
    CHECK(local == std::vector<std::int64_t>{0, 1, 3, 4, 6, 7});
    CHECK(released == static_cast<int>((rows.size() + size - 1) / size));
  }
}

TEST_CASE("times that go back are refused and the row is named") {
  int released = 0;
  const std::vector<Event> event_back = {at(5, 6), at(4, 7)}, recv_back = {at(5, 7), at(6, 6)};
  Stream a = stream_of(event_back, 1, &released);
  a.open();
  CHECK_THROWS_WITH_AS(a.advance_venue(), doctest::Contains("row 1"), DataError);
  Stream b = stream_of(recv_back, 2, &released);
  b.open();
  CHECK_THROWS_WITH_AS(b.advance_local(), doctest::Contains("ts_recv"), DataError);
}
