#include <doctest/doctest.h>

#include <cmath>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "queue.hpp"
#include "rng.hpp"

using namespace hft;

namespace {

constexpr QueueModel kModels[] = {QueueModel::RISK_AVERSE, QueueModel::POWER1, QueueModel::POWER2,
                                  QueueModel::POWER3,      QueueModel::LOG1,   QueueModel::LOG2,
                                  QueueModel::UNIFORM};

Order::Resting behind(double ahead) {
  Order::Resting r;
  r.ahead = ahead;
  r.lots = 1;
  return r;
}

/// Unit events at one price: 40 lots ahead of us, adds 4/s, prints 1/s, cancels 0.04/s a lot, whose
/// distance from the front, as a share of the level, has density n u^(n-1). What share of such
/// queues fills us within 25 s, in truth and as each model tells it from sizes alone?
struct Filled {
  double truth = 0, power3 = 0, power1_1 = 0, power1_2 = 0, risk_averse = 0;
};

Filled simulate(double n, int runs) {
  const Queue models[] = {Queue({QueueModel::POWER3, n}), Queue({QueueModel::POWER1, 1}),
                          Queue({QueueModel::POWER1, 2}), Queue({QueueModel::RISK_AVERSE, 1})};
  double counts[5] = {};
  for (int run = 0; run < runs; ++run) {
    std::uint64_t i = 0;
    const auto uniform = [&] { return draw_uniform(7, static_cast<std::uint64_t>(run), i++); };
    Lots ahead = 40, back = 0;
    Order::Resting told[4] = {behind(40), behind(40), behind(40), behind(40)};
    bool filled[5] = {};
    for (double t = 0;;) {
      const Lots size = ahead + back;
      const double rate = 4 + 1 + 0.04 * static_cast<double>(size);
      t -= std::log(1 - uniform()) / rate;
      if (t > 25) break;
      const double what = uniform() * rate;
      const Ts ts = static_cast<Ts>(t * 1e9);
      if (what < 4) {
        ++back;
        for (int m = 0; m < 4; ++m) models[m].resize(told[m], size, size + 1, ts);
      } else if (what < 5) {
        for (int m = 0; m < 4; ++m) filled[m + 1] |= models[m].print(told[m], 1, 0, ts) > 0;
        filled[0] |= ahead == 0;
        if (ahead > 0) {
          --ahead;
        } else if (back > 0) {
          --back;
        }
        if (size > 0)
          for (int m = 0; m < 4; ++m) models[m].resize(told[m], size, size - 1, ts);
      } else {
        // The share of the level in front of the cancel: u with density n u^(n-1).
        const double u = std::pow(uniform(), 1 / n);
        const bool from_ahead = u * static_cast<double>(size) < static_cast<double>(ahead);
        (from_ahead ? ahead : back) -= 1;
        for (int m = 0; m < 4; ++m) models[m].resize(told[m], size, size - 1, ts + 10'000'000);
      }
    }
    for (int m = 0; m < 5; ++m) counts[m] += filled[m];
  }
  for (double& c : counts) c /= runs;
  return {counts[0], counts[1], counts[2], counts[3], counts[4]};
}

}  // namespace

TEST_CASE("shares of a cancel behind us, by hand") {
  CHECK(Queue({QueueModel::POWER1, 1}).behind(1, 3) == doctest::Approx(0.75));
  CHECK(Queue({QueueModel::POWER1, 2}).behind(1, 3) == doctest::Approx(0.9));
  CHECK(Queue({QueueModel::POWER2, 2}).behind(1, 3) == doctest::Approx(9.0 / 16));
  CHECK(Queue({QueueModel::POWER3, 2}).behind(1, 3) == doctest::Approx(15.0 / 16));
  CHECK(Queue({QueueModel::POWER3, 1}).behind(1, 3) == doctest::Approx(0.75));
  CHECK(Queue({QueueModel::UNIFORM, 9}).behind(1, 3) == doctest::Approx(0.75));
  CHECK(Queue({QueueModel::LOG1, 1}).behind(1, 3) == doctest::Approx(2.0 / 3));
  CHECK(Queue({QueueModel::LOG2, 1}).behind(1, 3) ==
        doctest::Approx(std::log(4.0) / std::log(5.0)));
  CHECK(Queue({QueueModel::RISK_AVERSE, 1}).behind(1, 3) == 1);
  for (const QueueModel model : kModels) CHECK(Queue({model, 2}).behind(0, 0) == 1);
}

