#include "network.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace hft {

AlignedFloats zeros(std::size_t floats) {
  auto* p = static_cast<float*>(::operator new[](floats * sizeof(float), std::align_val_t{64}));
  std::fill_n(p, floats, 0.0f);
  return AlignedFloats(p);
}

void NetworkState::reset() noexcept {
  std::fill_n(block_.get(), memory_floats_, 0.0f);
  armed_ = false;
}

NetworkState Network::state() const {
  NetworkState state;
  state.block_ = zeros(state_floats_);
  state.memory_floats_ = memory_floats_;
  return state;
}

void Network::step(NetworkState& state, const double* features, float* out) const noexcept {
  if (!scale(features, state.block_.get() + rows_at_[0])) return answer_nan(out);
  read_out(forward(state, 1), out);
}

void Network::batch(NetworkState& state, const double* rows, std::size_t n,
                    float* out) const noexcept {
  for (std::size_t first = 0; first < n; first += kBatchRows) {
    const std::size_t last = std::min(first + kBatchRows, n);
    float* answers[kBatchRows];
    std::size_t count = 0;
    for (std::size_t i = first; i < last; ++i) {
      answers[count] = out + i * outputs();
      float* x = state.block_.get() + rows_at_[0] + count * row_floats_;
      if (scale(rows + i * inputs_, x))
        ++count;
      else
        answer_nan(answers[count]);
    }
    const float* y = forward(state, count);
    for (std::size_t i = 0; i < count; ++i) read_out(y + i * row_floats_, answers[i]);
  }
}

void Network::step_many(NetworkState* const* states, std::size_t n, const double* rows,
                        float* out) const noexcept {
  for (std::size_t first = 0; first < n; first += kBatchRows) {
    const std::size_t last = std::min(first + kBatchRows, n);
    float* answers[kBatchRows];
    NetworkState* takers[kBatchRows];
    std::size_t count = 0;
    for (std::size_t i = first; i < last; ++i) {
      answers[count] = out + i * outputs();
      takers[count] = states[i];
      float* x = takers[0]->block_.get() + rows_at_[0] + count * row_floats_;
      if (scale(rows + i * inputs_, x))
        ++count;
      else
        answer_nan(answers[count]);
    }
    if (count == 0) continue;
    const float* y = forward(takers, count);
    for (std::size_t i = 0; i < count; ++i) read_out(y + i * row_floats_, answers[i]);
  }
}

void Network::arm(NetworkState& state) const noexcept {
  float* block = state.block_.get();
  for (const Plan& plan : plans_)
    if (plan.past.inputs) multiply(plan.past, block + plan.memory, 0, 1, block + plan.armed, block);
  state.armed_ = true;
}

void Network::touch(const NetworkState& state) const noexcept {
  for (std::size_t i = 0; i < rows_at_[0]; i += 64 / sizeof(float))
    static_cast<void>(*static_cast<const volatile float*>(state.block_.get() + i));
}

bool Network::scale(const double* features, float* x) const noexcept {
  return kernels_->standardise({inputs_, mean_.data(), inverse_scale_.data(), clip_}, features, x);
}

void Network::multiply(const MatrixView& m, const float* x, std::size_t x_stride, std::size_t rows,
                       float* z, float* block) const noexcept {
  if (!m.bytes) return kernels_->products(m, x, x_stride, rows, z);
  float scales[kBatchRows];
  for (std::size_t i = 0; i < rows; ++i) scales[i] = in_bytes(m, x + i * x_stride, i, block).scale;
  kernels_->products8(m, bytes_at(block, 0), q_bytes_, scales, rows, z);
}

Network::Bytes Network::in_bytes(const MatrixView& m, const float* x, std::size_t place,
                                 float* block) const noexcept {
  std::int8_t* q = bytes_at(block, place);
  return {q, kernels_->quantise(x, m.inputs, q)};
}

/// Layer by layer over the rows, which share each layer's pass over its input weights.
const float* Network::forward(NetworkState& state, std::size_t rows) const noexcept {
  float* x = state.block_.get() + rows_at_[0];
  float* y = state.block_.get() + rows_at_[1];
  for (const Plan& plan : plans_) {
    forward(plan, state, x, rows, y);
    std::swap(x, y);
  }
  state.armed_ = false;
  return x;
}

void Network::forward(const Plan& plan, NetworkState& state, const float* x, std::size_t rows,
                      float* y) const noexcept {
  if (rows == 1 && has_cell(plan)) return step_cell(plan, state, x, y);
  float* block = state.block_.get();
  float *z = block + z_at_, *armed = block + plan.armed, *memory = block + plan.memory;
  multiply(plan.present, x, row_floats_, rows, z, block);
  for (std::size_t i = 0; i < rows; ++i) {
    const float* zx = z + i * plan.present.columns();
    const bool ready = i == 0 && state.armed_;
    if (!ready && has_cell(plan)) {
      past_cell(plan, zx, memory, y + i * row_floats_, block, i & 1);
      continue;
    }
    if (!ready && plan.past.inputs) multiply(plan.past, memory, 0, 1, armed, block);
    finish(plan, zx, armed, x + i * row_floats_, memory, y + i * row_floats_);
  }
}

