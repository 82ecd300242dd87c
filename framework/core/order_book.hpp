/// Orders by id and the queue of every level, from order-by-order rows (L3).
///
/// An order is a node of a pool, found through an open-addressing table of ids and linked into its
/// level's queue; a row costs one probe of the table and touches the order and its neighbours.
/// Measured on 5 M rows: 23 ns, where lists in a std::map with a std::unordered_map of ids cost 46
/// (tests/bench/book.py).
/// Every order carries an arrival number, taken when it goes to the back of its queue: two orders
/// of a level compare by it, so that whether one stands before another is known without a walk.
/// Levels that emptied are kept until their table would grow. Slow: clearing a side, a scan of the
/// levels; walking a queue.
///
/// What a feed gets wrong is counted and named, never fatal: an unknown id changes nothing, an id
/// that is used again replaces the order that had it, and more than is left takes what is left.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "event.hpp"
#include "int_map.hpp"

namespace hft {

/// When a changed order keeps its place in the queue; always at its price only.
enum class Keeps : std::uint8_t {
  SMALLER = 0,  ///< not larger than it was
  SAME_PRICE,   ///< of any size
  NOTHING,      ///< never
};

constexpr bool keeps_place(Keeps rule, bool same_price, Lots before, Lots after) noexcept {
  return same_price && rule != Keeps::NOTHING && (rule == Keeps::SAME_PRICE || after <= before);
}

class OrderBook {
 public:
  static constexpr std::uint64_t kUnknown = ~0ULL;  ///< arrival of an order that was not looked up

  /// What a row did to one level, by one order.
  struct Change {
    std::int64_t key;       ///< price * side
    Lots before, after;     ///< of the level
    Lots gone;              ///< that the order lost there; negative: gained
    std::uint64_t arrival;  ///< the order's, before the row; of one that joins, its new one
    std::int8_t side;
    bool traded;  ///< what is gone was executed, by this row or one before it of its instant
  };

  struct Faults {
    std::int64_t unknown_id = 0;  ///< a row about an order that does not rest
    std::int64_t reused_id = 0;   ///< a new order with the id of one that rests
    std::int64_t overfill = 0;    ///< more executed or cancelled than was left
  };

  struct Resting {
    std::int64_t key;
    Lots lots;
    std::uint64_t arrival;
    std::int8_t side;
  };

  explicit OrderBook(Keeps keeps) : keeps_(keeps) {}

  /// Applies a row of an L3 kind; the answer lives until the next.
  std::span<const Change> apply(const Event& e) {
    count_ = 0;
    change(e);
    if (!executed_.empty()) [[unlikely]]
      explain(e);
    return {changes_.data(), count_};
  }

  /// The order with this id; false: it does not rest.
  bool find(std::int64_t id, Resting& out) const noexcept {
    const std::size_t at = ids_.find(id);
    if (at == IntMap::kNone) return false;
    const Node& n = node(at);
    const Level& level = levels_[n.level];
    out = {level.price * level.side, n.lots, n.arrival, level.side};
    return true;
  }

  std::size_t size() const noexcept { return ids_.size(); }
  /// Orders at a level.
  std::uint32_t orders_at(int side, Ticks price) const noexcept {
    const Level* level = level_at(side, price);
    return level ? level->orders : 0;
  }
  /// Calls `f(id, lots)` for the orders of a level, first in the queue first.
  template <class F>
  void for_each_at(int side, Ticks price, F&& f) const {
    if (const Level* level = level_at(side, price))
      for (std::uint32_t n = level->head; n != kEnd; n = pool_[n].next)
        f(pool_[n].id, pool_[n].lots);
  }
  struct Place {
    Lots ahead = 0;  ///< lots of the level's orders that arrived before it
    Lots own = 0;    ///< what it has itself; 0: it does not rest there
  };
  /// Where the order that arrived as this number stands or stood; walks the queue up to it.
  Place place_of(int side, Ticks price, std::uint64_t arrival) const noexcept {
    Place place;
    const Level* level = level_at(side, price);
    std::uint32_t n = level ? level->head : kEnd;
    for (; n != kEnd && pool_[n].arrival < arrival; n = pool_[n].next) place.ahead += pool_[n].lots;
    if (n != kEnd && pool_[n].arrival == arrival) place.own = pool_[n].lots;
    return place;
  }
  /// An order that arrives now stands behind all with a smaller number, before all others.
  std::uint64_t arrivals() const noexcept { return arrivals_; }
  const Faults& faults() const noexcept { return faults_; }

