/// The live drivers' clock: monotonic, read as UTC through one anchor taken when the run starts.
#pragma once
#include <sys/prctl.h>

#include <chrono>
#include <thread>

#include "types.hpp"

namespace hft {

class WallClock {
 public:
  /// `ahead`: of the true time, for a test that wants another hour of the day.
  explicit WallClock(Ns ahead = 0) {
    using namespace std::chrono;
    const Ns mono = ns(steady_clock::now());
    const Ns utc = duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
    offset_ = utc - mono + ahead;
  }
  Ts now() const noexcept { return ns(std::chrono::steady_clock::now()) + offset_; }
  Ns offset() const noexcept { return offset_; }

 private:
  static Ns ns(std::chrono::steady_clock::time_point t) noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(t.time_since_epoch()).count();
  }
  Ns offset_;
};

/// For the calling thread: the kernel rounds its naps up by 50 us unless told otherwise.
inline void sharpen_naps() noexcept { ::prctl(PR_SET_TIMERSLACK, 1UL); }

/// Waits for about `ns` and rather less: a nap wakes some 15 us late, so the last of a wait is the
/// caller's to spin.
inline void nap(Ns ns) {
  constexpr Ns kLate = 20'000;
  if (ns > 2 * kLate) std::this_thread::sleep_for(std::chrono::nanoseconds(ns - kLate));
}

}  // namespace hft
