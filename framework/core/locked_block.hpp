/// Memory that the kernel is asked never to page out, for weights that must be there at once.
///
/// A limit (RLIMIT_MEMLOCK, 8 MiB on many systems) may refuse; the block then works unlocked and
/// says so. Its pages are its own, so giving it back unlocks nothing else.
#pragma once
#include <cstddef>
#include <string>
#include <utility>

namespace hft {

class LockedBlock {
 public:
  LockedBlock() = default;
  explicit LockedBlock(std::size_t bytes);  ///< zeros; throws std::bad_alloc
  LockedBlock(LockedBlock&& other) noexcept { *this = std::move(other); }
  LockedBlock& operator=(LockedBlock&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(error_, other.error_);
    return *this;
  }
  ~LockedBlock();

  std::byte* data() noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }
  bool is_locked() const noexcept { return data_ && error_ == 0; }
  /// Why it is not locked, and what would help; empty when it is.
  std::string why_unlocked() const;
  /// Reads one byte of every cache line.
  void touch() const noexcept;

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  int error_ = 0;  // errno of mlock
};

}  // namespace hft
