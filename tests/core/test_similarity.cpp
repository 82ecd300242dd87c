#include <doctest/doctest.h>

#include <limits>

#include "errors.hpp"
#include "similarity.hpp"

using namespace hft;

namespace {

constexpr Ns kMs = 1'000'000;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Two inputs as they come, two classes; sensitivity 1, so a margin of 0.4 bears a distance of 0.2.
ReuseRule rule() {
  ReuseRule r;
  r.scaler = {{0, 0}, {1, 1}, 10};
  r.classes = 2;
  r.sensitivity = 1;
  r.epsilon = 0.5;
  r.shadow = 0;
  return r;
}

/// A stream whose rows lie a microsecond apart.
struct Stream {
  explicit Stream(const ReuseRule& r) : cache(r, 7, 0, 0) {}
  bool look(double a, double b, int side = 1) {
    const double row[] = {a, b};
    now += 1000;
    return cache.answers(row, side, now, now);
  }
  Signal ask(float down, float up) {
    Signal s;
    s.outputs = {down, up};
    cache.ask(s);
    cache.said(s);
    return s;
  }
  void compute(double a, double b, float down, float up) {
    REQUIRE_FALSE(look(a, b));
    cache.publish(ask(down, up), now);
  }
  const ReuseSecond& counts() const { return cache.seconds().back(); }
  SimilarityCache cache;
  Ts now = 0;
};

}  // namespace

TEST_CASE("a row that is near enough gets the answer of the one before") {
  Stream s(rule());
  s.compute(1, 1, 0.3f, 0.7f);
  CHECK(s.look(1.15, 0.9));
  CHECK_EQ(s.cache.outputs(), std::vector<float>{0.3f, 0.7f});
  CHECK_FALSE(s.look(1.25, 1));  // farther than the margin bears
  CHECK_EQ(s.counts().unsure, 1);
  CHECK_FALSE(s.look(1.6, 1));  // farther than epsilon
  CHECK_EQ(s.counts().far, 1);
  CHECK_FALSE(s.look(1, 1, -1));
  CHECK_FALSE(s.look(1, 1, 0));  // neither side is the other one of both
  CHECK_EQ(s.counts().side, 2);
}

TEST_CASE("numbers that are none are never reused, and give none to reuse") {
  Stream s(rule());
  s.compute(1, kNaN, 0.0f, 1.0f);
  CHECK_FALSE(s.look(1, kNaN));
  s.cache.publish(s.ask(0.0f, static_cast<float>(kNaN)), s.now);
  CHECK_FALSE(s.look(1, kNaN));
  s.compute(1, 1, static_cast<float>(kNaN), static_cast<float>(kNaN));
  CHECK_FALSE(s.look(1, 1));
  CHECK_EQ(s.counts().reused, 0);
}

TEST_CASE("inputs are compared as the model sees them, clamped") {
  Stream s(rule());
  s.compute(1e9, 1, 0.0f, 1.0f);
  CHECK_FALSE(s.look(-1e9, 1));
  CHECK(s.look(2e12, 1));
  CHECK_FALSE(s.look(std::numeric_limits<double>::infinity(), 1));  // a network answers with NaN
}

TEST_CASE("while an answer is under way nothing is reused; a lost one is none") {
  Stream s(rule());
  s.compute(1, 1, 0.0f, 1.0f);
  CHECK_FALSE(s.look(9, 9));
  const Signal lost = s.ask(1.0f, 0.0f);
  CHECK_FALSE(s.look(1, 1));
  CHECK_EQ(s.counts().under_way, 1);
  s.cache.drop(lost);
  CHECK(s.look(1, 1));
  CHECK_EQ(s.cache.outputs(), std::vector<float>{0.0f, 1.0f});
}

