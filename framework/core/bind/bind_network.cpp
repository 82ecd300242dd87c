#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "../network.hpp"
#include "../step_timer.hpp"
#include "../window.hpp"
#include "words.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace hft {

namespace {

using Matrix = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Cube = nb::ndarray<const float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

using Row = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Answer = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Answers = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

using Outputs = Out<float, 2>;
using Spans = Out<std::int64_t, 1>;

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

Precision precision_of(const std::string& name) {
  if (name == "float32") return Precision::F32;
  if (name == "int8") return Precision::I8;
  throw std::invalid_argument("no precision '" + name + "'; there are float32, int8");
}

LstmLayer lstm_layer(const Matrix& kernel, const Matrix& recurrent, const Vector& bias,
                     const std::string& precision) {
  return {kernel.shape(0),   recurrent.shape(0), values(kernel),
          values(recurrent), values(bias),       precision_of(precision)};
}

GruLayer gru_layer(const Matrix& kernel, const Matrix& recurrent, const Matrix& bias,
                   const std::string& precision) {
  return {kernel.shape(0),   recurrent.shape(0), values(kernel),
          values(recurrent), values(bias),       precision_of(precision)};
}

ConvLayer conv_layer(const Cube& kernel, const Vector& bias, const std::string& activation,
                     const std::string& precision) {
  return {kernel.shape(1), kernel.shape(2),           kernel.shape(0),        values(kernel),
          values(bias),    activation_of(activation), precision_of(precision)};
}

DenseLayer dense_layer(const Matrix& kernel, const Vector& bias, const std::string& activation,
                       const std::string& precision) {
  return {kernel.shape(0), kernel.shape(1),           values(kernel),
          values(bias),    activation_of(activation), precision_of(precision)};
}

void check_width(const Network& network, const Rows& rows) {
  if (rows.shape(1) != network.inputs())
    throw std::invalid_argument("rows have " + std::to_string(rows.shape(1)) +
                                " columns, the network takes " + std::to_string(network.inputs()));
}

void check(std::size_t has, std::size_t needs, const char* what) {
  if (has != needs)
    throw std::invalid_argument(std::string(what) + " has " + std::to_string(has) +
                                " values, must have " + std::to_string(needs));
}

/// One row into one answer, both the caller's: nothing is made on the way.
template <class State>
void step_into(const Network& network, const Row& row, const Answer& out, State&& step) {
  check(row.shape(0), network.inputs(), "row");
  check(out.shape(0), network.outputs(), "out");
  step(row.data(), out.data());
}

/// (n, outputs), filled by f(out) while other Python threads run.
template <class F>
Outputs filled(std::size_t n, std::size_t outputs, F&& f) {
  auto* out = new float[n * outputs];
  const nb::capsule owner(out, [](void* p) noexcept { delete[] static_cast<float*>(p); });
  {
    const nb::gil_scoped_release unlocked;
    f(out);
  }
  return Outputs(out, {n, outputs}, owner);
}

/// A network and one stream's memory: what Python may step through.
class NetworkStream {
 public:
  explicit NetworkStream(std::shared_ptr<Network> network)
      : network_(std::move(network)), state_(network_->state()) {}

  void step(const Row& row, const Answer& out) {
    step_into(*network_, row, out,
              [&](const double* x, float* y) { network_->step(state_, x, y); });
  }
  Outputs batch(const Rows& rows) {
    check_width(*network_, rows);
    return filled(rows.shape(0), network_->outputs(),
                  [&](float* out) { network_->batch(state_, rows.data(), rows.shape(0), out); });
  }
  /// Row by row instead: the same bits.
  Outputs steps(const Rows& rows, bool armed) {
    check_width(*network_, rows);
    return filled(rows.shape(0), network_->outputs(), [&](float* out) {
      for (std::size_t i = 0; i < rows.shape(0); ++i) {
        if (armed) network_->arm(state_);
        network_->step(state_, rows.data() + i * rows.shape(1), out + i * network_->outputs());
      }
    });
  }
  void arm() { network_->arm(state_); }
  void reset() { state_.reset(); }
  const Network& network() const { return *network_; }
  NetworkState& state() { return state_; }

 private:
  std::shared_ptr<Network> network_;
  NetworkState state_;
};

class NetworkWindow {
 public:
  NetworkWindow(std::shared_ptr<Network> network, std::size_t rows)
      : network_(std::move(network)), state_(network_, rows) {}

