#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <utility>

#include "../network.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace hft {

namespace {

using Matrix = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

using Out = nb::ndarray<nb::numpy, float, nb::ndim<2>>;

template <class Array>
std::vector<float> values(const Array& array) {
  return {array.data(), array.data() + array.size()};
}

Activation activation_of(const std::string& name) {
  constexpr const char* kNames[] = {"linear", "relu", "tanh", "sigmoid", "softmax"};
  for (std::uint8_t i = 0; i < 5; ++i)
    if (name == kNames[i]) return static_cast<Activation>(i);
  throw std::invalid_argument("no activation '" + name +
                              "'; there are linear, relu, tanh, sigmoid, softmax");
}

LstmLayer lstm_layer(const Matrix& kernel, const Matrix& recurrent, const Vector& bias) {
  return {kernel.shape(0), recurrent.shape(0), values(kernel), values(recurrent), values(bias)};
}

DenseLayer dense_layer(const Matrix& kernel, const Vector& bias, const std::string& activation) {
  return {kernel.shape(0), kernel.shape(1), values(kernel), values(bias),
          activation_of(activation)};
}

/// A network and one stream's memory: what Python may step through.
class NetworkStream {
 public:
  explicit NetworkStream(std::shared_ptr<Network> network)
      : network_(std::move(network)), state_(network_->state()) {}

  Out batch(const Rows& rows) {
    check_width(rows.shape(1));
    return run(rows.shape(0),
               [&](float* out) { network_->batch(state_, rows.data(), rows.shape(0), out); });
  }
  /// Row by row instead: the same bits.
  Out steps(const Rows& rows, bool armed) {
    check_width(rows.shape(1));
    return run(rows.shape(0), [&](float* out) {
      for (std::size_t i = 0; i < rows.shape(0); ++i) {
        if (armed) network_->arm(state_);
        network_->step(state_, rows.data() + i * rows.shape(1), out + i * network_->outputs());
      }
    });
  }
  void arm() { network_->arm(state_); }
  void reset() { state_.reset(); }

 private:
  void check_width(std::size_t columns) const {
    if (columns != network_->inputs())
      throw std::invalid_argument("rows have " + std::to_string(columns) +
                                  " columns, the network takes " +
                                  std::to_string(network_->inputs()));
  }
  template <class F>
  Out run(std::size_t n, F&& f) {
    auto* out = new float[n * network_->outputs()];
    const nb::capsule owner(out, [](void* p) noexcept { delete[] static_cast<float*>(p); });
    {
      const nb::gil_scoped_release unlocked;
      f(out);
    }
    return Out(out, {n, network_->outputs()}, owner);
  }

  std::shared_ptr<Network> network_;
  NetworkState state_;
};

std::shared_ptr<Network> build(std::vector<double> mean, std::vector<double> scale, double clip,
                               const std::vector<Layer>& layers, std::vector<double> move_ticks,
                               double shrink, const std::string& isa) {
  const auto network =
      Network::build({std::move(mean), std::move(scale), clip}, layers,
                     {std::move(move_ticks), shrink}, isa.empty() ? default_isa() : isa_of(isa));
  return std::const_pointer_cast<Network>(network);  // nanobind holds no pointer to const
}

}  // namespace

void init_network(nb::module_& m) {
  nb::class_<LstmLayer>(m, "LstmLayer")
      .def_ro("inputs", &LstmLayer::inputs)
      .def_ro("units", &LstmLayer::units);
  nb::class_<DenseLayer>(m, "DenseLayer")
      .def_ro("inputs", &DenseLayer::inputs)
      .def_ro("units", &DenseLayer::units);
  m.def("lstm_layer", &lstm_layer, "kernel"_a, "recurrent"_a, "bias"_a,
        "Weights as Keras holds them: (inputs, 4 u), (u, 4 u), (4 u), gates i, f, c, o.");
  m.def("dense_layer", &dense_layer, "kernel"_a, "bias"_a, "activation"_a = "linear");
  nb::class_<Network>(m, "Network", "An immutable network; each stream has its own memory.")
      .def_prop_ro("inputs", &Network::inputs)
      .def_prop_ro("outputs", &Network::outputs)
      .def_prop_ro("parameters", &Network::parameters)
      .def_prop_ro(
          "isa", [](const Network& n) { return std::string(isa_name(n.isa())); },
          "Instruction set it runs on; results are the same bits on avx512 and avx2.");
  m.def("build_network", &build, "mean"_a, "scale"_a, "clip"_a, "layers"_a,
        "move_ticks"_a = std::vector<double>{}, "shrink"_a = 1.0, "isa"_a = "");
  nb::class_<NetworkStream>(m, "NetworkStream", "A network running over one stream of rows.")
      .def(nb::init<std::shared_ptr<Network>>(), "network"_a)
      .def("batch", &NetworkStream::batch, "rows"_a,
           "(n, inputs) float64 -> (n, outputs) float32; memory carries on to the next call.")
      .def("steps", &NetworkStream::steps, "rows"_a, "armed"_a = false)
      .def("arm", &NetworkStream::arm)
      .def("reset", &NetworkStream::reset);
  m.def("best_isa", [] { return std::string(isa_name(best_isa())); });
}

}  // namespace hft
