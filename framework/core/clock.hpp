/// The live drivers' clock: monotonic, read as UTC through one anchor taken when the run starts.
#pragma once
#include <chrono>

#include "types.hpp"

namespace hft {

class WallClock {
 public:
  WallClock() {
    using namespace std::chrono;
    const Ns mono = ns(steady_clock::now());
    const Ns utc = duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
    offset_ = utc - mono;
  }
  Ts now() const noexcept { return ns(std::chrono::steady_clock::now()) + offset_; }
  Ns offset() const noexcept { return offset_; }

 private:
  static Ns ns(std::chrono::steady_clock::time_point t) noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(t.time_since_epoch()).count();
  }
  Ns offset_;
};

}  // namespace hft
