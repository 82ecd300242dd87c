/// Open addressing from a 64-bit key to a 32-bit value: linear probing, backward-shift delete, at
/// most half full. Key and value share a 16-byte entry, so that a lookup is one cache line.
///
/// Multiplied by the golden ratio, ids that count up in even steps stand evenly apart, better than
/// a hash that mixes well would put them. Its worst case are steps that are large Fibonacci
/// numbers, where probes run long; no feed is known to take them.
#pragma once
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

namespace hft {

class IntMap {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};
  static constexpr std::int64_t kEmpty = std::numeric_limits<std::int64_t>::min();  ///< no key

  /// `capacity`: a power of two.
  explicit IntMap(std::size_t capacity) { reset(capacity); }

  /// Place of a key, valid until the map changes; kNone: it is not there.
  std::size_t find(std::int64_t key) const noexcept {
    for (std::size_t i = home(key);; i = (i + 1) & mask_) {
      if (entries_[i].key == kEmpty) return kNone;
      if (entries_[i].key == key) return i;
    }
  }
  std::uint32_t value(std::size_t at) const noexcept { return entries_[at].value; }

  /// Of a key that is not there.
  void insert(std::int64_t key, std::uint32_t value) {
    if (++size_ * 2 > entries_.size()) [[unlikely]]
      grow();
    std::size_t i = home(key);
    while (entries_[i].key != kEmpty) i = (i + 1) & mask_;
    entries_[i] = {key, value};
  }

  void erase(std::size_t hole) noexcept {
    for (std::size_t i = (hole + 1) & mask_; entries_[i].key != kEmpty; i = (i + 1) & mask_) {
      if (((i - home(entries_[i].key)) & mask_) >= ((i - hole) & mask_)) {
        entries_[hole] = entries_[i];
        hole = i;
      }
    }
    entries_[hole].key = kEmpty;
    --size_;
  }

  std::size_t size() const noexcept { return size_; }
  void clear() { reset(entries_.size()); }

 private:
  struct Entry {
    std::int64_t key = kEmpty;
    std::uint32_t value = 0;
  };

  std::size_t home(std::int64_t key) const noexcept {
    return static_cast<std::uint64_t>(key) * 0x9e3779b97f4a7c15ULL >> shift_;
  }
  void reset(std::size_t capacity) {
    entries_.assign(capacity, {});
    mask_ = capacity - 1;
    shift_ = 64 - std::countr_zero(capacity);
    size_ = 0;
  }
  void grow() {
    const std::vector<Entry> old = std::move(entries_);
    const std::size_t size = size_;
    reset(old.size() * 2);
    for (const Entry& e : old) {
      if (e.key == kEmpty) continue;
      std::size_t i = home(e.key);
      while (entries_[i].key != kEmpty) i = (i + 1) & mask_;
      entries_[i] = e;
    }
    size_ = size;
  }

  std::vector<Entry> entries_;
  std::size_t mask_ = 0, size_ = 0;
  int shift_ = 0;
};

}  // namespace hft
