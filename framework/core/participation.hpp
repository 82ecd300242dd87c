/// How much the market traded of late, how much of it was ours, and how far the mid went: in fixed
/// windows, of which the current and the one before are kept.
///
/// A replayed market does not react, so what we say of a fill is worth little where we were much of
/// the volume: such fills are marked, or takers held back. Fixed windows cost an addition a print;
/// a sliding one would keep every print.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>

#include "errors.hpp"
#include "types.hpp"

namespace hft {

class Participation {
 public:
  explicit Participation(Ns window_ns = 10'000'000'000) : window_ns_(window_ns) {}

  /// The market printed `lots`.
  void on_print(Lots lots, Ts ts) noexcept {
    roll(ts);
    now_.market += lots;
    traded_ += lots;
  }
  void on_own(Lots lots, Ts ts) noexcept {
    roll(ts);
    now_.own += lots;
  }
  /// The mid [half ticks] at the end of a packet.
  void on_mid(std::int64_t mid2, Ts ts) noexcept {
    if (mid2 == mid2_) return;
    roll(ts);
    const double ticks = static_cast<double>(mid2 - mid2_) / 2;
    if (mid2_ != kNoPrice) now_.squares += ticks * ticks;
    mid2_ = mid2;
  }

  /// Of the current and the previous window. Market and own lots, and the sum of squared changes of
  /// the mid [ticks^2].
  Lots market(Ts ts) noexcept { return roll(ts), now_.market + before_.market; }
  Lots own(Ts ts) noexcept { return roll(ts), now_.own + before_.own; }
  double squares(Ts ts) noexcept { return roll(ts), now_.squares + before_.squares; }
  /// How long these windows have lasted so far.
  Ns elapsed(Ts ts) noexcept { return roll(ts), ts - (end_ - 2 * window_ns_); }

  Lots traded() const noexcept { return traded_; }  ///< by the market, since the start

 private:
  struct Window {
    Lots market = 0, own = 0;
    double squares = 0;
  };

  void roll(Ts ts) noexcept {
    if (ts < end_) [[likely]]
      return;
    const Ts end = (ts / window_ns_ + 1) * window_ns_;
    before_ = end == end_ + window_ns_ ? now_ : Window{};
    now_ = {};
    end_ = end;
  }

  Ns window_ns_;
  Ts end_ = 0;  ///< of the current window
  Window now_, before_;
  Lots traded_ = 0;
  std::int64_t mid2_ = kNoPrice;
};

/// What a taker pays beyond the touch where the data do not tell depth: weak models, all of them.
struct SlippageConfig {
  enum class Model : std::uint8_t { NONE = 0, SPREAD, VOLATILITY, SQUARE_ROOT };
  Model model = Model::NONE;
  double coefficient = 0;
  Ns horizon_ns = 1'000'000'000;  ///< VOLATILITY

  bool reads_mids() const noexcept {
    return model == Model::VOLATILITY || model == Model::SQUARE_ROOT;
  }

  void validate() const {
    if (!(coefficient >= 0) || !std::isfinite(coefficient))
      throw ConfigError("slippage.coefficient is " + std::to_string(coefficient) +
                        ": expected a number >= 0");
    if (model == Model::VOLATILITY && horizon_ns <= 0)
      throw ConfigError("slippage.horizon is " + std::to_string(horizon_ns) +
                        " ns: expected more than 0");
  }

  /// [ticks a lot] of a taker of `lots`, with a spread of `spread_ticks` (0: one side is empty).
  double ticks(Lots lots, Ticks spread_ticks, Participation& lately, Ts ts) const noexcept {
    switch (model) {
      case Model::NONE:
        return 0;
      case Model::SPREAD:
        return coefficient * static_cast<double>(spread_ticks);
      case Model::VOLATILITY:
        return coefficient * std::sqrt(lately.squares(ts) * static_cast<double>(horizon_ns) /
                                       static_cast<double>(lately.elapsed(ts)));
      case Model::SQUARE_ROOT:
        return coefficient * std::sqrt(lately.squares(ts) * static_cast<double>(lots) /
                                       static_cast<double>(std::max(lately.market(ts), lots)));
    }
    return 0;
  }
};

}  // namespace hft
