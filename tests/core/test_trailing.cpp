/// What stands in front of a network whose scales trail, and how one takes over from another.
#include <doctest/doctest.h>

#include <limits>

#include "errors.hpp"
#include "trailing.hpp"

using namespace hft;

namespace {

constexpr TrailingRule kRule{8'000, 16'000, 0};  // blocks of 1000
const Trails kTrails{kRule, {{10, 0}, {2, 1}, 5}};

struct Rows {
  explicit Rows(const Trails& trails = kTrails) : front(trails) {}
  std::span<const double> see(double a, double b) {
    now += 5;
    row[0] = a;
    row[1] = b;
    return front.see(row, now);
  }
  /// A block of rows about `mean`, one scale off on either side.
  void block(double mean, double scale) {
    for (int i = 0; i < 200; ++i) see(mean + (i % 2 ? scale : -scale), 1);
  }
  TrailingRow front;
  double row[2];
  Ts now = 0;
};

}  // namespace

TEST_CASE("before the first estimate a row is seen as it is, then in the scaler's terms") {
  Rows rows;
  rows.block(100, 4);
  CHECK_EQ(rows.front.scales()->made(), 1);  // its last row, of 1000, begins the next block
  const auto seen = rows.see(104, 1);
  CHECK(seen[0] == doctest::Approx(10 + 2 * 1.0).epsilon(0.01));
  CHECK_EQ(seen[1], 0);  // does not vary: its scale is 1
}

TEST_CASE("a row is scaled by the past alone, and added when it has been answered") {
  Rows one, other;
  one.block(100, 4);
  other.block(100, 4);
  for (int i = 0; i < 1'000; ++i) {
    const double x = 100 + i % 7;
    CHECK_EQ(one.see(x, 1)[0], other.see(x, 1)[0]);
    one.front.rest();  // live; a replay leaves it to the next row
  }
}

TEST_CASE("what is not finite is passed on and leaves no trace") {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  Rows rows, whole;
  for (Rows* r : {&rows, &whole}) r->block(100, 4);
  for (int i = 0; i < 400; ++i) {
    rows.see(i % 3 ? kNaN : -std::numeric_limits<double>::infinity(), 5);
    rows.now -= 5;
    CHECK_EQ(rows.see(90 + i % 11, 2)[0], whole.see(90 + i % 11, 2)[0]);
  }
}

TEST_CASE("one that is to take over reads the estimates that there are") {
  Rows rows;
  const Trails next{kRule, {{0, 0}, {1, 1}, 5}};
  TrailingRow incoming(next, rows.front.scales());
  rows.block(100, 4);
  rows.see(100, 1);
  const std::int64_t made = rows.front.scales()->made();
  const double row[] = {104, 1};
  CHECK(incoming.see(row, rows.now)[0] == doctest::Approx(1).epsilon(0.01));
  CHECK(incoming.see(row, rows.now + 1'000'000)[0] == doctest::Approx(1).epsilon(0.01));
  CHECK_EQ(rows.front.scales()->made(), made);  // it did not lead
  incoming.lead();
  incoming.see(row, rows.now + 9'000);
  CHECK_EQ(rows.front.scales()->made(), made + 1);
}

TEST_CASE("rules are alike or not, and refused when they mean nothing") {
  CHECK(kRule == TrailingRule{8'000, 16'000, 0});
  CHECK_FALSE(kRule == TrailingRule{8'000, 16'000, 3});
  CHECK_THROWS_AS(TrailingScales({0, 1, 0}, 1), ConfigError);
  CHECK_THROWS_AS(TrailingScales({2, 1, 0}, 1), ConfigError);
  CHECK_THROWS_AS(TrailingScales({1, 1001, 0}, 1), ConfigError);
  CHECK_THROWS_AS(TrailingScales({1, 1, -1}, 1), ConfigError);
}
