/// Streaming features of one instrument, computed from our local book alone.
///
/// Rows are fed as they are applied; a feature costs nothing until something it depends on changes
/// or the trigger fires. Depth features read a cache of the best levels that is refreshed only when
/// a row touched one of them (one comparison a row); windows decay exponentially with half-life =
/// window, because that is exact in O(1) memory where a rolling sum is not. Nothing allocates after
/// construction, and no libm function is used: the same rows give the same bits on any machine.
///
/// The same class serves live, replay and training (`compute_features`), so that a model meets in a
/// run what it was trained on. Formulas, units and ranges: docs/features.md.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "book.hpp"
#include "smooth_math.hpp"

namespace hft {

/// The order is that of `kFeatureNames` in features.cpp.
enum class FeatureKind : std::uint8_t {
  MID = 0,
  MICRO_PRICE,
  MICRO_PRICE_MINUS_MID,
  SPREAD,
  IMBALANCE,              ///< over `levels`
  OFI,                    ///< over `levels`; window_ns 0: since the trigger last fired
  TRADE_FLOW,             ///< signed traded lots; window_ns 0: since the trigger last fired
  TRADE_LOTS,             ///< traded lots, likewise
  TRADE_COUNT,            ///< prints, likewise
  VOLATILITY,             ///< of the mid over window_ns
  MID_RETURN,             ///< mid against the mid window_ns ago
  DEPTH_LOTS,             ///< log(1 + lots) at level `levels` (1: best) of `side`
  LEVEL_DISTANCE,         ///< ticks from the mid to level `levels` of `side`
  SINCE_EVENT,            ///< log(1 + us) since the packet before
  SINCE_TRADE,            ///< log(1 + us) since the last print
  SINCE_ROW,              ///< log(1 + us) since the trigger last fired
  ORDER_COUNT,            ///< L3: log(1 + orders) at level `levels` of `side`
  ORDER_COUNT_IMBALANCE,  ///< L3: of the orders over `levels`
  ADD_FLOW,     ///< L3: lots that joined bids less asks; window_ns 0: since the trigger fired
  CANCEL_FLOW,  ///< L3: lots that left bids less asks untraded, likewise
  OWN,          ///< computed by an `OwnFeature`
};

FeatureKind feature_kind_of(std::string_view name);  ///< throws ConfigError
std::string_view feature_kind_name(FeatureKind kind) noexcept;

/// What an own feature may read when the trigger fires. Valid during the call only.
class OwnRow {
 public:
  OwnRow(const Book& book, Ts now, double signed_lots, double traded_lots) noexcept
      : ts(now), signed_lots(signed_lots), traded_lots(traded_lots), book_(book) {}

  Ts ts;
  double signed_lots;  ///< buyers' less sellers', over the feature's own window
  double traded_lots;
  Ticks bid() const noexcept { return book_.bid(); }
  Ticks ask() const noexcept { return book_.ask(); }
  double mid() const noexcept;
  double micro_price() const noexcept;
  Ticks spread() const noexcept { return ask() - bid(); }
  Lots depth_lots(int levels) const noexcept;  ///< of both sides together

 private:
  const Book& book_;
};

/// A user's feature: one object an instrument, called once a row, in order. Must return a
/// finite number; may throw.
struct OwnFeature {
  virtual ~OwnFeature() = default;
  virtual double update(const OwnRow& row) = 0;
  virtual void reset() = 0;  ///< after a gap: back to the initial state
};

struct FeatureSpec {
  FeatureKind kind = FeatureKind::MID;
  int levels = 1;  ///< how many levels, or which one
  Ns window_ns = 0;
  Side side = NO_SIDE;
  bool log = false;  ///< pass on sign(x) * log(1 + |x|)
  std::string name;
  std::function<std::unique_ptr<OwnFeature>()> make_own;  ///< OWN only
};

struct Trigger {
  enum class Kind : std::uint8_t { PACKET, TOUCH, TRADE, CLOCK };
  Kind kind = Kind::TOUCH;
  bool sizes = false;  ///< TOUCH: a change of the best sizes fires too
  Ns interval_ns = 0;  ///< CLOCK: fires at whole multiples since the epoch
};

class FeatureSet {
 public:
  static constexpr int kMaxLevels = 32;
  static constexpr int kHalfLivesToWarm = 4;  ///< 94 % of a decaying window is there

  /// Throws ConfigError naming the feature that cannot be computed.
  FeatureSet(std::vector<FeatureSpec> specs, Trigger trigger);
  FeatureSet(FeatureSet&&) = default;  // own features have one state each: no copies
  FeatureSet& operator=(FeatureSet&&) = default;

  /// After the row was applied to `book`. Prints flagged OWN are not counted.
  void on_row(const Event& e, const Book& book) noexcept;
  /// After a LAST row; true: a new row is in `row()`. Never true while not warm.
  bool end_packet(const Book& book, Ts now);
  /// At `next_clock()`; true: a new row is in `row()`.
  bool on_clock(const Book& book, Ts now);
  /// A book that moved without a row: what heals of our takes.
  void catch_up(const Book& book, Ts now) noexcept {
    if (started_ != kNoTime && book.live() && book.two_sided()) follow_book(book, now);
  }
  /// kNever: not clocked, no book yet, or the market is closed.
  Ts next_clock() const noexcept { return next_clock_; }