/// The past first: while its products run, the row's bytes and the gates of the layer before, on
/// which all else waits, come about.
void Network::step_cell(const Plan& plan, NetworkState& state, const float* x,
                        float* y) const noexcept {
  float* block = state.block_.get();
  float *armed = block + plan.armed, *memory = block + plan.memory;
  Bytes row{};
  if (plan.present.bytes) row = in_bytes(plan.present, x, 1, block);
  if (!state.armed_) multiply(plan.past, memory, 0, 1, armed, block);
  if (plan.present.bytes)
    cell(plan).cell8(plan.present, Tense::PRESENT, row.q, row.scale, armed, memory, y, false);
  else
    cell(plan).cell(plan.present, Tense::PRESENT, x, armed, memory, y, false);
  std::memcpy(memory, y, panels(plan.units) * kPanel * sizeof(float));
}

void Network::past_cell(const Plan& plan, const float* zx, float* memory, float* y, float* block,
                        bool backwards) const noexcept {
  if (plan.past.bytes) {
    const Bytes row = in_bytes(plan.past, memory, 0, block);
    cell(plan).cell8(plan.past, Tense::PAST, row.q, row.scale, zx, memory, y, backwards);
  } else {
    cell(plan).cell(plan.past, Tense::PAST, memory, zx, memory, y, backwards);
  }
  std::memcpy(memory, y, panels(plan.units) * kPanel * sizeof(float));
}

/// A row of each of several streams, as `forward` of the rows of one.
const float* Network::forward(NetworkState* const* states, std::size_t n) const noexcept {
  float* block = states[0]->block_.get();
  float *x = block + rows_at_[0], *y = block + rows_at_[1], *z = block + z_at_;
  for (const Plan& plan : plans_) {
    multiply(plan.present, x, row_floats_, n, z, block);
    const float* zh = past_sums(plan, states, n);
    for (std::size_t i = 0; i < n; ++i)
      finish(plan, z + i * plan.present.columns(),
             zh ? zh + i * plan.past.columns() : states[i]->block_.get() + plan.armed,
             x + i * row_floats_, states[i]->block_.get() + plan.memory, y + i * row_floats_);
    std::swap(x, y);
  }
  for (std::size_t i = 0; i < n; ++i) states[i]->armed_ = false;
  return x;
}

/// What the streams' memories add to a layer; null where every stream has it ready, or none.
const float* Network::past_sums(const Plan& plan, NetworkState* const* states,
                                std::size_t n) const noexcept {
  const auto is_armed = [](const NetworkState* s) { return s->armed_; };
  if (plan.past.inputs == 0 || std::all_of(states, states + n, is_armed)) return nullptr;
  float* block = states[0]->block_.get();
  for (std::size_t i = 0; i < n; ++i)
    std::memcpy(block + past_at_ + i * past_floats_, states[i]->block_.get() + plan.memory,
                panels(plan.past.inputs) * kPanel * sizeof(float));
  multiply(plan.past, block + past_at_, past_floats_, n, block + zh_at_, block);
  return block + zh_at_;
}

/// From the sums of a layer to its memory and output.
void Network::finish(const Plan& plan, const float* zx, const float* zh, const float* x,
                     float* memory, float* y) const noexcept {
  const std::size_t count = panels(plan.units), width = count * kPanel;
  switch (plan.kind) {
    case Kind::LSTM:
    case Kind::GRU:
      cell(plan).gates(count, zx, zh, memory, y);
      std::memcpy(memory, y, width * sizeof(float));
      return;
    case Kind::CONV: {
      kernels_->activate(plan.activation, plan.units, zx, zh, y);
      const std::size_t row = plan.present.inputs, kept = plan.past.inputs - row;
      std::memmove(memory, memory + row, kept * sizeof(float));
      std::memcpy(memory + kept, x, row * sizeof(float));
      return;
    }
    case Kind::DENSE:
      kernels_->activate(plan.activation, plan.units, zx, nullptr, y);
  }
}

void Network::answer_nan(float* out) const noexcept {
  std::fill_n(out, outputs(), std::numeric_limits<float>::quiet_NaN());
}

void Network::read_out(const float* y, float* out) const noexcept {
  std::memcpy(out, y, classes_ * sizeof(float));
  if (move_ticks_.empty()) return;
  double expected = 0.0;
  float largest = y[0];
  for (std::size_t i = 0; i < classes_; ++i) {
    expected += static_cast<double>(y[i]) * move_ticks_[i];
    largest = std::max(largest, y[i]);
  }
  out[classes_] = static_cast<float>(shrink_ * expected);
  out[classes_ + 1] = largest;
}

}  // namespace hft
