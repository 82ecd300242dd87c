/// The gate every order passes in both modes, before it leaves: a refusal is a value, not an
/// exception. Position counts what is live and in flight as if it will fill. Cancels always pass: a
/// gate must never keep risk on.
#pragma once
#include <cstdlib>
#include <vector>

#include "message.hpp"

namespace hft {

struct RiskLimits {
  Lots max_order_lots = 0;  ///< 0: no limit, here and below
  Lots max_position_lots = 0;
  std::uint32_t max_open_orders = 0;  ///< an instrument
  std::int64_t collar_bps = 0;        ///< furthest a price may lie from our mid, either way
  std::uint32_t max_messages = 0;     ///< new orders and replaces in any `window_ns`
  Ns window_ns = 1'000'000'000;
};

/// What the gate needs to know of one instrument.
struct Exposure {
  Lots position = 0;
  Lots open_lots[2] = {0, 0};  ///< live and in flight, by side
  std::uint32_t open_orders = 0;
  bool halted = false;  ///< its trading day winds down
};

class RiskGate {
 public:
  explicit RiskGate(RiskLimits limits = {})
      : limits_(limits), sent_(limits.max_messages, kNoTime) {}

  /// `mid2`: of our book [half ticks]; kNoPrice: it is not live, or lacks a side.
  Reason check_new(const Exposure& x, std::int64_t mid2, int side, Ticks price, Lots lots,
                   Ts now) noexcept {
    if (halted || x.halted) return Reason::HALTED_BY_RISK;
    if (limits_.max_open_orders != 0 && x.open_orders >= limits_.max_open_orders)
      return Reason::OPEN_ORDERS;
    return check(x, mid2, side, price, lots, lots, now);
  }

  /// `added`: lots by which the open size grows.
  Reason check_replace(const Exposure& x, std::int64_t mid2, int side, Ticks price, Lots lots,
                       Lots added, Ts now) noexcept {
    if (halted || x.halted) return Reason::HALTED_BY_RISK;
    return check(x, mid2, side, price, lots, added, now);
  }

  bool halted = false;

 private:
  Reason check(const Exposure& x, std::int64_t mid2, int side, Ticks price, Lots lots, Lots added,
               Ts now) noexcept {
    if (limits_.max_order_lots != 0 && lots > limits_.max_order_lots) return Reason::ORDER_SIZE;
    if (limits_.max_position_lots != 0 && added > 0 &&
        side * x.position + x.open_lots[side_index(side)] + added > limits_.max_position_lots)
      return Reason::POSITION_LIMIT;
    if (limits_.collar_bps != 0 && price != kNoPrice) {
      if (mid2 == kNoPrice) return Reason::NO_REFERENCE;
      const std::int64_t away = std::abs(2 * price - mid2);
      // A fat finger may be far enough for the product to leave 64 bits.
      if (static_cast<__int128>(away) * 10'000 >
          static_cast<__int128>(limits_.collar_bps) * std::abs(mid2))
        return Reason::PRICE_COLLAR;
    }
    if (limits_.max_messages !=
        0) {  // the oldest of the last `max_messages` must be out of the window
      if (sent_[next_] != kNoTime && now - sent_[next_] < limits_.window_ns)
        return Reason::MESSAGE_RATE;
      sent_[next_] = now;
      next_ = (next_ + 1) % sent_.size();
    }
    return Reason::NONE;
  }

  RiskLimits limits_;
  std::vector<Ts> sent_;
  std::size_t next_ = 0;
};

}  // namespace hft
