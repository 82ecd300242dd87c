/// Our book as a strategy sees it: the tape less what we took from it ourselves. Live, the venue's
/// feed shows that anyway; in replay nobody took it from the tape.
///
/// `OwnTakes` hears of a fill when its report reaches us, and follows the rows of our book with the
/// venue's own class, on the venue's clock as far as we know it: both heal, shrink and spill alike
/// and draw the same. What differs: rows that happened before a fill and reach us after its report
/// find it there already; what our resting orders got of a print is not told from the rest of it;
/// and a cancel of a feed of orders takes its share, not its place, since our book may follow the
/// venue's and then keeps no queues.
///
/// A run that never takes pays one branch a row and one a look.
#pragma once
#include <algorithm>
#include <vector>

#include "book.hpp"
#include "footprint.hpp"
#include "message.hpp"

namespace hft {

class OwnTakes {
 public:
  void follow(FootprintConfig config) {
    config.by_size = true;
    follows_ = true;
    footprint_ = Footprint(config);
  }
  /// Nothing is missing, and nothing is to come.
  bool empty() const noexcept { return empty_; }
  const Footprint& footprint() const noexcept { return footprint_; }

  /// A fill of an order on `side` is reported.
  void on_fill(Book& book, const Update& u, int side) {
    if (!follows_ || (u.maker && u.fill_reason != FillReason::CROSSED)) return;
    // A taker's level is known; size that came to us stood at our price or through it.
    const std::int64_t key = u.price * -side;
    Untold fill{u.ts_venue, u.maker ? kNever : key, key, u.lots, static_cast<std::int8_t>(-side)};
    join(book, fill);
    if (fill.lots > 0 && fill.ts > book.ts_event) untold_.push_back(fill);
    empty_ = footprint_.empty() && untold_.empty();
  }

  /// Applies a row to a book that misses something.
  void apply(Book& book, const Event& e) {
    if (e.kind == Kind::LEVEL) {
      const std::int64_t key = e.price * e.side;
      const Lots before = book.side(e.side).at(key);
      book.apply(e);
      footprint_.on_level(book, e.side, key, before, e.qty, e.ts_event);
    } else if (e.kind == Kind::TRADE) {
      on_print(book, e);
      book.apply(e);
    } else if (is_order(e.kind)) {
      on_execute(book, e);
      book.apply(e);
      footprint_.on_changes(book, e, book.changes());
    } else {
      book.apply(e);
      if (e.kind == Kind::SNAPSHOT_END || e.kind == Kind::BBO || e.kind == Kind::CLEAR)
        footprint_.forget_gone(book);
    }
    if (!untold_.empty() && (e.flags & LAST)) [[unlikely]]
      catch_up(book);
    empty_ = footprint_.empty() && untold_.empty();
  }

 private:
  /// A fill that our book has not come to: its level may not be there yet.
  struct Untold {
    Ts ts;
    std::int64_t best, worst;  ///< keys between which it took
    Lots lots;
    std::int8_t side;
  };

  void join(Book& book, Untold& fill) {
    const Ladder& ladder = book.side(fill.side);
    for (std::int64_t k = ladder.best(); k != kNoKey && k >= fill.worst && fill.lots > 0;
         k = ladder.next(k)) {
      if (k > fill.best) continue;
      const Lots there = std::min(footprint_.available(book, fill.side, k, fill.ts), fill.lots);
      if (there > 0) footprint_.take(book, fill.side, k, there, fill.ts);
      fill.lots -= there;
    }
  }

  void catch_up(Book& book) {
    std::erase_if(untold_, [&](Untold& fill) {
      if (fill.ts > book.ts_event) return false;
      join(book, fill);
      return true;
    });
  }

  // As `TapeVenue::on_print` and `on_execute`, but for what went to our own resting orders.
  void on_print(Book& book, const Event& e) {
    if (book.trading != Trading::OPEN || (e.flags & NO_CHANGE) || book.tells_orders()) return;
    const int resting = e.side != NO_SIDE ? -e.side : book.passive_side(e.price);
    if (resting != NO_SIDE)
      footprint_.on_print(book, resting, e.price * resting, e.qty, e.ts_event);
  }
  void on_execute(Book& book, const Event& e) {
    if (e.kind != Kind::EXECUTE || book.trading != Trading::OPEN || e.side == NO_SIDE ||
        footprint_.empty(e.side))
      return;
    footprint_.on_execute(book, e.side, e.price * e.side, e.qty, e.flags & NO_CHANGE ? e.qty : 0,
                          e.ts_event);
  }

