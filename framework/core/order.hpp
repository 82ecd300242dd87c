/// An order as we know it and, in replay, as the tape venue knows it: two sets of fields that never
/// read each other; only messages cross.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "records.hpp"

namespace hft {

struct Order {
  OrderRow row{};  ///< what the run leaves behind of it; `row.price`, `row.lots`: last confirmed by
                   ///< the venue
  // ours
  Ticks asked_price = kNoPrice;  ///< of the last replace in flight
  Lots reserved = 0;             ///< lots that exposure counts for it
  std::uint16_t requests = 0;    ///< cancels and replaces in flight
  Ts ts_replaced = kNoTime;      ///< venue's time of the newest replace it has confirmed
  bool acknowledged = false;
  bool used_up = false;  ///< a fill was heard that left nothing of it, as far as venues tell
  bool cancelling = false;
  bool quoted = false;  ///< kept by a target verb
  bool flattening = false;
  std::uint32_t live_index = 0;
  void* handle = nullptr;  ///< the Python object that shows it, if one exists
  // the venue's
  struct Resting {
    Ticks price = kNoPrice;
    Lots lots = 0, cum = 0;
    double ahead = 0;           ///< lots before us in the queue
    std::uint64_t arrival = 0;  ///< L3: orders with a smaller number stand before us
    double ahead_at_rest = std::numeric_limits<double>::quiet_NaN();
    Lots traded = 0;  ///< printed at our price and not yet seen as a smaller level
    Ts traded_ts = kNoTime;
    bool live = false;
    Lots leaves() const noexcept { return lots - cum; }
  } venue;

  bool alive() const noexcept {
    switch (row.state) {
      case OrderState::FILLED:
      case OrderState::CANCELED:
      case OrderState::REJECTED:
      case OrderState::EXPIRED:
        return false;
      default:
        return true;
    }
  }
  Lots leaves() const noexcept { return alive() ? std::max(row.lots - row.cum_lots, Lots{0}) : 0; }
  /// Confirmed and with nothing in flight.
  bool steady() const noexcept {
    return row.state == OrderState::NEW || row.state == OrderState::PARTIALLY_FILLED;
  }
  bool is_market() const noexcept { return row.price == kNoPrice; }
};

/// Orders by id, in chunks that never move.
class Orders {
 public:
  Order& add() {
    if (size_ % kChunk == 0) chunks_.push_back(std::make_unique<Order[]>(kChunk));
    Order& order = (*this)[++size_];
    order.row.id = size_;
    return order;
  }
  Order& operator[](OrderId id) noexcept { return chunks_[(id - 1) / kChunk][(id - 1) % kChunk]; }
  const Order& operator[](OrderId id) const noexcept {
    return chunks_[(id - 1) / kChunk][(id - 1) % kChunk];
  }
  bool has(OrderId id) const noexcept { return id >= 1 && id <= size_; }
  std::size_t size() const noexcept { return size_; }

 private:
  static constexpr std::size_t kChunk = 1024;
  std::vector<std::unique_ptr<Order[]>> chunks_;
  std::size_t size_ = 0;
};

}  // namespace hft
