/// A layer with gates, one row: products and gates in one pass, for any vector width; conditions as
/// in activation.hpp.
///
/// The sums of a panel go from registers into its gates, which wait on long chains; the next
/// panel's products do not wait for them and keep the weights coming meanwhile. Several panels at
/// once only where rows follow one another (PAST): their weights are in L1 then, where more chains
/// pay. Weights that L1 does not hold whole: every other row takes the panels from the last on,
/// which the row before has left there (LSTM 64x2 in float: 12 % of a row).
///
/// A step of 8-bit weights takes as long without its gates: reading them decides. The second-level
/// cache gives 64 or 48 bytes a clock, why was not found (tests/bench/floors.cpp); at 48 they would
/// take two thirds (64 units) to four fifths (128) of a step.
///
/// Tried and left, LSTM 64x2 in 8 bits on a Zen 5: two or four panels at once in a step (the same,
/// 5 % slower), asking for the next matrix's weights while gates run (the same), a layer's past
/// laid before its present (the same), +128 on weights as they are read instead of on rows, so that
/// no column has an offset (the same, batches 15 % slower), huge pages (the same; 3 % at 256x3),
/// both sides of a panel summed in one pass (2 % faster at 128 units, slower by 3 % here, by 8 % in
/// float).
#pragma once
#include "gru.hpp"
#include "lstm.hpp"

namespace hft {

/// `Panels` panels' vectors from column j of each gate on, `Parts` to a gate: their sums
/// z[panel][part][gate], in the order of the inputs.
template <class V>
struct FloatRow {
  using Vectors = V;
  static constexpr std::size_t past_panels = V::past_panels;
  const MatrixView& m;
  const float* x;

  template <std::size_t Gates, std::size_t Panels, std::size_t Parts>
  void sum(std::size_t panel, std::size_t j,
           typename V::T (&z)[Panels][Parts][Gates]) const noexcept {
    constexpr std::size_t kColumns = Gates * kPanel;
    const std::size_t panel_floats = m.inputs * kColumns;
    const float* w = m.weights + panel * panel_floats + j;
    const auto each = [&](auto&& f) {
      HFT_UNROLL
      for (std::size_t p = 0; p < Panels; ++p) HFT_UNROLL
      for (std::size_t part = 0; part < Parts; ++part) HFT_UNROLL
      for (std::size_t g = 0; g < Gates; ++g) f(p, part, g, g * kPanel + part * V::width);
    };
    each([&](std::size_t p, std::size_t part, std::size_t g, std::size_t at) {
      z[p][part][g] = m.bias ? V::load(m.bias + (panel + p) * kColumns + j + at) : V::set1(0.0f);
    });
    HFT_UNROLL_4
    for (std::size_t k = 0; k < m.inputs; ++k) {
      const auto value = V::set1(x[k]);
      each([&](std::size_t p, std::size_t part, std::size_t g, std::size_t at) {
        z[p][part][g] =
            V::fma(V::load(w + p * panel_floats + k * kColumns + at), value, z[p][part][g]);
      });
    }
  }
};

/// The same from a row in bytes. Whole numbers may be summed in any order: quads by turns make more
/// chains.
template <class Q>
struct ByteRow {
  using Vectors = Q;
  static constexpr std::size_t past_panels = Q::past_panels8;
  const MatrixView& m;
  const std::int8_t* q;
  float row_scale;

