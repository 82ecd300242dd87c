/// Queue models against what really happened to real orders.
///
/// On a feed of orders the fate of every order is known. Each chosen one, a ghost, is hidden: a
/// shadow order joins at the same place and time in the market's levels without that order, every
/// queue model predicts from those levels and the prints whether and when it fills, and the
/// prediction stands beside what happened. Ghosts do not see each other: thousands of them, each
/// in its own market less one order, share a pass. Fast: rows at levels without ghosts cost the
/// book alone. Slow: a cancel at a level costs every ghost there a draw and a formula a particle
/// and model. Measured by tests/bench/ghosts.py.
///
/// The rules, also told in docs/queue-score.md:
/// - Candidate: an ADD that rests, in open trading, not more than `levels` - 1 levels behind its
///   side's best, through no price of the other side.
/// - Event: the first lot that is filled. The order's own executions say so; one at another price
///   than it rested at is no such event: a changed order that took, and it ends the window.
/// - Window of the order: from arrival to its own end (cancel, or a change that loses its place),
///   the horizon, or the end of open trading, whatever comes first. Nobody is judged beyond it, as
///   who cancels knows why. An order filled whole has no such end: its window is the
///   horizon's. So windows of the filled are longer than those of the cancelled, and no model's
///   mean can meet the rate of fills exactly: see the second window.
/// - Window of the place: the horizon, whatever the order did. What happened is then where the
///   tape's own orders leave its place: exact under the same assumption as everything here, that
///   nobody would have acted otherwise.
/// - The market without it: levels less its own remaining lots. Its executions shrink nothing, but
///   their lots are printed all the same: the aggressor does not know that it is hidden. They must
///   not be taken later for a shrink that was printed, so what waits to be explained excludes them.
///   With `prints_removed` they are not even printed: nothing then can reach a place that only they
///   reached, and `exact` underfills.
/// - A print through the price fills, the other side's size arriving there does not: where every
///   trade is told, an order that is met is printed.
/// - A cancel lies wholly before or behind the shadow, by a draw a ghost, row and particle that all
///   models share; the share of particles that are filled is the probability.
/// - `exact` meets the same prints with the true queue before it.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "book.hpp"
#include "int_map.hpp"
#include "queue.hpp"

namespace hft {

/// How a ghost's order left the market.
enum class GhostEnd : std::uint8_t {
  HORIZON = 0,  ///< it did not, in time; or it was filled whole
  CANCELED,
  MOVED,    ///< changed, and lost its place
  STOPPED,  ///< trading stopped, or the book was told anew
  DATA,     ///< the data ended
};

/// A ghost and what happened, kNever where nothing did: NumPy sees the same bytes
/// (framework/hft/scoring/ghosts.py).
struct GhostRow {
  std::int64_t row;  ///< of its ADD in the stream
  Ts ts;             ///< it arrived
  Ts ts_fill;        ///< the order's first lot was filled
  Ts ts_end;         ///< end of the order's window
  Ts ts_place_fill;  ///< its place was reached, had it stayed
  Ts ts_place_end;   ///< end of the place's window
  Ts ts_exact;       ///< in its window, the prints it was shown used up the true queue before it
  Ticks price;
  Lots lots, ahead;    ///< of the order; before it when it arrived
  std::int32_t level;  ///< 0: joined at its side's best, or bettered it
  std::int8_t side;
  GhostEnd end;
  std::uint8_t pad[2];
};
static_assert(sizeof(GhostRow) == 88);

/// What a model said of one ghost, in both windows.
struct GhostForecast {
  std::int64_t filled;  ///< particles filled in the order's window ...
  Ts ts_filled;         ///< ... and the median of when (the earlier of two); kNever: none
  std::int64_t place_filled;
  Ts ts_place_filled;
};

struct GhostConfig {
  std::vector<QueueConfig> models;
  int particles = 64;
  Ns horizon_ns = 60'000'000'000;
  bool prints_removed = false;
  Keeps keeps = Keeps::SMALLER;  ///< the venue's rule for changed orders
  std::uint64_t seed = 1;
};

/// Whether the order that `e` has just brought into `book` may be hidden.
bool may_be_ghost(const Book& book, const Event& e, int levels) noexcept;

/// A first pass: the rows of all candidates, and a choice of them by keyed draws.
class GhostScan {
 public:
  GhostScan(int levels, Keeps keeps, std::uint64_t seed) : levels_(levels), seed_(seed) {
    book_.keeps = keeps;
  }
  void apply(const Event& e);
  std::size_t candidates() const noexcept { return rows_.size(); }
  /// At most `most` of their rows, in order; each is as likely as another.
  std::vector<std::int64_t> choose(std::size_t most) const;
  bool saw_orders() const noexcept { return saw_orders_; }

