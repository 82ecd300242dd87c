/// What `hft fit` looks at, taken from rows in one pass: where cancelled lots stood in their queue,
/// and how price and depth went around the prints.
///
/// Both passes follow the venue's book (rows seen by it, on its clock), and leave out all that is
/// no continuous trading of a book we can believe: auctions, halts, gaps, snapshots, a locked or
/// one-sided touch.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "book.hpp"

namespace hft {

/// Lots that left a queue without a trade.
struct CancelSeen {
  Ts ts;
  std::int64_t side;
  Lots level;              ///< all that rested there, before
  Lots ahead;              ///< what of it stood before the lots that left
  Lots gone;               ///< how many left
  Ticks distance;          ///< behind the best price of the side
  Ticks spread;            ///< of the touch
  std::int64_t orders;     ///< of the level, before
  Lots ref_front;          ///< lots before another order of the level, drawn uniformly; ...
  Lots ref_back;           ///< ... and behind it; -1: the order was alone
  std::int64_t ref_ahead;  ///< 1: the lots that left stood before that order
};

/// Finds the cancels of a feed of orders. A row costs what the book costs; a cancel near the touch
/// costs a walk of its queue.
class CancelPass {
 public:
  /// `near` is the furthest a level may lie behind its side's best price [ticks].
  CancelPass(Ticks near, std::uint64_t seed) : near_(near), seed_(seed) {}

  void apply(const Event& e, std::vector<CancelSeen>& out);

 private:
  bool wanted(const Event& e) const noexcept;
  CancelSeen place(const Event& e, const OrderBook::Resting& order) const;
  void refer(CancelSeen& c, std::int64_t id, const OrderBook::Resting& order) const;

  Book book_;
  Ticks near_;
  std::uint64_t seed_;
};

/// The book at an instant of a regular grid.
struct GridPoint {
  Ts ts;
  std::int64_t mid2;          ///< bid + ask [ticks]
  Lots bid_depth, ask_depth;  ///< of the best levels
  Lots bid_lots, ask_lots;    ///< of the best level
  std::int64_t ofi;           ///< order flow imbalance summed since the first row [lots]
};

/// The prints of one aggressor at one instant.
struct Sweep {
  Ts ts;
  std::int64_t side;  ///< the aggressor's
  Lots lots;
  std::int64_t mid2;  ///< before it
  Ticks walked;       ///< how far its lots, walking the displayed side, move that side's best price
  Lots touch;         ///< displayed at the best price it hit, before it
};

/// Price, depth and prints of any feed that has levels.
class TapePass {
 public:
  /// A grid point each `step_ns` (of the clock, not of the first row), its depth over `levels`.
  TapePass(Ns step_ns, std::size_t levels) : step_ns_(step_ns), levels_(levels) {}

  void apply(const Event& e);
  /// Ends a sweep that is still open.
  void finish() { close(); }

  std::vector<GridPoint> grid;
  std::vector<Sweep> sweeps;
  std::vector<std::array<std::int64_t, 2>> mids;  ///< ts, bid + ask, wherever it changed
  std::int64_t unsided = 0;                       ///< prints whose aggressor the feed does not tell

 private:
  static constexpr std::size_t kWalk = 32;  ///< levels a sweep can walk
  static constexpr Ns kQuiet = 60'000'000'000;

  void emit_grid(Ts until);
  Lots depth(int side) const noexcept;
  void print(const Event& e);
  void open(const Event& e);
  void close();
  Ticks walk(Lots lots) const noexcept;
  void touch(const Event& e);
  bool trading() const noexcept;

  Book book_;
  Ns step_ns_;
  std::size_t levels_;
  Ts next_ = kNoTime, last_ = kNoTime;
  Sweep sweep_{};
  bool open_ = false;
  std::array<std::pair<std::int64_t, Lots>, kWalk> shown_{};  // the side hit, best first
  std::size_t shown_count_ = 0;
  Lots printed_[2] = {0, 0};  // on a side, that its levels do not show yet
  Lots printed_before_ = 0;
  bool shown_later_ = false;  // the sweep's prints leave the book to rows that follow
  Ticks bid_ = kNoPrice, ask_ = kNoPrice;
  Lots bid_lots_ = 0, ask_lots_ = 0;
  std::int64_t ofi_ = 0, mid2_ = kNoPrice;
};

/// Sum of values_i * 2^(-(at - ts_i) / half_life) over ts_i <= at, at each of `at`; both sorted.
std::vector<double> decayed_sum(std::span<const Ts> at, std::span<const Ts> ts,
                                std::span<const double> values, double half_life_ns);

}  // namespace hft
