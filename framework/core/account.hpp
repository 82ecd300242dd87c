/// Position, cash and fees of one instrument: a fold over fills and nothing else, in whole money
/// units.
#pragma once
#include "instrument.hpp"

namespace hft {

struct Account {
  Lots position = 0;
  Money cash = 0, fees = 0, funding = 0, impact = 0;
  double turnover =
      0;  ///< traded worth [money]; a sum of absolutes, too large for int64 on a busy year
  double avg_price = 0;  ///< of the open position [ticks], by average cost
  std::int64_t fills = 0;

  void apply(const Instrument& inst, int side, Lots lots, Ticks price, Money fee,
             Money own_impact = 0) noexcept {
    const Lots signed_lots = side * lots;
    const Lots after = position + signed_lots;
    if (position == 0 || (position > 0) == (signed_lots > 0)) {
      avg_price = (avg_price * static_cast<double>(position) +
                   static_cast<double>(price) * static_cast<double>(signed_lots)) /
                  static_cast<double>(after);
    } else if (after == 0) {
      avg_price = 0;
    } else if ((after > 0) != (position > 0)) {
      avg_price = static_cast<double>(price);
    }
    position = after;
    cash += inst.cash_of_fill(side, lots, price);
    fees += fee;
    impact += own_impact;
    turnover += static_cast<double>(inst.worth(lots, price));
    ++fills;
  }

  /// Marked at `mid2` half ticks, after fees, funding and impact.
  Money equity(const Instrument& inst, std::int64_t mid2) const noexcept {
    const Money mark = mid2 == kNoPrice ? 0 : inst.mark(position, mid2);
    return cash + mark - fees - funding - impact;
  }
};

}  // namespace hft
