#include "sim_book.hpp"

#include <algorithm>

namespace hft {

namespace {
constexpr Ticks kSpare = 2048;  // levels kept on each side when the array is made or grown
const SimLevel kEmptyLevel{};
}  // namespace

SimBook::SimBook(Ticks around)
    : base_(around - kSpare), levels_(static_cast<std::size_t>(2 * kSpare)) {}

SimBook::Handle SimBook::add(Side side, Ticks price, Lots lots, OrderId venue_id, OrderId our_id) {
  reach(price);
  Handle handle;
  if (free_.empty()) {
    handle = static_cast<Handle>(pool_.size());
    pool_.emplace_back();
  } else {
    handle = free_.back();
    free_.pop_back();
  }
  SimLevel& level = at(price);
  SimOrder& order = pool_[static_cast<std::size_t>(handle)];
  order = {venue_id, our_id, price, lots, level.tail, -1, -1, side};
  if (our_id == 0) {
    auto& market = market_[index(side)];
    order.slot = static_cast<std::int32_t>(market.size());
    market.push_back(handle);
  }
  (level.tail < 0 ? level.head : pool_[static_cast<std::size_t>(level.tail)].next) = handle;
  level.tail = handle;
  level.side = side;
  level.lots += lots;
  if (our_id != 0) level.own_lots += lots;
  ++level.orders;
  ++orders_[index(side)];
  Ticks& best = best_[index(side)];
  if (best == kNoPrice || price * side > best * side) best = price;
  return handle;
}

void SimBook::reduce(Handle handle, Lots lots) noexcept {
  SimOrder& order = pool_[static_cast<std::size_t>(handle)];
  SimLevel& level = at(order.price);
  order.leaves -= lots;
  level.lots -= lots;
  if (order.our_id != 0) level.own_lots -= lots;
  if (order.leaves == 0) remove(handle);
}

const SimLevel& SimBook::level(Ticks price) const noexcept {
  return price < lowest() || price > highest() ? kEmptyLevel : at(price);
}

Lots SimBook::ahead(Handle handle) const noexcept {
  Lots sum = 0;
  for (Handle h = order(handle).prev; h >= 0; h = order(h).prev)
    if (order(h).our_id == 0) sum += order(h).leaves;
  return sum;
}

bool SimBook::offers(int side, Ticks limit, Lots lots) const noexcept {
  if (!has(-side)) return false;
  const Ticks edge = side > 0 ? highest() : lowest();
  const Ticks last = limit == kNoPrice || limit * side > edge * side ? edge : limit;
  for (Ticks p = best(-side); p * side <= last * side; p += side) {
    lots -= at(p).lots - at(p).own_lots;
    if (lots <= 0) return true;
  }
  return false;
}

/// Grows the array so that it holds `price`; at least doubles, so growth is rare.
void SimBook::reach(Ticks price) {
  if (price >= lowest() && price <= highest()) return;
  const auto span = static_cast<Ticks>(levels_.size());
  const Ticks low = price < lowest() ? std::min(price - kSpare, base_ - span) : base_;
  const Ticks high = price > highest() ? std::max(price + kSpare, highest() + span) : highest();
  std::vector<SimLevel> grown(static_cast<std::size_t>(high - low + 1));
  std::copy(levels_.begin(), levels_.end(), grown.begin() + (base_ - low));
  levels_ = std::move(grown);
  base_ = low;
}

void SimBook::remove(Handle handle) noexcept {
  const SimOrder& order = pool_[static_cast<std::size_t>(handle)];
  SimLevel& level = at(order.price);
  (order.prev < 0 ? level.head : pool_[static_cast<std::size_t>(order.prev)].next) = order.next;
  (order.next < 0 ? level.tail : pool_[static_cast<std::size_t>(order.next)].prev) = order.prev;
  if (order.our_id == 0) leave_market_orders(order);
  --orders_[index(order.side)];
  free_.push_back(handle);
  if (--level.orders == 0) {
    level.side = NO_SIDE;
    if (order.price == best_[index(order.side)]) find_best(order.side);
  }
}

void SimBook::leave_market_orders(const SimOrder& order) noexcept {
  auto& market = market_[index(order.side)];
  const Handle last = market.back();
  market[static_cast<std::size_t>(order.slot)] = last;
  pool_[static_cast<std::size_t>(last)].slot = order.slot;
  market.pop_back();
}

void SimBook::find_best(int side) noexcept {
  Ticks& best = best_[index(side)];
  if (orders_[index(side)] == 0) {
    best = kNoPrice;
    return;
  }
  while (at(best).orders == 0) best -= side;
}

}  // namespace hft
