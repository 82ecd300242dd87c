/// From layers as Keras holds them to a network: checks, then every weight laid out in one block.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "network.hpp"

namespace hft {
namespace {

/// Scales of weights beyond this could make a sum overflow a float.
constexpr float kLargest8 = 1e30f;

std::size_t padded(std::size_t units) noexcept { return panels(units) * kPanel; }
constexpr std::size_t whole_lines(std::size_t bytes) noexcept { return (bytes + 63) / 64 * 64; }

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

/// A matrix as Keras holds it: (inputs, gates * units), and its bias, (gates * units) or none.
struct Matrix {
  std::size_t inputs = 0, units = 0, gates = 1;
  const float *kernel = nullptr, *bias = nullptr;

  float at(std::size_t input, std::size_t gate, std::size_t unit) const noexcept {
    return kernel[(input * gates + gate) * units + unit];
  }
};

std::size_t bytes_of(const Matrix& m, Precision precision) noexcept {
  if (m.inputs == 0) return 0;
  const std::size_t columns = padded(m.units) * m.gates, floats = columns * sizeof(float);
  const std::size_t bias = m.bias ? floats : 0;
  if (precision == Precision::F32) return floats * m.inputs + bias;
  return columns * quads(m.inputs) * kQuad + 2 * floats + bias;
}

}  // namespace

class Network::Builder {
 public:
  explicit Builder(Network& network) : network_(network), width_(network.inputs_) {
    network_.row_floats_ = padded(width_);
  }

  void add(const Layer& layer) {
    where_ = "layer " + std::to_string(++count_);
    std::visit([&](const auto& l) { check(l); }, layer);
    std::visit([&](const auto& l) { parts_.push_back(parts_of(l)); }, layer);
    const Parts& parts = parts_.back();
    bytes_ += bytes_of(parts.present, parts.precision) + bytes_of(parts.past, parts.precision);
  }

  void place() {
    network_.block_ = std::make_shared<LockedBlock>(bytes_);
    network_.weight_bytes_ = bytes_;
    network_.weights_ = at_ = network_.block_->data();
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      where_ = "layer " + std::to_string(i + 1);
      place(parts_[i]);
    }
    place_state();
  }

 private:
  struct Parts {
    Kind kind;
    Activation activation;
    Precision precision;
    std::size_t memory;  // floats
    Matrix present, past;
  };

  static Parts parts_of(const LstmLayer& l) {
    return {Kind::LSTM,
            Activation::LINEAR,
            l.precision,
            2 * padded(l.units),
            {l.inputs, l.units, 4, l.kernel.data(), l.bias.data()},
            {l.units, l.units, 4, l.recurrent.data(), nullptr}};
  }
  static Parts parts_of(const GruLayer& l) {
    return {Kind::GRU,
            Activation::LINEAR,
            l.precision,
            padded(l.units),
            {l.inputs, l.units, 3, l.kernel.data(), l.bias.data()},
            {l.units, l.units, 3, l.recurrent.data(), l.bias.data() + 3 * l.units}};
  }
  static Parts parts_of(const ConvLayer& l) {
    const std::size_t past = (l.width - 1) * l.inputs;
    return {past ? Kind::CONV : Kind::DENSE,
            l.activation,
            l.precision,
            padded(past),
            {l.inputs, l.units, 1, l.kernel.data() + past * l.units, l.bias.data()},
            {past, l.units, 1, l.kernel.data(), nullptr}};
  }
  static Parts parts_of(const DenseLayer& l) {
    return {Kind::DENSE,
            l.activation,
            l.precision,
            0,
            {l.inputs, l.units, 1, l.kernel.data(), l.bias.data()},
            {}};
  }