  void step(const Row& row, const Answer& out) {
    step_into(*network_, row, out, [&](const double* x, float* y) { state_.step(x, y); });
  }
  Outputs steps(const Rows& rows) {
    check_width(*network_, rows);
    return filled(rows.shape(0), network_->outputs(), [&](float* out) {
      for (std::size_t i = 0; i < rows.shape(0); ++i)
        state_.step(rows.data() + i * rows.shape(1), out + i * network_->outputs());
    });
  }
  void settle() { state_.settle(); }
  void reset() { state_.reset(); }
  std::size_t rows() const { return state_.rows(); }

 private:
  std::shared_ptr<Network> network_;
  WindowState state_;
};

void step_streams(const std::vector<NetworkStream*>& streams, const Rows& rows,
                  const Answers& out) {
  if (streams.empty()) throw std::invalid_argument("streams: needs one or more");
  const Network& network = streams[0]->network();
  check_width(network, rows);
  check(rows.shape(0), streams.size(), "first axis of rows");
  check(out.shape(0), streams.size(), "first axis of out");
  check(out.shape(1), network.outputs(), "second axis of out");
  std::vector<NetworkState*> states;
  for (NetworkStream* stream : streams) {
    if (&stream->network() != &network)
      throw std::invalid_argument("stream " + std::to_string(states.size()) +
                                  " runs another network than stream 0");
    if (std::find(states.begin(), states.end(), &stream->state()) != states.end())
      throw std::invalid_argument("stream " + std::to_string(states.size()) + " is there twice");
    states.push_back(&stream->state());
  }
  const nb::gil_scoped_release unlocked;
  network.step_many(states.data(), states.size(), rows.data(), out.data());
}

std::pair<Spans, std::int64_t> service_ns(const std::shared_ptr<Network>& network, const Rows& rows,
                                          const std::string& mode, std::size_t evict_bytes,
                                          std::int64_t gap_ns, std::size_t window_rows) {
  check_width(*network, rows);
  const StepTiming timing{timed_step_of(mode), evict_bytes, gap_ns, window_rows};
  std::vector<std::int64_t> ns;
  std::int64_t overhead = 0;
  {
    const nb::gil_scoped_release unlocked;
    overhead = clock_overhead_ns();
    ns = time_steps(network, rows.data(), rows.shape(0), timing);
  }
  return {moved_to_numpy(std::move(ns), {rows.shape(0)}), overhead};
}

std::shared_ptr<Network> build(std::vector<double> mean, std::vector<double> scale, double clip,
                               const std::vector<Layer>& layers, std::vector<double> move_ticks,
                               double shrink, const std::string& isa) {
  const nb::gil_scoped_release unlocked;  // tens of ms for a large one: a session may trade beside
  const auto network =
      Network::build({std::move(mean), std::move(scale), clip}, layers,
                     {std::move(move_ticks), shrink}, isa.empty() ? default_isa() : isa_of(isa));
  return std::const_pointer_cast<Network>(network);  // nanobind holds no pointer to const
}

std::vector<std::shared_ptr<Network>> together(
    const std::vector<std::shared_ptr<Network>>& networks) {
  const nb::gil_scoped_release unlocked;  // as above
  const auto moved = Network::together({networks.begin(), networks.end()});
  std::vector<std::shared_ptr<Network>> found;
  for (const auto& network : moved) found.push_back(std::const_pointer_cast<Network>(network));
  return found;
}

}  // namespace

