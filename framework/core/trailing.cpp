#include "trailing.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "errors.hpp"

namespace hft {

void TrailingRule::validate() const {
  if (period_ns <= 0 || memory_ns < period_ns)
    throw ConfigError("scales of every " + std::to_string(period_ns) + " ns look back " +
                      std::to_string(memory_ns) +
                      " ns: want a period above 0, and a memory at least as long");
  if (memory_ns / period_ns > kMostPeriods)
    throw ConfigError("scales of every " + std::to_string(period_ns) + " ns look back " +
                      std::to_string(memory_ns / period_ns) + " periods, want at most " +
                      std::to_string(kMostPeriods) + ": each estimate goes over all of them");
  if (!(drift >= 0) || std::isinf(drift))
    throw ConfigError("drift of trailing scales is " + std::to_string(drift) +
                      ", want 0 (never) or more");
}

double varying(double mean, double scale) noexcept {
  return scale > 1e-9 * std::max(std::abs(mean), 1.0) ? scale : 1.0;
}

/// A difference of itself is 0 of a finite number alone; a loop that vectors.
bool is_finite(std::span<const double> row) noexcept {
  double sum = 0;
  for (const double x : row) sum += x - x;
  return sum == 0;
}

TrailingScales::TrailingScales(const TrailingRule& rule, std::size_t columns)
    : rule_(rule), block_ns_(0), about_(columns), held_(columns) {
  rule_.validate();
  block_ns_ = std::max(rule_.period_ns / kBlocks, Ns{1});
  open_.x.assign(columns, 0);
  open_.x2.assign(columns, 0);
}

bool TrailingScales::begin(Ts ts) {
  const Ts now = ts - ts % block_ns_;
  const bool is_new = open_.rows > 0 && close(now);
  block_ts_ = now;
  open_.end_ts = now + block_ns_;
  open_.rows = 0;
  open_.x.assign(about_.size(), 0);
  open_.x2.assign(about_.size(), 0);
  return is_new;
}

void TrailingScales::add(const double* row) noexcept {
  if (!has_about_) [[unlikely]] {
    std::copy_n(row, about_.size(), about_.begin());
    has_about_ = true;
  }
  ++open_.rows;
  const double* const about = about_.data();
  double* const x = open_.x.data();
  double* const x2 = open_.x2.data();
  for (std::size_t i = 0, n = about_.size(); i < n; ++i) {
    const double off = row[i] - about[i];
    x[i] += off;
    x2[i] += off * off;
  }
}

void TrailingScales::hold(std::span<const double> row) noexcept {
  std::ranges::copy(row, held_.begin());
  holds_ = true;
}

/// The open block is over; the next one begins at `now`.
bool TrailingScales::close(Ts now) {
  const bool drifted = has_drifted(open_);
  if (drifted) closed_.clear();
  std::erase_if(closed_, [&](const Block& b) { return b.end_ts <= now - rule_.memory_ns; });
  if (open_.end_ts > now - rule_.memory_ns) closed_.push_back(std::move(open_));
  const bool due =
      made_ == 0 || now / rule_.period_ns > estimate_.start_ts / rule_.period_ns || drifted;
  std::int64_t rows = 0;
  for (const Block& b : closed_) rows += b.rows;
  if (!due || rows < kFewestRows) return false;
  make(now, rows, drifted);
  return true;
}

bool TrailingScales::has_drifted(const Block& block) const noexcept {
  if (made_ == 0 || rule_.drift == 0 || block.rows < kFewestRows) return false;
  const auto rows = static_cast<double>(block.rows);
  for (std::size_t i = 0; i < about_.size(); ++i) {
    const double off = std::abs(about_[i] + block.x[i] / rows - estimate_.mean[i]);
    if (off / estimate_.scale[i] > rule_.drift) return true;
  }
  return false;
}

void TrailingScales::make(Ts now, std::int64_t rows, bool drifted) {
  const std::size_t k = about_.size();
  estimate_ = {now, rows, drifted, std::vector<double>(k, 0.0), std::vector<double>(k, 0.0)};
  std::vector<double>&mean = estimate_.mean, &scale = estimate_.scale;
  for (const Block& b : closed_)
    for (std::size_t i = 0; i < k; ++i) {
      mean[i] += b.x[i];
      scale[i] += b.x2[i];
    }
  const auto n = static_cast<double>(rows);
  for (std::size_t i = 0; i < k; ++i) {
    mean[i] /= n;
    scale[i] = std::sqrt(std::max(scale[i] / n - mean[i] * mean[i], 0.0));
    mean[i] += about_[i];
    scale[i] = varying(mean[i], scale[i]);
  }
  ++made_;
}

void OwnTerms::take(const double* mean, const double* scale) noexcept {
  for (std::size_t i = 0; i < mean_.size(); ++i) {
    from_[i] = mean[i];
    ratio_[i] = scale_[i] / scale[i];
  }
}

std::span<const double> TrailingRow::see(std::span<const double> row, Ts ts) {
  if (!is_finite(row)) return row;
  if (leads_) {
    scales_->enter(ts);
    scales_->hold(row);
  }
  const TrailingScales::Estimate* const newest = scales_->estimate();
  if (newest == nullptr) return row;
  if (taken_ != scales_->made()) [[unlikely]] {
    terms_.take(newest->mean.data(), newest->scale.data());
    taken_ = scales_->made();
  }
  terms_.put(row.data(), row_.data());
  return row_;
}

}  // namespace hft