  void check_width(std::size_t inputs, std::size_t units) {
    require(units > 0, where_, "has no units");
    require(inputs == width_, where_,
            "takes " + std::to_string(inputs) + " inputs, but what comes before gives " +
                std::to_string(width_));
    width_ = units;
    network_.row_floats_ = std::max(network_.row_floats_, padded(units));
  }
  void check_part(const std::vector<float>& values, std::size_t size, const char* part) {
    require_shape(values, size, where_ + " " + part);
    network_.parameters_ += size;
  }
  void check(const LstmLayer& l) {
    check_width(l.inputs, l.units);
    check_part(l.kernel, l.inputs * 4 * l.units, "kernel");
    check_part(l.recurrent, l.units * 4 * l.units, "recurrent kernel");
    check_part(l.bias, 4 * l.units, "bias");
  }
  void check(const GruLayer& l) {
    check_width(l.inputs, l.units);
    check_part(l.kernel, l.inputs * 3 * l.units, "kernel");
    check_part(l.recurrent, l.units * 3 * l.units, "recurrent kernel");
    check_part(l.bias, 2 * 3 * l.units, "bias");
  }
  void check(const ConvLayer& l) {
    require(l.width > 0, where_, "has a width of 0 rows, needs 1 or more");
    check_width(l.inputs, l.units);
    check_part(l.kernel, l.width * l.inputs * l.units, "kernel");
    check_part(l.bias, l.units, "bias");
  }
  void check(const DenseLayer& l) {
    check_width(l.inputs, l.units);
    check_part(l.kernel, l.inputs * l.units, "kernel");
    check_part(l.bias, l.units, "bias");
  }

  void place(const Parts& parts) {
    Plan plan{parts.kind, parts.activation, parts.present.units, {}, {}, 0, 0};
    plan.present = place(parts.present, parts.precision, " kernel");
    if (parts.past.inputs) plan.past = place(parts.past, parts.precision, " recurrent kernel");
    plan.memory = network_.memory_floats_;
    network_.memory_floats_ += parts.memory;
    network_.plans_.push_back(plan);
  }

  template <class T>
  T* take(std::size_t n) noexcept {
    auto* p = reinterpret_cast<T*>(at_);
    at_ += n * sizeof(T);
    return p;
  }

  /// Calls f(gate, unit, column): where Keras has a column and where a panel does.
  template <class F>
  static void each_column(const Matrix& m, F&& f) {
    for (std::size_t gate = 0; gate < m.gates; ++gate)
      for (std::size_t unit = 0; unit < m.units; ++unit)
        f(gate, unit, (unit / kPanel * m.gates + gate) * kPanel + unit % kPanel);
  }

  MatrixView place(const Matrix& m, Precision precision, const char* part) {
    MatrixView view;
    view.inputs = m.inputs;
    view.panels = panels(m.units);
    view.gates = m.gates;
    if (m.bias) {
      auto* bias = take<float>(view.columns());
      each_column(m, [&](std::size_t gate, std::size_t unit, std::size_t column) {
        bias[column] = m.bias[gate * m.units + unit];
      });
      view.bias = bias;
    }
    if (precision == Precision::F32)
      view.weights = place_floats(m, view);
    else
      place_bytes(m, view, where_ + part);
    return view;
  }

  const float* place_floats(const Matrix& m, const MatrixView& view) {
    auto* to = take<float>(view.columns() * m.inputs);
    const std::size_t row = m.gates * kPanel;
    each_column(m, [&](std::size_t gate, std::size_t unit, std::size_t column) {
      float* panel = to + column / row * m.inputs * row + column % row;
      for (std::size_t k = 0; k < m.inputs; ++k) panel[k * row] = m.at(k, gate, unit);
    });
    return to;
  }

  void place_bytes(const Matrix& m, MatrixView& view, const std::string& where) {
    require(m.inputs <= kMaxInputs8, where,
            "takes " + std::to_string(m.inputs) + " inputs; 8 bits take up to " +
                std::to_string(kMaxInputs8));
    auto* bytes = take<std::int8_t>(view.columns() * quads(m.inputs) * kQuad);
    auto* scales = take<float>(view.columns());
    auto* offsets = take<std::int32_t>(view.columns());
    const std::size_t row = m.gates * kPanel;
    each_column(m, [&](std::size_t gate, std::size_t unit, std::size_t column) {
      const float scale = scale_of(m, gate, unit, where);
      std::int8_t* panel = bytes + (column / row * quads(m.inputs) * row + column % row) * kQuad;
      std::int32_t sum = 0;
      for (std::size_t k = 0; k < m.inputs && scale > 0.0f; ++k) {
        const auto byte = static_cast<std::int8_t>(std::nearbyint(m.at(k, gate, unit) / scale));
        panel[k / kQuad * row * kQuad + k % kQuad] = byte;
        sum += byte;
      }
      scales[column] = scale;
      offsets[column] = -128 * sum;
    });
    view.bytes = bytes;
    view.scales = scales;
    view.offsets = offsets;
  }

