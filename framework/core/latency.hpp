/// How long one leg takes: a constant, or a recorded series looked up as of the time of sending. A
/// series is never interpolated: between two quiet probes a straight line would invent a latency
/// nobody saw.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "errors.hpp"
#include "types.hpp"

namespace hft {

class Latency {
 public:
  Latency() = default;
  explicit Latency(Ns constant) : constant_(constant) {
    if (constant < 0)
      throw ConfigError("latency must not be negative, was " + std::to_string(constant) + " ns");
  }
  Latency(std::vector<Ts> ts, std::vector<Ns> ns, double scale)
      : ts_(std::move(ts)), ns_(std::move(ns)) {
    if (ts_.size() != ns_.size() || ts_.empty())
      throw ConfigError("a latency series needs as many times as durations and at least one, had " +
                        std::to_string(ts_.size()) + " and " + std::to_string(ns_.size()));
    for (std::size_t i = 0; i < ts_.size(); ++i) {
      if (ns_[i] < 0)
        throw ConfigError("latency series row " + std::to_string(i) +
                          " is negative: " + std::to_string(ns_[i]) + " ns");
      if (i > 0 && ts_[i] < ts_[i - 1])
        throw ConfigError("latency series goes back in time at row " + std::to_string(i));
      ns_[i] = static_cast<Ns>(static_cast<double>(ns_[i]) * scale);
    }
    constant_ = *std::min_element(ns_.begin(), ns_.end());
  }

  /// Delay of a message sent at `ts`; before the first row the first holds, after the last the
  /// last.
  Ns at(Ts ts) noexcept {
    if (ts_.empty()) return constant_;
    if (ts < ts_[cursor_]) cursor_ = 0;
    while (cursor_ + 1 < ts_.size() && ts_[cursor_ + 1] <= ts) ++cursor_;
    return ns_[cursor_];
  }
  Ns least() const noexcept { return constant_; }

 private:
  Ns constant_ = 0;
  std::vector<Ts> ts_;
  std::vector<Ns> ns_;
  std::size_t cursor_ = 0;
};

/// A channel that never reorders: a message is not delivered before the one sent ahead of it.
class Channel {
 public:
  explicit Channel(Latency latency = Latency{}) : latency_(std::move(latency)) {}
  Ts deliver(Ts ts_send) noexcept {
    return last_ = std::max(ts_send + latency_.at(ts_send), last_);
  }
  Ns least() const noexcept { return latency_.least(); }

 private:
  Latency latency_;
  Ts last_ = kNoTime;
};

}  // namespace hft
