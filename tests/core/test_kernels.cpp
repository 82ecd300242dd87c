#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "kernels.hpp"
#include "network.hpp"
#include "rng.hpp"

using namespace hft;

namespace {

std::vector<const Kernels*> all_sets() {
  std::vector<const Kernels*> sets{&kKernelsPortable};
#if defined(__x86_64__)
  if (best_isa() >= Isa::AVX2) sets.push_back(&kKernelsAvx2);
  if (best_isa() >= Isa::AVX512) sets.push_back(&kKernelsAvx512);
  if (has_vnni()) sets.push_back(&kKernelsVnni);
#endif
  return sets;
}

/// An aligned block of T.
template <class T>
struct Block {
  explicit Block(std::size_t n) : floats(zeros(n * sizeof(T) / sizeof(float) + 16)) {}
  T* data() { return reinterpret_cast<T*>(floats.get()); }
  T& operator[](std::size_t i) { return data()[i]; }
  AlignedFloats floats;
};

struct Bytes {
  Bytes(std::size_t n_inputs, std::size_t n_panels, std::size_t n_gates, bool extreme)
      : inputs(n_inputs),
        columns(n_panels * n_gates * kPanel),
        gates(n_gates),
        bytes(columns * quads(inputs) * kQuad),
        scales(columns),
        offsets(columns) {
    for (std::size_t c = 0; c < columns; ++c) {
      scales[c] = 0.01f + static_cast<float>(c) * 1e-4f;
      for (std::size_t k = 0; k < inputs; ++k) {
        const double u = draw_uniform(5, c, k);
        at(k, c) =
            static_cast<std::int8_t>(extreme ? (u < 0.5 ? -127 : 127) : std::lround(u * 254) - 127);
        offsets[c] -= 128 * at(k, c);
      }
    }
    view.inputs = inputs;
    view.panels = n_panels;
    view.gates = gates;
    view.bytes = bytes.data();
    view.scales = scales.data();
    view.offsets = offsets.data();
  }
  std::int8_t& at(std::size_t k, std::size_t column) {
    const std::size_t row = gates * kPanel;
    return bytes[((column / row * quads(inputs) + k / kQuad) * row + column % row) * kQuad +
                 k % kQuad];
  }

  std::size_t inputs, columns, gates;
  Block<std::int8_t> bytes;
  Block<float> scales;
  Block<std::int32_t> offsets;
  MatrixView view;
};

/// Row r of x: `extreme` ones are +-1 alone, whose bytes are all +-127.
float value(std::size_t r, std::size_t k, bool extreme) {
  const double u = 2.0 * draw_uniform(6, r, k) - 1.0;
  return static_cast<float>(extreme ? (u < 0 ? -1.0 : 1.0) : 3.0 * u);
}

void check_products8(const Kernels& set, std::size_t inputs, std::size_t n_panels,
                     std::size_t gates, bool extreme) {
  constexpr std::size_t kRows = 7, kStride = 256;
  Bytes m(inputs, n_panels, gates, extreme);
  Block<float> x(kRows * kStride), z(kRows * m.columns), row_scales(kRows);
  Block<std::int8_t> q(kRows * kStride);
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t k = 0; k < inputs; ++k) x[r * kStride + k] = value(r, k, extreme);
    row_scales[r] = set.quantise(x.data() + r * kStride, inputs, q.data() + r * kStride);
  }
  set.products8(m.view, q.data(), kStride, row_scales.data(), kRows, z.data());
  bool right = true;
  for (std::size_t r = 0; r < kRows; ++r) {
    float top = 0.0f;
    for (std::size_t k = 0; k < inputs; ++k) top = std::max(top, std::fabs(x[r * kStride + k]));
    right = right && row_scales[r] == top * (1.0f / 127.0f);
    for (std::size_t c = 0; c < m.columns; ++c) {
      std::int64_t sum = 0;
      for (std::size_t k = 0; k < inputs; ++k)
        sum += static_cast<std::int64_t>(std::nearbyint(x[r * kStride + k] * (127.0f / top))) *
               m.at(k, c);
      right =
          right && z[r * m.columns + c] == static_cast<float>(sum) * (m.scales[c] * row_scales[r]);
    }
  }
  CHECK(right);
}

}  // namespace

TEST_CASE("sums of byte products are exact on every set, at their largest too") {
  for (const Kernels* set : all_sets())
    for (const std::size_t inputs : {1U, 3U, 4U, 16U, 41U, 200U})
      for (const std::size_t gates : {1U, 3U, 4U})
        for (const std::size_t n_panels : {1U, 4U, 6U})
          for (const bool extreme : {false, true})
            check_products8(*set, inputs, n_panels, gates, extreme);
}

TEST_CASE("a row of zeros has scale 0 and gives the bias alone") {
  for (const Kernels* set : all_sets()) {
    Bytes m(5, 1, 1, true);
    Block<float> x(16), z(16), bias(16);
    Block<std::int8_t> q(64);
    for (std::size_t i = 0; i < 16; ++i) bias[i] = static_cast<float>(i);
    m.view.bias = bias.data();
    const float scale = set->quantise(x.data(), 5, q.data());
    CHECK(scale == 0.0f);
    set->products8(m.view, q.data(), 64, &scale, 1, z.data());
    for (std::size_t i = 0; i < 16; ++i) CHECK(z[i] == bias[i]);
  }
}
