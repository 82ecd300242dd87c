#include <doctest/doctest.h>

#include <map>

#include "book.hpp"
#include "rng.hpp"

using namespace hft;

namespace {

/// The same side as an ordered map.
struct Twin {
  std::map<std::int64_t, Lots> levels;

  Lots set(std::int64_t key, Lots lots) {
    const auto it = levels.find(key);
    const Lots before = it == levels.end() ? 0 : it->second;
    if (lots != 0) levels[key] = lots;
    if (lots == 0) levels.erase(key);
    return before;
  }
  std::int64_t best() const { return levels.empty() ? kNoKey : levels.rbegin()->first; }
  std::int64_t next(std::int64_t key) const {
    auto it = levels.lower_bound(key);
    return it == levels.begin() ? kNoKey : std::prev(it)->first;
  }
};

void same(const Ladder& ladder, const Twin& twin) {
  REQUIRE(ladder.best() == twin.best());
  std::int64_t a = ladder.best();
  for (auto it = twin.levels.rbegin(); it != twin.levels.rend(); ++it, a = ladder.next(a)) {
    REQUIRE(a == it->first);
    REQUIRE(ladder.at(a) == it->second);
  }
  REQUIRE(a == kNoKey);
  std::map<std::int64_t, Lots> all;
  ladder.for_each([&](std::int64_t key, Lots lots) { all[key] = lots; });
  REQUIRE(all == twin.levels);
}

/// A walk of the mid that now and then jumps, with levels near, far and very far from it.
void walk(std::uint64_t seed, int sign, std::int64_t jump) {
  Ladder ladder(9);
  Twin twin;
  std::int64_t mid = sign * 50'000;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const auto draw = [&](std::uint64_t stream) { return draw_bits(seed, stream, i); };
    if (draw(0) % 200 == 0) mid += static_cast<std::int64_t>(draw(1) % 2'001) - 1'000;
    if (draw(0) % 3'000 == 1) mid += (draw(1) & 1) != 0 ? jump : -jump;
    const std::uint64_t reach = draw(2) % 10 < 7 ? 40 : draw(2) % 10 < 9 ? 3'000 : 400'000;
    const std::int64_t key = mid - static_cast<std::int64_t>(draw(3) % reach);
    const Lots lots = draw(4) % 3 == 0 ? 0 : static_cast<Lots>(draw(5) % 100);
    REQUIRE(ladder.set(key, lots) == twin.set(key, lots));
    REQUIRE(ladder.best() == twin.best());
    if (draw(6) % 50 == 0) {  // the best goes, as in a sweep
      for (int k = 0; k < 5 && twin.best() != kNoKey; ++k) {
        const std::int64_t best = twin.best();
        REQUIRE(ladder.set(best, 0) == twin.set(best, 0));
      }
    }
    const std::int64_t probe = mid - static_cast<std::int64_t>(draw(7) % 5'000) + 500;
    REQUIRE(ladder.at(probe) == (twin.levels.count(probe) != 0 ? twin.levels[probe] : 0));
    REQUIRE(ladder.next(probe) == twin.next(probe));
    if (i % 2'000 == 0) same(ladder, twin);
    if (draw(8) % 9'000 == 0) {
      ladder.clear();
      twin.levels.clear();
    }
  }
  same(ladder, twin);
}

}  // namespace

TEST_CASE("a ladder is an ordered map of levels") {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    CAPTURE(seed);
    walk(seed, 1, 5'000);
    walk(seed, -1, 5'000);         // asks: their keys are negative
    walk(seed + 100, 1, 900'000);  // beyond any window
  }
}

TEST_CASE("levels removed from outside the window to empty leave nothing") {
  Ladder ladder;
  for (std::int64_t key = 0; key < 100'000; key += 97) ladder.set(key, 1);
  for (std::int64_t key = 0; key < 100'000; key += 97) CHECK(ladder.set(key, 0) == 1);
  CHECK(ladder.best() == kNoKey);
  CHECK(ladder.next(1'000'000) == kNoKey);
}

TEST_CASE("removing what is not there changes nothing") {
  Ladder ladder;
  CHECK(ladder.set(5, 0) == 0);
  CHECK(ladder.set(5'000'000, 0) == 0);
  CHECK(ladder.best() == kNoKey);
  ladder.set(7, 3);
  CHECK(ladder.set(6, 0) == 0);
  CHECK(ladder.best() == 7);
}

TEST_CASE("hot levels stay hot while the window moves over them") {
  Ladder ladder(9);
  ladder.set(1'000, 5);
  ladder.heat(1'000);
  ladder.heat(400);
  CHECK(ladder.hot(1'000));
  CHECK(ladder.hot(400));
  CHECK_FALSE(ladder.hot(999));
  ladder.set(100'000, 1);  // the window leaves
  CHECK(ladder.hot(1'000));
  CHECK(ladder.hot(400));
  CHECK_FALSE(ladder.hot(1'000 + 512));  // the same slot of the ring
  CHECK_FALSE(ladder.hot(100'000));
  ladder.cool(1'000);
  ladder.set(100'000, 0);  // and comes back
  CHECK(ladder.best() == 1'000);
  CHECK_FALSE(ladder.hot(1'000));
  CHECK(ladder.hot(400));
}
