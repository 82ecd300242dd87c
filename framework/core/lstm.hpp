/// Gates of an LSTM layer, written once for any vector width.
///
/// A translation unit includes this after its `#pragma GCC target`, with a vector type V:
/// `T, width, load, store, set1, fma, add, sub, mul, div, min, max, exponent` and the block shapes.
/// Every operation is one that all widths round alike, and no product feeds a plain sum, so the
/// results do not depend on the width, nor on what the compiler contracts.
#pragma once
#include "kernels.hpp"

#define HFT_UNROLL _Pragma("GCC unroll 16")

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

/// z[row][block] = bias + sum over k of w[k] * x[row][k], k ascending: `Regs` vectors of `Panels`
/// panels for `Rows` rows stay in registers over the whole sum: at -O2 only if the loops are
/// unrolled.
template <class V, std::size_t Panels, std::size_t Regs, std::size_t Rows>
inline void gate_block(const float* w, std::size_t panel_floats, const float* bias,
                       std::size_t inputs, const float* x, std::size_t x_stride, float* z,
                       std::size_t z_stride) noexcept {
  constexpr std::size_t kColumns = 4 * kPanel;
  typename V::T sum[Rows][Panels][Regs];
  HFT_UNROLL
  for (std::size_t row = 0; row < Rows; ++row) HFT_UNROLL
  for (std::size_t p = 0; p < Panels; ++p) HFT_UNROLL
  for (std::size_t r = 0; r < Regs; ++r)
    sum[row][p][r] = bias ? V::load(bias + p * kColumns + r * V::width) : V::set1(0.0f);
  for (std::size_t k = 0; k < inputs; ++k) {
    HFT_UNROLL
    for (std::size_t p = 0; p < Panels; ++p) HFT_UNROLL
    for (std::size_t r = 0; r < Regs; ++r) {
      const auto weight = V::load(w + p * panel_floats + k * kColumns + r * V::width);
      HFT_UNROLL
      for (std::size_t row = 0; row < Rows; ++row)
        sum[row][p][r] = V::fma(weight, V::set1(x[row * x_stride + k]), sum[row][p][r]);
    }
  }
  HFT_UNROLL
  for (std::size_t row = 0; row < Rows; ++row) HFT_UNROLL
  for (std::size_t p = 0; p < Panels; ++p) HFT_UNROLL
  for (std::size_t r = 0; r < Regs; ++r)
    V::store(z + row * z_stride + p * kColumns + r * V::width, sum[row][p][r]);
}

template <class V, std::size_t Panels, std::size_t Regs, std::size_t Rows>
inline void gate_blocks(const float* w, const float* bias, std::size_t panel, std::size_t inputs,
                        const float* x, std::size_t x_stride, float* z,
                        std::size_t z_stride) noexcept {
  constexpr std::size_t kColumns = 4 * kPanel;
  const std::size_t panel_floats = inputs * kColumns;
  for (std::size_t column = 0; column < kColumns; column += Regs * V::width)
    gate_block<V, Panels, Regs, Rows>(w + panel * panel_floats + column, panel_floats,
                                      bias ? bias + panel * kColumns + column : nullptr, inputs, x,
                                      x_stride, z + panel * kColumns + column, z_stride);
}

template <class V>
void gate_products(const float* w, const float* bias, std::size_t panel_count, std::size_t inputs,
                   const float* x, std::size_t x_stride, std::size_t rows, float* z) noexcept {
  const std::size_t z_stride = panel_count * 4 * kPanel;
  std::size_t row = 0;
  for (; row + 4 <= rows; row += 4)
    for (std::size_t p = 0; p < panel_count; ++p)
      gate_blocks<V, 1, V::batch_regs, 4>(w, bias, p, inputs, x + row * x_stride, x_stride,
                                          z + row * z_stride, z_stride);
  for (; row < rows; ++row) {
    std::size_t p = 0;
    for (; p + V::step_panels <= panel_count; p += V::step_panels)
      gate_blocks<V, V::step_panels, V::step_regs, 1>(w, bias, p, inputs, x + row * x_stride,
                                                      x_stride, z + row * z_stride, z_stride);
    for (; p < panel_count; ++p)
      gate_blocks<V, 1, V::step_regs, 1>(w, bias, p, inputs, x + row * x_stride, x_stride,
                                         z + row * z_stride, z_stride);
  }
}

/// c = f * c + i * tanh(candidate), h = o * tanh(c), gates in the order i, f, candidate, o.
template <class V>
void lstm_gates(std::size_t panel_count, const float* zx, const float* zh, float* c,
                float* h) noexcept {
  for (std::size_t p = 0; p < panel_count; ++p)
    for (std::size_t j = 0; j < kPanel; j += V::width) {
      const auto z = [&](std::size_t gate) {
        const std::size_t at = (p * 4 + gate) * kPanel + j;
        return V::add(V::load(zx + at), V::load(zh + at));
      };
      const std::size_t unit = p * kPanel + j;
      const auto kept = V::mul(vsigmoid<V>(z(1)), V::load(c + unit));
      const auto cell = V::fma(vsigmoid<V>(z(0)), vtanh<V>(z(2)), kept);
      V::store(c + unit, cell);
      V::store(h + unit, V::mul(vsigmoid<V>(z(3)), vtanh<V>(cell)));
    }
}

}  // namespace hft