TEST_CASE("a print takes from the front and gives us what is left of it") {
  const Queue queue;
  auto r = behind(10);
  CHECK(queue.print(r, 4, 0, 0) == 0);
  CHECK(r.ahead == 6);
  CHECK(queue.print(r, 6, 0, 0) == 0);  // reaches us exactly
  CHECK(queue.print(r, 3, 0, 0) == 3);
  auto second = behind(10);
  CHECK(queue.print(second, 14, 3, 0) == 1);  // an earlier order of ours took 3 of it
}

TEST_CASE("a print and the rows that show it count once, a later shrink is a cancel") {
  const Queue queue({QueueModel::UNIFORM, 1});
  auto r = behind(20);
  queue.print(r, 10, 0, 100);
  queue.resize(r, 30, 25, 100);
  queue.resize(r, 25, 20, 200'000);
  CHECK(r.ahead == 10);
  queue.resize(r, 20, 10, 300'000);  // 10 cancelled, half of 20 are ahead of us
  CHECK(r.ahead == doctest::Approx(5));

  auto slow = behind(20);  // a feed that shows the print 100 ms later
  queue.print(slow, 10, 0, 0);
  queue.resize(slow, 30, 20, 100'000'000);
  CHECK(slow.ahead == 10);
}

TEST_CASE("ahead is never negative and never more than is displayed, whatever the model") {
  for (const QueueModel model : kModels)
    for (const double n : {0.3, 0.5, 1.0, 2.0, 3.0, 4.5}) {
      const Queue queue({model, n});
      for (std::uint64_t run = 0; run < 60; ++run) {
        Lots size = 1 + static_cast<Lots>(draw_bits(1, 0, run) % 100);
        auto r = behind(static_cast<double>(size));
        for (std::uint64_t i = 0; i < 60; ++i) {
          const auto draw = draw_bits(2, run, i);
          const Ts ts = static_cast<Ts>(i) * 700'000;
          if (draw % 4 == 0) {
            const Lots lots = static_cast<Lots>(draw / 8 % 40);
            const Lots reached = queue.print(r, lots, 0, ts);
            CHECK(reached >= 0);
            CHECK(reached <= lots);
          }
          const Lots after = static_cast<Lots>(draw / 1024 % 100);
          const double before_ahead = r.ahead;
          queue.resize(r, size, after, ts);
          size = after;
          CHECK(r.ahead >= 0);
          CHECK(r.ahead <= static_cast<double>(size));
          CHECK(r.ahead <= before_ahead);  // nobody overtakes us
        }
      }
    }
}

TEST_CASE(
    "the overdraw of log and n < 1: a level that vanishes leaves nobody ahead, not fewer than "
    "nobody") {
  for (const QueueModel model : {QueueModel::LOG1, QueueModel::POWER1}) {
    const Queue queue({model, 0.5});
    auto r = behind(1);
    queue.resize(r, 100, 0, 0);
    CHECK(r.ahead == 0);
    CHECK(queue.print(r, 1, 0, 10'000'000) == 1);
  }
}

TEST_CASE("nobody fills before the front of the queue, or after the risk-averse") {
  for (const QueueModel model : kModels)
    for (const bool draws : {false, true})
      for (std::uint64_t run = 0; run < 20; ++run) {
        const Queue queue(QueueConfig{model, 2, draws}), averse({QueueModel::RISK_AVERSE, 2});
        auto any = behind(50), last = behind(50), first = behind(0);
        Lots size = 80, filled = 0, averse_filled = 0, front_filled = 0;
        for (std::int64_t i = 0; i < 100; ++i) {
          const auto draw = draw_bits(3, run, static_cast<std::uint64_t>(i));
          const Ts ts = i * 2'000'000;
          if (draw % 4 == 0) {
            const Lots lots = 1 + static_cast<Lots>(draw / 4 % 6);
            filled += queue.print(any, lots, 0, ts);
            averse_filled += averse.print(last, lots, 0, ts);
            front_filled += queue.print(first, lots, 0, ts);
          }
          const Lots after = std::max<Lots>(0, size + static_cast<Lots>(draw / 64 % 9) - 5);
          const double place = Queue::draw(run, 0, i);
          queue.resize(any, size, after, ts, place);
          averse.resize(last, size, after, ts);
          queue.resize(first, size, after, ts, place);
          size = after;
          CHECK(any.ahead <= last.ahead + 1e-9);
          CHECK(first.ahead == 0);
          CHECK(averse_filled <= filled);
          CHECK(filled <= front_filled);
        }
        CHECK(front_filled > averse_filled);
      }
}

TEST_CASE("with nobody behind us every model knows its place, and fills as the closed form says") {
  // Prints of one lot at rate 1, each lot ahead is cancelled at rate 0.05, and the price leaves at
  // rate 0.05 (execution.md 2.4): chance of a fill, mean and variance of its time.
  constexpr int kAhead = 20, kRuns = 20'000;
  constexpr double kCancels = 0.05, kLeaves = 0.05;
  double chance = 1, mean = 0, variance = 0;
  for (int k = 0; k <= kAhead; ++k) {
    const double rate = 1 + k * kCancels;
    chance *= rate / (rate + kLeaves);
    mean += 1 / rate;
    variance += 1 / (rate * rate);
  }
  CHECK(chance == doctest::Approx(0.4878).epsilon(1e-4));
  CHECK(mean == doctest::Approx(14.616).epsilon(1e-4));
  CHECK(variance == doctest::Approx(10.632).epsilon(1e-4));
  double sum = 0, squares = 0, filled = 0;
  bool same = true;
  for (std::uint64_t run = 0; run < kRuns; ++run) {
    const Queue queue(QueueConfig{kModels[run % std::size(kModels)],
                                  0.5 + static_cast<double>(run % 4), run % 2 == 1});
    std::uint64_t i = 0;
    const auto exponential = [&] { return -std::log1p(-draw_uniform(13, run, i++)); };
    auto r = behind(kAhead);
    double t = 0;
    for (Lots ahead = kAhead;;) {
      const double rate = 1 + kCancels * static_cast<double>(ahead);
      t += exponential() / rate;
      const Ts ts = static_cast<Ts>(t * 1e9);
      if (draw_uniform(13, run, i++) * rate < 1 && queue.print(r, 1, 0, ts) > 0) break;
      same = same && ahead > 0;  // with nobody left ahead a print is ours
      queue.resize(r, ahead, ahead - 1, ts, 0.999);
      same = same && r.ahead == static_cast<double>(--ahead);
      if (!same) break;
    }
    REQUIRE(same);
    sum += t;
    squares += t * t;
    filled += t < exponential() / kLeaves;
  }
  const double found = sum / kRuns, spread = squares / kRuns - found * found;
  CHECK(std::abs(filled / kRuns - chance) < 3 * std::sqrt(chance * (1 - chance) / kRuns));
  CHECK(std::abs(found - mean) < 3 * std::sqrt(variance / kRuns));
  CHECK(spread == doctest::Approx(variance).epsilon(0.04));  // 3 standard errors
}

TEST_CASE("the uniform model errs by nothing in the mean where cancels are uniform, only there") {
  const auto error = [](double n) {  // of what is ahead, over runs: mean and its standard error
    constexpr int kRuns = 4'000;
    const Queue queue({QueueModel::UNIFORM, 1});
    double sum = 0, squares = 0;
    for (std::uint64_t run = 0; run < kRuns; ++run) {
      auto r = behind(30);
      Lots ahead = 30, size = 60;
      for (std::int64_t i = 0; i < 45; ++i) {
        const Ts ts = i * 2'000'000;
        const Lots before = size;
        if (i % 9 == 4) {
          queue.print(r, 1, 0, ts);
          --ahead, --size;
        } else if (i % 5 == 0) {
          ++size;
        } else {
          const double u = draw_uniform(17, run, static_cast<std::uint64_t>(i));
          ahead -= std::pow(u, 1 / n) * static_cast<double>(size) < static_cast<double>(ahead);
          --size;
        }
        queue.resize(r, before, size, ts);
      }
      const double miss = r.ahead - static_cast<double>(ahead);
      sum += miss;
      squares += miss * miss;
    }
    const double mean = sum / kRuns;
    return std::pair{mean, std::sqrt((squares / kRuns - mean * mean) / kRuns)};
  };
  const auto [uniform, its_noise] = error(1);
  CHECK(std::abs(uniform) < 3 * its_noise);
  CHECK(its_noise < 0.1);
  const auto [from_the_back, noise] = error(2);
  CHECK(from_the_back < -30 * noise);
}

TEST_CASE("a cancel told in parts moves the place as the whole does, or nearly") {
  const auto told = [](double n, Lots ahead, Lots cancelled, Lots step) {
    const Queue queue({QueueModel::POWER3, n});
    auto r = behind(static_cast<double>(ahead));
    for (Lots size = 1'000; size > 1'000 - cancelled; size -= step)
      queue.resize(r, size, size - step, (1'000 - size) * 2'000'000);
    return r.ahead;
  };
  for (const double n : {0.5, 1.0, 2.0, 4.0})
    for (Lots ahead = 50; ahead < 1'000; ahead += 50)
      for (const Lots cancelled : {20, 100}) {
        const double drift = told(n, ahead, cancelled, cancelled) - told(n, ahead, cancelled, 1);
        CAPTURE(n);
        CAPTURE(ahead);
        const double whole = static_cast<double>(cancelled);
        // To second order cancelled^2 / (2 size) times n x^n (1 - x^(n - 1)), x the share ahead.
        const double x = static_cast<double>(ahead) / 1'000;
        const double law = whole * whole / 2'000 * n * std::pow(x, n) * (1 - std::pow(x, n - 1));
        CHECK(std::abs(drift) <= 0.045 * whole);
        CHECK(std::abs(drift - law) <= 0.15 * std::abs(law) + 0.02 * whole / 20 + 1e-9);
        if (n == 1) CHECK(std::abs(drift) < 1e-9);
      }
}

TEST_CASE(
    "power3 is the truth under its own law of cancels, the others are not (execution.md 2.3)") {
  struct {
    double n, truth, power3, power1_1, power1_2, averse;
  } const table[] = {{1, .563, .560, .560, .345, .004},
                     {2, .138, .123, .556, .333, .003},
                     {4, .030, .027, .557, .341, .003}};
  for (const auto& row : table) {
    CAPTURE(row.n);
    const Filled f = simulate(row.n, 4'000);
    constexpr double kNoise = 0.03;  // three standard errors of 4,000 runs
    CHECK(std::abs(f.truth - row.truth) < kNoise);
    CHECK(std::abs(f.power3 - row.power3) < kNoise);
    CHECK(std::abs(f.power1_1 - row.power1_1) < kNoise);
    CHECK(std::abs(f.power1_2 - row.power1_2) < kNoise);
    CHECK(std::abs(f.risk_averse - row.averse) < kNoise);
  }
}

TEST_CASE("drawn cancels lie wholly on one side of us, before us as often as the model says") {
  QueueConfig config{QueueModel::POWER3, 2, true};
  const Queue queue(config);
  int before = 0;
  constexpr int kRows = 4'000;
  for (std::int64_t row = 0; row < kRows; ++row) {
    auto r = behind(30);
    queue.resize(r, 100, 90, 0, Queue::draw(5, 2, row));
    CHECK((r.ahead == 20 || r.ahead == 30));
    before += r.ahead == 20;
  }
  const double p = 1 - queue.behind(30, 70);
  CHECK(std::abs(before / double{kRows} - p) < 3 * std::sqrt(p * (1 - p) / kRows));
}

TEST_CASE("a drawn cancel is in one place for all of our orders, and fits where it lies") {
  const Queue queue(QueueConfig{QueueModel::UNIFORM, 1, true});
  for (std::int64_t row = 0; row < 500; ++row) {
    auto front = behind(20), back = behind(60), small = behind(3), last = behind(95);
    const double place = Queue::draw(5, 2, row);
    for (auto* r : {&front, &back, &small, &last}) queue.resize(*r, 100, 90, 0, place);
    CHECK((front.ahead == 20 || back.ahead == 50));  // before the first is before the second too
    CHECK((small.ahead == 3 || small.ahead == 0));
    CHECK((last.ahead == 85 || last.ahead == 90));  // five behind at most
  }
}
