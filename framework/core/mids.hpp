/// The venue's touch at given times, read from an instrument's rows in one pass: what the market
/// was when something of ours happened, asked after the run.
#pragma once
#include <utility>
#include <vector>

#include "book.hpp"

namespace hft {

class TouchesAt {
 public:
  struct Touch {
    Ticks bid = kNoPrice, ask = kNoPrice;  ///< kNoPrice: an empty side, or no book to believe
  };

  /// `times` ascending [venue's clock].
  explicit TouchesAt(std::vector<Ts> times) : times_(std::move(times)), touches_(times_.size()) {}

  /// Rows in order of ts_event; false: no later row changes an answer.
  bool on_row(const Event& e) {
    if (!(e.flags & SEEN_BY_VENUE)) return true;
    if (e.ts_event > next()) [[unlikely]]
      answer(e.ts_event);
    book_.apply(e);
    return at_ != times_.size();
  }

  /// After the last row: the book stays as it is. A time counts all rows that bear it.
  const std::vector<Touch>& finish() {
    answer(kNever);
    return touches_;
  }

 private:
  Ts next() const noexcept { return at_ == times_.size() ? kNever : times_[at_]; }

  void answer(Ts before) noexcept {
    // A venue's rows need not come in packets: a book is unknown within a snapshot or after a loss.
    const bool known = book_.state != BookState::SYNCING && book_.state != BookState::GAP;
    const Touch touch = known ? Touch{book_.bid(), book_.ask()} : Touch{};
    while (at_ != times_.size() && times_[at_] < before) touches_[at_++] = touch;
  }

  std::vector<Ts> times_;
  std::vector<Touch> touches_;
  std::size_t at_ = 0;
  Book book_;
};

}  // namespace hft
