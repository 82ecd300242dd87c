/// What a network is made of: weights as Keras holds them, row-major.
#pragma once
#include <cstdint>
#include <variant>
#include <vector>

#include "kernels.hpp"

namespace hft {

/// How a layer's weights are kept. I8: each column in 127 steps either way, each row it meets too;
/// biases, gates and memory stay float (quantised.hpp).
enum class Precision : std::uint8_t { F32 = 0, I8 };

struct LstmLayer {
  std::size_t inputs, units;
  std::vector<float> kernel;     ///< (inputs, 4 * units), gates in the order i, f, c, o
  std::vector<float> recurrent;  ///< (units, 4 * units)
  std::vector<float> bias;       ///< (4 * units)
  Precision precision = Precision::F32;
};

/// Keras' GRU with reset_after=True, its default.
struct GruLayer {
  std::size_t inputs, units;
  std::vector<float> kernel;     ///< (inputs, 3 * units), gates in the order z, r, h
  std::vector<float> recurrent;  ///< (units, 3 * units)
  std::vector<float> bias;       ///< (2, 3 * units): of the input's products, of the recurrent ones
  Precision precision = Precision::F32;
};

/// Conv1D(padding="causal"), stride 1: remembers the last `width - 1` rows, zeros at first.
struct ConvLayer {
  std::size_t inputs, units, width;
  std::vector<float> kernel;  ///< (width, inputs, units); the last of `width` meets the newest row
  std::vector<float> bias;    ///< (units)
  Activation activation = Activation::LINEAR;
  Precision precision = Precision::F32;
};

struct DenseLayer {
  std::size_t inputs, units;
  std::vector<float> kernel;  ///< (inputs, units)
  std::vector<float> bias;    ///< (units)
  Activation activation = Activation::LINEAR;
  Precision precision = Precision::F32;
};

using Layer = std::variant<LstmLayer, GruLayer, ConvLayer, DenseLayer>;

/// x = clamp((feature - mean) / scale, -clip, clip)
struct Scaler {
  std::vector<double> mean, scale;
  double clip = 10.0;
};

/// Adds two outputs after class probabilities: alpha_ticks = shrink * sum p_c * move_ticks[c], and
/// confidence = max p_c. Empty move_ticks: neither.
struct Readout {
  std::vector<double> move_ticks;
  double shrink = 1.0;
};

}  // namespace hft
