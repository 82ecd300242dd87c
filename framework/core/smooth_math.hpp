/// exp2 and log in plain double arithmetic: libm's versions change with the machine and the
/// library, and then a journal recorded on one host could not be verified on another. Needs
/// -ffp-contract=off. A table of 64 steps and a short polynomial; error below 1e-15 relative
/// (exp2), 1e-15 (log up to 40).
#pragma once
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace hft {

namespace smooth {
inline constexpr double kLn2 = 0x1.62e42fefa39efp-1;
inline constexpr int kSteps = 64;

/// 2^(-i/64)
inline constexpr auto kPowers = [] {
  std::array<double, kSteps> table{};
  for (std::size_t i = 0; i < table.size(); ++i) {
    const double y = -static_cast<double>(i) / kSteps * kLn2;
    double p = 1.0;
    for (int k = 20; k > 0; --k) p = 1.0 + p * y / k;
    table[i] = p;
  }
  return table;
}();

/// log(1 + i/64), i up to 64
inline constexpr auto kLogs = [] {
  std::array<double, kSteps + 1> table{};
  for (std::size_t i = 0; i < table.size(); ++i) {
    const double x = static_cast<double>(i) / kSteps, s = x / (2.0 + x);
    double p = 0.0;
    for (int k = 20; k >= 0; --k) p = 1.0 / (2 * k + 1) + p * s * s;
    table[i] = 2.0 * s * p;
  }
  return table;
}();
}  // namespace smooth

/// 2^-x for x >= 0.
inline double exp2_down(double x) noexcept {
  if (x > 1000.0) return 0.0;
  const double scaled = x * smooth::kSteps;
  const auto n = static_cast<std::int64_t>(scaled + 0.5);
  const double r = (static_cast<double>(n) - scaled) * (smooth::kLn2 / smooth::kSteps);
  const double r2 = r * r;  // |r| <= 0.0055
  const double p = (1.0 + r) + r2 * ((0.5 + r * (1.0 / 6)) + r2 * (1.0 / 24 + r * (1.0 / 120)));
  const auto whole = static_cast<std::uint64_t>(1023 - n / smooth::kSteps);
  return p * smooth::kPowers[static_cast<std::size_t>(n % smooth::kSteps)] *
         std::bit_cast<double>(whole << 52);
}

/// log(1 + x) for x >= 0.
inline double log_one_plus(double x) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(1.0 + x);
  const auto exponent = static_cast<std::int64_t>(bits >> 52) - 1023;
  const double m = std::bit_cast<double>((bits & 0xfffffffffffffULL) | 0x3ff0000000000000ULL);
  const auto i = static_cast<std::size_t>((m - 1.0) * smooth::kSteps + 0.5);
  const double c = 1.0 + static_cast<double>(i) / smooth::kSteps;
  const double r = (m - c) / c, r2 = r * r, r4 = r2 * r2;  // |r| <= 1/128
  const double p = (r - r2 * 0.5) + r2 * (r * (1.0 / 3) - r2 * 0.25) +
                   r4 * ((r * 0.2 - r2 * (1.0 / 6)) + r2 * r * (1.0 / 7));
  return (p + smooth::kLogs[i]) + static_cast<double>(exponent) * smooth::kLn2;
}

inline double signed_log(double x) noexcept { return std::copysign(log_one_plus(std::fabs(x)), x); }

}  // namespace hft