  std::span<const double> row() const noexcept { return row_; }
  Ts row_ts() const noexcept { return row_ts_; }
  /// Both sides are there and every window has been filled: the next firing gives a row.
  bool warm() const noexcept { return warm_; }
  Ns warm_up_ns() const noexcept { return warm_up_ns_; }
  /// Forgets everything; a row of kind STATUS that says GAP does so by itself.
  void reset();

  std::size_t size() const noexcept { return specs_.size(); }
  const Trigger& trigger() const noexcept { return trigger_; }

 private:
  struct Level {
    std::int64_t key = kNoKey;
    Lots lots = 0;
  };
  /// The first `depth` levels, current unless a row touched one of them.
  struct DepthCache {
    std::size_t depth = 0;
    std::int64_t worst[2] = {kNever, kNever};  // rows at or above this key make it stale
    bool stale[2] = {false, false};
    void touch(int side, std::int64_t key) noexcept { stale[side] |= key >= worst[side]; }
    void invalidate() noexcept { stale[0] = stale[1] = depth > 0; }
  };
  /// A sum whose terms lose half their weight every window; window 0: a plain sum.
  struct Decayed {
    double per_ns = 0;  // 1 / window
    double value = 0;
    Ts at = 0;
    /// A clock that a busy strategy hears late may ask for an instant before the newest term.
    double read(Ts now) const noexcept {
      return per_ns == 0 || now <= at ? value
                                      : value * exp2_down(static_cast<double>(now - at) * per_ns);
    }
    void add(double term, Ts now) noexcept {
      value = (now == at ? value : read(now)) + term;
      at = now;
    }
  };
  struct WindowSum {
    FeatureKind kind;
    int levels;
    Decayed sum;
    Decayed lots;  // OWN: traded lots beside signed ones
  };
  /// The mid at the instants of a grid of window / kGrid.
  struct MidHistory {
    static constexpr std::int64_t kGrid = 64, kSlots = 128;
    Ns grid_ns = 0;
    std::int64_t filled = 0;  // instants up to this one are known
    std::vector<double> mids;
    void start(Ts now) noexcept { filled = now / grid_ns; }
    void advance(Ts now, double mid_before) noexcept;
    double mid_at(Ts ts) const noexcept { return mids[slot(ts / grid_ns)]; }
    static std::size_t slot(std::int64_t instant) noexcept {
      return static_cast<std::size_t>(instant) & (kSlots - 1);
    }
  };

  void plan(const FeatureSpec& spec);
  void start(const Book& book, Ts now) noexcept;
  void wind_clock(const Book& book, Ts now) noexcept;
  void follow_book(const Book& book, Ts now) noexcept;
  void refresh(const Ladder& ladder, int side, DepthCache& cache) noexcept;
  void add_order_flow(int side, Ts now) noexcept;
  void move_mid(double mid, Ts now) noexcept;
  void add_trades(Ts now) noexcept;
  void follow_orders(const Book& book) noexcept;
  void add_order_flows(Ts now) noexcept;
  bool touch_moved(const Book& book) noexcept;
  bool fire(const Book& book, Ts now);
  double value(std::size_t i, const Book& book, Ts now);
  double built_in(std::size_t i, const Book& book, Ts now) const noexcept;
  double imbalance(int levels) const noexcept;
  double order_count(const Book& book, int side, int rank) const noexcept;
  double order_count_imbalance(const Book& book, int levels) const noexcept;
  double micro_price_minus_mid() const noexcept;
  double level_distance(int side, int rank) const noexcept;

  std::vector<FeatureSpec> specs_;
  Trigger trigger_;
  Ns warm_up_ns_ = 0;
  std::vector<Level> levels_[2], before_;
  DepthCache flow_, deep_;  // what OFI needs after a packet, and what all need when a row is made
  std::vector<WindowSum> sums_;
  std::vector<MidHistory> histories_;
  std::vector<std::unique_ptr<OwnFeature>> own_;
  std::vector<std::size_t> part_;  // of feature i: its place in sums_ (OWN too) or histories_
  std::vector<std::size_t> ofi_, traded_, ordered_, variance_;  // places in sums_

  // of the packet at work
  double packet_signed_ = 0, packet_lots_ = 0, packet_prints_ = 0;
  double packet_added_ = 0, packet_cancelled_ = 0;
  double mid_ = 0;
  Ticks touch_bid_ = kNoPrice, touch_ask_ = kNoPrice;
  Lots touch_bid_lots_ = 0, touch_ask_lots_ = 0;
  Ts started_ = kNoTime;  // first live, two-sided packet
  Ts last_packet_ = kNoTime, packet_before_ = kNoTime;
  Ts last_trade_ = kNoTime, last_fired_ = kNoTime;
  Ts next_clock_ = kNever;
  bool warm_ = false;
  std::vector<double> row_;
  Ts row_ts_ = kNoTime;
};

}  // namespace hft
