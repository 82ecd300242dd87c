/// The price overlay of our own taking: what our earlier takes still push the price, and what this
/// one pushes it itself.
///
/// A lot that takes moves the price by `weights` ticks at once, each part of which decays by its
/// half-life, and by `permanent`, which stays. A taker pays the push that stands when he comes,
/// and half of his own (the half rule): a block and the same block in parts at one instant cost
/// the same. The sum of all costs is 1/2 x'Gx with G(t) = sum of w 2^(-t / half-life) + permanent,
/// a positive form: no order of buying and selling earns by pushing (Gatheral 2010; Alfonsi, Schied
/// and Slynko 2012). It is charged as money; fills stay at the tape's prices in whole ticks.
#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "errors.hpp"
#include "types.hpp"

namespace hft {

struct ImpactConfig {
  std::vector<double> weights;    ///< [ticks a lot], one an exponential
  std::vector<Ns> half_lives_ns;  ///< as many
  double permanent = 0;           ///< [ticks a lot]

  /// Throws ConfigError unless the push is a sum of decays with weights that are not negative.
  void validate() const {
    if (weights.size() != half_lives_ns.size())
      throw ConfigError("impact has " + std::to_string(weights.size()) + " weights and " +
                        std::to_string(half_lives_ns.size()) + " half_lives: as many are wanted");
    for (std::size_t k = 0; k < weights.size(); ++k) {
      const std::string at = std::string("[").append(std::to_string(k)).append("] is ");
      if (!(weights[k] >= 0) || !std::isfinite(weights[k]))
        throw ConfigError("impact.weights" + at + std::to_string(weights[k]) +
                          ": a push that reverses could be traded against for free, want >= 0");
      if (half_lives_ns[k] <= 0)
        throw ConfigError("impact.half_lives" + at + std::to_string(half_lives_ns[k]) +
                          " ns: expected more than 0; what never decays is `permanent`");
    }
    if (!(permanent >= 0) || !std::isfinite(permanent))
      throw ConfigError("impact.permanent is " + std::to_string(permanent) +
                        ": expected a number >= 0");
  }
};

class Overlay {
 public:
  explicit Overlay(ImpactConfig config = {})
      : config_(std::move(config)), pushed_(config_.weights.size()) {
    for (const double w : config_.weights) at_once_ += w;
    at_once_ += config_.permanent;
  }

  /// What `lots` that take on `side` cost because of us [ticks a lot]; then they push.
  double charge(int side, Lots lots, Ts ts) noexcept {
    if (at_once_ == 0) return 0;
    decay(ts);
    const double cost = side * standing() + at_once_ * static_cast<double>(lots) / 2;
    const double push = side * static_cast<double>(lots);
    for (double& x : pushed_) x += push;
    kept_ += push;
    return cost;
  }

  /// The push that stands at `ts` [ticks], up when positive.
  double at(Ts ts) const noexcept {
    Overlay then = *this;
    then.decay(ts);
    return then.standing();
  }

 private:
  void decay(Ts ts) noexcept {
    if (ts > ts_) {
      for (std::size_t k = 0; k < pushed_.size() && ts_ != kNoTime; ++k)
        pushed_[k] *= std::exp2(-static_cast<double>(ts - ts_) /
                                static_cast<double>(config_.half_lives_ns[k]));
      ts_ = ts;
    }
  }
  double standing() const noexcept {
    double sum = config_.permanent * kept_;
    for (std::size_t k = 0; k < pushed_.size(); ++k) sum += config_.weights[k] * pushed_[k];
    return sum;
  }

  ImpactConfig config_;
  std::vector<double> pushed_;  ///< signed lots, decayed, as of `ts_`
  double kept_ = 0;             ///< signed lots
  double at_once_ = 0;          ///< sum of the weights [ticks a lot]
  Ts ts_ = kNoTime;
};

}  // namespace hft
