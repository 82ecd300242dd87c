#include "network.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

namespace hft {
namespace {

AlignedFloats zeros(std::size_t floats) {
  auto* p = static_cast<float*>(::operator new[](floats * sizeof(float), std::align_val_t{64}));
  std::fill_n(p, floats, 0.0f);
  return AlignedFloats(p);
}

std::size_t padded(std::size_t units) noexcept { return panels(units) * kPanel; }

void require(bool right, const std::string& where, const std::string& why) {
  if (!right) throw std::invalid_argument(where + ": " + why);
}

template <class T>
void require_shape(const std::vector<T>& values, std::size_t size, const std::string& where) {
  require(values.size() == size, where,
          "has " + std::to_string(values.size()) + " values, must have " + std::to_string(size));
  for (std::size_t i = 0; i < values.size(); ++i)
    require(std::isfinite(values[i]), where, "value " + std::to_string(i) + " is not finite");
}

}  // namespace

void NetworkState::reset() noexcept {
  std::fill_n(block_.get(), memory_floats_, 0.0f);
  armed_ = false;
}

/// Checks shapes, then lays every layer's weights out in one block.
class Network::Builder {
 public:
  Builder(Network& network, std::size_t inputs) : network_(network), width_(inputs) {
    network_.inputs_ = inputs;
    network_.row_floats_ = padded(inputs);
  }

  void measure(const Layer& layer) {
    const std::string where = "layer " + std::to_string(++count_);
    std::visit([&](const auto& l) { check(l, where); }, layer);
    std::visit([&](const auto& l) { floats_ += floats_of(l); }, layer);
  }

  void place(const std::vector<Layer>& layers) {
    network_.weights_ = zeros(floats_);
    at_ = network_.weights_.get();
    for (const Layer& layer : layers) std::visit([&](const auto& l) { place(l); }, layer);
    place_state();
  }

 private:
  static std::size_t floats_of(const LstmLayer& l) {
    return panels(l.units) * 4 * kPanel * (l.inputs + l.units + 1);
  }
  static std::size_t floats_of(const DenseLayer& l) { return padded(l.units) * (l.inputs + 1); }

  void check_width(std::size_t inputs, std::size_t units, const std::string& where) {
    require(units > 0, where, "has no units");
    require(inputs == width_, where,
            "takes " + std::to_string(inputs) + " inputs, but what comes before gives " +
                std::to_string(width_));
    width_ = units;
    network_.row_floats_ = std::max(network_.row_floats_, padded(units));
  }
  void check(const LstmLayer& l, const std::string& where) {
    check_width(l.inputs, l.units, where);
    require_shape(l.kernel, l.inputs * 4 * l.units, where + " kernel");
    require_shape(l.recurrent, l.units * 4 * l.units, where + " recurrent kernel");
    require_shape(l.bias, 4 * l.units, where + " bias");
    network_.parameters_ += l.kernel.size() + l.recurrent.size() + l.bias.size();
  }
  void check(const DenseLayer& l, const std::string& where) {
    check_width(l.inputs, l.units, where);
    require_shape(l.kernel, l.inputs * l.units, where + " kernel");
    require_shape(l.bias, l.units, where + " bias");
    network_.parameters_ += l.kernel.size() + l.bias.size();
  }

  /// Keras' (rows, gates * units) to [panels][rows][gates][16].
  const float* place_gates(const std::vector<float>& from, std::size_t rows, std::size_t units,
                           std::size_t gates) {
    float* to = at_;
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t gate = 0; gate < gates; ++gate)
        for (std::size_t unit = 0; unit < units; ++unit)
          to[((unit / kPanel * rows + row) * gates + gate) * kPanel + unit % kPanel] =
              from[(row * gates + gate) * units + unit];
    at_ += padded(units) * rows * gates;
    return to;
  }

  void place(const LstmLayer& l) {
    LstmView view{l.inputs, l.units, nullptr, nullptr, nullptr};
    view.bias = place_gates(l.bias, 1, l.units, 4);
    view.kernel = place_gates(l.kernel, l.inputs, l.units, 4);
    view.recurrent = place_gates(l.recurrent, l.units, l.units, 4);
    const std::size_t h = network_.memory_floats_, c = h + padded(l.units);
    network_.memory_floats_ = c + padded(l.units);
    network_.plans_.emplace_back(LstmPlan{view, h, c, 0});
  }
  void place(const DenseLayer& l) {
    DenseView view{l.inputs, l.units, nullptr, nullptr, l.activation};
    view.bias = place_gates(l.bias, 1, l.units, 1);
    view.kernel = place_gates(l.kernel, l.inputs, l.units, 1);
    network_.plans_.emplace_back(view);
  }

