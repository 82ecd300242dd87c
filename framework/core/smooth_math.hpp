/// exp2, log in plain double arithmetic: libm's versions change with the machine and the library,
/// and then a journal recorded on one host could not be verified on another. Needs
/// -ffp-contract=off. Error below 3e-16 relative (exp2), 3e-16 absolute (log).
#pragma once
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace hft {

namespace smooth {
inline constexpr auto kInverseFactorial = [] {
  std::array<double, 13> c{1.0};
  for (std::size_t k = 1; k < c.size(); ++k) c[k] = c[k - 1] / static_cast<double>(k);
  return c;
}();
inline constexpr auto kInverseOdd = [] {
  std::array<double, 11> c{};
  for (std::size_t k = 0; k < c.size(); ++k) c[k] = 1.0 / static_cast<double>(2 * k + 1);
  return c;
}();

template <std::size_t N>
double horner(const std::array<double, N>& c, double x) noexcept {
  double p = c[N - 1];
  for (std::size_t k = N - 1; k-- > 0;) p = c[k] + p * x;
  return p;
}
}  // namespace smooth

/// 2^-x for x >= 0.
inline double exp2_down(double x) noexcept {
  if (x > 1000.0) return 0.0;
  const auto n = static_cast<std::int64_t>(x + 0.5);
  const double y = (static_cast<double>(n) - x) * 0x1.62e42fefa39efp-1;  // |y| <= ln(2) / 2
  return smooth::horner(smooth::kInverseFactorial, y) *
         std::bit_cast<double>(static_cast<std::uint64_t>(1023 - n) << 52);
}

/// log(1 + x) for x >= 0.
inline double log_one_plus(double x) noexcept {
  const double y = 1.0 + x;
  const auto bits = std::bit_cast<std::uint64_t>(y);
  auto exponent = static_cast<std::int64_t>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xfffffffffffffULL) | 0x3ff0000000000000ULL);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1.0) / (m + 1.0), s2 = s * s;  // |s| <= 0.172
  return 2.0 * s * smooth::horner(smooth::kInverseOdd, s2) +
         static_cast<double>(exponent) * 0x1.62e42fefa39efp-1;
}

inline double signed_log(double x) noexcept { return std::copysign(log_one_plus(std::fabs(x)), x); }

}  // namespace hft