void init_network(nb::module_& m) {
  nb::class_<LstmLayer>(m, "LstmLayer")
      .def_ro("inputs", &LstmLayer::inputs)
      .def_ro("units", &LstmLayer::units);
  nb::class_<DenseLayer>(m, "DenseLayer")
      .def_ro("inputs", &DenseLayer::inputs)
      .def_ro("units", &DenseLayer::units);
  nb::class_<GruLayer>(m, "GruLayer")
      .def_ro("inputs", &GruLayer::inputs)
      .def_ro("units", &GruLayer::units);
  nb::class_<ConvLayer>(m, "ConvLayer")
      .def_ro("inputs", &ConvLayer::inputs)
      .def_ro("units", &ConvLayer::units)
      .def_ro("width", &ConvLayer::width);
  m.def("lstm_layer", &lstm_layer, "kernel"_a, "recurrent"_a, "bias"_a, "precision"_a = "float32",
        "Weights as Keras holds them: (inputs, 4 u), (u, 4 u), (4 u), gates i, f, c, o.");
  m.def("gru_layer", &gru_layer, "kernel"_a, "recurrent"_a, "bias"_a, "precision"_a = "float32",
        "Keras' GRU, reset_after=True: (inputs, 3 u), (u, 3 u), (2, 3 u), gates z, r, h.");
  m.def("conv_layer", &conv_layer, "kernel"_a, "bias"_a, "activation"_a = "linear",
        "precision"_a = "float32",
        "Keras' Conv1D, padding='causal': (width, inputs, u), (u); remembers width - 1 rows.");
  m.def("dense_layer", &dense_layer, "kernel"_a, "bias"_a, "activation"_a = "linear",
        "precision"_a = "float32");
  nb::class_<Network>(m, "Network", "An immutable network; each stream has its own memory.")
      .def_prop_ro("inputs", &Network::inputs)
      .def_prop_ro("outputs", &Network::outputs)
      .def_prop_ro("parameters", &Network::parameters)
      .def_prop_ro("weight_bytes", &Network::weight_bytes)
      .def_prop_ro("why_unlocked", &Network::why_unlocked,
                   "Why its weights may be paged out; empty when they are locked in memory.")
      .def("touch", nb::overload_cast<>(&Network::touch, nb::const_),
           "Reads every weight, so that they stay in cache; all of networks put `together`.")
      .def_prop_ro(
          "isa", [](const Network& n) { return std::string(isa_name(n.isa())); },
          "Instruction set it runs on; results are the same bits on avx512 and avx2.");
  m.def("build_network", &build, "mean"_a, "scale"_a, "clip"_a, "layers"_a,
        "move_ticks"_a = std::vector<double>{}, "shrink"_a = 1.0, "isa"_a = "");
  m.def("together", &together, "networks"_a,
        "The same networks, their weights in one locked block: `touch` of any reads all of it.");
  nb::class_<NetworkStream>(m, "NetworkStream", "A network running over one stream of rows.")
      .def(nb::init<std::shared_ptr<Network>>(), "network"_a)
      .def("step", &NetworkStream::step, "row"_a.noconvert(), "out"_a.noconvert(),
           "(inputs,) float64 into (outputs,) float32, both contiguous; nothing is allocated.")
      .def("batch", &NetworkStream::batch, "rows"_a,
           "(n, inputs) float64 -> (n, outputs) float32; memory carries on to the next call.")
      .def("steps", &NetworkStream::steps, "rows"_a, "armed"_a = false)
      .def("arm", &NetworkStream::arm)
      .def("reset", &NetworkStream::reset);
  nb::class_<NetworkWindow>(m, "NetworkWindow",
                            "A network over exactly the last `rows` rows, from nothing each time.")
      .def(nb::init<std::shared_ptr<Network>, std::size_t>(), "network"_a, "rows"_a)
      .def_prop_ro("rows", &NetworkWindow::rows)
      .def("step", &NetworkWindow::step, "row"_a.noconvert(), "out"_a.noconvert(),
           "(inputs,) float64 into (outputs,) float32, both contiguous; nothing is allocated.")
      .def("steps", &NetworkWindow::steps, "rows"_a,
           "(n, inputs) float64 -> (n, outputs) float32; the window carries on to the next call.")
      .def("settle", &NetworkWindow::settle)
      .def("reset", &NetworkWindow::reset);
  m.def("step_streams", &step_streams, "streams"_a, "rows"_a, "out"_a.noconvert(),
        "One row for each of n different streams of one network: rows (n, inputs) float64 into\n"
        "out (n, outputs) float32. They share each pass over the weights; the same bits as a step\n"
        "of each.");
  m.def("time_steps", &service_ns, "network"_a, "rows"_a, "mode"_a = "step", "evict_bytes"_a = 0,
        "gap_ns"_a = 0, "window_rows"_a = 100,
        "Service time of a step on each row [ns], and what the clock itself adds to each [ns].\n"
        "Of a new stream, in one of these modes: 'step'; 'armed': armed before; 'touched': armed,\n"
        "then weights and memory read again; 'window': of a settled window of `window_rows`.\n"
        "All of that is not timed, nor is walking a buffer of `evict_bytes`, which comes before\n"
        "the step (of 'touched': before the touch) and leaves caches cold. Steps begin `gap_ns`\n"
        "apart or later.");
  m.def("best_isa", [] { return std::string(isa_name(best_isa())); });
}

}  // namespace hft