  void clear() {
    ids_.clear();
    by_price_.clear();
    pool_.clear();
    free_ = kEnd;
    levels_.clear();
  }

  /// Drops the orders of a side at `worst_key` and better.
  void drop(int side, std::int64_t worst_key) {
    for (Level& level : levels_)
      if (level.side == side && level.price * side >= worst_key) drop(level);
  }

 private:
  static constexpr std::uint32_t kEnd = ~0U;
  static constexpr Lots kAll = std::numeric_limits<Lots>::max();
  static constexpr std::size_t kFewLevels = 256;

  struct Node {
    std::int64_t id;
    Lots lots;
    std::uint64_t arrival;
    std::uint32_t prev, next;
    std::uint32_t level;
  };
  struct Level {
    Ticks price;
    Lots lots = 0;
    std::uint32_t head = kEnd, tail = kEnd;
    std::uint32_t orders = 0;
    std::int8_t side;
  };

  void change(const Event& e) {
    switch (e.kind) {
      case Kind::ADD:
        add(e.order_id, e.side, e.price, e.qty);
        break;
      case Kind::CANCEL:
        reduce(e.order_id, e.qty == 0 ? kAll : e.qty);
        break;
      case Kind::EXECUTE:
        execute(e);
        break;
      case Kind::MODIFY:
        modify(e);
        break;
      case Kind::REPLACE: {
        const std::size_t at = ids_.find(e.order_id);
        // A replace need not repeat the side.
        const auto side = at == IntMap::kNone ? e.side : levels_[node(at).level].side;
        reduce(e.order_id, kAll);
        if (side != NO_SIDE) add(e.ref_id, side, e.price, e.qty);
        break;
      }
      default:
        break;
    }
  }

  static std::int64_t price_key(int side, Ticks price) noexcept {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(price) * 2) + side_index(side);
  }
  Node& node(std::size_t at) noexcept { return pool_[ids_.value(at)]; }
  const Node& node(std::size_t at) const noexcept { return pool_[ids_.value(at)]; }
  const Level* level_at(int side, Ticks price) const noexcept {
    const std::size_t at = by_price_.find(price_key(side, price));
    return at == IntMap::kNone ? nullptr : &levels_[by_price_.value(at)];
  }

  void note(const Level& level, Lots before, Lots gone, std::uint64_t arrival) noexcept {
    changes_[count_++] = {
        level.price * level.side, before, level.lots, gone, arrival, level.side, false};
  }

  void add(std::int64_t id, std::int8_t side, Ticks price, Lots lots) {
    if (id == IntMap::kEmpty) return;  // no venue's; refused by the checks of a feed
    if (ids_.find(id) != IntMap::kNone) [[unlikely]] {
      ++faults_.reused_id;
      reduce(id, kAll);
    }
    const std::uint32_t n = allocate();
    ids_.insert(id, n);
    pool_[n].id = id;
    join(n, level_of(side, price), lots);
  }

  /// Puts an order last in a level's queue.
  void join(std::uint32_t n, std::uint32_t level_index, Lots lots) noexcept {
    Level& level = levels_[level_index];
    Node& order = pool_[n];
    order.lots = lots;
    order.arrival = arrivals_++;
    order.level = level_index;
    order.prev = level.tail;
    order.next = kEnd;
    (level.tail == kEnd ? level.head : pool_[level.tail].next) = n;
    level.tail = n;
    ++level.orders;
    const Lots before = level.lots;
    level.lots += lots;
    note(level, before, -lots, order.arrival);
  }

  /// Takes an order out of its level's queue; the node stays.
  void leave(const Node& order) noexcept {
    Level& level = levels_[order.level];
    (order.prev == kEnd ? level.head : pool_[order.prev].next) = order.next;
    (order.next == kEnd ? level.tail : pool_[order.next].prev) = order.prev;
    --level.orders;
    const Lots before = level.lots;
    level.lots -= order.lots;
    note(level, before, order.lots, order.arrival);
  }

  void reduce(std::int64_t id, Lots lots) {
    const std::size_t at = ids_.find(id);
    if (at == IntMap::kNone) [[unlikely]] {
      ++faults_.unknown_id;
      return;
    }
    const std::uint32_t n = ids_.value(at);
    Node& order = pool_[n];
    if (lots < order.lots) return resize(order, order.lots - lots);
    if (lots > order.lots && lots != kAll) [[unlikely]]
      ++faults_.overfill;
    leave(order);
    ids_.erase(at);
    release(n);
  }

