/// Time spent in a stage of the engine, for `Engine::profile`.
#pragma once
#include <chrono>

#include "types.hpp"

namespace hft {

/// Adds the time until it dies to `ns`, when asked to.
class StageTimer {
 public:
  StageTimer(bool on, Ns& ns) noexcept : ns_(on ? &ns : nullptr) {
    if (ns_) start_ = std::chrono::steady_clock::now();
  }
  ~StageTimer() {
    if (ns_) *ns_ += std::chrono::nanoseconds(std::chrono::steady_clock::now() - start_).count();
  }
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;

 private:
  Ns* ns_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace hft
