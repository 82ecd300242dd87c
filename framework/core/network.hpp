/// A small network run one feature row at a time on the calling thread: layers with memory (LSTM,
/// GRU, causal convolution) and Dense ones, each in float or with 8-bit weights.
///
/// The `Network` is immutable and shared; what it remembers of a stream lives in a `NetworkState`,
/// one for each lineage (instrument, model). `step`, `batch` and `arm` + `step` give the same bits,
/// so a replay may compute ahead in batches what a live run computes row by row. Every layer sums
/// apart what the new row brings and what memory does: `arm` has the second part ready beforehand.
///
/// A row with a feature that is NaN or infinite is answered by NaN and leaves no trace: the next
/// row finds the memory of the row before. It would else come out as a likely forecast, since a NaN
/// is lost where features are clipped, or stay in the memory for good.
///
/// Fast: weights in one block, streamed once a step and locked in memory. Slow: a step whose
/// weights other work has pushed out of L2 costs several times as much (tests/bench/lstm.py prints
/// both).
#pragma once
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "kernels.hpp"
#include "layers.hpp"
#include "locked_block.hpp"

namespace hft {

struct FreeAligned {
  void operator()(float* p) const noexcept { ::operator delete[](p, std::align_val_t{64}); }
};
using AlignedFloats = std::unique_ptr<float[], FreeAligned>;
AlignedFloats zeros(std::size_t floats);

class Network;

/// Memory of one stream. Made by `Network::state`; fits that network alone.
class NetworkState {
 public:
  void reset() noexcept;  ///< after a gap: all memory is 0

 private:
  friend class Network;
  friend class WindowState;
  AlignedFloats block_;
  std::size_t memory_floats_ = 0;  // memory of every layer lies first
  bool armed_ = false;
};

class Network {
 public:
  /// Rows a batch works on at a time: its scratch is part of the state.
  static constexpr std::size_t kBatchRows = 16;

  /// Throws std::invalid_argument naming the layer and the shape that does not fit, or the value
  /// that is not finite or too large for 8 bits.
  static std::shared_ptr<const Network> build(const Scaler& scaler,
                                              const std::vector<Layer>& layers,
                                              const Readout& readout = {}, Isa isa = default_isa());

  std::size_t inputs() const noexcept { return inputs_; }
  std::size_t outputs() const noexcept { return classes_ + (move_ticks_.empty() ? 0 : 2); }
  std::size_t parameters() const noexcept { return parameters_; }
  Isa isa() const noexcept { return isa_; }
  std::size_t weight_bytes() const noexcept { return weight_bytes_; }
  /// Why weights may be paged out; empty when they are locked.
  std::string why_unlocked() const { return block_->why_unlocked(); }

  /// The same networks, their weights in one locked block: every tier of a bundle, so that whoever
  /// is idle keeps all of them ready (`touch`) and a change of tier finds its weights in cache.
  static std::vector<std::shared_ptr<const Network>> together(
      const std::vector<std::shared_ptr<const Network>>& networks);

  NetworkState state() const;
  /// One row of `inputs()` features to `outputs()` numbers.
  void step(NetworkState& state, const double* features, float* out) const noexcept;
  /// `n` rows of one stream, in order; the same bits as `n` steps.
  void batch(NetworkState& state, const double* rows, std::size_t n, float* out) const noexcept;
  /// One row for each of `n` different streams, which share each pass over the weights; the same
  /// bits as a step of each. Their scratch is that of the first.
  void step_many(NetworkState* const* states, std::size_t n, const double* rows,
                 float* out) const noexcept;
  /// While idle: computes what the next step needs of the past, which halves that step and brings
  /// those weights back into cache. Never changes a result.
  void arm(NetworkState& state) const noexcept;
  /// While idle: reads every weight, so that other work does not push them out of cache; those of
  /// networks that were put together with this one too.
  void touch() const noexcept { block_->touch(); }
  /// The same for what a step reads of a stream.
  void touch(const NetworkState& state) const noexcept;

 private:
  friend class WindowState;
  enum class Kind : std::uint8_t { LSTM, GRU, CONV, DENSE };
  /// y = finish(present * row + past * memory). Dense has no past.
  struct Plan {
    Kind kind;
    Activation activation;
    std::size_t units;
    MatrixView present, past;
    std::size_t memory, armed;  // where in a state's block
  };
  class Builder;

  Network() = default;
  void move_weights(std::shared_ptr<LockedBlock> block, std::byte* to) noexcept;
  bool scale(const double* features, float* x) const noexcept;
  void multiply(const MatrixView& m, const float* x, std::size_t x_stride, std::size_t rows,
                float* z, float* block) const noexcept;
  /// A row in 8 bits, in one of kBatchRows places, and what a step of it is worth.
  struct Bytes {
    const std::int8_t* q;
    float scale;
  };
  std::int8_t* bytes_at(float* block, std::size_t place) const noexcept {
    return reinterpret_cast<std::int8_t*>(block + q_at_) + place * q_bytes_;
  }
  Bytes in_bytes(const MatrixView& m, const float* x, std::size_t place,
                 float* block) const noexcept;
  const CellKernels& cell(const Plan& plan) const noexcept {
    return plan.kind == Kind::LSTM ? kernels_->lstm : kernels_->gru;
  }
  bool has_cell(const Plan& plan) const noexcept {
    return plan.kind == Kind::LSTM || plan.kind == Kind::GRU;
  }
  void step_cell(const Plan& plan, NetworkState& state, const float* x, float* y) const noexcept;
  void past_cell(const Plan& plan, const float* zx, float* memory, float* y, float* block,
                 bool backwards) const noexcept;
  void finish(const Plan& plan, const float* zx, const float* zh, const float* x, float* memory,
              float* y) const noexcept;
  const float* forward(NetworkState& state, std::size_t rows) const noexcept;
  const float* forward(NetworkState* const* states, std::size_t n) const noexcept;
  const float* past_sums(const Plan& plan, NetworkState* const* states,
                         std::size_t n) const noexcept;
  void answer_nan(float* out) const noexcept;
  void forward(const Plan& plan, NetworkState& state, const float* x, std::size_t rows,
               float* y) const noexcept;
  void read_out(const float* y, float* out) const noexcept;

  std::size_t inputs_ = 0, classes_ = 0, parameters_ = 0;
  Isa isa_ = Isa::PORTABLE;
  const Kernels* kernels_ = nullptr;
  std::vector<double> mean_, inverse_scale_, move_ticks_;
  double clip_ = 0, shrink_ = 1;
  std::shared_ptr<LockedBlock> block_;
  const std::byte* weights_ = nullptr;  // ours in that block
  std::size_t weight_bytes_ = 0;
  std::vector<Plan> plans_;
  // A state's block: memory, armed products, two buffers of kBatchRows rows, sums of the new rows,
  // of as many pasts, those pasts, rows in 8 bits.
  std::size_t memory_floats_ = 0, rows_at_[2] = {0, 0}, z_at_ = 0, zh_at_ = 0, past_at_ = 0,
              q_at_ = 0, state_floats_ = 0;
  std::size_t row_floats_ = 0, past_floats_ = 0, q_bytes_ = 0;
};

}  // namespace hft
