/// What travels between us and a venue.
#pragma once
#include "records.hpp"

namespace hft {

struct Command {
  enum class Kind : std::uint8_t { NEW = 1, CANCEL, REPLACE };
  Kind kind;
  Tif tif = Tif::GTC;
  std::int8_t side = 0;
  InstrumentId instrument = 0;
  OrderId order = 0;
  Ticks price = kNoPrice;  ///< kNoPrice: market
  Lots lots = 0;           ///< total size asked for, filled part included
  Ts ts_send = kNoTime;
  Ts ts_arrive = kNoTime;
  Ns response_ns = -1;  ///< replay: how long its answer will take, drawn with the way there
};

struct Update {
  enum class Kind : std::uint8_t {
    ACCEPTED = 1,
    REJECTED,
    FILL,
    CANCELED,
    CANCEL_REJECTED,
    REPLACED,
    REPLACE_REJECTED,
    EXPIRED,
    FUNDING,  ///< `money` paid on the venue's position
  };
  Kind kind;
  Reason reason = Reason::NONE;
  FillReason fill_reason = FillReason::NONE;
  bool maker = false;
  InstrumentId instrument = 0;
  OrderId order = 0;
  Ticks price = kNoPrice;
  Lots lots = 0;  ///< FILL: filled now; REPLACED: new total
  double ahead = std::numeric_limits<double>::quiet_NaN();  ///< ACCEPTED, REPLACED: lots before us
  Money money = 0;                                          ///< FILL: fee; FUNDING: amount paid
  Money impact = 0;           ///< FILL, replay: what our own trading added to the price
  bool extrapolated = false;  ///< FILL, replay
  bool leaves = false;        ///< FILL, where answers may overtake: some of the order is left
  Ts ts_venue = kNoTime;
  Ts ts_recv = kNoTime;
  std::int64_t cause_row = -1;
  std::int64_t fill = -1;  ///< index of the fill's row in replay
};

}  // namespace hft
