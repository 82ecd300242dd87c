// The bare book: a ladder a side against std::map and std::unordered_map a side, over the LEVEL
// rows of a file of events. Each keeps its best, and the sum of bests must agree.
//
//     book ROWS.bin
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

#include "event.hpp"
#include "ladder.hpp"

namespace {

using hft::Event;
using hft::kNoKey;
using hft::Lots;

/// A tree a side, best first.
class TreeSide {
 public:
  void set(std::int64_t key, Lots lots) {
    if (lots == 0) {
      levels_.erase(key);
    } else {
      levels_[key] = lots;
    }
  }
  std::int64_t best() const { return levels_.empty() ? kNoKey : levels_.begin()->first; }

 private:
  std::map<std::int64_t, Lots, std::greater<>> levels_;
};

/// A hash table a side; a lost best is looked for tick by tick, as the peer's default book does.
class HashSide {
 public:
  void set(std::int64_t key, Lots lots) {
    if (lots != 0) {
      levels_[key] = lots;
      best_ = std::max(best_, key);
      lowest_ = std::min(lowest_, key);
      return;
    }
    levels_.erase(key);
    if (key != best_) return;
    while (best_ >= lowest_ && !levels_.contains(best_)) --best_;
    if (best_ < lowest_) best_ = kNoKey;
  }
  std::int64_t best() const { return best_; }

 private:
  std::unordered_map<std::int64_t, Lots> levels_;
  std::int64_t best_ = kNoKey, lowest_ = hft::kNever;
};

std::vector<Event> levels_of(const char* path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::vector<Event> rows(static_cast<std::size_t>(file.tellg()) / sizeof(Event));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(rows.data()),
            static_cast<std::streamsize>(rows.size() * sizeof(Event)));
  std::erase_if(rows, [](const Event& e) { return e.kind != hft::Kind::LEVEL; });
  return rows;
}

/// Sum of all bests, and the fastest of five passes in ns a row.
template <class Side>
std::pair<std::int64_t, double> measure(const std::vector<Event>& rows) {
  double fastest = 1e9;
  std::uint64_t sum = 0;
  for (int pass = 0; pass < 5; ++pass) {
    Side sides[2];
    sum = 0;
    const auto began = std::chrono::steady_clock::now();
    for (const Event& e : rows) {
      Side& side = sides[hft::side_index(e.side)];
      side.set(e.price * e.side, e.qty);
      sum += static_cast<std::uint64_t>(side.best());
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - began;
    fastest = std::min(fastest, took.count() / static_cast<double>(rows.size()));
  }
  return {static_cast<std::int64_t>(sum), fastest};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: book ROWS.bin\n"), 2;
  const auto rows = levels_of(argv[1]);
  const auto ladder = measure<hft::Ladder>(rows);
  const auto tree = measure<TreeSide>(rows), hash = measure<HashSide>(rows);
  if (tree.first != ladder.first || hash.first != ladder.first)
    return std::fprintf(stderr, "the books differ: %ld, %ld, %ld\n", ladder.first, tree.first,
                        hash.first),
           1;
  std::printf("%zu %.2f %.2f %.2f\n", rows.size(), ladder.second, tree.second, hash.second);
}
