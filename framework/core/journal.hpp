/// The journal: what went into the engine and what came out, one 64-byte record each, in order.
///
/// In replay it holds no market rows (the store has them); live, the rows lie in a second file and
/// a PACKET record says which. Records are chunked in memory and, when a file is given, written as
/// they are made into a shared mapping, so that they survive the death of the process.
#pragma once
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "event.hpp"
#include "rng.hpp"

namespace hft {

enum class RecordKind : std::uint16_t {
  START = 1,  ///< in: a: seed, b: UTC less monotonic time (live), c: rows of a batch (0: none wait)
  PACKET,     ///< in: a: first row in the market file, b: rows, c: their digest (live only)
  UPDATE,  ///< in: order, price, lots; a: kind|reason|fill_reason|bits (1: maker, 2: some is left),
           ///< b: money (of a fill: fee and impact), or lots ahead (a double) of an order accepted
           ///< or replaced, c: ts_venue
  SIGNAL,  ///< in: lots: version << 32 | model, price: 1: given again, a: digest of the outputs,
           ///< b: ts of the features, c: ts_event
  TIMER,   ///< in: a: timer, b: 1: nobody was called
  CLOCK,   ///< in: a features clock fired; a: 1: a bar closed, price and lots are its own
  NEW,     ///< out: order, price, lots; a: side|tif, b: tag, c: parent
  CANCEL,  ///< out
  REPLACE,    ///< out: order, price, lots
  REFUSED,    ///< out: the gate said no; a: reason
  ROW,        ///< out: a features row; a: digest, b: model
  STOP,       ///< in: a: 0: end of a replay, 1: the session stops, 2: a handler or model failed;
              ///< b: 1: a model at a row, 2: as it was reset; at instrument, lots: model, order:
              ///< number of the swap that brought it
  END,        ///< live: the session closed its journal; a: records before this one
  WIND_DOWN,  ///< in, replay: the instrument's trading day ends: cancel, flatten, nothing new
  SWAP,       ///< order: number of the swap, lots: model, a: word of the bundle's hash; in: b 0: it
         ///< begins to run; out: b 1: it takes over, at its instrument; b 2: it failed there (c 1:
         ///< as it was reset) and is dropped wherever it has not taken over
  BATCH,  ///< in, live: the rows that wait are computed; a: how many
};

struct Record {
  Ts ts;  ///< the engine's now
  OrderId order;
  Ticks price;
  Lots lots;
  std::int64_t a, b, c;
  InstrumentId instrument;
  RecordKind kind;
  std::uint16_t check;  ///< of the rest of the record; tells a torn write
};
static_assert(sizeof(Record) == 64);

inline std::uint16_t checksum(const Record& r) noexcept {
  std::uint64_t words[8];
  std::memcpy(words, &r, sizeof r);
  words[7] &= 0x0000ffffffffffffULL;  // all but `check`
  std::uint64_t h = 0x9e3779b97f4a7c15ULL;
  for (const std::uint64_t w : words) h = (h ^ w) * 0xff51afd7ed558ccdULL, h ^= h >> 32;
  return static_cast<std::uint16_t>(h ^ h >> 16);
}

/// A file that grows by whole mappings: bytes stored are the kernel's at once, so they outlive
/// `kill -9`; a power cut they do not. Locked while open, so that a reader can tell a run in
/// progress.
class MappedFile {
 public:
  /// Throws ConfigError where the file cannot be made or the disk has no room for the first chunk.
  explicit MappedFile(const std::string& path, std::size_t chunk_bytes = std::size_t{1} << 20);
  ~MappedFile() { close(); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  /// Throws DataError when the disk is full, once: what comes after is dropped, so that whoever
  /// caught it can wind down.
  void append(const void* bytes, std::size_t size);
  std::size_t size() const noexcept { return size_; }
  /// Cuts the file to what was written.
  void close() noexcept;

 private:
  void map_next();
  std::string path_;
  int fd_ = -1;
  std::size_t chunk_, mapped_at_ = 0, size_ = 0;
  unsigned char* at_ = nullptr;
  bool full_ = false;
};

class Journal {
 public:
  void open(const std::string& path) { file_ = std::make_unique<MappedFile>(path); }

  void append(Record r) {
    if (file_) [[unlikely]] {
      r.check = checksum(r);
      file_->append(&r, sizeof r);
    }
    if (!keep) return;
    if (used_ == kChunk) {
      chunks_.push_back(new_chunk());
      used_ = 0;
    }
    chunks_.back()[used_++] = r;
  }

  /// Records in memory.
  std::size_t size() const noexcept {
    return chunks_.empty() ? 0 : (chunks_.size() - 1) * kChunk + used_;
  }
  /// Records appended so far, wherever they are.
  std::size_t appended() const noexcept { return keep ? size() : file_->size() / sizeof(Record); }
  /// Copies all records in memory, checksums set, to `out` (size() of them).
  void copy_to(Record* out) const noexcept {
    for (std::size_t i = 0; i < size(); ++i) {
      out[i] = chunks_[i / kChunk][i % kChunk];
      out[i].check = checksum(out[i]);
    }
  }
  void close() noexcept {
    if (file_) file_->close();
  }

  bool keep = true;  ///< false: the file alone holds the records

 private:
  static constexpr std::size_t kChunk = 1 << 15;  // 2 MiB: one huge page, where the kernel has them
  using ChunkOfRecords = std::unique_ptr<Record[], decltype(&std::free)>;
  static ChunkOfRecords new_chunk();

  std::vector<ChunkOfRecords> chunks_;
  std::size_t used_ = kChunk;
  std::unique_ptr<MappedFile> file_;
};

/// Digest of doubles or floats, bit for bit.
template <class T>
std::int64_t digest(const T* values, std::size_t n) noexcept {
  std::uint64_t h = n;
  for (std::size_t i = 0; i < n; ++i) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &values[i], sizeof(T));
    h = (h ^ bits) * 0xff51afd7ed558ccdULL;
    h ^= h >> 32;
  }
  return static_cast<std::int64_t>(h);
}

}  // namespace hft
