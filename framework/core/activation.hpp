/// Exponentials, activations and softmax, written once for any vector width.
///
/// A translation unit includes this after its `#pragma GCC target`, with a vector type V:
/// `T, width, load, store, set1, fma, add, sub, mul, div, min, max, exponent, doubled` and the
/// block shapes. Every operation is one that all widths round alike, and no product feeds a plain
/// sum, so the results do not depend on the width, nor on what the compiler contracts.
#pragma once
#include "kernels.hpp"

#define HFT_UNROLL _Pragma("GCC unroll 16")
/// Sums along inputs, of which a layer has few: four inputs (or quads) a turn of the loop take 5 to
/// 10 % off a step. Eight or sixteen do as well at 64 units and worse at 128.
#define HFT_UNROLL_4 _Pragma("GCC unroll 4")
#define HFT_UNROLL_2 _Pragma("GCC unroll 2")

namespace hft {

/// exp(x) for |x| <= 87; error below 2 ulp. 2^n comes out of the magic sum's low mantissa bits.
template <class V>
inline typename V::T vexp(typename V::T x) noexcept {
  x = V::max(V::min(x, V::set1(87.0f)), V::set1(-87.0f));
  const auto magic = V::set1(12582912.0f);  // 1.5 * 2^23: adding it rounds to a whole number
  const auto shifted = V::fma(x, V::set1(1.44269504f), magic);
  const auto n = V::sub(shifted, magic);
  auto r = V::fma(n, V::set1(-0.693359375f), x);
  r = V::fma(n, V::set1(2.12194440e-4f), r);
  auto p = V::set1(1.9875691500e-4f);
  p = V::fma(p, r, V::set1(1.3981999507e-3f));
  p = V::fma(p, r, V::set1(8.3334519073e-3f));
  p = V::fma(p, r, V::set1(4.1665795894e-2f));
  p = V::fma(p, r, V::set1(1.6666665459e-1f));
  p = V::fma(p, r, V::set1(5.0000001201e-1f));
  p = V::fma(p, r, V::set1(1.0f));
  p = V::fma(p, r, V::set1(1.0f));
  return V::mul(p, V::exponent(shifted));
}

/// What a gate's exp(-factor * z) is in powers of 2.
inline constexpr float kSigmoidPower = -1.44269504f, kTanhPower = -2.88539008f;

/// 2^(power * z) for a gate: within 2^+-41, where sigmoid and tanh have long been flat, so that
/// three of them multiplied still fit a float. Error below 3 ulp, and 2^0 is 1.
template <class V>
inline typename V::T gate_power(typename V::T z, float power) noexcept {
  const auto y = V::max(V::min(V::mul(z, V::set1(power)), V::set1(41.0f)), V::set1(-41.0f));
  const auto magic = V::set1(12582912.0f);
  const auto shifted = V::add(y, magic);
  const auto r = V::sub(y, V::sub(shifted, magic));
  auto p = V::set1(1.3264715e-3f);
  p = V::fma(p, r, V::set1(9.671514e-3f));
  p = V::fma(p, r, V::set1(5.550734e-2f));
  p = V::fma(p, r, V::set1(2.4022242e-1f));
  p = V::fma(p, r, V::set1(6.93147e-1f));
  p = V::fma(p, r, V::set1(1.0f));
  return V::doubled(p, shifted);
}

template <class V>
inline typename V::T vsigmoid(typename V::T x) noexcept {
  const auto one = V::set1(1.0f);
  return V::div(one, V::add(one, vexp<V>(V::sub(V::set1(0.0f), x))));
}

/// Absolute error below 2e-7: enough for a gate, and cheaper than one that is exact near 0.
template <class V>
inline typename V::T vtanh(typename V::T x) noexcept {
  const auto one = V::set1(1.0f);
  return V::fma(V::set1(-2.0f), V::div(one, V::add(one, vexp<V>(V::add(x, x)))), one);
}

template <class V>
inline typename V::T activated(typename V::T x, Activation activation) noexcept {
  switch (activation) {
    case Activation::RELU:
      return V::max(x, V::set1(0.0f));
    case Activation::TANH:
      return vtanh<V>(x);
    case Activation::SIGMOID:
      return vsigmoid<V>(x);
    default:
      return x;
  }
}

template <class V>
inline void softmax(float* y, std::size_t units) noexcept {
  float largest = y[0];
  for (std::size_t i = 1; i < units; ++i) largest = y[i] > largest ? y[i] : largest;
  for (std::size_t i = 0; i < panels(units) * kPanel; i += V::width)
    V::store(y + i, vexp<V>(V::sub(V::load(y + i), V::set1(largest))));
  float total = 0.0f;
  for (std::size_t i = 0; i < units; ++i) total += y[i];
  for (std::size_t i = 0; i < units; ++i) y[i] /= total;
}

/// A row of features as the first layer takes it; zeros up to a whole panel follow.
///
/// NaN must be looked for: max and min pass over it, so it would come out as a bound. One more on
/// an exponent of ones, which NaN and infinity alone have, carries into the sign.
template <class V>
bool standardise(const ScalerView& s, const double* features, float* x) noexcept {
  constexpr std::uint64_t kExponent = 0x7ff0'0000'0000'0000, kOne = 1ULL << 52;
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i < s.inputs; ++i) {
    std::uint64_t bits;
    __builtin_memcpy(&bits, features + i, sizeof bits);
    carry |= (bits & kExponent) + kOne;
    const double v = (features[i] - s.mean[i]) * s.inverse_scale[i];
    const double least = -s.clip > v ? -s.clip : v;
    x[i] = static_cast<float>(s.clip < least ? s.clip : least);
  }
  for (std::size_t i = s.inputs; i < panels(s.inputs) * kPanel; ++i) x[i] = 0.0f;
  return carry >> 63 == 0;
}

template <class V>
void activate(Activation activation, std::size_t units, const float* zx, const float* zh,
              float* y) noexcept {
  const std::size_t width = panels(units) * kPanel;
  for (std::size_t i = 0; i < width; i += V::width) {
    const auto z = V::load(zx + i);
    V::store(y + i, activated<V>(zh ? V::add(z, V::load(zh + i)) : z, activation));
  }
  if (activation == Activation::SOFTMAX) softmax<V>(y, units);
  for (std::size_t i = units; i < width; ++i) y[i] = 0.0f;
}

}  // namespace hft
