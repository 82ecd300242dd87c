/// The book of one instrument: two mirrored ladders, the state that says whether it can be
/// believed, and the last price. A feed that tells order by order has its orders and queues too,
/// and the levels follow from them. Both the venue's book and ours are of this type; only the clock
/// that moves them differs.
#pragma once
#include <array>
#include <memory>
#include <optional>

#include "event.hpp"
#include "ladder.hpp"
#include "order_book.hpp"
#include "resolved_orders.hpp"

namespace hft {

enum class BookState : std::uint8_t {
  EMPTY = 0,  ///< no packet yet
  SYNCING,    ///< inside a snapshot
  LIVE,
  GAP,  ///< messages were lost; unreadable until the next snapshot
};

class Book {
 public:
  const Ladder& side(int side) const noexcept { return sides_[side_index(side)]; }
  Ladder& side(int side) noexcept { return sides_[side_index(side)]; }

  bool has_bid() const noexcept { return sides_[0].best() != kNoKey; }
  bool has_ask() const noexcept { return sides_[1].best() != kNoKey; }
  bool two_sided() const noexcept { return has_bid() && has_ask(); }
  /// Best prices [ticks]; ask() and bid() of an empty side are kNoPrice.
  Ticks bid() const noexcept { return sides_[0].best(); }
  Ticks ask() const noexcept { return has_ask() ? -sides_[1].best() : kNoPrice; }
  Lots bid_lots() const noexcept { return has_bid() ? sides_[0].at(sides_[0].best()) : 0; }
  Lots ask_lots() const noexcept { return has_ask() ? sides_[1].at(sides_[1].best()) : 0; }
  /// bid + ask [half ticks]; kNoPrice unless two-sided. Kept whole so that mids stay integers.
  std::int64_t mid2() const noexcept { return two_sided() ? bid() + ask() : kNoPrice; }
  Lots lots_at(int side, Ticks price) const noexcept { return this->side(side).at(price * side); }

  /// Side that rested at a print whose aggressor is not told: the one whose touch it printed at.
  int passive_side(Ticks price) const noexcept {
    if (has_ask() && price >= ask()) return SELL;
    if (has_bid() && price <= bid()) return BUY;
    return NO_SIDE;
  }
  /// The venue's clock at an instant of ours, if messages still take as long as the last packet.
  Ts venue_time(Ts now) const noexcept {
    return ts_event == kNoTime ? now : ts_event + (now - ts_recv);
  }

  /// The levels follow from orders.
  bool tells_orders() const noexcept { return leader_ || orders_; }
  /// The orders behind the levels; null on a feed of levels, and of a book that only follows.
  const OrderBook* orders() const noexcept {
    return leader_ ? (reader_ == 0 ? &leader_->orders : nullptr) : orders_ ? &*orders_ : nullptr;
  }
  /// What the feed got wrong; null on a feed of levels.
  const OrderBook::Faults* faults() const noexcept {
    return leader_ ? &leader_->orders.faults() : orders_ ? &orders_->faults() : nullptr;
  }
  /// This book's orders, before their first row, also serve `follower`, which reads the same rows
  /// later than this one wherever something is asked of the orders.
  void lead(Book& follower) {
    leader_ = follower.leader_ = std::make_shared<ResolvedOrders>(keeps);
    reader_ = 0;
    follower.reader_ = 1;
  }
  /// Changes of levels that one of two such books has read and the other has not.
  std::size_t waiting() const noexcept { return leader_ ? leader_->waiting() : 0; }

  /// Applies one row; what it does not concern (trades, datums) only moves the stamps.
  void apply(const Event& e) {
    if (e.kind == Kind::LEVEL) [[likely]] {
      sides_[side_index(e.side)].set(e.price * e.side, e.qty);
    } else if (is_order(e.kind)) {
      apply_order(e);
    } else {
      apply_rare(e);
    }
    if (e.flags & LAST) end_packet(e);
  }

