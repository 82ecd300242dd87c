#include "locked_block.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <new>

namespace hft {

LockedBlock::LockedBlock(std::size_t bytes) : bytes_(bytes) {
  void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(p);
  error_ = ::mlock(data_, bytes) == 0 ? 0 : errno;
}

LockedBlock::~LockedBlock() {
  if (data_) ::munmap(data_, bytes_);
}

std::string LockedBlock::why_unlocked() const {
  if (error_ == 0) return {};
  return std::to_string(bytes_) + " bytes of weights may be paged out: " + std::strerror(error_) +
         "; raise the limit on locked memory (ulimit -l)";
}

void LockedBlock::touch() const noexcept {
  for (std::size_t at = 0; at < bytes_; at += 64)
    static_cast<void>(*static_cast<const volatile std::byte*>(data_ + at));
}

}  // namespace hft
