/// One market-data row: 64 bytes, the same in this struct, as a NumPy row (`hft.EVENT`) and on
/// disk.
#pragma once
#include <cstdint>

#include "types.hpp"

namespace hft {

enum class Kind : std::uint8_t {
  LEVEL = 1,           ///< L2: absolute size `qty` at `price`; 0 removes the level
  CLEAR = 2,           ///< drop a side (NO_SIDE: both); ref_id 1: only from the touch to `price`
  SNAPSHOT_BEGIN = 3,  ///< the book is rebuilt by the LEVEL or ADD rows that follow ...
  SNAPSHOT_END = 4,    ///< ... until here
  TRADE = 5,           ///< a print that is no EXECUTE; side is the aggressor's
  BBO = 6,             ///< best level of one side, absolute
  BAR = 7,             ///< reserved for bar-only data
  // Order by order (L3). `order_id` is the resting order, `side` its side.
  ADD = 16,      ///< rests at `price` with `qty`, last in its queue
  MODIFY = 17,   ///< now at `price` with `qty` left; smaller at its price keeps its place
  CANCEL = 18,   ///< loses `qty` lots; 0: all it has
  EXECUTE = 19,  ///< trades `qty` at `price`: a print, whose aggressor has the other side. NO_SIDE:
                 ///< an auction's match, order_id buys from ref_id, both rested
  REPLACE = 20,  ///< is gone; `ref_id` rests at `price` with `qty`, last in its queue
  STATUS = 32,   ///< trading state; ref_id is a `Trading` value
  DATUM = 33,    ///< small datum; order_id is a `Datum` value, ref_id its payload
};

enum EventFlag : std::uint16_t {
  SEEN_BY_VENUE = 1,  ///< the row moves the venue's book at ts_event
  SEEN_BY_US = 2,     ///< the row moves our book at ts_recv (feeds that reorder split the two)
  LAST = 4,           ///< last row of a packet: triggers and on_book run here, never in between
  RECOVERED = 8,      ///< re-sent or rebuilt after a loss
  UNCERTAIN = 16,     ///< inferred, e.g. by differencing snapshots
  OWN = 32,           ///< our own order or print, as the venue shows it
  NO_PRINT = 64,      ///< of an EXECUTE: its print is a row of its own, or it is none
  NO_CHANGE = 128,    ///< of an L3 feed: what it did to the book comes as rows of its own
};

enum class Trading : std::int64_t { OPEN = 0, HALT = 1, AUCTION = 2, CLOSED = 3, GAP = 4 };

enum class Datum : std::int64_t {
  FUNDING =
      1,     ///< price: mark price in ticks; ref_id: funding rate in 1e-9, longs pay when positive
  MARK = 2,  ///< price: mark price in ticks
  SIGNAL = 3,  ///< ref_id: an external value in 1e-9, delivered to on_data
};

struct Event {
  Ts ts_event;  ///< venue's clock
  Ts ts_recv;   ///< our clock
  Ticks price;  ///< [ticks]
  Lots qty;     ///< [lots]
  std::int64_t order_id;
  std::int64_t ref_id;  ///< second order of a trade, new id of a replace, or a small payload
  std::int64_t seq;     ///< venue's sequence or update id; 0: none
  InstrumentId instrument;
  Kind kind;
  std::int8_t side;  ///< +1 bid or buyer, -1 ask or seller, 0 unknown
  std::uint16_t flags;
};
static_assert(sizeof(Event) == 64);

constexpr bool is_order(Kind kind) noexcept { return kind >= Kind::ADD && kind <= Kind::REPLACE; }

/// A trade that the market reports with this row, ours among them.
constexpr bool is_print(const Event& e) noexcept {
  return e.kind == Kind::TRADE || (e.kind == Kind::EXECUTE && !(e.flags & NO_PRINT));
}
/// Who took, in a print.
constexpr std::int8_t aggressor(const Event& e) noexcept {
  return e.kind == Kind::TRADE ? e.side : static_cast<std::int8_t>(-e.side);
}

}  // namespace hft