  /// A row of an L3 kind; returns what it did to the levels.
  [[gnu::noinline]] std::span<const OrderBook::Change> apply_order(const Event& e) {
    if (e.kind == Kind::EXECUTE && !(e.flags & NO_PRINT)) last_price = e.price;
    if (leader_ && !leader_->leads(reader_)) return changes_ = follow();
    if (!leader_ && !orders_) [[unlikely]]
      orders_.emplace(keeps);
    changes_ = (leader_ ? leader_->orders : *orders_).apply(e);
    if (leader_) leader_->leave(reader_, changes_);
    for (const auto& c : changes_) side(c.side).set(c.key, c.after);
    return changes_;
  }
  /// What the last row of an L3 kind did.
  std::span<const OrderBook::Change> changes() const noexcept { return changes_; }

  void end_packet(const Event& e) noexcept {
    ts_event = e.ts_event;
    ts_recv = e.ts_recv;
    if (state == BookState::EMPTY) state = BookState::LIVE;
  }

  bool live() const noexcept { return state == BookState::LIVE; }

  [[gnu::noinline]] void apply_rare(const Event& e) {
    switch (e.kind) {
      case Kind::TRADE:
        last_price = e.price;
        break;
      case Kind::CLEAR:
        clear(e);
        break;
      case Kind::SNAPSHOT_BEGIN:
        sides_[0].clear();
        sides_[1].clear();
        if (OrderBook* orders = owned()) orders->clear();
        state = BookState::SYNCING;
        break;
      case Kind::SNAPSHOT_END:
        state = BookState::LIVE;
        break;
      case Kind::BBO:
        set_best(e);
        break;
      case Kind::STATUS:
        if (static_cast<Trading>(e.ref_id) == Trading::GAP) {
          state = BookState::GAP;
        } else {
          trading = static_cast<Trading>(e.ref_id);
        }
        break;
      default:
        break;
    }
  }

  BookState state = BookState::EMPTY;
  Trading trading = Trading::OPEN;
  Ts ts_event = kNoTime, ts_recv = kNoTime;  ///< of the last whole packet
  Ticks last_price = kNoPrice;
  Keeps keeps = Keeps::SMALLER;  ///< the venue's rule for changed orders; set before the first row

 private:
  /// The orders, if this book is the first to come to the row.
  OrderBook* owned() noexcept {
    if (leader_) return leader_->leads(reader_) ? &leader_->orders : nullptr;
    return orders_ ? &*orders_ : nullptr;
  }

  /// Applies what the other book has resolved.
  std::span<const OrderBook::Change> follow() {
    std::size_t n = 0;
    leader_->take(reader_, [&](int s, std::int64_t key, Lots after, bool traded) {
      const Lots before = side(s).set(key, after);
      followed_[n++] = {
          key,   before, after, before - after, OrderBook::kUnknown, static_cast<std::int8_t>(s),
          traded};
    });
    return {followed_.data(), n};
  }

  void clear(const Event& e) {
    for (const int s : {BUY, SELL}) {
      if (e.side != NO_SIDE && e.side != s) continue;
      Ladder& ladder = side(s);
      const std::int64_t last = e.ref_id == 1 ? e.price * s : kNoKey + 1;
      if (OrderBook* orders = owned()) orders->drop(s, last);
      if (e.ref_id != 1) {
        ladder.clear();
        continue;
      }
      while (ladder.best() != kNoKey && ladder.best() >= last) ladder.set(ladder.best(), 0);
    }
  }

  /// A best-level feed says what the best is, so anything better is gone.
  void set_best(const Event& e) {
    Ladder& ladder = side(e.side);
    while (ladder.best() != kNoKey && ladder.best() > e.price * e.side)
      ladder.set(ladder.best(), 0);
    ladder.set(e.price * e.side, e.qty);
  }

  Ladder sides_[2];
  std::optional<OrderBook> orders_;
  std::shared_ptr<ResolvedOrders> leader_;  ///< instead, where two books read the same rows
  int reader_ = 0;
  std::array<OrderBook::Change, 3> followed_{};
  std::span<const OrderBook::Change> changes_;
};

}  // namespace hft
