// Scales that trail, on the hot path and beside it: ns a row to see it in the scaler's terms, ns to
// add it to the sums after its answer, ns of the row at which a new estimate is made.
//
//     trailing
#include "trailing.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using hft::Ns;
using hft::Ts;

double ns_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<long>(values.size() / 2));
  return values[values.size() / 2];
}

/// An hour's estimates of a day, a row each 10 ms.
void measure(std::size_t columns) {
  constexpr Ns kHour = 3'600'000'000'000, kRow = 10'000'000;
  constexpr std::size_t kRows = 4'096, kMany = 64, kTurns = 400;
  hft::Trails trails{{kHour, 24 * kHour, 3}, {}};
  trails.scaler.mean.assign(columns, 1);
  trails.scaler.scale.assign(columns, 2);
  hft::TrailingRow front(trails);
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  std::vector<double> rows(kRows * columns);
  for (double& x : rows) x = normal(random);
  const auto row = [&](std::size_t i) {
    return std::span<const double>(rows.data() + i * columns, columns);
  };

  Ts ts = 1'700'000'000'000'000'000;
  std::vector<double> changes;
  for (Ts block = 0; block < 40 * 8; ++block) {  // 40 hours: the memory is full after 24
    for (std::size_t i = 0; i < 200; ++i) {
      front.see(row(i), ts += kRow);
      front.rest();
    }
    ts += kHour / 8 - 200 * kRow;
    const auto made = front.scales()->made();
    const auto start = Clock::now();
    front.see(row(0), ts);
    const double took = ns_since(start);
    if (front.scales()->made() > made && block > 25 * 8) changes.push_back(took);
  }

  std::vector<double> seen, added;
  double sum = 0;
  for (std::size_t turn = 0; turn < kTurns; ++turn) {
    const std::size_t from = turn % (kRows / kMany) * kMany;
    auto start = Clock::now();
    for (std::size_t i = 0; i < kMany; ++i) {
      sum += front.see(row(from + i), ts)[0];
      front.rest();
    }
    const double both = ns_since(start) / kMany;
    start = Clock::now();
    for (std::size_t i = 0; i < kMany; ++i) front.scales()->add(row(from + i).data());
    added.push_back(ns_since(start) / kMany);
    seen.push_back(both - added.back());
  }
  std::printf("%zu %.1f %.1f %.0f %zu %g\n", columns, median(seen), median(added), median(changes),
              changes.size(), sum);
}

}  // namespace

int main() {
  for (const std::size_t columns : {16, 40}) measure(columns);
}
