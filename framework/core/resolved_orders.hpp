/// Order rows that two books read, each at its own time. The first to come to a row resolves it,
/// finding the order by its id, and leaves what the row does to the levels for the other: one table
/// of ids instead of two, which together do not fit the cache.
///
/// Both must read the same rows in the same order. What waits is what lies between them.
#pragma once
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "order_book.hpp"

namespace hft {

class ResolvedOrders {
 public:
  explicit ResolvedOrders(Keeps keeps) : orders(keeps), ring_(1024) {}

  OrderBook orders;  ///< as of the reader that is ahead

  /// Whether this reader (0 or 1) is the first to come to its next row.
  bool leads(int reader) const noexcept {
    return read_[reader] == read_[1 - reader] || ahead_ == reader;
  }

  /// The reader that leads has resolved a row.
  void leave(int reader, std::span<const OrderBook::Change> changes) {
    ahead_ = reader;
    ++read_[reader];
    const std::size_t n = changes.size();
    if (head_ + n + 1 - tail_ > ring_.size()) [[unlikely]]
      grow();
    if (n == 0) put({0, kNothing});
    for (std::size_t i = 0; i < n; ++i) {
      const OrderBook::Change& c = changes[i];
      put({c.key, c.after * 8 + (c.side == SELL ? kAsk : 0) + (i + 1 < n ? kMore : 0) +
                      (c.traded ? kTraded : 0)});
    }
  }

  /// Gives the reader behind what its next row does to the levels: `f(side, key, lots, traded)`.
  template <class F>
  void take(int reader, F&& f) noexcept {
    ++read_[reader];
    for (bool more = true; more;) {
      const Entry e = ring_[tail_++ & (ring_.size() - 1)];
      if (e.word == kNothing) return;
      more = e.word & kMore;
      f(e.word & kAsk ? SELL : BUY, e.key, e.word >> 3, (e.word & kTraded) != 0);
    }
  }

  /// Changes that wait for the reader behind.
  std::size_t waiting() const noexcept { return head_ - tail_; }

 private:
  static constexpr std::int64_t kAsk = 1, kMore = 2, kTraded = 4, kNothing = -1;

  struct Entry {
    std::int64_t key, word;  // word: lots of the level, and three bits
  };

  void put(Entry e) noexcept { ring_[head_++ & (ring_.size() - 1)] = e; }
  void grow() {
    std::vector<Entry> wider(ring_.size() * 2);
    for (std::size_t i = tail_; i != head_; ++i)
      wider[i & (wider.size() - 1)] = ring_[i & (ring_.size() - 1)];
    ring_ = std::move(wider);
  }

  std::vector<Entry> ring_;
  std::size_t head_ = 0, tail_ = 0;
  std::uint64_t read_[2] = {0, 0};
  int ahead_ = 0;
};

}  // namespace hft