  void resize(Node& order, Lots lots) noexcept {
    Level& level = levels_[order.level];
    const Lots before = level.lots, gone = order.lots - lots;
    order.lots = lots;
    level.lots -= gone;
    note(level, before, gone, order.arrival);
  }

  void execute(const Event& e) {
    if (e.flags & NO_CHANGE) {  // may name one that never rested: a stop order in an opening
      if (e.ts_event != executed_ts_) executed_.clear();
      executed_ts_ = e.ts_event;
      executed_.push_back(e.order_id);
      return;
    }
    reduce(e.order_id, e.qty);
    if (e.side == NO_SIDE) reduce(e.ref_id, e.qty);  // a match of two that rested
    for (std::size_t i = 0; i < count_; ++i) changes_[i].traded = true;
  }

  /// A feed that tells executions apart from what they change: the change that follows is no
  /// cancel.
  void explain(const Event& e) {
    if (e.ts_event != executed_ts_) return executed_.clear();
    const auto at = std::find(executed_.begin(), executed_.end(), e.order_id);
    if (e.kind != Kind::EXECUTE && at != executed_.end()) {
      for (std::size_t i = 0; i < count_; ++i) changes_[i].traded = changes_[i].gone > 0;
      executed_.erase(at);
    }
  }

  void modify(const Event& e) {
    const std::size_t at = ids_.find(e.order_id);
    if (at == IntMap::kNone) [[unlikely]] {
      ++faults_.unknown_id;
      return;
    }
    if (e.qty == 0) return reduce(e.order_id, kAll);
    const std::uint32_t n = ids_.value(at);
    Node& order = pool_[n];
    const Level& level = levels_[order.level];
    if (keeps_place(keeps_, level.price == e.price, order.lots, e.qty)) return resize(order, e.qty);
    const std::int8_t side = level.side;
    leave(order);
    join(n, level_of(side, e.price), e.qty);
  }

  std::uint32_t level_of(std::int8_t side, Ticks price) {
    const std::int64_t key = price_key(side, price);
    const std::size_t at = by_price_.find(key);
    if (at != IntMap::kNone) [[likely]]
      return by_price_.value(at);
    if (levels_.size() >= most_levels_) drop_empty_levels();
    levels_.push_back({price, 0, kEnd, kEnd, 0, side});
    const auto index = static_cast<std::uint32_t>(levels_.size() - 1);
    by_price_.insert(key, index);
    return index;
  }

  void drop(Level& level) {
    for (std::uint32_t n = level.head; n != kEnd;) {
      const std::uint32_t next = pool_[n].next;
      ids_.erase(ids_.find(pool_[n].id));
      release(n);
      n = next;
    }
    level.head = level.tail = kEnd;
    level.orders = 0;
    level.lots = 0;
  }

  /// A price that was visited once must not be held for ever.
  void drop_empty_levels() {
    std::erase_if(levels_, [](const Level& level) { return level.orders == 0; });
    most_levels_ = std::max(kFewLevels, 2 * levels_.size());
    by_price_ = IntMap(2 * std::bit_ceil(most_levels_));
    for (std::uint32_t i = 0; i < levels_.size(); ++i) {
      const Level& level = levels_[i];
      for (std::uint32_t n = level.head; n != kEnd; n = pool_[n].next) pool_[n].level = i;
      by_price_.insert(price_key(level.side, level.price), i);
    }
  }

  std::uint32_t allocate() {
    if (free_ == kEnd) {
      pool_.emplace_back();
      return static_cast<std::uint32_t>(pool_.size() - 1);
    }
    const std::uint32_t n = free_;
    free_ = pool_[n].next;
    return n;
  }
  void release(std::uint32_t n) noexcept {
    pool_[n].next = free_;
    free_ = n;
  }

  IntMap ids_{1024}, by_price_{2 * kFewLevels};
  std::vector<Node> pool_;
  std::vector<Level> levels_;
  std::size_t most_levels_ = kFewLevels;
  std::uint32_t free_ = kEnd;
  std::uint64_t arrivals_ = 1;
  Keeps keeps_;
  Faults faults_;
  std::vector<std::int64_t> executed_;  // ids whose change is still to come ...
  Ts executed_ts_ = kNoTime;            // ... at this instant of the venue
  std::array<Change, 3> changes_{};  // a replace: the old order, one that had its id, the new one
  std::size_t count_ = 0;
};

}  // namespace hft
