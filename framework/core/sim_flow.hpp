/// What the simulated crowd does next: when, on which side, at which price, how much.
///
/// Arrivals excite further arrivals (two exponential kernels), aggressive signs come partly from
/// metaorders with Pareto lengths (long memory), and calm and storm take turns for all instruments
/// at once. A latent alpha, an OU process, tilts aggressive signs, placements and cancels: that is
/// the signal a model can learn, and it is gone after a few half-lives. Makers lean against the
/// slow average of signed flow, so that long memory of signs does not become one of returns.
///
/// Alpha, regime and feed latency live on a fixed grid of time with their own streams: what our
/// orders do to the book moves none of them, and adding an instrument moves no other instrument.
#pragma once
#include <array>
#include <cstdint>

#include "sim_book.hpp"
#include "sim_random.hpp"
#include "types.hpp"

namespace hft {

struct SimInstrument {
  InstrumentId id = 0;
  Ticks price0_ticks = 600'000;
  double messages_per_s = 3'000;  ///< orders, cancels and takers, mean while calm
  double alpha_half_life_s = 0.5;
  double alpha_strength = 0.3;   ///< tilt of aggressive signs at one standard deviation
  double common_share = 0.5;     ///< of alpha's variance, from a process all instruments share
  double take_share = 0.05;      ///< of messages that are aggressive, while calm
  double depth_orders = 300;     ///< resting orders a side, while calm
  Lots min_lots = 10;            ///< smallest order; sizes are Pareto above it
  Ns feed_latency_ns = 200'000;  ///< median from ts_event to ts_recv; 0: ts_recv = ts_event
};

struct SimRegimes {
  double calm_s = 300;  ///< mean dwell
  double storm_s = 90;
  double storm_intensity_min = 3;  ///< a storm's message rate against calm's, drawn per storm
  double storm_intensity_max = 6;
};

struct SimAction {
  enum class Kind : std::uint8_t { ADD, CANCEL, TAKE };
  Kind kind;
  Side side;               ///< of the order, or of the taker
  Ticks price;             ///< of an ADD
  Lots lots;               ///< of an ADD or TAKE
  SimBook::Handle handle;  ///< of a CANCEL
};

/// The latent state of one instrument on its grid of kGridNs.
class SimLatents {
 public:
  static constexpr Ns kGridNs = 5'000'000;
  SimLatents(std::uint64_t seed, Ts start, const SimInstrument& instrument,
             const SimRegimes& regimes);
  void advance(Ts now) noexcept;

  double alpha() const noexcept { return own_weight_ * own_ + common_weight_ * common_; }
  double intensity() const noexcept { return intensity_; }  ///< 1 while calm
  bool storm() const noexcept { return intensity_ > 1.0; }
  double feed_latency_ns() const noexcept { return feed_latency_ns_; }

 private:
  void step() noexcept;
  void step_regime() noexcept;
  void step_feed() noexcept;

  SimRegimes regimes_;
  SimRng common_rng_, own_rng_, regime_rng_, feed_rng_;
  Ts ts_;
  double keep_, shock_, own_weight_, common_weight_;
  double own_ = 0, common_ = 0, intensity_ = 1;
  double feed_median_ns_, feed_level_ = 0, feed_spike_ = 0, feed_latency_ns_;
};

class SimFlow {
 public:
  SimFlow(std::uint64_t seed, Ts start, const SimInstrument& instrument, const SimRegimes& regimes);

  /// Time of the action after one at `now`.
  Ts next(Ts now) noexcept;
  SimAction decide(const SimBook& book, Ts now) noexcept;
  /// An order that keeps a side from running dry, placed behind `anchor`.
  SimAction refill(const SimBook& book, Side side, Ticks anchor) noexcept;
  /// Our clock's time of a packet; never goes back.
  Ts receive(Ts ts_event) noexcept;
  const SimLatents& latents() const noexcept { return latents_; }

  /// A side never holds fewer of the market's orders.
  static constexpr std::size_t kMinOrders = 10;

 private:
  struct Metaorder {
    Side side = BUY;
    std::int64_t left = 0;
  };
  SimAction take(double tilt) noexcept;
  SimAction add(const SimBook& book, double tilt) noexcept;
  SimAction cancel(const SimBook& book, double tilt) noexcept;
  Side taker_side(double tilt) noexcept;
  Ticks placement(const SimBook& book, Side side) noexcept;
  double tilt(const SimBook& book) const noexcept;
  void excite(bool aggressive) noexcept;

  SimInstrument instrument_;
  SimLatents latents_;
  SimRng rng_, feed_rng_;
  SimQuantiles add_lots_, take_lots_, near_, far_, metaorder_length_, jitter_permille_;
  std::array<Metaorder, 8> metaorders_;
  double fast_ = 0, slow_ = 0;  // excited intensity [1/s]
  double flow_ = 0;             // slow average of aggressive signs
  Ts last_recv_ = kNoTime;
};

}  // namespace hft
