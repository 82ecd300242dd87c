/// One side of a price-level book, keyed so that the best level has the largest key
/// (`key = price * side`).
///
/// Levels near the touch live in a ring of 2^k lots indexed by `key & mask`, with one occupancy bit
/// a level: read, write and "next best" are O(1) there, and moving the window copies only what
/// leaves or enters it. Everything else lives in an open-addressing table. Slow: walking beyond the
/// window (a scan of the table a level), and moving the window (a scan of the table). On a real
/// BTCUSDT feed 41 % of the rows lie more than 1,024 ticks away, so the far store counts as much as
/// the window: std::map for all levels costs nine times as much a row there, and ten times on a
/// feed that stays near the touch (tests/bench/book.py). The window starts small, since 256
/// instruments share a cache, and doubles while too many rows miss it.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "types.hpp"

namespace hft {

inline constexpr std::int64_t kNoKey = std::numeric_limits<std::int64_t>::min();

/// Open addressing, linear probing, backward-shift delete: lots by key, for levels outside the
/// window.
class FarLevels {
 public:
  FarLevels() : keys_(64, kNoKey), lots_(64) {}

  Lots at(std::int64_t key) const noexcept {
    for (std::size_t i = home(key);; i = (i + 1) & mask()) {
      if (keys_[i] == key) return lots_[i];
      if (keys_[i] == kNoKey) return 0;
    }
  }

  /// Sets a level (0 removes it); returns what was there.
  Lots set(std::int64_t key, Lots lots) {
    std::size_t i = home(key);
    while (keys_[i] != key && keys_[i] != kNoKey) i = (i + 1) & mask();
    if (keys_[i] == key) {
      const Lots before = lots_[i];
      if (lots != 0) {
        lots_[i] = lots;
      } else {
        erase(i);
      }
      return before;
    }
    if (lots != 0) {
      keys_[i] = key;
      lots_[i] = lots;
      if (++size_ * 2 > keys_.size()) grow();
    }
    return 0;
  }

  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }

  /// Largest key not above `limit`; kNoKey when there is none. A scan.
  std::int64_t best_at_or_below(std::int64_t limit) const noexcept {
    std::int64_t best = kNoKey;
    for (const std::int64_t key : keys_)
      if (key <= limit && key > best) best = key;
    return best;
  }

  template <class F>
  void for_each(F&& f) const {
    for (std::size_t i = 0; i < keys_.size(); ++i)
      if (keys_[i] != kNoKey) f(keys_[i], lots_[i]);
  }

  void clear() {
    keys_.assign(64, kNoKey);
    lots_.assign(64, 0);
    size_ = 0;
  }

 private:
  std::size_t mask() const noexcept { return keys_.size() - 1; }
  std::size_t home(std::int64_t key) const noexcept {
    return (static_cast<std::uint64_t>(key) * 0x9e3779b97f4a7c15ULL >> 20) & mask();
  }
  void erase(std::size_t hole) noexcept {
    for (std::size_t i = (hole + 1) & mask(); keys_[i] != kNoKey; i = (i + 1) & mask()) {
      const std::size_t reach = (i - home(keys_[i])) & mask();
      if (reach >= ((i - hole) & mask())) {
        keys_[hole] = keys_[i];
        lots_[hole] = lots_[i];
        hole = i;
      }
    }
    keys_[hole] = kNoKey;
    --size_;
  }
  void grow() {
    FarLevels wider;
    wider.keys_.assign(keys_.size() * 2, kNoKey);
    wider.lots_.assign(keys_.size() * 2, 0);
    for_each([&](std::int64_t key, Lots lots) { wider.set(key, lots); });
    *this = std::move(wider);
  }

  std::vector<std::int64_t> keys_;
  std::vector<Lots> lots_;
  std::size_t size_ = 0;
};

class Ladder {
 public:
  /// At least 2^9: a base rounded down to 64 must still leave the best inside.
  explicit Ladder(unsigned log2_window = 10) { resize(std::max(log2_window, 9U)); }

