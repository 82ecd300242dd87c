/// What a run leaves behind, one fixed row an order, a fill and a sample: NumPy sees the same bytes
/// (framework/hft/analysis/records.py). All times are ns since the epoch; kNoTime where it never
/// happened.
#pragma once
#include <cstdint>

#include "types.hpp"

namespace hft {

enum class OrderState : std::uint8_t {
  PENDING_NEW = 0,
  NEW,
  PARTIALLY_FILLED,
  FILLED,
  PENDING_CANCEL,
  PENDING_REPLACE,
  CANCELED,
  REJECTED,
  EXPIRED,
  UNKNOWN,
};

enum class Tif : std::uint8_t { GTC = 0, IOC, FOK, POST_ONLY };

/// Why something was refused or ended.
enum class Reason : std::uint8_t {
  NONE = 0,
  // the risk gate's
  ORDER_SIZE,
  POSITION_LIMIT,
  OPEN_ORDERS,
  PRICE_COLLAR,
  MESSAGE_RATE,
  NO_REFERENCE,  ///< no live book to judge the price against
  HALTED_BY_RISK,
  // the venue's
  WOULD_CROSS,    ///< post-only order met the other side
  NO_LIQUIDITY,   ///< IOC, FOK or market order found too little
  MARKET_CLOSED,  ///< halt, auction or closed session
  UNKNOWN_ORDER,  ///< cancel or replace of an order that is gone
  TOO_SMALL,      ///< replace to no more than what is already filled
  // ours
  CANCELED_BY_US,
  END_OF_RUN,
};

enum class FillReason : std::uint8_t {
  NONE = 0,
  QUEUE,    ///< a print at our price reached our place in the queue
  THROUGH,  ///< a print went through our price
  CROSSED,  ///< the other side's book arrived at our price
  TAKEN,    ///< our order took displayed size
};

inline constexpr int kMarkouts = 6;
inline constexpr Ns kMarkoutNs[kMarkouts] = {10'000'000,    100'000'000,    1'000'000'000,
                                             5'000'000'000, 10'000'000'000, 60'000'000'000};

struct OrderRow {
  OrderId id;
  Ticks price;             ///< last price asked for; kNoPrice: market
  Lots lots;               ///< last total size asked for
  Lots cum_lots;           ///< filled
  std::int64_t cum_ticks;  ///< sum of fill price * lots
  double ahead_at_accept;  ///< lots ahead when it joined the queue; NaN: never rested
  Ts ts_cause_event;       ///< venue's time of the packet or features that led to it
  Ts ts_cause_recv;        ///< the same packet on our clock
  Ts ts_model_start;       ///< by_signal: the model's service began ...
  Ts ts_model_end;         ///< ... and its answer was there
  Ts ts_decide;            ///< the handler started
  Ts ts_handled;           ///< ... and its compute time was over
  Ts ts_send;              ///< passed the risk gate and left us
  Ts ts_arrive;            ///< reached the venue's matching
  Ts ts_ack;               ///< first answer reached us
  Ts ts_done;              ///< final state known to us
  std::int64_t cause_row;  ///< row of that packet in its stream; -1: none
  InstrumentId instrument;
  std::uint32_t tag;
  std::uint32_t parent;
  std::uint32_t replaces;  ///< replace requests sent
  std::int8_t side;
  Tif tif;
  OrderState state;
  Reason reason;
  std::uint8_t by_signal;  ///< 1: ts_cause_* are those of the signal's features
  std::uint8_t pad[11];
};
static_assert(sizeof(OrderRow) == 168);

struct FillRow {
  OrderId order;
  Ticks price;
  Lots lots;
  Money fee;     ///< paid when positive
  Money impact;  ///< what our own trading added to the price paid; negative: what it gave back
  Ts ts_venue;
  Ts ts_recv;         ///< the fill report reached us
  std::int64_t mid2;  ///< venue's bid + ask just before the fill [half ticks]; kNoPrice: none yet
  double ahead_at_accept;
  std::int64_t cause_row;  ///< row in the stream that caused it; -1: our own arrival
  Lots position;           ///< after it
  std::int64_t
      markout_mid2[kMarkouts];  ///< venue's bid + ask kMarkoutNs later; kNoPrice: run ended
  InstrumentId instrument;
  std::int8_t side;
  std::uint8_t maker;
  FillReason reason;
  std::uint8_t extrapolated;  ///< 1: our share of the volume was too large to believe this fill
};
static_assert(sizeof(FillRow) == 144);

struct SampleRow {
  Ts ts;
  Ticks bid, ask;  ///< our book; kNoPrice: none
  Lots position;
  Money equity;   ///< marked at the mid, after fees, funding and impact
  Money fees;     ///< paid so far
  Money funding;  ///< paid so far
  Money impact;   ///< paid so far
  InstrumentId instrument;
  std::uint32_t open_orders;
};
static_assert(sizeof(SampleRow) == 72);

}  // namespace hft
