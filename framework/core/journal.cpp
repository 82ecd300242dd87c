#include "journal.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "errors.hpp"

namespace hft {

MappedFile::MappedFile(const std::string& path, std::size_t chunk_bytes) : chunk_(chunk_bytes) {
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) throw ConfigError("cannot create " + path + ": " + std::strerror(errno));
  map_next();
}

MappedFile::~MappedFile() { close(); }

void MappedFile::map_next() {
  if (at_ != nullptr) {
    ::munmap(at_, chunk_);
    mapped_at_ += chunk_;
  }
  const auto end = static_cast<off_t>(mapped_at_ + chunk_);
  if (const int failed = ::posix_fallocate(fd_, 0, end); failed != 0)  // a full disk must not be a SIGBUS later
    throw ConfigError(std::string("cannot grow the journal: ") + std::strerror(failed));
  void* at = ::mmap(nullptr, chunk_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, static_cast<off_t>(mapped_at_));
  if (at == MAP_FAILED) throw ConfigError(std::string("cannot map the journal: ") + std::strerror(errno));
  at_ = static_cast<unsigned char*>(at);
}

void MappedFile::append(const void* bytes, std::size_t size) {
  const auto* from = static_cast<const unsigned char*>(bytes);
  while (size > 0) {
    if (size_ == mapped_at_ + chunk_) map_next();
    const std::size_t part = std::min(size, mapped_at_ + chunk_ - size_);
    std::memcpy(at_ + (size_ - mapped_at_), from, part);
    size_ += part;
    from += part;
    size -= part;
  }
}

void MappedFile::close() {
  if (fd_ < 0) return;
  if (at_ != nullptr) ::munmap(at_, chunk_);
  if (::ftruncate(fd_, static_cast<off_t>(size_)) != 0) { /* the file stays long: its tail is zeros */
  }
  ::close(fd_);
  fd_ = -1;
  at_ = nullptr;
}

}  // namespace hft
