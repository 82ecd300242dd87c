/// One instrument's rows as two cursors see them: the venue's, at ts_event, and ours, behind it, at
/// ts_recv. Rows come in chunks from a source that need not hold a day; a chunk is released when
/// our cursor has left it.
#pragma once
#include <deque>
#include <functional>

#include "errors.hpp"
#include "event.hpp"

namespace hft {

struct Chunk {
  const Event* rows = nullptr;
  std::size_t size = 0;
};

class Stream {
 public:
  /// `next` fills a chunk and returns true, or returns false at the end; `release` is told, in
  /// order, that the oldest chunk is no longer needed.
  Stream(std::function<bool(Chunk&)> next, std::function<void()> release)
      : next_(std::move(next)), release_(std::move(release)) {}

  /// A cursor over the chunks; `ts` is the time of the row it stands on, kNever past the end.
  struct Cursor {
    const Event* at = nullptr;
    const Event* end = nullptr;
    std::size_t chunk = 0;  ///< ordinal of the chunk it is in
    std::int64_t base = 0;  ///< row number of that chunk's first row
    const Event* first = nullptr;
    Ts ts = kNever;
    std::int64_t row() const noexcept { return base + (at - first); }
  };

  Cursor venue, local;

  void open() {
    enter(venue, 0);
    enter(local, 0);
    settle_venue();
    settle_local();
  }
  void advance_venue() {
    if (++venue.at == venue.end) [[unlikely]]
      enter(venue, venue.chunk + 1);
    settle_venue();
  }
  void advance_local() {
    if (++local.at == local.end) [[unlikely]]
      leave_local();
    settle_local();
  }

 private:
  void settle_venue() {
    while (venue.at != venue.end && !(venue.at->flags & SEEN_BY_VENUE)) [[unlikely]]
      if (++venue.at == venue.end) enter(venue, venue.chunk + 1);
    if (venue.at == venue.end) {
      venue.ts = kNever;
      return;
    }
    if (venue.at->ts_event < last_event_) [[unlikely]]
      goes_back("ts_event", venue, last_event_, venue.at->ts_event);
    venue.ts = last_event_ = venue.at->ts_event;
  }
  void settle_local() {
    while (local.at != local.end && !(local.at->flags & SEEN_BY_US)) [[unlikely]]
      if (++local.at == local.end) leave_local();
    if (local.at == local.end) {
      local.ts = kNever;
      return;
    }
    if (local.at->ts_recv < last_recv_) [[unlikely]]
      goes_back("ts_recv", local, last_recv_, local.at->ts_recv);
    local.ts = last_recv_ = local.at->ts_recv;
  }
  [[noreturn, gnu::noinline]] static void goes_back(const char* what, const Cursor& c, Ts before,
                                                    Ts now) {
    throw DataError(std::string(what) + " goes back at row " + std::to_string(c.row()) + ": " +
                    std::to_string(now) + " after " + std::to_string(before) +
                    " (run `hft data check`, or import with --repair)");
  }

  [[gnu::noinline]] void leave_local() {
    enter(local, local.chunk + 1);
    while (first_ordinal_ < local.chunk && first_ordinal_ < venue.chunk) {
      chunks_.pop_front();
      ++first_ordinal_;
      release_();
    }
  }

  [[gnu::noinline]] void enter(Cursor& c, std::size_t ordinal) {
    c.base += c.end - c.first;
    c.chunk = ordinal;
    while (ordinal >= first_ordinal_ + chunks_.size()) {
      Chunk chunk;
      if (finished_ || !next_(chunk)) {
        finished_ = true;
        c.first = c.at = c.end = nullptr;
        return;
      }
      if (chunk.size == 0) {
        throw CoreError("a source gave an empty chunk");
      }
      chunks_.push_back(chunk);
    }
    const Chunk& chunk = chunks_[ordinal - first_ordinal_];
    c.first = c.at = chunk.rows;
    c.end = chunk.rows + chunk.size;
  }

  std::function<bool(Chunk&)> next_;
  std::function<void()> release_;
  std::deque<Chunk> chunks_;
  std::size_t first_ordinal_ = 0;
  bool finished_ = false;
  Ts last_event_ = kNoTime, last_recv_ = kNoTime;
};

}  // namespace hft