  /// A column too small for a scale that is a normal number counts as zeros.
  static float scale_of(const Matrix& m, std::size_t gate, std::size_t unit,
                        const std::string& where) {
    float largest = 0.0f;
    for (std::size_t k = 0; k < m.inputs; ++k)
      largest = std::max(largest, std::fabs(m.at(k, gate, unit)));
    if (largest > kLargest8) {
      char text[32];
      std::snprintf(text, sizeof text, "%g", static_cast<double>(largest));
      require(false, where,
              "column " + std::to_string(gate * m.units + unit) + " has a weight of " + text +
                  "; 8 bits take up to 1e30");
    }
    const float scale = largest / 127.0f;
    return scale >= FLT_MIN ? scale : 0.0f;
  }

  void place_state() {
    std::size_t at = network_.memory_floats_, widest_z = 0, widest_zh = 0;
    for (Plan& plan : network_.plans_) {
      plan.armed = at;
      if (plan.past.inputs) {
        at += plan.past.columns();
        widest_zh = std::max(widest_zh, plan.past.columns());
        network_.past_floats_ = std::max(network_.past_floats_, padded(plan.past.inputs));
      }
      widest_z = std::max(widest_z, plan.present.columns());
      network_.q_bytes_ = std::max(
          {network_.q_bytes_, whole_lines(plan.present.inputs), whole_lines(plan.past.inputs)});
    }
    for (std::size_t& rows_at : network_.rows_at_) {
      rows_at = at;
      at += kBatchRows * network_.row_floats_;
    }
    network_.z_at_ = at;
    network_.zh_at_ = at + kBatchRows * widest_z;
    network_.past_at_ = network_.zh_at_ + kBatchRows * widest_zh;
    network_.q_at_ = network_.past_at_ + kBatchRows * network_.past_floats_;
    network_.state_floats_ = network_.q_at_ + kBatchRows * network_.q_bytes_ / sizeof(float);
  }

  Network& network_;
  std::vector<Parts> parts_;
  std::string where_;
  std::size_t width_, count_ = 0, bytes_ = 0;
  std::byte* at_ = nullptr;
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
  network->inputs_ = scaler.mean.size();
  network->mean_ = scaler.mean;
  network->clip_ = scaler.clip;

  Builder builder(*network);
  for (const Layer& layer : layers) builder.add(layer);
  builder.place();
  network->classes_ = std::visit([](const auto& l) { return l.units; }, layers.back());
  if (!readout.move_ticks.empty())
    require_shape(readout.move_ticks, network->classes_, "move_ticks");
  network->move_ticks_ = readout.move_ticks;
  network->shrink_ = readout.shrink;
  return network;
}

std::vector<std::shared_ptr<const Network>> Network::together(
    const std::vector<std::shared_ptr<const Network>>& networks) {
  std::size_t bytes = 0;
  for (const auto& network : networks) bytes += network->weight_bytes_;
  require(bytes > 0, "networks", "needs one or more");
  const auto block = std::make_shared<LockedBlock>(bytes);
  std::byte* at = block->data();
  std::vector<std::shared_ptr<const Network>> moved;
  for (const auto& network : networks) {
    std::shared_ptr<Network> copy(new Network(*network));
    copy->move_weights(block, at);
    at += copy->weight_bytes_;
    moved.push_back(std::move(copy));
  }
  return moved;
}

/// Every part is a whole number of cache lines, so what is aligned stays so.
void Network::move_weights(std::shared_ptr<LockedBlock> block, std::byte* to) noexcept {
  std::memcpy(to, weights_, weight_bytes_);
  const auto move = [&]<class T>(const T*& p) {
    if (p) p = reinterpret_cast<const T*>(to + (reinterpret_cast<const std::byte*>(p) - weights_));
  };
  for (Plan& plan : plans_)
    for (MatrixView* m : {&plan.present, &plan.past}) {
      move(m->weights);
      move(m->bytes);
      move(m->scales);
      move(m->offsets);
      move(m->bias);
    }
  weights_ = to;
  block_ = std::move(block);
}

}  // namespace hft
