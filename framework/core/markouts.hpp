/// Mids some time after each fill. Fills come in time order, so each horizon's open ones are a
/// queue and the earliest of six fronts is the only time anybody has to watch.
#pragma once
#include <algorithm>
#include <deque>
#include <vector>

#include "records.hpp"

namespace hft {

class Markouts {
 public:
  Ts next_due() const noexcept { return next_due_; }  ///< kNever: nothing is open

  void add(std::uint32_t fill, Ts ts) {
    for (auto& queue : open_) queue.push_back(fill);
    next_due_ = std::min(next_due_, ts + kMarkoutNs[0]);
  }

  /// Writes `mid2` into every fill whose horizon has come by `ts`.
  void read(std::vector<FillRow>& fills, Ts ts, std::int64_t mid2) {
    next_due_ = kNever;
    for (int h = 0; h < kMarkouts; ++h) {
      while (!open_[h].empty() && fills[open_[h].front()].ts_venue + kMarkoutNs[h] <= ts) {
        fills[open_[h].front()].markout_mid2[h] = mid2;
        open_[h].pop_front();
      }
      if (!open_[h].empty())
        next_due_ = std::min(next_due_, fills[open_[h].front()].ts_venue + kMarkoutNs[h]);
    }
  }

 private:
  std::deque<std::uint32_t> open_[kMarkouts];
  Ts next_due_ = kNever;
};

}  // namespace hft
