/// The words every part of the core speaks: clocks, prices, sides, and what "none" looks like.
#pragma once
#include <cstdint>
#include <limits>

namespace hft {

using Ts = std::int64_t;        ///< an instant: ns since the epoch, UTC
using Ns = std::int64_t;        ///< a duration in ns
using Ticks = std::int64_t;     ///< a price in whole ticks of its instrument
using Lots = std::int64_t;      ///< a quantity in whole lots of its instrument
using Money = std::int64_t;     ///< an amount in 1e-9 of the settlement currency
using OrderId = std::uint64_t;  ///< 1, 2, 3 ... in order of submission; 0: none
using InstrumentId = std::uint32_t;

inline constexpr Ts kNever = std::numeric_limits<Ts>::max();
inline constexpr Ts kNoTime = std::numeric_limits<Ts>::min();
inline constexpr Ticks kNoPrice = std::numeric_limits<Ticks>::min();
inline constexpr std::int64_t kMoneyPerUnit = 1'000'000'000;

/// +1 and -1, so that `price * side` orders both sides of a book the same way: the best level is
/// always the one with the largest key.
enum Side : std::int8_t { BUY = 1, SELL = -1, NO_SIDE = 0 };

constexpr int side_index(int side) noexcept { return side < 0; }  ///< 0: bids, 1: asks

}  // namespace hft