 private:
  Book book_;
  int levels_;
  std::uint64_t seed_;
  std::int64_t row_ = 0;
  bool saw_orders_ = false;
  std::vector<std::int64_t> rows_;
};

class Ghosts {
 public:
  /// `rows`: of the ADD rows to hide, rising.
  Ghosts(GhostConfig config, std::vector<std::int64_t> rows);

  void apply(const Event& e);
  /// Ends what is open where the data end.
  void finish();

  /// A row a ghost, in order of arrival; complete after `finish`.
  const std::vector<GhostRow>& rows() const noexcept { return out_; }
  /// Ghost by ghost, in the order of `models`.
  const std::vector<GhostForecast>& forecasts() const noexcept { return forecasts_; }

 private:
  struct Ghost {
    std::size_t index = 0;  ///< of its row
    std::int64_t id = 0;    ///< of its order
    std::int64_t key = 0;
    std::uint64_t arrival = 0;
    Lots own = 0;             ///< the order's lots that the real levels still hold
    Lots hit = 0;             ///< of the print under way, executed of the order
    Lots before = 0;          ///< of the tape's orders that stand before it
    Lots exact_ahead = 0;     ///< the same, as prints have it before the rows that follow them
    std::int64_t packet = 0;  ///< that `exact_ahead` was last used in
    Order::Resting averse;  ///< risk-averse place, and the prints that no shrink has explained yet
    Ts averse_filled = kNever;
    std::vector<double> ahead;  ///< (model, particle); below 0: filled
    std::vector<Ts> filled;
    int unfilled = 0;
    bool gone = false;   ///< the order has left, filled or not
    bool ended = false;  ///< its window is over
    bool open = false;
  };
  using Level = std::vector<std::uint32_t>;

  void on_order(const Event& e);
  void on_execute(const Event& e);
  void on_trade(const Event& e);
  void on_rare(const Event& e);
  void flush();
  void print(const Event& e, int side, bool known);
  void reach(Ghost& g, Lots lots, bool through, bool known, Ts ts);
  void reach_exact(Ghost& g, Lots lots, bool through, Ts ts);
  void reach_models(Ghost& g, Lots lots, bool through, Ts ts);
  void execute(std::uint32_t slot, const Event& e);
  void on_changes(const Event& e, std::span<const OrderBook::Change> changes);
  void change(Ghost& g, const OrderBook::Change& c, const Event& e);
  void resize(Ghost& g, Lots before, Lots after, Ts ts);
  void thin(Ghost& g, Lots before, Lots after, Ts ts);
  void hide(const Event& e);
  void leave(Ghost& g, GhostEnd why, Ts ts);
  void close_due(Ts ts);
  void close_all(GhostEnd why, Ts ts);
  void close(std::uint32_t slot, GhostEnd why, Ts ts);
  void end_window(Ghost& g, GhostEnd why, Ts ts);
  std::pair<std::int64_t, Ts> filled_so_far(const Ghost& g, std::size_t model);
  GhostForecast& said(const Ghost& g, std::size_t model) noexcept {
    return forecasts_[g.index * models_.size() + model];
  }
  void settle();

  GhostConfig config_;
  std::vector<Queue> models_;
  Queue averse_{{QueueModel::RISK_AVERSE, 1}};
  Book book_;
  std::vector<std::int64_t> chosen_;
  std::size_t next_ = 0;
  std::int64_t row_ = 0, packet_ = 0;
  std::vector<Ghost> pool_;
  std::vector<std::uint32_t> free_, touched_;
  std::deque<std::uint32_t> due_;  ///< slots by arrival; a slot is free for another when it leaves
  std::map<std::int64_t, Level, std::greater<>> levels_[2];
  IntMap ids_{1024};
  std::vector<std::uint32_t> hits_;  ///< slots with `hit`
  std::vector<double> draws_;
  std::vector<Ts> sorted_;
  Event waiting_{};  ///< a print whose executions are still to come
  bool is_waiting_ = false;
  Ts hits_ts_ = kNoTime;
  std::vector<GhostRow> out_;
  std::vector<GhostForecast> forecasts_;
};

}  // namespace hft
