/// Bars built from prints on a fixed grid of our clock; a bar without prints is not made. A print
/// on the grid belongs to the bar that ends there: the market is heard before the clock that closes
/// the bar.
#pragma once
#include <algorithm>

#include "event.hpp"

namespace hft {

struct Bar {
  Ts ts_open = kNoTime, ts_close = kNoTime;  ///< grid instants around it
  Ticks open = 0, high = 0, low = 0, close = 0;
  Lots lots = 0, buy_lots = 0;  ///< all prints, and those with a buyer as aggressor
  std::int64_t prints = 0;
  InstrumentId instrument = 0;
};

class BarBuilder {
 public:
  BarBuilder() = default;
  explicit BarBuilder(Ns interval_ns) : interval_(interval_ns) {}

  Ts due() const noexcept { return bar_.prints > 0 ? bar_.ts_close : kNever; }

  void add(const Event& e) noexcept {
    if (bar_.prints == 0) {
      bar_ = {};
      bar_.instrument = e.instrument;
      const Ts last = e.ts_recv - 1;
      bar_.ts_open = last - (last % interval_ + interval_) % interval_;
      bar_.ts_close = bar_.ts_open + interval_;
      bar_.open = bar_.high = bar_.low = e.price;
    }
    bar_.high = std::max(bar_.high, e.price);
    bar_.low = std::min(bar_.low, e.price);
    bar_.close = e.price;
    bar_.lots += e.qty;
    if (e.side == BUY) bar_.buy_lots += e.qty;
    ++bar_.prints;
  }

  Bar take() noexcept {
    const Bar done = bar_;
    bar_.prints = 0;
    return done;
  }

 private:
  Ns interval_ = 0;
  Bar bar_;
};

}  // namespace hft
