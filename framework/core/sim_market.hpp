/// A seeded market, order by order: a source of EVENT rows for replay, and the venue of
/// `hft live --venue sim`, where our orders stand in the same queues as the crowd's.
///
/// `step` performs the crowd's next action, `submit`, `cancel` and `replace` ours; each is one
/// packet: prints first, then the levels they changed, `LAST` on the last row. The same
/// configuration and the same orders of ours give the same bytes; an instrument's rows do not
/// depend on which others exist.
///
/// Our share of what the rows show: a LEVEL row's `qty` is all that rests and its `ref_id` our part
/// of it; a TRADE row's `ref_id` is 1 where we were one of the two. `OWN` marks rows that are
/// wholly ours: prints of ours, and levels where nobody else's lots changed.
///
/// As an order-by-order feed (SimFeed::L3) rows are ADD, MODIFY (size down in place: `qty` is what
/// is left), CANCEL (`qty` is what went) and EXECUTE, each with the resting order's side and id;
/// `ref_id` of an EXECUTE is the taker's id, of an ADD our own id where it is ours. A replace that
/// loses its place is a CANCEL and an ADD.
#pragma once
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "event.hpp"
#include "records.hpp"
#include "sim_book.hpp"
#include "sim_flow.hpp"

namespace hft {

enum class SimFeed : std::uint8_t { L2 = 2, L3 = 3 };

struct SimMarketConfig {
  std::uint64_t seed = 1;
  Ts start_ts = 0;
  std::vector<SimInstrument> instruments;
  SimRegimes regimes;
  SimFeed feed = SimFeed::L2;
  bool funding = true;  ///< a FUNDING datum at 0, 8 and 16 h UTC
};

enum class SimReportKind : std::uint8_t {
  ACK = 1,
  REJECT,
  FILL,
  CANCELED,
  EXPIRED,
  CANCEL_REJECT,
  REPLACED,
  REPLACE_REJECT,
};

/// The venue's answer; 72 bytes, NumPy sees the same (hft/data/synth.py).
struct SimReport {
  OrderId id;         ///< ours
  Ticks price;        ///< of the fill; otherwise the order's; kNoPrice: market
  Lots lots;          ///< FILL: filled; CANCELED, EXPIRED, REJECT: given up; else the total asked
  Lots leaves;        ///< open after this report
  double ahead;       ///< ACK, REPLACED: others' lots ahead once it rests; NaN: it does not rest
  Ts ts;              ///< venue's clock
  std::int64_t mid2;  ///< bid + ask before our action or the crowd's [half ticks]
  InstrumentId instrument;
  SimReportKind kind;
  Reason reason;
  FillReason fill_reason;
  std::int8_t side;
  std::uint8_t maker;
  std::uint8_t pad[7];
};
static_assert(sizeof(SimReport) == 72);

class SimMarket {
 public:
  using Rows = std::vector<Event>;
  using Reports = std::vector<SimReport>;

  /// Throws std::invalid_argument on a configuration that cannot run.
  explicit SimMarket(const SimMarketConfig& config);

  Ts next_ts() const noexcept;  ///< time of the crowd's next action
  void step(Rows& out, Reports& reports);
  /// Every action up to and including `ts`, or until `out` holds `max_rows` or more.
  void step_until(Ts ts, Rows& out, Reports& reports, std::size_t max_rows);

  // Ours. Time never goes back: a `now` before the instrument's last packet is raised to it.
  // A price off the venue's band [1, 4 * price0] is rejected, PRICE_COLLAR. An order that meets
  // one of our own takes it out of the book first (EXPIRED, WOULD_CROSS): we never trade with
  // ourselves.
  /// Throws std::invalid_argument on lots <= 0, an id in use or an unknown instrument.
  void submit(InstrumentId instrument, OrderId our_id, Side side, Ticks price, Lots lots, Tif tif,
              Ts now, Rows& out, Reports& reports);
  void cancel(InstrumentId instrument, OrderId our_id, Ts now, Rows& out, Reports& reports);
  /// Size down at the same price keeps the place; anything else goes to the back of the queue.
  void replace(InstrumentId instrument, OrderId our_id, Ticks price, Lots new_total, Ts now,
               Rows& out, Reports& reports);

  /// The whole book as rows, as at the start; for a reader that lost messages.
  void snapshot(InstrumentId instrument, Ts now, Rows& out);

  const SimBook& book(InstrumentId instrument) const;
  const SimLatents& latents(InstrumentId instrument) const;  ///< truth that no feed shows
  /// Others' lots ahead of our resting order in its true queue; NaN: it does not rest.
  double ahead(OrderId our_id) const;

 private:
  struct Venue {
    SimInstrument instrument;
    SimFlow flow;
    SimBook book;
    Ts next_action;
    Ts next_funding;
    Ts last_ts;
    std::int64_t seq = 0;
    OrderId last_id = 0;
    bool told = false;  ///< the first snapshot is out
  };
  struct OwnOrder {
    std::size_t venue;
    SimBook::Handle handle;
    Ticks price;
    Lots total, filled;
    Side side;
    Tif tif;
  };
  struct Touched {
    Ticks price;
    std::int8_t side;
    bool others;  // somebody else's lots changed
  };
  class Packet;  // one action: its matching, rows and reports

  void warm_up(Venue& venue);
  void act(Venue& venue, Packet& packet);
  void fund(Venue& venue, Rows& out);
  void tell(Venue& venue, Ts now, Rows& out);
  std::size_t index_of(InstrumentId instrument) const;
  Venue& prepared(InstrumentId instrument, Ts now, Rows& out);
  Ts due(const Venue& venue) const noexcept;
  std::size_t next_venue() const noexcept;
  OwnOrder* resting(InstrumentId instrument, OrderId our_id);
  static Reason refusal(const Venue& venue, const OwnOrder& own, Ticks price, Lots leaves);

  SimMarketConfig config_;
  std::vector<Venue> venues_;
  std::unordered_map<OrderId, OwnOrder> own_;
  std::vector<Touched> touched_;  // levels of the packet at work, kept for its memory
};

}  // namespace hft
