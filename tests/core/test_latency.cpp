#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <set>

#include "errors.hpp"
#include "latency.hpp"
#include "message.hpp"
#include "stream.hpp"

using namespace hft;

TEST_CASE("a constant leg shifts every message by itself") {
  const Latency leg(30);
  Channel channel;
  for (const Ts ts : {0, 1, 1, 500, 1'000'000}) {
    CHECK(leg.at(ts) == 30);
    CHECK(leg.at(ts, 7) == 30);
    CHECK(leg.of(3, ts) == 30);
    CHECK(channel.deliver(ts, leg.at(ts)) == ts + 30);
  }
  CHECK(leg.least() == 30);
  CHECK(leg.median() == 30);
  CHECK(Latency().at(5) == 0);
}

TEST_CASE("a series holds its last row, before the first the first, and is never interpolated") {
  const Latency leg = Latency::recorded({100, 200, 200, 300}, {5, 9, 7, 1});
  CHECK(leg.at(0) == 5);
  CHECK(leg.at(100) == 5);
  CHECK(leg.at(199) == 5);
  CHECK(leg.at(200) == 7);  // of two rows at one time the later
  CHECK(leg.at(299) == 7);
  CHECK(leg.at(10'000) == 1);
  CHECK(leg.at(150) == 5);  // asked about the past again
  CHECK(leg.least() == 1);
  CHECK(leg.median() == 5);  // of 1 5 7 9 the lower of the middle two
}

TEST_CASE("a factor multiplies every row, to the nearest ns, halves to even") {
  const Latency leg = Latency::recorded({0, 10, 20}, {5, 7, 4}).scaled(0.5);
  CHECK(leg.at(0) == 2);
  CHECK(leg.at(10) == 4);
  CHECK(leg.at(20) == 2);
  CHECK(leg.least() == 2);
  CHECK(Latency(3).scaled(2.5).at(0) == 8);
  CHECK(Latency::by_order({1}, {10}, Latency(20)).scaled(3).of(2, 0) == 60);
  CHECK(Latency(3).scaled(0).at(0) == 0);
}

TEST_CASE("samples are drawn by time and number, each as likely") {
  std::vector<Ns> ns(10);
  for (std::size_t i = 0; i < ns.size(); ++i) ns[i] = static_cast<Ns>(i);
  const Latency leg = Latency::empirical(ns, 7, 2);
  std::vector<double> found(ns.size());
  constexpr int kDraws = 100'000;
  for (Ts ts = 0; ts < kDraws; ++ts) {
    const Ns drawn = leg.at(ts);
    CHECK_EQ(drawn, ns[draw_bits(7, Draw::ENTRY, static_cast<std::uint64_t>(ts)) % ns.size()]);
    ++found[static_cast<std::size_t>(drawn)];
  }
  const double sd = std::sqrt(kDraws * 0.1 * 0.9);
  for (const double count : found) CHECK(std::abs(count - kDraws * 0.1) < 4 * sd);
  CHECK(leg.least() == 0);
}

TEST_CASE("taking out one message changes no other's draw, and entry and response are a pair") {
  std::vector<Ns> entry(1'000), response(1'000);
  for (std::size_t i = 0; i < entry.size(); ++i) {
    entry[i] = static_cast<Ns>(1'000 + i);
    response[i] = 2 * entry[i];
  }
  const Latency out = Latency::empirical(entry, 3, 2), back = Latency::empirical(response, 3, 2);
  std::vector<Ts> sent;
  for (Ts ts = 0; ts < 200; ++ts) sent.push_back(17 * ts);
  const auto delays = [&](std::size_t without) {
    std::vector<std::pair<Ts, Ns>> delays;
    Nth nth;
    for (std::size_t i = 0; i < sent.size(); ++i)
      if (i != without) delays.emplace_back(sent[i], out.at(sent[i], nth(sent[i])));
    return delays;
  };
  auto all = delays(sent.size()), fewer = delays(100);
  all.erase(all.begin() + 100);
  CHECK(all == fewer);
  std::set<Ns> of_one_instant;
  for (std::uint64_t n = 0; n < 10; ++n) {
    CHECK(back.at(5, n) == 2 * out.at(5, n));
    of_one_instant.insert(out.at(5, n));
  }
  CHECK(of_one_instant.size() > 5);
}

TEST_CASE("a walk hits its rows, takes the nearest between them, and goes round") {
  const std::vector<Ts> ts = {100, 200, 260, 300};
  const std::vector<Ns> ns = {1, 2, 3, 4};
  const Latency whole = Latency::walk(ts, ns, {1'000}, {0});
  // The period is 200 and the mean step of 66.
  for (const Ts lap : {0, 266, 5 * 266}) {
    CHECK(whole.at(1'000 + lap) == 1);
    CHECK(whole.at(1'050 + lap) == 1);  // as near to either: the earlier
    CHECK(whole.at(1'051 + lap) == 2);
    CHECK(whole.at(1'100 + lap) == 2);
    CHECK(whole.at(1'160 + lap) == 3);
    CHECK(whole.at(1'200 + lap) == 4);
    CHECK(whole.at(1'233 + lap) == 4);
    CHECK(whole.at(1'234 + lap) == 1);
  }
  CHECK(whole.at(1'000 - 66) == 4);  // before the first block it reads on backwards
  const Latency blocks = Latency::walk(ts, ns, {0, 1'000, 1'030}, {3, 1, 0});
  CHECK(blocks.at(999) == whole.at(1'000 + 200 + 999));
  CHECK(blocks.at(1'000) == 2);
  CHECK(blocks.at(1'029) == 2);
  CHECK(blocks.at(1'030) == 1);
  CHECK(Latency::walk({5}, {9}, {0}, {0}).at(123) == 9);
}

TEST_CASE("a walk of blocks of geometric length keeps the trace's autocovariance by (1 - p)^k") {
  // AR(1) on a regular trace; blocks begin anew with chance p a row at any row (Politis and
  // Romano).
  constexpr std::size_t kRows = 20'000, kWalked = 2'000'000, kMost = 40;
  constexpr Ns kStep = 1'000;
  constexpr double kPhi = 0.95, kP = 1.0 / 50;
  std::vector<Ts> ts(kRows);
  std::vector<Ns> ns(kRows);
  double level = 0;
  for (std::size_t i = 0; i < kRows; ++i) {
    double noise = -6;  // of twelve uniforms: variance 1
    for (std::uint64_t k = 0; k < 12; ++k) noise += draw_uniform(1, Draw::GHOST, i, k);
    level = kPhi * level + noise;
    ts[i] = static_cast<Ts>(i) * kStep;
    ns[i] = 100'000 + static_cast<Ns>(1'000 * level);
  }
  std::vector<Ts> block_ts;
  std::vector<std::int64_t> block_at;
  for (std::size_t i = 0; i < kWalked; ++i) {
    if (i > 0 && draw_uniform(2, Draw::ENTRY, i) >= kP) continue;
    block_ts.push_back(static_cast<Ts>(i) * kStep);
    block_at.push_back(static_cast<std::int64_t>(draw_bits(3, Draw::ENTRY, i) % kRows));
  }
  const Latency walk = Latency::walk(ts, ns, block_ts, block_at);
  const auto covariance = [](const std::vector<double>& x, std::size_t lag, bool circular) {
    const double mean = std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
    const std::size_t n = circular ? x.size() : x.size() - lag;
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += (x[i] - mean) * (x[(i + lag) % x.size()] - mean);
    return sum / static_cast<double>(n);
  };
  const std::vector<double> trace(ns.begin(), ns.end());
  std::vector<double> walked(kWalked);
  for (std::size_t i = 0; i < kWalked; ++i)
    walked[i] = static_cast<double>(walk.at(static_cast<Ts>(i) * kStep));
  const double variance = covariance(trace, 0, true);
  for (const std::size_t k : {std::size_t{0}, std::size_t{1}, std::size_t{10}, kMost}) {
    const double law = std::pow(1 - kP, static_cast<double>(k)) * covariance(trace, k, true);
    // About kWalked / 40 independent pieces: 3 standard errors are 1.5 % of the variance.
    CHECK(std::abs(covariance(walked, k, false) - law) < 0.02 * variance);
  }
}

TEST_CASE("by order what was recorded, and for others the other leg") {
  const Latency leg = Latency::by_order({2, 5}, {70, 90}, Latency(10));
  CHECK(leg.of(2, 0) == 70);
  CHECK(leg.of(5, 1'000, 3) == 90);
  CHECK(leg.of(1, 0) == 10);
  CHECK(leg.of(6, 0) == 10);
  CHECK(leg.at(0) == 10);  // what belongs to no order
  CHECK(leg.least() == 10);
  CHECK(leg.median() == 10);
}

TEST_CASE("what is no leg is refused: who, which row, and what it was") {
  const auto because = [](const char* part) { return doctest::Contains(part); };
  CHECK_THROWS_WITH_AS(Latency::constant(-1, "latency.risk"),
                       because("latency.risk: row 0 is -1 ns"), ConfigError);
  CHECK_THROWS_WITH_AS(Latency::recorded({1, 2}, {1}), because("had 2 and 1"), ConfigError);
  CHECK_THROWS_WITH_AS(Latency::recorded({}, {}), because("had 0 and 0"), ConfigError);
  CHECK_THROWS_WITH_AS(Latency::recorded({2, 1}, {1, 1}), because("time of row 1 is 1"),
                       ConfigError);
  CHECK_THROWS_WITH_AS(Latency::recorded({-1, 1}, {1, 1}), because("row 0 is -1"), ConfigError);
  CHECK_THROWS_WITH_AS(Latency::recorded({1, 2}, {1, -1}), because("row 1 is -1 ns"), ConfigError);
  CHECK_THROWS_WITH_AS(Latency::empirical({}, 1, 1, "entry"), because("entry: has no samples"),
                       ConfigError);
  CHECK_THROWS_WITH_AS(Latency::empirical({1, 86'400'000'000'001}, 1, 1), because("row 1"),
                       ConfigError);
  CHECK_THROWS_WITH_AS(Latency::walk({1, 2}, {1, 1}, {}, {}), because("had 0 and 0"), ConfigError);
  CHECK_THROWS_WITH_AS(Latency::walk({1, 2}, {1, 1}, {5, 4}, {0, 0}), because("block of row 1"),
                       ConfigError);
  CHECK_THROWS_WITH_AS(Latency::walk({1, 2}, {1, 1}, {5}, {2}), because("which has 2"),
                       ConfigError);
  CHECK_THROWS_WITH_AS(Latency::by_order({2, 2}, {1, 1}, {}),
                       because("order of row 1 is 2 after 2"), ConfigError);
  CHECK_THROWS_AS(Latency(1).scaled(-1), ConfigError);
  CHECK_THROWS_AS(Latency(1).scaled(std::nan("")), ConfigError);
  CHECK_THROWS_AS(Latency(1'000'000).scaled(1e30), ConfigError);
}

TEST_CASE("a fifo channel never reorders, however the leg falls; an independent one does") {
  const Latency leg = Latency::recorded({0, 100}, {1'000, 10});
  Channel fifo, alone(Ordering::INDEPENDENT);
  const auto through = [&](Channel& channel, Ts ts) { return channel.deliver(ts, leg.at(ts)); };
  CHECK(through(fifo, 50) == 1'050);
  CHECK(through(fifo, 100) == 1'050);  // on its own it would have overtaken
  CHECK(through(fifo, 1'200) == 1'210);
  CHECK(through(alone, 50) == 1'050);
  CHECK(through(alone, 100) == 110);

  std::vector<Ns> wild(64);
  for (std::size_t i = 0; i < wild.size(); ++i) wild[i] = static_cast<Ns>(i * i * 100);
  const Latency random = Latency::empirical(wild, 1, 2);
  Channel line;
  Ts last = 0;
  for (Ts ts = 0; ts < 100'000; ts += 1 + static_cast<Ts>(draw_bits(4, Draw::FEED, ts) % 50)) {
    const Ts arrives = line.deliver(ts, random.at(ts));
    CHECK(arrives >= last);
    CHECK(arrives >= ts + random.at(ts));
    last = arrives;
  }
}

TEST_CASE("of two that travel alone the second overtakes with chance exp(-d / m) / 2") {
  // Latencies are exponential with mean m: samples are its quantiles.
  constexpr double kMean = 1e6;
  std::vector<Ns> ns(100'000);
  for (std::size_t i = 0; i < ns.size(); ++i)
    ns[i] = static_cast<Ns>(
        -kMean * std::log1p(-(static_cast<double>(i) + 0.5) / static_cast<double>(ns.size())));
  const Latency leg = Latency::empirical(ns, 11, 2);
  for (const double share : {0.1, 0.5, 1.0, 2.0}) {
    const auto apart = static_cast<Ns>(share * kMean);
    constexpr int kPairs = 200'000;
    int swapped = 0;
    for (int i = 0; i < kPairs; ++i) {
      const Ts ts = static_cast<Ts>(i) * 1'000'000'007;
      Channel alone(Ordering::INDEPENDENT);
      swapped += alone.deliver(ts, leg.at(ts)) > alone.deliver(ts + apart, leg.at(ts + apart));
    }
    const double law = 0.5 * std::exp(-share), found = static_cast<double>(swapped) / kPairs;
    CHECK(std::abs(found - law) < 3 * std::sqrt(law * (1 - law) / kPairs));
  }
}

TEST_CASE("messages in flight stand by arrival, ties in the order they were sent") {
  std::deque<Command> wire;
  OrderId id = 0;
  for (const Ts ts : {5, 3, 5, 9, 3, 1, 9}) {
    Command c{};
    c.order = ++id;
    c.ts_arrive = ts;
    put_in_flight(wire, c, &Command::ts_arrive);
  }
  std::vector<OrderId> order;
  for (const Command& c : wire) order.push_back(c.order);
  CHECK(order == std::vector<OrderId>{6, 2, 5, 1, 3, 4, 7});
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
