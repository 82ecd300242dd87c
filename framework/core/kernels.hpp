/// Inner loops of the native network, once per instruction set.
///
/// Weights lie in panels of 16 units, inputs outer and gates in columns, so that every gate sums
/// its products in one order whatever the vector width: AVX-512 and AVX2 agree to the bit. PORTABLE
/// has no fused multiply-add and does not; which set ran is therefore part of a run's record.
/// Products of 8-bit weights are whole numbers, the same on every set and with VNNI or without;
/// what follows them (scales, gates) is float again.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hft {

enum class Isa : std::uint8_t { PORTABLE = 0, AVX2, AVX512 };
inline constexpr std::size_t kPanel = 16;  ///< units (LSTM, GRU) or outputs (Dense) in a panel
inline constexpr std::size_t kQuad = 4;    ///< inputs that an 8-bit product takes at once
/// As many products of 255 * 127 as the 32 bits of a column's sum hold.
inline constexpr std::size_t kMaxInputs8 = 65'536;

enum class Activation : std::uint8_t { LINEAR = 0, RELU, TANH, SIGMOID, SOFTMAX };

constexpr std::size_t panels(std::size_t units) noexcept { return (units + kPanel - 1) / kPanel; }
constexpr std::size_t quads(std::size_t inputs) noexcept { return (inputs + kQuad - 1) / kQuad; }

/// A layer's matrix, in float or in 8 bits. Panel p holds units [16 p, 16 p + 16): for every input
/// (8 bits: every four inputs, four bytes a column) its 16 columns of gate 0, then of gate 1, ...
/// Units that only fill a panel have zero weights.
struct MatrixView {
  std::size_t inputs = 0, panels = 0, gates = 1;
  const float* weights = nullptr;         ///< [panels][inputs][gates][16]; null: 8 bits
  const std::int8_t* bytes = nullptr;     ///< [panels][quads][gates][16][4], within +-127
  const float* scales = nullptr;          ///< [panels][gates][16]: weight = scale * byte
  const std::int32_t* offsets = nullptr;  ///< [panels][gates][16]: -128 * sum of a column's bytes
  const float* bias = nullptr;            ///< [panels][gates][16], or null for none

  std::size_t columns() const noexcept { return panels * gates * kPanel; }
};

/// x = clamp((feature - mean) * inverse_scale, -clip, clip)
struct ScalerView {
  std::size_t inputs;
  const double *mean, *inverse_scale;
  double clip;
};

/// Which sums of a layer with gates a matrix makes: of the new row or of what memory holds.
enum class Tense : std::uint8_t { PRESENT = 0, PAST };

/// A layer with gates, one row. `memory`: h, then an LSTM's c, which changes in place; the new h
/// goes into `y`, since the sums of later units may still want the old one. `backwards`: from the
/// last panel on, which changes nothing but what is read first.
struct CellKernels {
  /// Sums of one side from a row, those of the other side given.
  void (*cell)(const MatrixView&, Tense, const float* x, const float* other, float* memory,
               float* y, bool backwards) noexcept;
  void (*cell8)(const MatrixView&, Tense, const std::int8_t* q, float row_scale, const float* other,
                float* memory, float* y, bool backwards) noexcept;
  /// Sums of both sides given.
  void (*gates)(std::size_t panels, const float* zx, const float* zh, float* memory,
                float* y) noexcept;
};

/// All pointers are 64-byte aligned but `x`. Rows lie `*_stride` elements apart.
struct Kernels {
  /// z[rows][columns] = bias + x * weights
  void (*products)(const MatrixView&, const float* x, std::size_t x_stride, std::size_t rows,
                   float* z) noexcept;
  /// A row in 8 bits, zeros up to a whole quad; returns what one step of it is worth. `x` is
  /// readable up to a whole panel and zero beyond `inputs`.
  float (*quantise)(const float* x, std::size_t inputs, std::int8_t* q) noexcept;
  /// The same as `products`, from rows that this set's `quantise` made.
  void (*products8)(const MatrixView&, const std::int8_t* q, std::size_t q_stride,
                    const float* row_scales, std::size_t rows, float* z) noexcept;
  CellKernels lstm, gru;
  /// y = activation(zx + zh), `zh` null for none; zero where a unit only fills its panel.
  void (*activate)(Activation, std::size_t units, const float* zx, const float* zh,
                   float* y) noexcept;
  /// False where a feature is not finite; `x` is then of no use.
  bool (*standardise)(const ScalerView&, const double* features, float* x) noexcept;
};

/// Best set this CPU has.
Isa best_isa() noexcept;
/// The set new networks use: HFT_ISA (avx512, avx2, portable) if set, else the best.
/// Throws ConfigError where HFT_ISA names no set or one this CPU lacks.
Isa default_isa();
std::string_view isa_name(Isa isa) noexcept;
Isa isa_of(std::string_view name);  ///< throws ConfigError
/// Throws ConfigError where the CPU lacks the set. An AVX-512 without VNNI multiplies bytes by
/// AVX2.
const Kernels& kernels(Isa isa);

extern const Kernels kKernelsPortable, kKernelsAvx2, kKernelsAvx512, kKernelsVnni;
bool has_vnni() noexcept;

}  // namespace hft
