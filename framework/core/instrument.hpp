/// Facts about one instrument, and what its contracts are worth in whole money units.
#pragma once
#include <cmath>
#include <string>

#include "errors.hpp"
#include "types.hpp"

namespace hft {

struct Instrument {
  InstrumentId id = 0;
  std::uint32_t venue_id = 0;
  std::string symbol, venue;
  double tick = 0, lot = 0, multiplier = 1;
  bool inverse = false;
  bool can_replace = true;                  ///< the venue has a native replace
  std::int64_t maker_e9 = 0, taker_e9 = 0;  ///< fee in 1e-9 of notional; negative: a rebate
  Money tick_value = 0;                     ///< linear: money of one tick on `tick_value_lots` lots
  std::int64_t tick_value_lots = 1;         ///< a power of ten: 1 unless a lot's tick is worth less

  std::string name() const { return symbol + "." + venue; }

  /// Throws ConfigError unless the worth of a tick is exact.
  void validate() {
    if (!(tick > 0) || !std::isfinite(tick))
      throw ConfigError(name() + ": tick must be positive, was " + std::to_string(tick));
    if (!(lot > 0) || !std::isfinite(lot))
      throw ConfigError(name() + ": lot must be positive, was " + std::to_string(lot));
    if (!(multiplier > 0) || !std::isfinite(multiplier))
      throw ConfigError(name() + ": multiplier must be positive, was " +
                        std::to_string(multiplier));
    if (inverse) return;
    const double exact = tick * lot * multiplier * static_cast<double>(kMoneyPerUnit);
    for (tick_value_lots = 1; tick_value_lots <= kMoneyPerUnit; tick_value_lots *= 10) {
      const double value = exact * static_cast<double>(tick_value_lots);
      tick_value = std::llround(value);
      if (tick_value > 0 && std::abs(value - static_cast<double>(tick_value)) <= 1e-6 * value)
        return;
    }
    throw ConfigError(
        name() + ": tick * lot * multiplier must be a whole number of 1e-18 currency units, was " +
        std::to_string(exact) + " times 1e-9");
  }

  /// Worth of `lots` at a price of `mid2` half ticks, an inverse contract's in its base currency.
  /// Where it is no whole number of money units it is rounded once, here.
  Money worth_half(Lots lots, std::int64_t mid2) const noexcept {
    if (inverse) {
      const double contracts = static_cast<double>(lots) * lot * multiplier * 1e9;
      return std::llround(contracts / (static_cast<double>(mid2) * 0.5 * tick));
    }
    const __int128 doubled = static_cast<__int128>(lots) * mid2 * tick_value;
    if (tick_value_lots == 1) [[likely]]
      return static_cast<Money>(doubled / 2);
    return static_cast<Money>((doubled + (doubled >= 0 ? 1 : -1) * tick_value_lots) /
                              (2 * tick_value_lots));
  }
  Money worth(Lots lots, Ticks price) const noexcept { return worth_half(lots, 2 * price); }

  /// What a tick is worth on one lot at this price [money]; not whole, and an inverse contract's
  /// depends on the price.
  double tick_worth(Ticks price) const noexcept {
    if (!inverse) return static_cast<double>(tick_value) / static_cast<double>(tick_value_lots);
    const double p = static_cast<double>(price);
    return lot * multiplier * 1e9 / (p * p * tick);
  }

  /// Cash that a fill moves: a buyer of a linear contract pays its worth, of an inverse one
  /// receives it, so that in both `cash + sign * worth(position)` is the equity.
  Money cash_of_fill(int side, Lots lots, Ticks price) const noexcept {
    return (inverse ? side : -side) * worth(lots, price);
  }
  Money mark(Lots position, std::int64_t mid2) const noexcept {
    return position == 0 ? 0 : (inverse ? -1 : 1) * worth_half(position, mid2);
  }

  /// What longs pay shorts at a settlement, of their worth at the mark price; rounded toward zero.
  Money funding(Lots position, Ticks mark_price, std::int64_t rate_e9) const noexcept {
    return static_cast<Money>(static_cast<__int128>(worth(position, mark_price)) * rate_e9 /
                              kMoneyPerUnit);
  }

  Money fee(bool maker, Lots lots, Ticks price) const noexcept {
    const __int128 due = static_cast<__int128>(worth(lots, price)) * (maker ? maker_e9 : taker_e9);
    const __int128 half = kMoneyPerUnit / 2;
    return static_cast<Money>((due + (due >= 0 ? half : -half)) / kMoneyPerUnit);
  }
};

}  // namespace hft
