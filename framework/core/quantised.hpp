/// 8-bit weights times 8-bit rows, for any vector width; conditions as in activation.hpp.
///
/// A column's weights are whole multiples, within +-127, of the column's scale (its largest weight
/// / 127); a row's values are multiples of the row's own. The sum of their products is a whole
/// number that 32 bits hold (inputs <= kMaxInputs8), so it is the same in any order: VNNI, AVX2 and
/// portable agree. Only then come the two scales and the bias, in float.
///
/// Four inputs of a column lie together, as VNNI's dot product wants them: AVX2 does as well with
/// that. VNNI multiplies unsigned by signed bytes, so its rows carry +128, which a column's
/// `offset` takes out again. AVX2's own product of that kind saturates at 16 bits; |x| times w with
/// the sign of x, both within 127, does not.
///
/// Fast: a quarter of the bytes to read, which is what bounds a step of float weights. LSTM 64x2 on
/// 40 inputs, p50 in us on a Zen 5 (tests/bench/lstm.py): step 0.51 with VNNI, 0.93 with AVX2,
/// where float takes 1.37; armed 0.34, 0.61, float 0.68.
/// Slow: PORTABLE has no product of bytes, 5.5 to float's 3.7.
#pragma once
#include <algorithm>

#include "activation.hpp"

namespace hft {

/// To the nearest, halves to even. The scale of a row of zeros is 0, and so is every byte.
template <class Q>
float quantise(const float* x, std::size_t inputs, std::int8_t* q) noexcept {
  const std::size_t width = panels(inputs) * kPanel;
  auto largest = Q::set1(0.0f);
  for (std::size_t i = 0; i < width; i += Q::width)
    largest = Q::max(largest, Q::absolute(Q::load(x + i)));
  const float top = Q::largest_of(largest);
  const auto steps = Q::set1(top > 0.0f ? 127.0f / top : 0.0f);
  for (std::size_t i = 0; i < width; i += Q::width)
    Q::store_bytes(q + i, Q::mul(Q::load(x + i), steps));
  return top * (1.0f / 127.0f);
}

template <class Q, std::size_t Gates, std::size_t Panels, std::size_t Regs, std::size_t Rows>
inline void block8(const MatrixView& m, std::size_t column, const std::int8_t* w,
                   std::size_t panel_bytes, const std::int8_t* q, std::size_t q_stride,
                   const float* row_scales, float* z) noexcept {
  constexpr std::size_t kColumns = Gates * kPanel;
  typename Q::I sum[Rows][Panels][Regs];
  HFT_UNROLL
  for (std::size_t row = 0; row < Rows; ++row) HFT_UNROLL
  for (std::size_t p = 0; p < Panels; ++p) HFT_UNROLL
  for (std::size_t r = 0; r < Regs; ++r)
    sum[row][p][r] = Q::start(m.offsets + column + p * kColumns + r * Q::width);
  const std::size_t count = quads(m.inputs);
  HFT_UNROLL_4
  for (std::size_t k = 0; k < count; ++k) {
    typename Q::Quad x[Rows];
    HFT_UNROLL
    for (std::size_t row = 0; row < Rows; ++row) x[row] = Q::quad(q + row * q_stride + k * kQuad);
    HFT_UNROLL
    for (std::size_t p = 0; p < Panels; ++p) HFT_UNROLL
    for (std::size_t r = 0; r < Regs; ++r) {
      const auto weight = Q::bytes(w + p * panel_bytes + (k * kColumns + r * Q::width) * kQuad);
      HFT_UNROLL
      for (std::size_t row = 0; row < Rows; ++row)
        sum[row][p][r] = Q::dot(sum[row][p][r], x[row], weight);
    }
  }
  HFT_UNROLL
  for (std::size_t row = 0; row < Rows; ++row) HFT_UNROLL
  for (std::size_t p = 0; p < Panels; ++p) HFT_UNROLL
  for (std::size_t r = 0; r < Regs; ++r) {
    const std::size_t at = column + p * kColumns + r * Q::width;
    const auto scale = Q::mul(Q::load(m.scales + at), Q::set1(row_scales[row]));
    const auto bias = m.bias ? Q::load(m.bias + at) : Q::set1(0.0f);
    Q::store(z + row * m.columns() + at, Q::fma(Q::to_float(sum[row][p][r]), scale, bias));
  }
}

template <class Q, std::size_t Gates, std::size_t Panels, std::size_t Regs, std::size_t Rows>
inline void blocks8(const MatrixView& m, std::size_t panel, const std::int8_t* q,
                    std::size_t q_stride, const float* row_scales, float* z) noexcept {
  constexpr std::size_t kColumns = Gates * kPanel;
  static_assert(kColumns % (Regs * Q::width) == 0);
  const std::size_t panel_bytes = quads(m.inputs) * kColumns * kQuad;
  for (std::size_t column = 0; column < kColumns; column += Regs * Q::width)
    block8<Q, Gates, Panels, Regs, Rows>(m, panel * kColumns + column,
                                         m.bytes + panel * panel_bytes + column * kQuad,
                                         panel_bytes, q, q_stride, row_scales, z);
}

template <class Q, std::size_t Gates>
inline void gate_products8(const MatrixView& m, const std::int8_t* q, std::size_t q_stride,
                           const float* row_scales, std::size_t rows, float* z) noexcept {
  constexpr std::size_t kVectors = Gates * kPanel / Q::width;
  constexpr std::size_t kStep = std::min(Q::step_regs, kVectors);
  constexpr std::size_t kBatch = std::min(Q::batch_regs, kVectors);
  std::size_t row = 0;
  for (; row + Q::batch_rows8 <= rows && Q::batch_rows8 > 1; row += Q::batch_rows8)
    for (std::size_t p = 0; p < m.panels; ++p)
      blocks8<Q, Gates, 1, kBatch, Q::batch_rows8>(m, p, q + row * q_stride, q_stride,
                                                   row_scales + row, z + row * m.columns());
  for (; row < rows; ++row) {
    std::size_t p = 0;
    for (; p + Q::step_panels <= m.panels; p += Q::step_panels)
      blocks8<Q, Gates, Q::step_panels, kStep, 1>(m, p, q + row * q_stride, q_stride,
                                                  row_scales + row, z + row * m.columns());
    for (; p < m.panels; ++p)
      blocks8<Q, Gates, 1, kStep, 1>(m, p, q + row * q_stride, q_stride, row_scales + row,
                                     z + row * m.columns());
  }
}

template <class Q>
void products8(const MatrixView& m, const std::int8_t* q, std::size_t q_stride,
               const float* row_scales, std::size_t rows, float* z) noexcept {
  if (m.gates == 4) return gate_products8<Q, 4>(m, q, q_stride, row_scales, rows, z);
  if (m.gates == 3) return gate_products8<Q, 3>(m, q, q_stride, row_scales, rows, z);
  gate_products8<Q, 1>(m, q, q_stride, row_scales, rows, z);
}

}  // namespace hft
