#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <vector>

#include "errors.hpp"
#include "journal.hpp"

using namespace hft;

namespace {

/// A file of its own that goes with the test.
struct TempFile {
  std::string path =
      (std::filesystem::temp_directory_path() / ("hft_journal_" + std::to_string(::getpid())))
          .string();
  ~TempFile() { std::filesystem::remove(path); }
  std::vector<Record> records() const {
    std::vector<Record> all(std::filesystem::file_size(path) / sizeof(Record));
    std::ifstream(path, std::ios::binary)
        .read(reinterpret_cast<char*>(all.data()),
              static_cast<std::streamsize>(all.size() * sizeof(Record)));
    return all;
  }
};

Record numbered(std::int64_t n) { return {1000 + n, 0, 0, 0, n, 0, 0, 0, RecordKind::TIMER, 0}; }

}  // namespace

TEST_CASE("records of a file are those of memory, checksums set, across many mappings") {
  const TempFile file;
  Journal kept, written;
  written.open(file.path);
  written.keep = false;
  constexpr std::int64_t kRecords = 300'000;  // 18 mappings
  for (std::int64_t n = 0; n < kRecords; ++n) {
    kept.append(numbered(n));
    written.append(numbered(n));
  }
  CHECK(kept.appended() == kRecords);
  CHECK(written.appended() == kRecords);
  CHECK(written.size() == 0);
  written.close();
  std::vector<Record> memory(kept.size());
  kept.copy_to(memory.data());
  const auto disk = file.records();
  REQUIRE(disk.size() == memory.size());
  CHECK(std::memcmp(disk.data(), memory.data(), disk.size() * sizeof(Record)) == 0);
}

TEST_CASE("a checksum tells a flipped bit wherever it is, in itself too") {
  Record r = numbered(5);
  r.check = checksum(r);
  for (std::size_t bit = 0; bit < 8 * sizeof r; ++bit) {
    unsigned char bytes[sizeof r];
    std::memcpy(bytes, &r, sizeof r);
    bytes[bit / 8] = static_cast<unsigned char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    Record flipped;
    std::memcpy(&flipped, bytes, sizeof r);
    CAPTURE(bit);
    CHECK(flipped.check != checksum(flipped));
  }
}

TEST_CASE("records outlive a process that is killed") {
  const TempFile file;
  const pid_t child = ::fork();
  if (child == 0) {
    Journal journal;
    journal.open(file.path);
    journal.keep = false;
    for (std::int64_t n = 0; n < 1000; ++n) journal.append(numbered(n));
    ::raise(SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE(WIFSIGNALED(status));
  const auto disk = file.records();
  REQUIRE(disk.size() >= 1000);
  for (std::int64_t n = 0; n < 1000; ++n) CHECK(disk[static_cast<std::size_t>(n)].a == n);
  CHECK(disk[999].check == checksum(disk[999]));
  for (std::size_t i = 1000; i < disk.size(); ++i) REQUIRE(static_cast<int>(disk[i].kind) == 0);
}

TEST_CASE("a file that cannot be made or grown is refused before the first record") {
  CHECK_THROWS_AS(MappedFile("/nonexistent/journal.bin"), ConfigError);
  const TempFile file;
  const MappedFile first(file.path);
  CHECK_THROWS_WITH_AS(MappedFile(file.path),
                       (file.path + " is being written by another session").c_str(), ConfigError);
}

TEST_CASE("an open journal is locked, a closed one is not") {
  const TempFile file;
  MappedFile open(file.path);
  const int fd = ::open(file.path.c_str(), O_RDONLY);
  CHECK(::flock(fd, LOCK_SH | LOCK_NB) == -1);
  open.close();
  CHECK(::flock(fd, LOCK_SH | LOCK_NB) == 0);
  ::close(fd);
}

TEST_CASE("a disk that fills up is one error; what was written stays and the rest is dropped") {
  const TempFile file;
  constexpr std::size_t kChunk = 1 << 16;
  const pid_t child = ::fork();
  if (child == 0) {  // the limit holds for a whole process
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{kChunk, kChunk};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    MappedFile out(file.path, kChunk);
    int errors = 0;
    for (std::int64_t n = 0; n < 3000; ++n) {
      const Record r = numbered(n);
      try {
        out.append(&r, sizeof r);
      } catch (const DataError&) {
        ++errors;
      }
    }
    out.close();
    ::_exit(errors == 1 && out.size() == kChunk ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  const auto disk = file.records();
  REQUIRE(disk.size() == kChunk / sizeof(Record));
  CHECK(disk.back().a == static_cast<std::int64_t>(disk.size()) - 1);
}