  std::int64_t best() const noexcept { return best_; }  ///< kNoKey: the side is empty

  Lots at(std::int64_t key) const noexcept {
    return in_window(key) ? lots_[slot(key)] : far_.at(key);
  }

  /// Sets a level (0 removes it); returns what was there.
  Lots set(std::int64_t key, Lots lots) {
    if (!in_window(key)) [[unlikely]]
      return set_far(key, lots);
    const std::size_t s = slot(key);
    const Lots before = lots_[s];
    lots_[s] = lots;
    const std::uint64_t bit = 1ULL << (s & 63);
    if (lots != 0) {
      occupied_[s >> 6] |= bit;
      if (key > best_) best_ = key;
    } else {
      occupied_[s >> 6] &= ~bit;
      if (key == best_) [[unlikely]]
        lost_best();
    }
    return before;
  }

  /// Best level strictly worse than `key`; kNoKey: none.
  std::int64_t next(std::int64_t key) const noexcept {
    if (key > top()) key = top();
    if (key > base_) {
      const std::int64_t found = scan(key - 1);
      if (found != kNoKey) return found;
    }
    return far_.empty() ? kNoKey : far_.best_at_or_below(std::min(key - 1, base_ - 1));
  }

  void clear() {
    std::fill(lots_.begin(), lots_.end(), 0);
    std::fill(occupied_.begin(), occupied_.end(), 0);
    far_.clear();
    best_ = kNoKey;
  }

  /// Hot levels hold something of ours (orders, consumption): one bit test a row tells.
  bool hot(std::int64_t key) const noexcept {
    if (in_window(key)) {
      const std::size_t s = slot(key);
      return hot_[s >> 6] >> (s & 63) & 1;
    }
    return !hot_keys_.empty() && is_listed_hot(key);
  }
  /// Each reason to watch a level heats it once, and cools it once when it is over.
  void heat(std::int64_t key) {
    hot_keys_.push_back(key);
    if (in_window(key)) hot_[slot(key) >> 6] |= 1ULL << (slot(key) & 63);
  }
  void cool(std::int64_t key) {
    const auto at = std::find(hot_keys_.begin(), hot_keys_.end(), key);
    if (at == hot_keys_.end()) return;
    hot_keys_.erase(at);
    if (in_window(key) && !is_listed_hot(key)) hot_[slot(key) >> 6] &= ~(1ULL << (slot(key) & 63));
  }

  template <class F>
  void for_each(F&& f) const {  ///< every level, in no order
    for (std::int64_t k = scan(top()); k != kNoKey; k = k > base_ ? scan(k - 1) : kNoKey)
      f(k, lots_[slot(k)]);
    far_.for_each(f);
  }

 private:
  std::int64_t top() const noexcept { return base_ + static_cast<std::int64_t>(mask_); }
  bool in_window(std::int64_t key) const noexcept {
    return static_cast<std::uint64_t>(key - base_) <= mask_;
  }
  std::size_t slot(std::int64_t key) const noexcept {
    return static_cast<std::uint64_t>(key) & mask_;
  }
  bool is_listed_hot(std::int64_t key) const noexcept {
    for (const std::int64_t k : hot_keys_)
      if (k == key) return true;
    return false;
  }

  /// Largest occupied key in [base, from]. `base_` is a multiple of 64, so a word never wraps.
  std::int64_t scan(std::int64_t from) const noexcept {
    while (from >= base_) {
      const std::size_t s = slot(from);
      const std::uint64_t word = occupied_[s >> 6] & (~0ULL >> (63 - (s & 63)));
      if (word != 0) return (from | 63) - std::countl_zero(word);
      from = (from & ~std::int64_t{63}) - 1;
    }
    return kNoKey;
  }

