/// Inner loops of the native network, once per instruction set.
///
/// Weights lie in panels of 16 units, inputs outer and gates in columns, so that every gate sums
/// its products in one order whatever the vector width: AVX-512 and AVX2 agree to the bit. PORTABLE
/// has no fused multiply-add and does not; which set ran is therefore part of a run's record.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hft {

enum class Isa : std::uint8_t { PORTABLE = 0, AVX2, AVX512 };
inline constexpr std::size_t kPanel = 16;  ///< units (LSTM) or outputs (Dense) in a panel

enum class Activation : std::uint8_t { LINEAR = 0, RELU, TANH, SIGMOID, SOFTMAX };

constexpr std::size_t panels(std::size_t units) noexcept { return (units + kPanel - 1) / kPanel; }

/// Panel p holds units [16 p, 16 p + 16): for every input its 16 weights to gate i, then f, c (the
/// candidate) and o. Units that only fill a panel have zero weights: their h and c stay 0.
struct LstmView {
  std::size_t inputs, units;
  const float* kernel;     ///< [panels][inputs][4][16]
  const float* recurrent;  ///< [panels][units][4][16]
  const float* bias;       ///< [panels][4][16]
};

struct DenseView {
  std::size_t inputs, units;
  const float* kernel;  ///< [panels][inputs][16]
  const float* bias;    ///< [panels][16]
  Activation activation;
};

/// All pointers are 64-byte aligned.
struct Kernels {
  /// z[rows][panels][4][16] = bias + weights * x; `bias` may be null. Rows of x lie `x_stride`
  /// apart.
  void (*gate_products)(const float* weights, const float* bias, std::size_t panels,
                        std::size_t inputs, const float* x, std::size_t x_stride, std::size_t rows,
                        float* z) noexcept;
  /// From the gates' sums zx + zh: the new c and h, in place.
  void (*lstm_gates)(std::size_t panels, const float* zx, const float* zh, float* c,
                     float* h) noexcept;
  void (*dense)(const DenseView&, const float* x, float* y) noexcept;  ///< y: [panels][16]
};

/// Best set this CPU has.
Isa best_isa() noexcept;
/// The set new networks use: HFT_ISA (avx512, avx2, portable) if set, else the best.
/// Throws ConfigError where HFT_ISA names no set or one this CPU lacks.
Isa default_isa();
std::string_view isa_name(Isa isa) noexcept;
Isa isa_of(std::string_view name);  ///< throws ConfigError
const Kernels& kernels(Isa isa);    ///< throws ConfigError where the CPU lacks it

extern const Kernels kKernelsPortable, kKernelsAvx2, kKernelsAvx512;

}  // namespace hft
