/// Bounded queue between one producer thread and one consumer thread; no locks.
/// Producer: claim() -> write -> publish(). Consumer: poll() -> read -> release(). Each returns
/// nullptr rather than wait, so the caller chooses how to wait. The cursors only grow; each side
/// keeps a stale copy of the other's and reads the shared one when that copy says full or empty.
#pragma once
#include <atomic>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>

namespace hft {

template <class T>
class SpscRing {
 public:
  explicit SpscRing(std::size_t capacity) : mask_(capacity - 1), slots_(new T[capacity]) {
    if (capacity == 0 || (capacity & mask_) != 0)
      throw std::invalid_argument("a ring's capacity must be a power of two, was " +
                                  std::to_string(capacity));
  }
  std::size_t capacity() const noexcept { return mask_ + 1; }

  T* claim() noexcept {
    const std::size_t at = tail_.load(std::memory_order_relaxed);  // only the producer moves it
    if (at - head_seen_ > mask_) {
      head_seen_ =
          head_.load(std::memory_order_acquire);  // pairs with release(): the slot was read
      if (at - head_seen_ > mask_) return nullptr;
    }
    return &slots_[at & mask_];
  }
  void publish() noexcept {
    // Pairs with poll(): what was written to the slot is visible before the cursor is.
    tail_.store(tail_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  /// Producer: slots that can be claimed now; the consumer may free more meanwhile.
  std::size_t room() noexcept {
    head_seen_ = head_.load(std::memory_order_acquire);  // pairs with release()
    return capacity() - (tail_.load(std::memory_order_relaxed) - head_seen_);
  }

  T* poll() noexcept {
    const std::size_t at = head_.load(std::memory_order_relaxed);  // only the consumer moves it
    if (at == tail_seen_) {
      tail_seen_ = tail_.load(std::memory_order_acquire);  // pairs with publish()
      if (at == tail_seen_) return nullptr;
    }
    return &slots_[at & mask_];
  }
  void release() noexcept {
    // Pairs with claim(): the slot may be written again only after it was read.
    head_.store(head_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

 private:
  static constexpr std::size_t kLine = 64;
  const std::size_t mask_;
  const std::unique_ptr<T[]> slots_;
  alignas(kLine) std::atomic<std::size_t> tail_{0};
  std::size_t head_seen_ = 0;  // producer's
  alignas(kLine) std::atomic<std::size_t> head_{0};
  std::size_t tail_seen_ = 0;  // consumer's
};

}  // namespace hft