  void resize(unsigned log2_window) {
    lots_.assign(std::size_t{1} << log2_window, 0);
    mask_ = lots_.size() - 1;
    occupied_.assign(lots_.size() / 64, 0);
    hot_.assign(lots_.size() / 64, 0);
    rebuild_hot();
  }

  [[gnu::noinline]] Lots set_far(std::int64_t key, Lots lots) {
    if (lots != 0 && key > top()) {  // a better level than the window holds: it becomes the best
      move_window(key);
      return set(key, lots);
    }
    ++far_rows_;
    if (far_rows_ >= 1024 && lots_.size() < (std::size_t{1} << 16)) widen();
    if (in_window(key)) return set(key, lots);
    const Lots before = far_.set(key, lots);
    if (lots != 0 && best_ == kNoKey) {  // the window was empty: bring it here
      move_window(key);
    }
    return before;
  }

  [[gnu::noinline]] void lost_best() {
    best_ = scan(best_);
    if (best_ == kNoKey && !far_.empty()) {
      move_window(far_.best_at_or_below(kNever));
    } else if (best_ != kNoKey && best_ < base_ + static_cast<std::int64_t>(lots_.size() / 8) &&
               !far_.empty()) {
      move_window(best_);
    }
  }

  /// The best sits at three quarters, so that both a rise and the depth below it fit.
  std::int64_t aligned(std::int64_t best) const noexcept {
    return (best - static_cast<std::int64_t>(lots_.size() * 3 / 4)) & ~std::int64_t{63};
  }

  void move_window(std::int64_t best) {
    const std::int64_t base = aligned(best);
    const std::int64_t size = static_cast<std::int64_t>(lots_.size());
    if (base == base_) {
      pull_from_far();
      return;
    }
    for (std::int64_t k = scan(top()); k != kNoKey; k = k > base_ ? scan(k - 1) : kNoKey) {
      if (k >= base && k < base + size) continue;
      far_.set(k, lots_[slot(k)]);
      lots_[slot(k)] = 0;
      occupied_[slot(k) >> 6] &= ~(1ULL << (slot(k) & 63));
    }
    base_ = base;
    pull_from_far();
    rebuild_hot();
  }

  void pull_from_far() {
    std::vector<std::pair<std::int64_t, Lots>> inside;
    far_.for_each([&](std::int64_t key, Lots lots) {
      if (in_window(key)) inside.emplace_back(key, lots);
    });
    for (const auto& [key, lots] : inside) {
      far_.set(key, 0);
      lots_[slot(key)] = lots;
      occupied_[slot(key) >> 6] |= 1ULL << (slot(key) & 63);
    }
    best_ = scan(top());
  }

  void widen() {
    far_rows_ = 0;
    const std::int64_t old_base = base_;
    const std::vector<Lots> old = std::move(lots_);
    resize(static_cast<unsigned>(std::bit_width(old.size())));
    base_ = best_ == kNoKey ? old_base : aligned(best_);
    for (std::size_t i = 0; i < old.size(); ++i) {
      const std::int64_t key = old_base + static_cast<std::int64_t>(i);
      const Lots lots = old[static_cast<std::uint64_t>(key) & (old.size() - 1)];
      if (lots != 0) far_.set(key, lots);
    }
    pull_from_far();
    rebuild_hot();
  }

  void rebuild_hot() {
    std::fill(hot_.begin(), hot_.end(), 0);
    for (const std::int64_t k : hot_keys_)
      if (in_window(k)) hot_[slot(k) >> 6] |= 1ULL << (slot(k) & 63);
  }

  std::int64_t base_ = 0;   ///< lowest key in the window, a multiple of 64
  std::uint64_t mask_ = 0;  ///< levels in the window, less one
  std::int64_t best_ = kNoKey;
  std::vector<Lots> lots_;
  std::vector<std::uint64_t> occupied_, hot_;
  std::vector<std::int64_t> hot_keys_;
  FarLevels far_;
  std::uint32_t far_rows_ = 0;
};

}  // namespace hft
