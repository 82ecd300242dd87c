// Books of orders over a feed told order by order: ours against lists in a std::map with the ids in
// a std::unordered_map, and two of ours on two clocks, each with its own orders or sharing them.
// The sum of the touch after each row must agree.
//
//     orders ROWS.bin
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <list>
#include <map>
#include <unordered_map>
#include <vector>

#include "book.hpp"

namespace {

using hft::Event;
using hft::Kind;

std::uint64_t touch(std::int64_t bid, std::int64_t ask) {
  return static_cast<std::uint64_t>(bid) * 3 + static_cast<std::uint64_t>(ask);
}

class Textbook {
 public:
  std::uint64_t apply(const Event& e) {
    if (e.kind == Kind::ADD) {
      auto& queue = sides_[hft::side_index(e.side)][e.price * e.side];
      queue.push_back({e.order_id, e.qty});
      ids_[e.order_id] = {e.side, e.price * e.side, std::prev(queue.end())};
    } else if (e.kind == Kind::MODIFY) {
      ids_.at(e.order_id).order->lots = e.qty;  // this feed only makes orders smaller
    } else if (e.kind == Kind::CANCEL) {
      const auto at = ids_.find(e.order_id);
      auto& side = sides_[hft::side_index(at->second.side)];
      const auto level = side.find(at->second.key);
      level->second.erase(at->second.order);
      if (level->second.empty()) side.erase(level);
      ids_.erase(at);
    }
    return touch(best(0), -best(1));
  }

 private:
  struct Order {
    std::int64_t id;
    hft::Lots lots;
  };
  struct Place {
    int side;
    std::int64_t key;
    std::list<Order>::iterator order;
  };
  std::int64_t best(int s) const { return sides_[s].empty() ? 0 : sides_[s].begin()->first; }

  std::map<std::int64_t, std::list<Order>, std::greater<>> sides_[2];
  std::unordered_map<std::int64_t, Place> ids_;
};

std::uint64_t of(const hft::Book& book) {
  return touch(book.has_bid() ? book.bid() : 0, book.has_ask() ? book.ask() : 0);
}

struct Ours {
  hft::Book book;
  std::uint64_t apply(const Event& e) {
    book.apply(e);
    return of(book);
  }
};

/// The fastest of five passes in ns a row, and what they summed up to.
template <class Pass>
double fastest(const std::vector<Event>& rows, std::uint64_t& sum, Pass&& pass) {
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto began = std::chrono::steady_clock::now();
    sum = pass();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - began;
    best = std::min(best, took.count() / static_cast<double>(rows.size()));
  }
  return best;
}

template <class Side>
std::uint64_t one(const std::vector<Event>& rows) {
  Side side;
  std::uint64_t sum = 0;
  for (const Event& e : rows) sum += side.apply(e);
  return sum;
}

/// The venue's book runs 100 ms ahead, then ours follows, as in a replay.
std::uint64_t two(const std::vector<Event>& rows, bool shared) {
  hft::Book venue, ours;
  if (shared) venue.lead(ours);
  std::uint64_t sum = 0;
  auto ahead = rows.begin(), behind = rows.begin();
  for (hft::Ts now = rows.front().ts_event; behind != rows.end();) {
    now += 100'000'000;
    for (; ahead != rows.end() && ahead->ts_event <= now; ++ahead) venue.apply(*ahead);
    for (; behind != rows.end() && behind->ts_recv <= now; ++behind) {
      ours.apply(*behind);
      sum += of(ours);
    }
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: orders ROWS.bin\n"), 2;
  std::ifstream file(argv[1], std::ios::binary | std::ios::ate);
  std::vector<Event> rows(static_cast<std::size_t>(file.tellg()) / sizeof(Event));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(rows.data()),
            static_cast<std::streamsize>(rows.size() * sizeof(Event)));
  std::uint64_t sums[4];
  const double ours = fastest(rows, sums[0], [&] { return one<Ours>(rows); });
  const double textbook = fastest(rows, sums[1], [&] { return one<Textbook>(rows); });
  const double apart = fastest(rows, sums[2], [&] { return two(rows, false); });
  const double shared = fastest(rows, sums[3], [&] { return two(rows, true); });
  for (const std::uint64_t sum : sums)
    if (sum != sums[0]) return std::fprintf(stderr, "the books differ\n"), 1;
  std::printf("%zu %.1f %.1f %.1f %.1f\n", rows.size(), ours, textbook, apart, shared);
}
