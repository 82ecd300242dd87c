/// The book of one instrument: two mirrored ladders, the state that says whether it can be
/// believed, and the last price. A feed that tells order by order has its orders and queues too,
/// and the levels follow from them. Both the venue's book and ours are of this type; only the clock
/// that moves them differs.
#pragma once
#include <optional>

#include "event.hpp"
#include "ladder.hpp"
#include "order_book.hpp"

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

  /// The orders behind the levels; null until a feed tells the first.
  const OrderBook* orders() const noexcept { return orders_ ? &*orders_ : nullptr; }

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
  std::span<const OrderBook::Change> apply_order(const Event& e) {
    if (!orders_) [[unlikely]]
      orders_.emplace(keeps);
    const auto changes = orders_->apply(e);
    for (const auto& c : changes) side(c.side).set(c.key, c.after);
    if (e.kind == Kind::EXECUTE && !(e.flags & NO_PRINT)) last_price = e.price;
    return changes;
  }

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
        if (orders_) orders_->clear();
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
  void clear(const Event& e) {
    for (const int s : {BUY, SELL}) {
      if (e.side != NO_SIDE && e.side != s) continue;
      Ladder& ladder = side(s);
      const std::int64_t last = e.ref_id == 1 ? e.price * s : kNoKey + 1;
      if (orders_)
        for (std::int64_t k = ladder.best(); k != kNoKey && k >= last; k = ladder.next(k))
          orders_->drop_level(s, k * s);
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
};

}  // namespace hft