  Footprint footprint_;
  std::vector<Untold> untold_;
  bool follows_ = false;
  bool empty_ = true;  // asked every row
};

/// A look at a book without what we took: a level with nothing left is none. A value, for now.
class SeenBook {
 public:
  SeenBook(const Book& tape, const OwnTakes& own, Ts now) noexcept
      : tape_(&tape), own_(&own), ts_(tape.venue_time(now)) {}

  const Book& tape() const noexcept { return *tape_; }
  bool live() const noexcept { return tape_->live(); }

  Lots at(int side, std::int64_t key) const noexcept {
    return own_->footprint().empty(side) ? tape_->side(side).at(key)
                                         : own_->footprint().available(*tape_, side, key, ts_);
  }
  std::int64_t best(int side) const noexcept { return there(side, tape_->side(side).best()); }
  /// Best level strictly worse than `key`; kNoKey: none.
  std::int64_t next(int side, std::int64_t key) const noexcept {
    return there(side, tape_->side(side).next(key));
  }
  Lots lots_at(int side, Ticks price) const noexcept { return at(side, price * side); }

  /// As of a `Book`.
  bool has_bid() const noexcept { return best(BUY) != kNoKey; }
  bool has_ask() const noexcept { return best(SELL) != kNoKey; }
  bool two_sided() const noexcept { return has_bid() && has_ask(); }
  Ticks bid() const noexcept { return best(BUY); }
  Ticks ask() const noexcept {
    const std::int64_t key = best(SELL);
    return key == kNoKey ? kNoPrice : -key;
  }
  Lots bid_lots() const noexcept { return best_lots(BUY); }
  Lots ask_lots() const noexcept { return best_lots(SELL); }
  std::int64_t mid2() const noexcept {
    const std::int64_t bid = best(BUY), ask = best(SELL);
    return bid == kNoKey || ask == kNoKey ? kNoPrice : bid - ask;
  }

 private:
  std::int64_t there(int side, std::int64_t key) const noexcept {
    return own_->footprint().empty(side) ? key : first_left(side, key);
  }
  [[gnu::noinline]] std::int64_t first_left(int side, std::int64_t key) const noexcept {
    while (key != kNoKey && !own_->footprint().any_left(*tape_, side, key, ts_))
      key = tape_->side(side).next(key);
    return key;
  }
  Lots best_lots(int side) const noexcept {
    const std::int64_t key = best(side);
    return key == kNoKey ? 0 : at(side, key);
  }

  const Book* tape_;
  const OwnTakes* own_;
  Ts ts_;
};

/// What is left as a book of its own, for features that are to feel our takes: it follows the tape
/// row by row, and before it is read the few levels that miss something are set to what they have.
/// It keeps no queues.
class LeftBook {
 public:
  const Book& book() const noexcept { return book_; }

  /// After the row was applied to `tape`.
  void apply(const Book& tape, const Event& e) {
    if (!is_order(e.kind)) return book_.apply(e);
    for (const OrderBook::Change& c : tape.changes()) book_.side(c.side).set(c.key, c.after);
    book_.last_price = tape.last_price;
    if (e.flags & LAST) book_.end_packet(e);
  }

  /// Calls `moved(side, key, lots)` for each level that is not as it was.
  template <class F>
  void settle(const Book& tape, const OwnTakes& own, Ts now, F&& moved) {
    const SeenBook seen(tape, own, now);
    for (const int side : {BUY, SELL}) {
      auto& keys = missing_[side_index(side)];  // what was missing may be whole again
      own.footprint().for_each_key(side, [&](std::int64_t key) {
        if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
      });
      std::erase_if(keys, [&](std::int64_t key) {
        const Lots lots = seen.at(side, key);
        if (book_.side(side).set(key, lots) != lots) moved(side, key, lots);
        return lots == tape.side(side).at(key);
      });
    }
  }

 private:
  Book book_;
  std::vector<std::int64_t> missing_[2];
};

}  // namespace hft
