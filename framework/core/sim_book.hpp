/// The simulated venue's book, order by order: price-time priority, true queues.
///
/// Levels lie in one array indexed by tick, shared by both sides (a price is never on both);
/// orders are nodes of a pool, linked per level. Adding, removing and reducing are O(1), finding
/// the next best level is a scan that is short while the book is dense. Given up: an order far from
/// the rest grows the array to its price (32 bytes a tick), so the market refuses prices beyond its
/// band, and `ahead` walks the queue.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "types.hpp"

namespace hft {

struct SimOrder {
  OrderId venue_id = 0;
  OrderId our_id = 0;  ///< 0: the market's
  Ticks price = 0;
  Lots leaves = 0;
  std::int32_t prev = -1, next = -1;
  std::int32_t slot = -1;  ///< place in `market_orders`; -1: ours
  std::int8_t side = NO_SIDE;
};

struct SimLevel {
  Lots lots = 0;      ///< all, ours included
  Lots own_lots = 0;  ///< ours
  std::int32_t head = -1, tail = -1;
  std::int32_t orders = 0;
  std::int8_t side = NO_SIDE;
};

class SimBook {
 public:
  using Handle = std::int32_t;  ///< valid until its order is gone

  explicit SimBook(Ticks around);

  Handle add(Side side, Ticks price, Lots lots, OrderId venue_id, OrderId our_id);
  /// Takes lots off an order, which keeps its place; at zero leaves the order is gone.
  void reduce(Handle handle, Lots lots) noexcept;

  const SimOrder& order(Handle handle) const noexcept {
    return pool_[static_cast<std::size_t>(handle)];
  }
  bool has(int side) const noexcept { return best_[index(side)] != kNoPrice; }
  Ticks best(int side) const noexcept { return best_[index(side)]; }  ///< kNoPrice: side is empty
  Handle front(int side) const noexcept { return at(best(side)).head; }
  /// Empty level where nothing rests.
  const SimLevel& level(Ticks price) const noexcept;
  Lots lots_at(int side, Ticks price) const noexcept {
    const SimLevel& found = level(price);
    return found.side == side ? found.lots : 0;
  }
  /// Lots of others that are matched before this order.
  Lots ahead(Handle handle) const noexcept;
  /// True if others offer `lots` to a taker of `side` at `limit` or better (kNoPrice: any price).
  bool offers(int side, Ticks limit, Lots lots) const noexcept;
  /// The market's orders of one side in no order, for drawing one at random.
  const std::vector<Handle>& market_orders(int side) const noexcept { return market_[index(side)]; }
  Ticks lowest() const noexcept { return base_; }
  Ticks highest() const noexcept { return base_ + static_cast<Ticks>(levels_.size()) - 1; }

 private:
  static std::size_t index(int side) noexcept { return static_cast<std::size_t>(side_index(side)); }
  SimLevel& at(Ticks price) noexcept { return levels_[static_cast<std::size_t>(price - base_)]; }
  const SimLevel& at(Ticks price) const noexcept {
    return levels_[static_cast<std::size_t>(price - base_)];
  }
  void reach(Ticks price);
  void remove(Handle handle) noexcept;
  void leave_market_orders(const SimOrder& order) noexcept;
  void find_best(int side) noexcept;

  Ticks base_;
  std::vector<SimLevel> levels_;
  std::vector<SimOrder> pool_;
  std::vector<Handle> free_;
  std::array<std::vector<Handle>, 2> market_;
  std::array<Ticks, 2> best_{kNoPrice, kNoPrice};
  std::array<std::int32_t, 2> orders_{0, 0};
};

}  // namespace hft