TEST_CASE("nothing that was said or asked before a gap counts after it") {
  Stream s(rule());
  s.compute(1, 1, 0.0f, 1.0f);
  CHECK_FALSE(s.look(9, 9));
  const Signal late = s.ask(1.0f, 0.0f);
  s.cache.reset();
  CHECK_FALSE(s.look(1, 1));
  CHECK_EQ(s.counts().no_answer, 2);
  s.cache.publish(late, s.now);
  CHECK_FALSE(s.look(9, 9));
}

TEST_CASE("age counts from the computed row, and so does the number of reuses") {
  ReuseRule r = rule();
  r.max_age_ns = kMs;
  r.max_reuse = 2;
  Stream s(r);
  s.compute(1, 1, 0.0f, 1.0f);
  CHECK(s.look(1, 1));
  CHECK(s.look(1, 1));
  CHECK_FALSE(s.look(1, 1));
  s.cache.publish(s.ask(0.0f, 1.0f), s.now);
  s.now += kMs - 1000;
  CHECK(s.look(1, 1));
  CHECK_FALSE(s.look(1, 1));
  CHECK_EQ(s.counts().too_old, 1);
}

TEST_CASE("shadows that disagree turn it off, and it starts afresh") {
  ReuseRule r = rule();
  r.shadow = 1;
  r.budget = 0.1;
  r.pause_ns = kMs;
  r.max_age_ns = 1000 * kMs;
  Stream s(r);
  s.compute(1, 1, 0.0f, 1.0f);
  const auto shadow = [&](bool differs) {
    REQUIRE_FALSE(s.look(1, 1));
    const bool up = s.cache.outputs()[1] > 0.5f;
    s.cache.publish(up != differs ? s.ask(0.0f, 1.0f) : s.ask(1.0f, 0.0f), s.now);
  };
  for (int i = 0; i < 15; ++i) shadow(true);
  CHECK_EQ(s.counts().trips, 0);  // too few to judge by
  shadow(false);
  CHECK_EQ(s.counts().trips, 1);
  CHECK_EQ(s.counts().compared, 16);
  CHECK_FALSE(s.look(1, 1));
  CHECK_EQ(s.counts().off, 1);
  s.now += kMs;
  for (int i = 0; i < 300; ++i) shadow(false);
  for (int i = 0; i < 25; ++i) shadow(true);  // 25 of the last 256 are within a tenth
  CHECK_EQ(s.counts().trips, 1);
  shadow(true);
  CHECK_EQ(s.counts().trips, 2);
  CHECK_EQ(s.counts().disagreed, 15 + 26);
}

TEST_CASE("of a window every row is compared, once it is full") {
  ReuseRule r = rule();
  r.window_rows = 2;
  Stream s(r);
  s.compute(1, 1, 0.0f, 1.0f);
  CHECK_FALSE(s.look(1, 1));  // that answer was of half a window
  CHECK_EQ(s.counts().no_answer, 2);
  s.cache.publish(s.ask(0.0f, 1.0f), s.now);
  CHECK(s.look(1, 1));
  CHECK_FALSE(s.look(3, 1));
  CHECK_FALSE(s.look(1, 1));  // the row before is far yet
  CHECK(s.look(1, 1));
}

TEST_CASE("where another network takes over nothing of the old one counts") {
  Stream s(rule());
  s.compute(1, 1, 0.0f, 1.0f);
  s.cache.follow(rule());
  CHECK_FALSE(s.look(1, 1));
  s.cache.publish(s.ask(1.0f, 0.0f), s.now);
  CHECK(s.look(1, 1));
  s.cache.follow(std::nullopt);
  s.now += 1'000'000 * kMs;
  CHECK_FALSE(s.look(1, 1));
  CHECK_EQ(s.counts().off, 1);
}

TEST_CASE("a rule that cannot be meant is refused by name") {
  ReuseRule r = rule();
  r.sensitivity = 0;
  CHECK_THROWS_WITH_AS(SimilarityCache(r, 1, 0, 0),
                       "reuse.sensitivity is 0.000000, want more than 0", ConfigError);
}
