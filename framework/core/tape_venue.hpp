/// The venue of a replay: the recorded tape, our orders beside it, and what our own trades took
/// from it.
///
/// A tape of levels only estimates our place in a queue (`Queue`); a tape of orders knows it: ours
/// stands behind every order that had arrived before it. Fast: a row that touches nothing of ours
/// costs one bit test more than the bare book. Slow: rows at levels where we rest or have taken.
/// Given up: the tape never reacts to us. What we took is missing for those who come after
/// (`Footprint`), our push of the price is charged in money (`Overlay`), and fills that are too
/// much of the volume to be believed are marked (`Participation`).
///
/// Assumptions, each where it acts: `on_print` and `on_execute` (who shares a print), `on_crossed`
/// (the other side arrives at our price), `walk` and `match` (what a taker finds), `Queue` (our
/// place). What a limit order could not take because it had faded or was capped rests, even where
/// it crosses the book that is shown.
#pragma once
#include <deque>
#include <optional>
#include <vector>

#include "account.hpp"
#include "book.hpp"
#include "footprint.hpp"
#include "impact.hpp"
#include "latency.hpp"
#include "markouts.hpp"
#include "message.hpp"
#include "participation.hpp"
#include "queue.hpp"

namespace hft {

enum class Matching : std::uint8_t {
  FIFO = 0,
  PRO_RATA,  ///< a level's executions are shared by size
};

struct VenueConfig {
  QueueConfig queue;
  Matching matching = Matching::FIFO;
  Keeps keeps = Keeps::SMALLER;  ///< of replaced orders, ours and the tape's
  bool partial_fills =
      true;  ///< false: any touch of our place fills the whole order (the peer's rule)
  bool share_prints = true;        ///< false: each own order sees the whole print (the peer's rule)
  bool through_fills_all = false;  ///< a print through our price fills all of us, not only its size
  bool fill_on_cross = true;  ///< false: wait for a print when the other side arrives at our price
  Ns refill_half_life_ns = 1'000'000'000;  ///< of size we took; 0: never heals by itself
  double refill_probability = 1;           ///< that what we take heals; else it stays away
  double fade = 0;              ///< share of each level that is gone when a taker arrives
  bool fade_compounds = false;  ///< true: (1 - fade)^(i + 1) of the i-th level is left
  ImpactConfig impact;
  Ns participation_window_ns = 10'000'000'000;
  double participation_flag = 0.1;  ///< our share of the volume above which fills are marked
  double participation_cap = 0;     ///< ... which takers may not exceed; 0: none
  bool depth_is_touch = false;      ///< takers fill whole at the best price, and pay `slippage`
  SlippageConfig slippage;
  std::uint64_t seed = 1;  ///< of the keyed draws
  Latency entry, response;
  std::optional<Latency> entry_cancel, entry_replace;  ///< none: as `entry`
  Ordering ordering = Ordering::FIFO;                  ///< of both ways

  /// Throws ConfigError.
  void validate() const;
};

/// One instrument at the venue.
struct Listing {
  Instrument* inst = nullptr;
  Book book;        ///< the tape
  Account account;  ///< as the venue sees it
  struct OwnLevel {
    std::int64_t key;
    std::vector<Order*> fifo;
  };
  std::vector<OwnLevel> own[2];  ///< best first
  std::int64_t own_best[2] = {kNoKey, kNoKey};
  Footprint footprint;  ///< what we took of the tape's levels
  Overlay overlay;
  Participation lately;
  struct Counters {
    Lots taker_unfilled = 0;        ///< that market, IOC and FOK orders asked for and did not get
    Lots faded = 0;                 ///< that a taker saw and that were gone
    Lots capped = 0;                ///< that the participation cap kept a taker from
    std::int64_t extrapolated = 0;  ///< fills

    void add(const Counters& of_another) noexcept {
      taker_unfilled += of_another.taker_unfilled;
      faded += of_another.faded;
      capped += of_another.capped;
      extrapolated += of_another.extrapolated;
    }
  } counters;
  /// Pro rata: the executions of one instant at one level, shared by what everybody had before.
  struct Shared {
    struct Due {
      const Order* order;
      Lots leaves, given;
    };
    int s;
    std::int64_t key;
    Lots executed, lots;  ///< so far; at the level before the first, ours included
    std::vector<Due> dues;
  };
  Ts shared_ts = kNoTime;
  std::vector<Shared> shared;  ///< of the instant `shared_ts`
  Markouts markouts;
  std::int64_t last_mid2 = kNoPrice;  ///< last two-sided mid

  /// Must move with the tape: something rests, a markout is open, a position may owe funding, or
  /// the places of orders before what we took must be known.
  bool busy() const noexcept {
    return !own[0].empty() || !own[1].empty() || markouts.next_due() != kNever ||
           account.position != 0 || (book.orders() && !footprint.empty());
  }
};

class TapeVenue {
 public:
  /// Throws ConfigError.
  TapeVenue(VenueConfig config, Orders& orders, std::vector<FillRow>& fills)
      : config_(std::move(config)), channel_(config_.ordering), orders_(&orders), fills_(&fills) {
    config_.validate();
  }

  /// Before an instrument's first row.
  void open(Listing& l, Instrument& inst) const;

