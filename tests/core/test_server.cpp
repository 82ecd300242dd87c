#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "errors.hpp"
#include "server.hpp"

using namespace hft;

namespace {

using Mode = ServerConfig::Mode;
constexpr double kMean = 1e6;  // of a service [ns]
constexpr int kArrivals = 1'000'000;

double exponential(double mean, Draw stream, std::uint64_t i) {
  return -mean * std::log1p(-draw_uniform(23, stream, i));
}

/// Means of a correlated series and its standard error, from the scatter of 100 batches.
struct Series {
  std::vector<double> values;
  void add(double x) { values.push_back(x); }
  double mean() const { return of(0, values.size()); }
  double error() const {
    constexpr std::size_t kBatches = 100;
    const std::size_t size = values.size() / kBatches;
    double sum = 0, squares = 0;
    for (std::size_t k = 0; k < kBatches; ++k) {
      const double m = of(k * size, (k + 1) * size);
      sum += m;
      squares += m * m;
    }
    const double variance = squares / kBatches - sum * sum / (kBatches * kBatches);
    return std::sqrt(variance / (kBatches - 1));
  }

 private:
  double of(std::size_t from, std::size_t to) const {
    double sum = 0;
    for (std::size_t i = from; i < to; ++i) sum += values[i];
    return sum / static_cast<double>(to - from);
  }
};

void check_mean(const Series& found, double law) {
  CAPTURE(found.mean());
  CAPTURE(law);
  CHECK(std::abs(found.mean() - law) < 3 * found.error() + 1e-6 * std::abs(law));
}

/// Poisson rows through a server; `served` hears of each row, in order, all times in ns.
void drive(InferenceServer& server, double rate, int arrivals,
           const std::function<void(const Signal&)>& served, std::uint32_t streams = 1) {
  double at = 0;
  std::vector<Signal> rows;
  for (int i = 0; i < arrivals; ++i) {
    at += exponential(1 / rate, Draw::FEED, static_cast<std::uint64_t>(i));
    const auto ts = static_cast<Ts>(at);
    while (server.due() < ts)
      for (const Signal& row : server.complete()) served(row);
    Signal row;
    row.ts_features = row.ts_event = row.ts_recv = ts;
    row.cause_row = i;
    row.instrument = static_cast<InstrumentId>(
        draw_bits(21, Draw::FEED, static_cast<std::uint64_t>(i)) % streams);
    rows.push_back(row);
    server.offer(rows, ts);
  }
  while (server.busy())
    for (const Signal& row : server.complete()) served(row);
}

enum class Law { CONSTANT, EXPONENTIAL };

/// Service times: constant, or the quantiles of an exponential, drawn by time.
Latency service_of(Law law) {
  if (law == Law::CONSTANT) return Latency(static_cast<Ns>(kMean));
  std::vector<Ns> ns(200'000);
  for (std::size_t i = 0; i < ns.size(); ++i)
    ns[i] = static_cast<Ns>(
        -kMean * std::log1p(-(static_cast<double>(i) + 0.5) / static_cast<double>(ns.size())));
  return Latency::empirical(ns, 9, static_cast<std::uint64_t>(Draw::SERVICE));
}

ServerConfig config_of(Mode mode, Law law = Law::CONSTANT) {
  ServerConfig config;
  config.mode = mode;
  config.service = service_of(law);
  return config;
}

/// Time mean of the age of the newest row answered, from cycles between answers of newer rows.
class Age {
 public:
  void answered(Ts made, Ts now) {
    if (last_ != kNoTime) {
      const double gap = static_cast<double>(now - last_);
      const double since = static_cast<double>(last_ - made_);
      area_.add(gap * since + gap * gap / 2);
      gap_.add(gap);
    }
    last_ = now;
    made_ = made;
  }
  double mean() const { return area_.mean() / gap_.mean(); }
  double error() const { return area_.error() / gap_.mean(); }  // the gaps' own is smaller

 private:
  Ts last_ = kNoTime, made_ = kNoTime;
  Series area_, gap_;
};

Signal row_of(InstrumentId inst, Ts ts, std::int64_t number = 0) {
  Signal row;
  row.instrument = inst;
  row.ts_event = row.ts_recv = row.ts_features = ts;
  row.cause_row = number;
  return row;
}

void offer(InferenceServer& server, std::vector<Signal> rows, Ts ts) { server.offer(rows, ts); }

std::vector<std::int64_t> numbers(const std::vector<Signal>& rows) {
  std::vector<std::int64_t> out;
  for (const Signal& row : rows) out.push_back(row.cause_row);
  return out;
}

using Numbers = std::vector<std::int64_t>;

}  // namespace

// ---- closed forms of queueing, each on a million Poisson rows ----

TEST_CASE("queue: the mean wait is Pollaczek and Khinchine's") {
  for (const Law law : {Law::CONSTANT, Law::EXPONENTIAL})
    for (const double rho : {0.3, 0.7, 0.9}) {
      ServerConfig config = config_of(Mode::QUEUE, law);
      config.bound = 1 << 20;
      InferenceServer server(config);
      Series wait;
      drive(server, rho / kMean, kArrivals, [&](const Signal& row) {
        wait.add(static_cast<double>(row.ts_start - row.ts_features) / kMean);
      });
      const double second_moment = law == Law::CONSTANT ? 1 : 2;  // of a service of mean 1
      check_mean(wait, rho * second_moment / (2 * (1 - rho)));
      CHECK(wait.values.size() == kArrivals);
      CHECK(server.counters().services == kArrivals);
      CHECK(server.counters().overflowed == 0);
    }
}

TEST_CASE("queue: waits for a constant service are distributed as Erlang says") {
  constexpr double kRho = 0.7;
  ServerConfig config = config_of(Mode::QUEUE);
  config.bound = 1 << 20;
  InferenceServer server(config);
  const double at[] = {0, 1, 2, 6};
  Series within[4];
  drive(server, kRho / kMean, kArrivals, [&](const Signal& row) {
    const double wait = static_cast<double>(row.ts_start - row.ts_features) / kMean;
    for (int k = 0; k < 4; ++k) within[k].add(wait <= at[k]);
  });
  for (int k = 0; k < 4; ++k) {
    double law = 0, factorial = 1;
    for (int j = 0; j <= static_cast<int>(at[k]); ++j) {
      if (j > 0) factorial *= j;
      const double left = kRho * (at[k] - j);
      law += std::pow(-left, j) / factorial * std::exp(left);
    }
    check_mean(within[k], (1 - kRho) * law);
  }
}

TEST_CASE("skip: the share that finds it busy is Erlang's, whatever the law of services") {
  for (const Law law : {Law::CONSTANT, Law::EXPONENTIAL})
    for (const double rho : {0.3, 0.7, 0.9}) {
      InferenceServer server(config_of(Mode::SKIP, law));
      std::vector<double> served(kArrivals);
      Age age;
      drive(server, rho / kMean, kArrivals, [&](const Signal& row) {
        served[static_cast<std::size_t>(row.cause_row)] = 1;
        CHECK_EQ(row.ts_start, row.ts_features);
        age.answered(row.ts_features, row.ts_end);
      });
      Series lost;
      for (const double s : served) lost.add(1 - s);
      check_mean(lost, rho / (1 + rho));
      CHECK(server.counters().skipped + server.counters().services == kArrivals);
      // Age: E[S] + E[Y^2] / (2 E[Y]) with Y = S + Exp(rate).
      const double mean = 1 + 1 / rho, variance = (law == Law::CONSTANT ? 0 : 1) + 1 / (rho * rho);
      const double age_law = 1 + (variance + mean * mean) / (2 * mean);
      CHECK(std::abs(age.mean() / kMean - age_law) < 3 * age.error() / kMean);
    }
}

TEST_CASE("conflate: share answered, wait of what is answered, and twice the longest service") {
  for (const Law law : {Law::CONSTANT, Law::EXPONENTIAL})
    for (const double rho : {0.3, 0.7, 0.9, 5.0}) {
      InferenceServer server(config_of(Mode::CONFLATE, law));
      std::vector<double> served(kArrivals);
      Series wait;
      Age age;
      Ns longest = 0, sojourn = 0;
      drive(server, rho / kMean, kArrivals, [&](const Signal& row) {
        served[static_cast<std::size_t>(row.cause_row)] = 1;
        wait.add(static_cast<double>(row.ts_start - row.ts_features) / kMean);
        longest = std::max(longest, row.ts_end - row.ts_start);
        sojourn = std::max(sojourn, row.ts_end - row.ts_features);
        age.answered(row.ts_features, row.ts_end);
      });
      // S*(rate), the chance that nothing comes during a service, and its derivative.
      const double none = law == Law::CONSTANT ? std::exp(-rho) : 1 / (1 + rho);
      const double slope = law == Law::CONSTANT ? -none : -none * none;
      Series answered;
      for (const double s : served) answered.add(s);
      check_mean(answered, 1 / (rho + none));
      check_mean(wait, (1 - none + rho * slope) / rho);
      CHECK(sojourn <= 2 * longest);
      CHECK(server.counters().conflated + server.counters().services == kArrivals);
      if (law == Law::CONSTANT) continue;
      // Costa, Codreanu and Ephremides 2016: M/M/1/2*, mu = 1.
      const double l = rho, age_law = 1 / l + 2 + l / ((l + 1) * (l + 1)) + 1 / (l + 1) -
                                      2 * (l + 1) / (l * l + l + 1);
      CHECK(std::abs(age.mean() / kMean - age_law) < 3 * age.error() / kMean);
    }
}

TEST_CASE(
    "queue: the age of what is known is Kaul, Yates and Gruteser's, and worse than conflation") {
  constexpr double kRho = 0.9;
  ServerConfig config = config_of(Mode::QUEUE, Law::EXPONENTIAL);
  config.bound = 1 << 20;
  InferenceServer server(config);
  Age age;
  drive(server, kRho / kMean, kArrivals,
        [&](const Signal& row) { age.answered(row.ts_features, row.ts_end); });
  const double law = 1 + 1 / kRho + kRho * kRho / (1 - kRho);
  CHECK(law == doctest::Approx(10.21).epsilon(1e-3));
  CHECK(std::abs(age.mean() / kMean - law) < 3 * age.error() / kMean);
}

TEST_CASE("batches that never idle: mean service and size") {
  // S(b) = alpha + beta b, unbounded batches: mean service alpha / (1 - rate beta).
  constexpr double kAlpha = 0.5, kBeta = 0.02, kRate = 20;
  ServerConfig config = config_of(Mode::QUEUE);
  config.bound = 1 << 20;
  config.max_batch = 1 << 20;
  config.per_item_ns = static_cast<Ns>(kBeta * kMean);
  config.service = Latency(static_cast<Ns>((kAlpha + kBeta) * kMean));
  InferenceServer server(config);
  Series service, size;
  Ts began = kNoTime;
  double rows = 0;
  drive(server, kRate / kMean, kArrivals, [&](const Signal& row) {
    if (row.ts_start != began) {
      if (began != kNoTime) size.add(rows);
      service.add(static_cast<double>(row.ts_end - row.ts_start) / kMean);
      began = row.ts_start;
      rows = 0;
    }
    ++rows;
  });
  // It idles when nothing came during a service: once in exp(16.7) services.
  check_mean(service, kAlpha / (1 - kRate * kBeta));
  check_mean(size, kRate * kAlpha / (1 - kRate * kBeta));
}

TEST_CASE("batches of conflated streams: never longer than 2 (alpha + beta N), at any rate") {
  constexpr std::uint32_t kStreams = 8;
  constexpr Ns kAlpha = 500'000, kBeta = 20'000;
  for (const double rate : {1.0, 10.0, 200.0}) {
    ServerConfig config;
    config.service = Latency(kAlpha + kBeta);
    config.per_item_ns = kBeta;
    config.max_batch = kStreams;
    InferenceServer server(config);
    Ns longest = 0;
    drive(
        server, rate / kMean, 100'000,
        [&](const Signal& row) { longest = std::max(longest, row.ts_end - row.ts_features); },
        kStreams);
    CHECK(longest <= 2 * (kAlpha + kBeta * kStreams));
    if (rate == 10.0) CHECK(longest > 1.9 * (kAlpha + kBeta * kStreams));
  }
}

TEST_CASE("conflation ends the spells of FIFO: bounded at any rate where a queue only grows") {
  for (const double rho : {2.0, 20.0}) {
    InferenceServer newest(config_of(Mode::CONFLATE));
    Ns worst = 0;
    drive(newest, rho / kMean, 100'000,
          [&](const Signal& row) { worst = std::max(worst, row.ts_end - row.ts_features); });
    CHECK(worst <= static_cast<Ns>(2 * kMean));
    ServerConfig fifo = config_of(Mode::QUEUE);
    fifo.bound = 100;
    InferenceServer queue(fifo);
    worst = 0;
    drive(queue, rho / kMean, 100'000,
          [&](const Signal& row) { worst = std::max(worst, row.ts_end - row.ts_features); });
    CHECK(worst > static_cast<Ns>(95 * kMean / 2));
    CHECK(worst <= static_cast<Ns>(102 * kMean));
    CHECK(queue.counters().overflowed + queue.counters().services == 100'000);
  }
}

// ---- one row at a time ----

TEST_CASE("a newer row takes the place in line of the older one of its stream") {
  InferenceServer server(config_of(Mode::CONFLATE));
  const auto service = static_cast<Ns>(kMean);
  offer(server, {row_of(0, 10, 1)}, 10);
  CHECK(server.due() == 10 + service);
  offer(server, {row_of(1, 20, 2)}, 20);
  offer(server, {row_of(2, 30, 3)}, 30);
  offer(server, {row_of(1, 40, 4)}, 40);
  offer(server, {row_of(0, 50, 5)}, 50);
  std::vector<Numbers> heard;
  std::vector<Ts> starts;
  while (server.busy()) {
    const auto& rows = server.complete();
    heard.push_back(numbers(rows));
    starts.push_back(rows[0].ts_start);
    CHECK(rows[0].ts_end == rows[0].ts_start + service);
  }
  CHECK(heard == std::vector<Numbers>{{1}, {4}, {3}, {5}});
  CHECK(starts == std::vector<Ts>{10, 10 + service, 10 + 2 * service, 10 + 3 * service});
  CHECK(server.counters().conflated == 1);
  CHECK(server.counters().services == 4);
  CHECK(server.due() == kNever);
  // Waits are counted from the row that was answered.
  CHECK(server.waits().values() ==
        std::vector<Ns>{0, service - 30, 2 * service - 20, 3 * service - 40});
  CHECK(server.services().values() == std::vector<Ns>(4, service));
}

TEST_CASE("two models of one instrument are two streams") {
  InferenceServer server(config_of(Mode::CONFLATE));
  Signal other = row_of(0, 10, 2);
  other.model = 1;
  offer(server, {row_of(0, 10, 0), row_of(0, 10, 1), other}, 10);
  CHECK(server.counters().conflated == 1);  // the first waits as well until all have come
  CHECK(numbers(server.complete()) == Numbers{1});
  CHECK(numbers(server.complete()) == Numbers{2});
}

TEST_CASE("a queue keeps `bound` rows and drops the oldest") {
  ServerConfig config = config_of(Mode::QUEUE);
  config.bound = 2;
  InferenceServer server(config);
  for (std::int64_t i = 0; i < 6; ++i) offer(server, {row_of(0, i, i)}, i);
  CHECK(server.counters().overflowed == 3);
  CHECK(numbers(server.complete()) == Numbers{0});
  CHECK(numbers(server.complete()) == Numbers{4});
  CHECK(numbers(server.complete()) == Numbers{5});
}

TEST_CASE("a row that could not be answered in time is dropped when its service would begin") {
  ServerConfig config = config_of(Mode::DEADLINE);
  config.deadline_ns = static_cast<Ns>(1.5 * kMean);
  const auto service = static_cast<Ns>(kMean), spare = service / 2;
  InferenceServer server(config);
  offer(server, {row_of(0, 0, 1)}, 0);
  offer(server, {row_of(1, 1, 2)}, 1);              // would begin at 1,000,000: too old
  offer(server, {row_of(2, spare, 3)}, spare);      // to the ns in time
  offer(server, {row_of(3, spare - 1, 4)}, spare);  // one ns late
  CHECK(numbers(server.complete()) == Numbers{1});
  CHECK(numbers(server.complete()) == Numbers{3});
  CHECK_FALSE(server.busy());
  CHECK(server.counters().expired == 2);
  CHECK(server.counters().services == 2);
  Signal late = row_of(0, 5 * service, 5);  // the feed alone took too long
  late.ts_event -= service;
  offer(server, {late}, 5 * service);
  CHECK_FALSE(server.busy());
  CHECK(server.counters().expired == 3);
}

TEST_CASE("a deadline expects the median of the samples") {
  ServerConfig config;
  config.mode = Mode::DEADLINE;
  config.deadline_ns = 50;
  config.service = Latency::empirical({10, 40, 900}, 1, 4);
  InferenceServer server(config);
  offer(server, {row_of(0, 0, 1)}, 10);  // 10 + 40 is just in time
  CHECK(server.busy());
  config.service = Latency::empirical({10, 41, 900}, 1, 4);
  InferenceServer slower(config);
  offer(slower, {row_of(0, 0, 1)}, 10);
  CHECK_FALSE(slower.busy());
}

TEST_CASE("skip: of rows that come together an idle server takes what fits, the rest is dropped") {
  ServerConfig config = config_of(Mode::SKIP);
  config.max_batch = 2;
  InferenceServer server(config);
  offer(server, {row_of(0, 0, 0), row_of(1, 0, 1), row_of(2, 0, 2)}, 0);
  offer(server, {row_of(3, 5, 3)}, 5);
  CHECK(numbers(server.complete()) == Numbers{0, 1});
  CHECK_FALSE(server.busy());
  CHECK(server.counters().skipped == 2);
}

TEST_CASE("a batch costs per further row, and per dropped row of the streams that it serves") {
  ServerConfig config;
  config.service = Latency(1'000);
  config.per_item_ns = 100;
  config.per_row_ns = 10;
  config.max_batch = 3;
  InferenceServer server(config);
  offer(server, {row_of(9, 0)}, 0);
  for (int i = 0; i < 4; ++i) offer(server, {row_of(0, 1)}, 1);  // 3 conflated
  for (int i = 0; i < 2; ++i) offer(server, {row_of(1, 2)}, 2);  // 1
  for (InstrumentId i = 2; i < 5; ++i) offer(server, {row_of(i, 3)}, 3);
  CHECK(server.due() == 1'000);
  server.complete();
  CHECK(server.due() == 1'000 + 1'000 + 2 * 100 + 4 * 10);
  const auto& first = server.complete();
  CHECK(first.size() == 3);
  CHECK(first[2].instrument == 2);
  CHECK(first[2].ts_end == 2'240);
  CHECK(server.due() == 2'240 + 1'000 + 100);
  CHECK(server.complete().size() == 2);
  offer(server, {row_of(0, 9'000)}, 9'000);  // what was dropped before has been caught up with
  CHECK(server.due() == 10'000);
}

TEST_CASE("services of one instant draw different samples") {
  ServerConfig config;
  std::vector<Ns> ns(1'000);
  for (std::size_t i = 1; i < ns.size(); i += 2) ns[i] = static_cast<Ns>(i);
  config.mode = Mode::QUEUE;
  config.service = Latency::empirical(ns, 5, 4);  // half of them take no time
  InferenceServer server(config);
  std::vector<Signal> rows(200);
  server.offer(rows, 100);
  const Latency& leg = config.service;
  Ts now = 100;
  std::uint64_t n = 0;
  while (server.busy()) {
    CHECK(server.due() == now + leg.at(now, n));
    n = server.due() == now ? n + 1 : 0;
    now = server.due();
    server.complete();
  }
}

TEST_CASE("a choice of durations stays evenly spread and small") {
  ThinnedNs thinned;
  for (Ns i = 0; i < 1'000'000; ++i) thinned.add(i);
  const auto& values = thinned.values();
  CHECK(values.size() > ThinnedNs::kMost / 2);
  CHECK(values.size() <= ThinnedNs::kMost);
  for (std::size_t i = 0; i < values.size(); ++i) CHECK_EQ(values[i], static_cast<Ns>(16 * i));
}

TEST_CASE("a server that cannot be is refused, its key named") {
  const auto refused = [](auto change, const char* why) {
    ServerConfig config;
    change(config);
    CHECK_THROWS_WITH_AS(InferenceServer{config}, doctest::Contains(why), ConfigError);
  };
  refused([](ServerConfig& c) { c.bound = 0; }, "latency.server.bound is 0");
  refused([](ServerConfig& c) { c.max_batch = 0; }, "latency.server.max_batch is 0");
  refused([](ServerConfig& c) { c.deadline_ns = -1; }, "latency.server.deadline is -1");
  refused([](ServerConfig& c) { c.per_item_ns = -1; }, "latency.server.per_item is -1");
  refused([](ServerConfig& c) { c.per_row_ns = -1; }, "latency.server.per_row is -1");
}

TEST_CASE("a free server waits for company until enough are there or the first has waited enough") {
  ServerConfig config;
  config.service = Latency(1'000);
  config.max_batch = 3;
  config.hold_ns = 500;
  InferenceServer server(config);
  offer(server, {row_of(0, 0)}, 0);
  CHECK(server.due() == 500);
  offer(server, {row_of(0, 100)}, 100);  // a newer row of the stream does not wait longer
  CHECK(server.due() == 500);
  CHECK(server.complete().empty());
  CHECK(server.due() == 1'500);
  offer(server, {row_of(1, 1'200)}, 1'200);
  CHECK(server.complete().size() == 1);  // who came meanwhile has waited 300 of 500
  CHECK(server.due() == 1'700);
  offer(server, {row_of(2, 1'600), row_of(3, 1'600)}, 1'600);  // three: it begins at once
  CHECK(server.due() == 2'600);
  CHECK(server.complete().size() == 3);
  CHECK_FALSE(server.busy());
  CHECK(server.counters().conflated == 1);
}
