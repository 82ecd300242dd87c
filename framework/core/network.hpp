/// A small recurrent network run one feature row at a time, in fp32, on the calling thread.
///
/// The `Network` is immutable and shared; what it remembers of a stream lives in a `NetworkState`,
/// one for each lineage (instrument, model). `step`, `batch` and `arm` + `step` give the same bits,
/// so a replay may compute ahead in batches what a live run computes row by row.
///
/// Fast: weights in one aligned block, streamed once a step. Slow: a step whose weights other work
/// has pushed out of L2 costs four times as much (tests/bench/lstm.py prints both).
#pragma once
#include <memory>
#include <new>
#include <span>
#include <variant>
#include <vector>

#include "kernels.hpp"

namespace hft {

/// Weights as Keras holds them, row-major; gates in the order i, f, c, o.
struct LstmLayer {
  std::size_t inputs, units;
  std::vector<float> kernel;     ///< (inputs, 4 * units)
  std::vector<float> recurrent;  ///< (units, 4 * units)
  std::vector<float> bias;       ///< (4 * units)
};

struct DenseLayer {
  std::size_t inputs, units;
  std::vector<float> kernel;  ///< (inputs, units)
  std::vector<float> bias;    ///< (units)
  Activation activation = Activation::LINEAR;
};

using Layer = std::variant<LstmLayer, DenseLayer>;

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

struct FreeAligned {
  void operator()(float* p) const noexcept { ::operator delete[](p, std::align_val_t{64}); }
};
using AlignedFloats = std::unique_ptr<float[], FreeAligned>;

class Network;

/// Memory of one stream. Made by `Network::state`; fits that network alone.
class NetworkState {
 public:
  void reset() noexcept;  ///< after a gap: h = c = 0

 private:
  friend class Network;
  AlignedFloats block_;
  std::size_t memory_floats_ = 0;  // h, c of every layer lie first
  bool armed_ = false;
};

class Network {
 public:
  /// Rows a batch works on at a time: its scratch is part of the state.
  static constexpr std::size_t kBatchRows = 16;

  /// Throws std::invalid_argument naming the layer and the shape that does not fit, or the value
  /// that is not finite.
  static std::shared_ptr<const Network> build(const Scaler& scaler,
                                              const std::vector<Layer>& layers,
                                              const Readout& readout = {}, Isa isa = default_isa());

  std::size_t inputs() const noexcept { return inputs_; }
  std::size_t outputs() const noexcept { return classes_ + (move_ticks_.empty() ? 0 : 2); }
  std::size_t parameters() const noexcept { return parameters_; }
  Isa isa() const noexcept { return isa_; }

  NetworkState state() const;
  /// One row of `inputs()` features to `outputs()` numbers.
  void step(NetworkState& state, const double* features, float* out) const noexcept;
  /// `n` rows of one stream, in order; the same bits as `n` steps.
  void batch(NetworkState& state, const double* rows, std::size_t n, float* out) const noexcept;
  /// While idle: computes what the next step needs of the past, which halves that step and brings
  /// the weights back into cache. Never changes a result.
  void arm(NetworkState& state) const noexcept;

 private:
  struct LstmPlan {
    LstmView view;
    std::size_t h, c, armed;  // where in a state's block
  };
  using Plan = std::variant<LstmPlan, DenseView>;
  class Builder;

  Network() = default;
  void scale(const double* features, float* x) const noexcept;
  const float* forward(NetworkState& state, std::size_t rows) const noexcept;
  void forward(const LstmPlan& plan, NetworkState& state, const float* x, std::size_t rows,
               float* y) const noexcept;
  void read_out(const float* y, float* out) const noexcept;

  std::size_t inputs_ = 0, classes_ = 0, parameters_ = 0;
  Isa isa_ = Isa::PORTABLE;
  const Kernels* kernels_ = nullptr;
  std::vector<double> mean_, inverse_scale_, move_ticks_;
  double clip_ = 0, shrink_ = 1;
  AlignedFloats weights_;
  std::vector<Plan> plans_;
  // A state's block: memory, armed products, two buffers of kBatchRows rows, sums of the gates.
  std::size_t memory_floats_ = 0, rows_at_[2] = {0, 0}, z_at_ = 0, state_floats_ = 0;
  std::size_t row_floats_ = 0;
};

}  // namespace hft
