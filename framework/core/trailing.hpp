/// Scales that trail: mean and scale of each column, made of what was seen lately.
///
/// Rows are summed up in blocks, an eighth of a period long and aligned to the epoch, about the
/// stream's first row, so that squares keep their digits. Where a block ends (the first row of a
/// later one tells) the blocks that end within `memory_ns` before make a new estimate, if the
/// newest one is of an earlier period, or if the block's mean is off by more than `drift` of its
/// scales; then all blocks before it are forgotten. An estimate holds for the rows after it.
///
/// A row costs two sums a column, which can wait until it has been answered (`hold`, `settle`); a
/// block's end costs a pass over the blocks in memory where it makes an estimate, else little
/// (tests/bench/trailing.py prints both). Given up: sums that slide, which would drift from what
/// they claim to be.
///
/// One implementation serves data sets and runs, so that a model runs on what it was trained on.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "layers.hpp"
#include "types.hpp"

namespace hft {

struct TrailingRule {
  static constexpr Ns kMostPeriods = 1000;  ///< in memory

  Ns period_ns = 0;
  Ns memory_ns = 0;  ///< how far an estimate looks back; a period or more
  double drift = 0;  ///< 0: never

  void validate() const;  ///< Throws ConfigError.
  bool operator==(const TrailingRule&) const = default;
};

/// 1 where a column does not vary: its noise must not be blown up.
double varying(double mean, double scale) noexcept;

class TrailingScales {
 public:
  static constexpr Ns kBlocks = 8;  ///< of a period: how often drift is looked for
  static constexpr std::int64_t kFewestRows = 100;

  struct Estimate {
    Ts start_ts;
    std::int64_t rows;  ///< it was made of
    bool drifted;       ///< the block before looked unlike the estimate before
    std::vector<double> mean, scale;
  };

  /// Throws ConfigError.
  TrailingScales(const TrailingRule& rule, std::size_t columns);

  const TrailingRule& rule() const noexcept { return rule_; }
  /// Before the row of `ts` is scaled; adds what was held. True: there is a new estimate.
  bool enter(Ts ts) {
    settle();
    return (ts < block_ts_ || ts - block_ts_ >= block_ns_) && begin(ts);
  }
  /// A finite row of the block that was entered last.
  void add(const double* row) noexcept;
  /// The same, added by the next `settle`.
  void hold(std::span<const double> row) noexcept;
  void settle() noexcept {
    if (holds_) add(held_.data());
    holds_ = false;
  }

  /// The newest; null: none yet.
  const Estimate* estimate() const noexcept { return made_ > 0 ? &estimate_ : nullptr; }
  std::int64_t made() const noexcept { return made_; }

 private:
  struct Block {
    Ts end_ts = 0;
    std::int64_t rows = 0;
    std::vector<double> x, x2;  // sums of rows less the first row, and of their squares
  };

  bool begin(Ts ts);
  bool close(Ts now);
  bool has_drifted(const Block& block) const noexcept;
  void make(Ts now, std::int64_t rows, bool drifted);

  TrailingRule rule_;
  Ns block_ns_;
  Ts block_ts_ = kNever;  // of the open one; before the first row every instant is before it
  std::vector<double> about_, held_;
  bool has_about_ = false, holds_ = false;
  Block open_;
  std::vector<Block> closed_;
  Estimate estimate_{};
  std::int64_t made_ = 0;
};

/// A row in the terms of a network's own scaler: what that one makes of it is what the estimate
/// makes of the row.
class OwnTerms {
 public:
  OwnTerms(std::vector<double> mean, std::vector<double> scale)
      : mean_(std::move(mean)), scale_(std::move(scale)), from_(mean_), ratio_(mean_.size(), 1) {}
  void take(const double* mean, const double* scale) noexcept;
  /// `out` = mean + (row - trailing mean) * (scale / trailing scale).
  void put(const double* row, double* out) const noexcept {
    for (std::size_t i = 0; i < mean_.size(); ++i)
      out[i] = mean_[i] + (row[i] - from_[i]) * ratio_[i];
  }
  std::size_t size() const noexcept { return mean_.size(); }

 private:
  std::vector<double> mean_, scale_, from_, ratio_;
};

/// How a model wants its rows: scales by a rule, then in the terms of its scaler.
struct Trails {
  TrailingRule rule;
  Scaler scaler;
};

/// What stands in front of a network, between features and everything that reads them for it.
class TrailingRow {
 public:
  explicit TrailingRow(const Trails& trails)
      : TrailingRow(trails,
                    std::make_shared<TrailingScales>(trails.rule, trails.scaler.mean.size())) {
    leads_ = true;
  }
  /// Of a network that is to take over from one with the same rule: reads that one's estimates,
  /// after it.
  TrailingRow(const Trails& trails, std::shared_ptr<TrailingScales> scales)
      : scales_(std::move(scales)),
        terms_(trails.scaler.mean, trails.scaler.scale),
        row_(terms_.size()) {}

  /// As the network is to see it, until the next call; as it is before the first estimate. A row
  /// that is not finite leaves no trace.
  std::span<const double> see(std::span<const double> row, Ts ts);
  /// The row is answered: adds it to the sums. Whoever has no time for it leaves it to the next.
  void rest() noexcept { scales_->settle(); }
  void lead() noexcept { leads_ = true; }
  const std::shared_ptr<TrailingScales>& scales() const noexcept { return scales_; }

 private:
  std::shared_ptr<TrailingScales> scales_;
  OwnTerms terms_;
  bool leads_ = false;
  std::int64_t taken_ = 0;  // of the estimates made
  std::vector<double> row_;
};

bool is_finite(std::span<const double> row) noexcept;

}  // namespace hft