  template <std::size_t Gates, std::size_t Panels, std::size_t Parts>
  void sum(std::size_t panel, std::size_t j,
           typename Q::T (&z)[Panels][Parts][Gates]) const noexcept {
    constexpr std::size_t kColumns = Gates * kPanel;
    constexpr std::size_t kChains = Panels == 1 ? Q::chains8 : 1;
    const std::size_t count = quads(m.inputs), panel_bytes = count * kColumns * kQuad;
    const std::int8_t* w = m.bytes + panel * panel_bytes + j * kQuad;
    const auto each = [&](auto&& f) {
      HFT_UNROLL
      for (std::size_t p = 0; p < Panels; ++p) HFT_UNROLL
      for (std::size_t part = 0; part < Parts; ++part) HFT_UNROLL
      for (std::size_t g = 0; g < Gates; ++g) f(p, part, g, g * kPanel + part * Q::width);
    };
    typename Q::I sums[kChains][Panels][Parts][Gates];
    each([&](std::size_t p, std::size_t part, std::size_t g, std::size_t at) {
      sums[0][p][part][g] = Q::start(m.offsets + (panel + p) * kColumns + j + at);
      HFT_UNROLL
      for (std::size_t chain = 1; chain < kChains; ++chain) sums[chain][p][part][g] = Q::zero();
    });
    const auto dot = [&](std::size_t k, std::size_t chain) {
      const auto x = Q::quad(q + k * kQuad);
      each([&](std::size_t p, std::size_t part, std::size_t g, std::size_t at) {
        auto& s = sums[chain][p][part][g];
        s = Q::dot(s, x, Q::bytes(w + p * panel_bytes + (k * kColumns + at) * kQuad));
      });
    };
    std::size_t k = 0;
    HFT_UNROLL_2
    for (; k + kChains <= count; k += kChains) HFT_UNROLL
    for (std::size_t chain = 0; chain < kChains; ++chain) dot(k + chain, chain);
    for (; k < count; ++k) dot(k, 0);
    each([&](std::size_t p, std::size_t part, std::size_t g, std::size_t at) {
      auto total = sums[0][p][part][g];
      HFT_UNROLL
      for (std::size_t chain = 1; chain < kChains; ++chain)
        total = Q::plus(total, sums[chain][p][part][g]);
      const std::size_t column = (panel + p) * kColumns + j + at;
      const auto scale = Q::mul(Q::load(m.scales + column), Q::set1(row_scale));
      z[p][part][g] =
          Q::fma(Q::to_float(total), scale, m.bias ? Q::load(m.bias + column) : Q::set1(0.0f));
    });
  }
};

template <class Cell, Tense tense, std::size_t Panels, class Row>
inline void cell_panels(const Row& row, std::size_t panel, const float* other, float* memory,
                        float* y) noexcept {
  using V = typename Row::Vectors;
  constexpr std::size_t kParts = V::cell_parts;
  const std::size_t width = row.m.panels * kPanel;
  for (std::size_t j = 0; j < kPanel; j += kParts * V::width) {
    typename V::T z[Panels][kParts][Cell::gates], beside[Cell::gates];
    row.sum(panel, j, z);
    HFT_UNROLL
    for (std::size_t p = 0; p < Panels; ++p) HFT_UNROLL
    for (std::size_t part = 0; part < kParts; ++part) {
      const std::size_t at = j + part * V::width, unit = (panel + p) * kPanel + at;
      HFT_UNROLL
      for (std::size_t g = 0; g < Cell::gates; ++g)
        beside[g] = V::load(other + ((panel + p) * Cell::gates + g) * kPanel + at);
      if constexpr (tense == Tense::PRESENT)
        Cell::update(z[p][part], beside, memory + unit, width, y + unit);
      else
        Cell::update(beside, z[p][part], memory + unit, width, y + unit);
    }
  }
}

template <class Cell, Tense tense, class Row>
inline void cell_layer(const Row& row, const float* other, float* memory, float* y,
                       bool backwards) noexcept {
  constexpr std::size_t kPanels = tense == Tense::PRESENT ? 1 : Row::past_panels;
  const std::size_t whole = row.m.panels / kPanels;
  for (std::size_t i = 0; i < whole; ++i)
    cell_panels<Cell, tense, kPanels>(row, (backwards ? whole - 1 - i : i) * kPanels, other, memory,
                                      y);
  for (std::size_t p = whole * kPanels; p < row.m.panels; ++p)
    cell_panels<Cell, tense, 1>(row, p, other, memory, y);
}

template <template <class> class Cell, class V>
void cell(const MatrixView& m, Tense tense, const float* x, const float* other, float* memory,
          float* y, bool backwards) noexcept {
  const FloatRow<V> row{m, x};
  tense == Tense::PRESENT ? cell_layer<Cell<V>, Tense::PRESENT>(row, other, memory, y, backwards)
                          : cell_layer<Cell<V>, Tense::PAST>(row, other, memory, y, backwards);
}

template <template <class> class Cell, class Q>
void cell8(const MatrixView& m, Tense tense, const std::int8_t* q, float row_scale,
           const float* other, float* memory, float* y, bool backwards) noexcept {
  const ByteRow<Q> row{m, q, row_scale};
  tense == Tense::PRESENT ? cell_layer<Cell<Q>, Tense::PRESENT>(row, other, memory, y, backwards)
                          : cell_layer<Cell<Q>, Tense::PAST>(row, other, memory, y, backwards);
}

/// Gates alone, from sums of both sides.
template <template <class> class Cell, class V>
void gates(std::size_t panel_count, const float* zx, const float* zh, float* memory,
           float* y) noexcept {
  constexpr std::size_t kGates = Cell<V>::gates;
  for (std::size_t p = 0; p < panel_count; ++p)
    for (std::size_t j = 0; j < kPanel; j += V::width) {
      typename V::T present[kGates], past[kGates];
      HFT_UNROLL
      for (std::size_t g = 0; g < kGates; ++g) {
        present[g] = V::load(zx + (p * kGates + g) * kPanel + j);
        past[g] = V::load(zh + (p * kGates + g) * kPanel + j);
      }
      const std::size_t unit = p * kPanel + j;
      Cell<V>::update(present, past, memory + unit, panel_count * kPanel, y + unit);
    }
}

}  // namespace hft