  /// How what we take from an instrument's levels is followed; `leaves_marks`: at all.
  FootprintConfig marks(const Instrument& inst) const noexcept;
  bool leaves_marks() const noexcept { return !takes_whole_; }

  /// Where the driver stops: an answer lowers `horizon` to when it reaches us, and sets `stirred`.
  void watch(Ts* horizon, bool* stirred) noexcept {
    horizon_ = horizon;
    stirred_ = stirred;
  }

  Keeps keeps() const noexcept { return config_.keeps; }

  /// A tape row reaches the venue's book.
  void on_row(Listing& l, const Event& e, std::int64_t row) {
    if (e.kind == Kind::LEVEL) [[likely]] {
      const int s = side_index(e.side);
      const std::int64_t key = e.price * e.side;
      Ladder& ladder = l.book.side(e.side);
      if (ladder.hot(key)) [[unlikely]]
        on_hot_level(l, e, key, row);
      else
        ladder.set(key, e.qty);
      if (l.own_best[1 - s] >= -key && e.qty > 0) [[unlikely]]
        on_crossed(l, e, row);
    } else if (e.kind == Kind::TRADE) {
      l.lately.on_print(e.qty, e.ts_event);
      const int resting = e.side != NO_SIDE ? -e.side : l.book.passive_side(e.price);
      const std::int64_t key = e.price * resting;
      if (resting != 0 && (l.own_best[side_index(resting)] >= key || l.book.side(resting).hot(key)))
          [[unlikely]]
        on_print(l, e, resting, row);
      l.book.last_price = e.price;
    } else if (is_order(e.kind)) {
      on_order(l, e, row);
    } else {
      on_rare(l, e, row);
    }
    if (reads_mids_) [[unlikely]]
      if ((e.flags & LAST) && l.book.two_sided()) l.lately.on_mid(l.book.mid2(), e.ts_event);
  }

  /// An order message reaches matching.
  void on_command(Listing& l, const Command& c);

  /// Books that run one after the other over the same stretch of time answer out of order: between
  /// `hold` and `release` answers wait, then take the channel in order of the venue's clock.
  void hold() noexcept { held_ = true; }
  void release();

  std::deque<Update>& responses() noexcept { return responses_; }
  /// A response made now reaches us no sooner than this much later.
  Ns least_response() const noexcept { return config_.response.least(); }

 private:
  void on_hot_level(Listing& l, const Event& e, std::int64_t key, std::int64_t row);
  void on_order(Listing& l, const Event& e, std::int64_t row);
  void on_hot_changes(Listing& l, const Event& e, std::span<const OrderBook::Change> changes);
  void on_execute(Listing& l, const Event& e, std::int64_t row);
  template <class F>
  Lots share(Listing& l, const Event& e, int s, std::int64_t key, bool at_key, std::int64_t row,
             F&& reached);
  static void open_pro_rata(Listing& l, int s, const Listing::OwnLevel& level, Lots executed,
                            Ts ts);
  static Lots pro_rata(Listing& l, int s, std::int64_t key, const Order& o);
  static Event as_level(const Event& e, const OrderBook::Change& c) noexcept;
  void on_crossed(Listing& l, const Event& e, std::int64_t row);
  void on_print(Listing& l, const Event& e, int resting, std::int64_t row);
  void on_rare(Listing& l, const Event& e, std::int64_t row);
  void cap_places(Listing& l, bool told_anew);
  void meet_book(Listing& l, const Event& e, int side, std::int64_t row);
  void fund(Listing& l, const Event& e, std::int64_t row);

  void accept(Listing& l, Order& o, const Command& c);
  void replace(Listing& l, Order& o, const Command& c);
  bool match(Listing& l, Order& o, const Command& c);
  /// Who looks at the book: what is displayed may fade before a taker, nobody else.
  enum class For : std::uint8_t { TEST, TAKER };
  template <class F>
  void walk(Listing& l, int side, std::int64_t limit_key, Ts ts, For who, F&& level) const;
  Lots reachable(Listing& l, int side, std::int64_t limit_key, Lots wanted, Ts ts, For who) const;
  Lots allowed(Listing& l, Lots wanted, Ts ts) const;
  void take(Listing& l, Order& o, int side, std::int64_t limit_key, Lots wanted, Ts ts);
  Money price_of_taking(Listing& l, int side, Lots lots, Ticks price, Ts ts) const;
  void rest(Listing& l, Order& o);
  void unrest(Listing& l, Order& o);
  void fill(Listing& l, Order& o, Lots lots, Ticks price, bool maker, FillReason reason, Ts ts,
            std::int64_t row);
  void drop_finished(Listing& l, int s, std::size_t level);
  void respond(Update u, Ns delay = -1);
  void answer(const Command& c, Update::Kind kind, Reason reason, const Order& o);

  VenueConfig config_;
  Queue queue_{config_.queue};
  Channel channel_;  ///< of answers
  Nth nth_answer_;
  Orders* orders_;
  std::vector<FillRow>* fills_;
  std::deque<Update> responses_;  ///< in order of arrival at our side
  std::vector<Update> waiting_;   ///< made since `hold`
  bool held_ = false;
  bool takes_whole_ = config_.depth_is_touch || !config_.partial_fills;
  bool reads_mids_ = config_.depth_is_touch && config_.slippage.reads_mids();
  Ts* horizon_ = nullptr;
  bool* stirred_ = nullptr;
};

}  // namespace hft
