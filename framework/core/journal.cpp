#include "journal.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "errors.hpp"

namespace hft {

MappedFile::MappedFile(const std::string& path, std::size_t chunk_bytes)
    : path_(path), chunk_(chunk_bytes) {
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd_ < 0) throw ConfigError("cannot create " + path + ": " + std::strerror(errno));
  try {
    if (::flock(fd_, LOCK_EX | LOCK_NB) != 0)
      throw DataError(path + " is being written by another session");
    if (::ftruncate(fd_, 0) != 0)
      throw DataError("cannot empty " + path + ": " + std::strerror(errno));
    map_next();
  } catch (const DataError& e) {
    ::close(fd_);
    throw ConfigError(e.what());
  }
}

/// The old mapping stays until the new one stands: a failure leaves everything as it was.
void MappedFile::map_next() {
  const std::size_t next = at_ == nullptr ? 0 : mapped_at_ + chunk_;
  const auto offset = static_cast<off_t>(next);
  // Room is taken before it is used: a full disk would be a SIGBUS in the middle of a record.
  if (const int why = ::posix_fallocate(fd_, offset, static_cast<off_t>(chunk_)); why != 0)
    throw DataError("no room for " + std::to_string(chunk_ >> 20) + " MiB more of " + path_ + ": " +
                    std::strerror(why));
  void* at = ::mmap(nullptr, chunk_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, offset);
  if (at == MAP_FAILED) throw DataError("cannot map " + path_ + ": " + std::strerror(errno));
  if (at_ != nullptr) ::munmap(at_, chunk_);
  at_ = static_cast<unsigned char*>(at);
  mapped_at_ = next;
}

void MappedFile::append(const void* bytes, std::size_t size) {
  const auto* from = static_cast<const unsigned char*>(bytes);
  while (size > 0 && !full_) {
    if (size_ == mapped_at_ + chunk_) {
      full_ = true;
      map_next();
      full_ = false;
    }
    const std::size_t part = std::min(size, mapped_at_ + chunk_ - size_);
    std::memcpy(at_ + (size_ - mapped_at_), from, part);
    size_ += part;
    from += part;
    size -= part;
  }
}

void MappedFile::close() noexcept {
  if (fd_ < 0) return;
  if (at_ != nullptr) ::munmap(at_, chunk_);
  if (::ftruncate(fd_, static_cast<off_t>(size_)) !=
      0) { /* the file stays long: its tail is zeros */
  }
  ::close(fd_);
  fd_ = -1;
  at_ = nullptr;
}

/// Touching a fresh 4 KiB page costs as much as fifty appends, so a chunk asks for a huge one.
Journal::ChunkOfRecords Journal::new_chunk() {
  constexpr std::size_t bytes = kChunk * sizeof(Record);
  void* chunk = std::aligned_alloc(bytes, bytes);
  if (chunk == nullptr) throw std::bad_alloc();
  ::madvise(chunk, bytes, MADV_HUGEPAGE);  // a wish: refused, the chunk works as it is
  return {static_cast<Record*>(chunk), &std::free};
}

}  // namespace hft