  void place_state() {
    std::size_t at = network_.memory_floats_, widest = 0;
    for (Plan& plan : network_.plans_)
      if (auto* lstm = std::get_if<LstmPlan>(&plan)) {
        lstm->armed = at;
        at += 4 * padded(lstm->view.units);
        widest = std::max(widest, 4 * padded(lstm->view.units));
      }
    for (std::size_t& rows_at : network_.rows_at_) {
      rows_at = at;
      at += kBatchRows * network_.row_floats_;
    }
    network_.z_at_ = at;
    network_.state_floats_ = at + kBatchRows * widest;
  }

  Network& network_;
  std::size_t width_, count_ = 0, floats_ = 0;
  float* at_ = nullptr;
};

std::shared_ptr<const Network> Network::build(const Scaler& scaler,
                                              const std::vector<Layer>& layers,
                                              const Readout& readout, Isa isa) {
  std::shared_ptr<Network> network(new Network());
  require(!layers.empty() && !scaler.mean.empty(), "network", "needs inputs and a layer");
  network->kernels_ = &kernels(isa);
  network->isa_ = isa;
  require_shape(scaler.mean, scaler.mean.size(), "scaler mean");
  require_shape(scaler.scale, scaler.mean.size(), "scaler scale");
  require(scaler.clip > 0, "scaler clip", "must be positive");
  for (const double scale : scaler.scale) {
    require(scale > 0, "scaler scale", "must be positive");
    network->inverse_scale_.push_back(1.0 / scale);
  }
  network->mean_ = scaler.mean;
  network->clip_ = scaler.clip;

  Builder builder(*network, scaler.mean.size());
  for (const Layer& layer : layers) builder.measure(layer);
  builder.place(layers);
  network->classes_ = std::visit([](const auto& l) { return l.units; }, layers.back());
  if (!readout.move_ticks.empty())
    require_shape(readout.move_ticks, network->classes_, "move_ticks");
  network->move_ticks_ = readout.move_ticks;
  network->shrink_ = readout.shrink;
  return network;
}

NetworkState Network::state() const {
  NetworkState state;
  state.block_ = zeros(state_floats_);
  state.memory_floats_ = memory_floats_;
  return state;
}

void Network::step(NetworkState& state, const double* features, float* out) const noexcept {
  scale(features, state.block_.get() + rows_at_[0]);
  read_out(forward(state, 1), out);
}

void Network::batch(NetworkState& state, const double* rows, std::size_t n,
                    float* out) const noexcept {
  for (std::size_t first = 0; first < n; first += kBatchRows) {
    const std::size_t count = std::min(kBatchRows, n - first);
    for (std::size_t i = 0; i < count; ++i)
      scale(rows + (first + i) * inputs_, state.block_.get() + rows_at_[0] + i * row_floats_);
    const float* y = forward(state, count);
    for (std::size_t i = 0; i < count; ++i)
      read_out(y + i * row_floats_, out + (first + i) * outputs());
  }
}

void Network::arm(NetworkState& state) const noexcept {
  float* block = state.block_.get();
  for (const Plan& plan : plans_)
    if (const auto* lstm = std::get_if<LstmPlan>(&plan))
      kernels_->gate_products(lstm->view.recurrent, nullptr, panels(lstm->view.units),
                              lstm->view.units, block + lstm->h, 0, 1, block + lstm->armed);
  state.armed_ = true;
}

void Network::scale(const double* features, float* x) const noexcept {
  for (std::size_t i = 0; i < inputs_; ++i)
    x[i] =
        static_cast<float>(std::clamp((features[i] - mean_[i]) * inverse_scale_[i], -clip_, clip_));
}

/// Layer by layer over the rows, which share each layer's pass over its input weights.
const float* Network::forward(NetworkState& state, std::size_t rows) const noexcept {
  float* x = state.block_.get() + rows_at_[0];
  float* y = state.block_.get() + rows_at_[1];
  for (const Plan& plan : plans_) {
    if (const auto* lstm = std::get_if<LstmPlan>(&plan)) {
      forward(*lstm, state, x, rows, y);
    } else {
      for (std::size_t i = 0; i < rows; ++i)
        kernels_->dense(std::get<DenseView>(plan), x + i * row_floats_, y + i * row_floats_);
    }
    std::swap(x, y);
  }
  state.armed_ = false;
  return x;
}

void Network::forward(const LstmPlan& plan, NetworkState& state, const float* x, std::size_t rows,
                      float* y) const noexcept {
  const LstmView& view = plan.view;
  const std::size_t count = panels(view.units);
  float* block = state.block_.get();
  float *z = block + z_at_, *armed = block + plan.armed, *c = block + plan.c, *h = block + plan.h;
  kernels_->gate_products(view.kernel, view.bias, count, view.inputs, x, row_floats_, rows, z);
  for (std::size_t i = 0; i < rows; ++i) {
    if (i > 0 || !state.armed_)
      kernels_->gate_products(view.recurrent, nullptr, count, view.units, h, 0, 1, armed);
    kernels_->lstm_gates(count, z + i * count * 4 * kPanel, armed, c, h);
    std::memcpy(y + i * row_floats_, h, padded(view.units) * sizeof(float));
  }
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
