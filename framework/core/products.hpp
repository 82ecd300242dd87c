/// Matrix times rows in float, for any vector width; conditions as in activation.hpp.
///
/// Layers with gates sum each column's products in the order of the inputs, as many columns at a
/// time as registers hold. A matrix without gates (Dense) has too few columns for that to hide the
/// latency of an addition, so each of its columns is four partial sums.
#pragma once
#include <algorithm>

#include "activation.hpp"

namespace hft {

/// z[row][block] = bias + sum over k of w[k] * x[row][k], k ascending: `Regs` vectors of `Panels`
/// panels for `Rows` rows stay in registers over the whole sum: at -O2 only if the loops are
/// unrolled.
template <class V, std::size_t Gates, std::size_t Panels, std::size_t Regs, std::size_t Rows>
inline void gate_block(const float* w, std::size_t panel_floats, const float* bias,
                       std::size_t inputs, const float* x, std::size_t x_stride, float* z,
                       std::size_t z_stride) noexcept {
  constexpr std::size_t kColumns = Gates * kPanel;
  typename V::T sum[Rows][Panels][Regs];
  HFT_UNROLL
  for (std::size_t row = 0; row < Rows; ++row) HFT_UNROLL
  for (std::size_t p = 0; p < Panels; ++p) HFT_UNROLL
  for (std::size_t r = 0; r < Regs; ++r)
    sum[row][p][r] = bias ? V::load(bias + p * kColumns + r * V::width) : V::set1(0.0f);
  HFT_UNROLL_4
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

template <class V, std::size_t Gates, std::size_t Panels, std::size_t Regs, std::size_t Rows>
inline void gate_blocks(const MatrixView& m, std::size_t panel, const float* x,
                        std::size_t x_stride, float* z) noexcept {
  constexpr std::size_t kColumns = Gates * kPanel;
  static_assert(kColumns % (Regs * V::width) == 0);
  const std::size_t panel_floats = m.inputs * kColumns, z_stride = m.panels * kColumns;
  for (std::size_t column = 0; column < kColumns; column += Regs * V::width)
    gate_block<V, Gates, Panels, Regs, Rows>(
        m.weights + panel * panel_floats + column, panel_floats,
        m.bias ? m.bias + panel * kColumns + column : nullptr, m.inputs, x, x_stride,
        z + panel * kColumns + column, z_stride);
}

template <class V, std::size_t Gates>
inline void gate_products(const MatrixView& m, const float* x, std::size_t x_stride,
                          std::size_t rows, float* z) noexcept {
  constexpr std::size_t kVectors = Gates * kPanel / V::width;
  constexpr std::size_t kStep = std::min(V::step_regs, kVectors);
  constexpr std::size_t kBatch = std::min(V::batch_regs, kVectors);
  std::size_t row = 0;
  for (; row + 4 <= rows; row += 4)
    for (std::size_t p = 0; p < m.panels; ++p)
      gate_blocks<V, Gates, 1, kBatch, 4>(m, p, x + row * x_stride, x_stride,
                                          z + row * m.columns());
  for (; row < rows; ++row) {
    std::size_t p = 0;
    for (; p + V::step_panels <= m.panels; p += V::step_panels)
      gate_blocks<V, Gates, V::step_panels, kStep, 1>(m, p, x + row * x_stride, x_stride,
                                                      z + row * m.columns());
    for (; p < m.panels; ++p)
      gate_blocks<V, Gates, 1, kStep, 1>(m, p, x + row * x_stride, x_stride, z + row * m.columns());
  }
}

/// Four partial sums (k mod 4); their order is fixed.
template <class V>
inline typename V::T dense_sum(const float* w, std::size_t inputs, const float* x,
                               typename V::T bias) noexcept {
  typename V::T sum[4] = {bias, V::set1(0.0f), V::set1(0.0f), V::set1(0.0f)};
  std::size_t k = 0;
  for (; k + 4 <= inputs; k += 4)
    for (std::size_t i = 0; i < 4; ++i)
      sum[i] = V::fma(V::load(w + (k + i) * kPanel), V::set1(x[k + i]), sum[i]);
  for (std::size_t i = 0; k + i < inputs; ++i)
    sum[i] = V::fma(V::load(w + (k + i) * kPanel), V::set1(x[k + i]), sum[i]);
  return V::add(V::add(sum[0], sum[1]), V::add(sum[2], sum[3]));
}

template <class V>
inline void dense_products(const MatrixView& m, const float* x, float* z) noexcept {
  for (std::size_t p = 0; p < m.panels; ++p)
    for (std::size_t j = 0; j < kPanel; j += V::width) {
      const auto bias = m.bias ? V::load(m.bias + p * kPanel + j) : V::set1(0.0f);
      V::store(z + p * kPanel + j,
               dense_sum<V>(m.weights + p * m.inputs * kPanel + j, m.inputs, x, bias));
    }
}

template <class V>
void products(const MatrixView& m, const float* x, std::size_t x_stride, std::size_t rows,
              float* z) noexcept {
  if (m.gates == 4) return gate_products<V, 4>(m, x, x_stride, rows, z);
  if (m.gates == 3) return gate_products<V, 3>(m, x, x_stride, rows, z);
  for (std::size_t row = 0; row < rows; ++row)
    dense_products<V>(m, x + row * x_stride, z + row * m.columns());
}

}  // namespace hft
