/// Where a resting order stands in a queue that only shows its total (L2).
///
/// `ahead` is the lots before us. A print at our price takes from the front. A level that shrinks
/// without a print was cancelled somewhere: `p` is the share of that cancel behind us. Models and
/// their source: execution.md section 2.1 of the design notes; Rigtorp (2013); power3 is exact when
/// cancel positions follow Beta(n, 1), uniform when n = 1.
#pragma once
#include <algorithm>
#include <cmath>

#include "order.hpp"
#include "rng.hpp"

namespace hft {

enum class QueueModel : std::uint8_t {
  RISK_AVERSE = 0,
  POWER1,
  POWER2,
  POWER3,
  LOG1,
  LOG2,
  UNIFORM
};

struct QueueConfig {
  QueueModel model = QueueModel::POWER3;
  double n = 2.0;
  bool draws = false;  ///< a cancel lies wholly before or behind us, by a keyed draw
};

class Queue {
 public:
  explicit Queue(QueueConfig config = {}) : config_(config) {}

  /// A print of `lots` at our price, of which earlier orders of ours took `taken` (more than all of
  /// it where fills are not partial). Returns how many lots of it reach us (not capped at what we
  /// have left).
  Lots print(Order::Resting& r, Lots lots, Lots taken, Ts ts) const noexcept {
    const double front = r.ahead - static_cast<double>(std::max(lots - taken, Lots{0}));
    r.traded += lots;
    r.traded_ts = ts;
    r.ahead = std::max(front, 0.0);
    return front < 0 ? std::llround(-front) : 0;
  }

  bool draws() const noexcept { return config_.draws; }
  /// Where the cancel of a row lies, one number for all of our orders: it lies in one place. Only
  /// read if `draws()`.
  static double draw(std::uint64_t seed, InstrumentId instrument, std::int64_t row) noexcept {
    return draw_uniform(seed, stream_of(Draw::QUEUE, instrument), static_cast<std::uint64_t>(row));
  }

  /// The level at our price went from `before` to `after`; `place`: of what was cancelled, `draw`.
  void resize(Order::Resting& r, Lots before, Lots after, Ts ts, double place = 0) const noexcept {
    const Lots shrunk = before - after;
    const Lots cancelled = shrunk - r.traded;
    // A print and the rows that show it may come as several rows: what they have not explained yet
    // is kept for those stamped with it, and dropped later, when a shrink can only be a cancel.
    r.traded =
        ts <= r.traded_ts + kPrintGuardNs ? std::clamp(r.traded - shrunk, Lots{0}, r.traded) : 0;
    const double displayed = static_cast<double>(after);
    if (cancelled > 0 && config_.model != QueueModel::RISK_AVERSE && before > 0) {
      const double size = static_cast<double>(cancelled);
      const double back = std::max(static_cast<double>(before) - r.ahead, 0.0);
      const double before_us = 1.0 - behind(r.ahead, back);
      const double share = !config_.draws ? before_us : place < before_us ? 1.0 : 0.0;
      // Never more than is ahead, never less than does not fit behind: log and n < 1 would
      // overdraw, and so does a cancel that lies wholly on one side.
      const double from_ahead = std::clamp(share * size, std::max(0.0, size - back),
                                           std::max(0.0, std::min(r.ahead, size)));
      r.ahead -= from_ahead;
    }
    r.ahead = std::min(r.ahead, displayed);
  }

  /// Share of a cancel that lies behind us, with `front` lots ahead and `back` behind. An empty
  /// level makes every formula 0/0: nothing is ahead then, so all of it is behind.
  double behind(double front, double back) const noexcept {
    if (!(front > 0)) return 1.0;
    const double n = config_.n;
    switch (config_.model) {
      case QueueModel::RISK_AVERSE:
        return 1.0;
      case QueueModel::POWER1:
        return power(back, n) / (power(back, n) + power(front, n));
      case QueueModel::POWER2:
        return power(back, n) / power(back + front, n);
      case QueueModel::POWER3:
        return 1.0 - power(front / (front + back), n);
      case QueueModel::LOG1:
        return std::log1p(back) / (std::log1p(back) + std::log1p(front));
      case QueueModel::LOG2:
        return std::log1p(back) / std::log1p(back + front);
      case QueueModel::UNIFORM:
        return back / (front + back);
    }
    return 1.0;
  }

 private:
  static constexpr Ns kPrintGuardNs = 1'000'000;

  static double power(double x, double n) noexcept {  // pow is five times slower at small whole n
    if (n == 1) return x;
    if (n == 2) return x * x;
    if (n == 3) return x * x * x;
    return std::pow(x, n);
  }

  QueueConfig config_;
};

}  // namespace hft
