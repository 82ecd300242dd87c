#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "network.hpp"
#include "rng.hpp"
#include "window.hpp"

using namespace hft;

namespace {

std::vector<float> weights(std::uint64_t stream, std::size_t n, double scale) {
  std::vector<float> w(n);
  for (std::size_t i = 0; i < n; ++i)
    w[i] = static_cast<float>(scale * (2.0 * draw_uniform(1, stream, i) - 1.0));
  return w;
}

LstmLayer lstm(std::uint64_t stream, std::size_t inputs, std::size_t units,
               Precision precision = Precision::F32) {
  return {inputs,
          units,
          weights(stream, inputs * 4 * units, 0.4),
          weights(stream + 1, units * 4 * units, 0.4),
          weights(stream + 2, 4 * units, 0.4),
          precision};
}

GruLayer gru(std::uint64_t stream, std::size_t inputs, std::size_t units,
             Precision precision = Precision::F32) {
  return {inputs,
          units,
          weights(stream, inputs * 3 * units, 0.4),
          weights(stream + 1, units * 3 * units, 0.4),
          weights(stream + 2, 6 * units, 0.4),
          precision};
}

ConvLayer conv(std::uint64_t stream, std::size_t inputs, std::size_t units, std::size_t width,
               Precision precision = Precision::F32) {
  return {inputs,
          units,
          width,
          weights(stream, width * inputs * units, 0.4),
          weights(stream + 1, units, 0.4),
          Activation::TANH,
          precision};
}

DenseLayer dense(std::uint64_t stream, std::size_t inputs, std::size_t units, Activation activation,
                 Precision precision = Precision::F32) {
  return {
      inputs,     units,    weights(stream, inputs * units, 0.5), weights(stream + 1, units, 0.5),
      activation, precision};
}

/// Every kind of layer, at sizes that fill no panel and no quad.
std::shared_ptr<const Network> all_kinds(Isa isa, Precision precision) {
  const Scaler scaler{std::vector<double>(5, 0.5), std::vector<double>(5, 2.0), 4.0};
  return Network::build(
      scaler,
      {dense(1, 5, 19, Activation::SIGMOID, precision), conv(3, 19, 33, 4, precision),
       gru(5, 33, 70, precision), lstm(8, 70, 21, precision), conv(11, 21, 18, 1, precision),
       dense(13, 18, 3, Activation::SOFTMAX, precision)},
      {{-2.0, 0.0, 2.5}, 0.5}, isa);
}

std::shared_ptr<const Network> two_layers(Isa isa) {
  const DenseLayer head{20, 3, weights(9, 60, 0.5), weights(10, 3, 0.5), Activation::SOFTMAX};
  const Scaler scaler{std::vector<double>(5, 0.5), std::vector<double>(5, 2.0), 4.0};
  return Network::build(scaler, {lstm(1, 5, 33), lstm(5, 33, 20), head}, {{-2.0, 0.0, 2.5}, 0.5},
                        isa);
}

std::vector<double> rows(std::size_t n) {
  std::vector<double> x(n * 5);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 8.0 * draw_uniform(3, 7, i) - 4.0;
  return x;
}

enum class Way { STEP, ARMED, BATCH };

std::vector<std::uint32_t> bits(const Network& network, std::size_t n, Way way) {
  const std::vector<double> x = rows(n);
  std::vector<float> y(n * network.outputs());
  NetworkState state = network.state();
  if (way == Way::BATCH) network.batch(state, x.data(), n, y.data());
  for (std::size_t i = 0; way != Way::BATCH && i < n; ++i) {
    if (way == Way::ARMED) network.arm(state);
    network.step(state, &x[i * 5], &y[i * network.outputs()]);
  }
  std::vector<std::uint32_t> found(y.size());
  std::memcpy(found.data(), y.data(), y.size() * sizeof(float));
  return found;
}

/// Straight from the definition, in double.
std::vector<double> lstm_row(const LstmLayer& l, const std::vector<double>& x,
                             std::vector<double>& h, std::vector<double>& c) {
  const auto sigmoid = [](double z) { return 1.0 / (1.0 + std::exp(-z)); };
  std::vector<double> z(l.bias.begin(), l.bias.end()), next(l.units);
  for (std::size_t g = 0; g < z.size(); ++g) {
    for (std::size_t k = 0; k < l.inputs; ++k)
      z[g] += x[k] * static_cast<double>(l.kernel[k * z.size() + g]);
    for (std::size_t k = 0; k < l.units; ++k)
      z[g] += h[k] * static_cast<double>(l.recurrent[k * z.size() + g]);
  }
  for (std::size_t u = 0; u < l.units; ++u) {
    c[u] = sigmoid(z[l.units + u]) * c[u] + sigmoid(z[u]) * std::tanh(z[2 * l.units + u]);
    next[u] = sigmoid(z[3 * l.units + u]) * std::tanh(c[u]);
  }
  h = next;
  return h;
}

}  // namespace

TEST_CASE("an LSTM is what its definition says") {
  const LstmLayer layer = lstm(1, 5, 33);
  const auto network =
      Network::build({std::vector<double>(5, 0.0), std::vector<double>(5, 1.0), 9.0}, {layer});
  NetworkState state = network->state();
  std::vector<double> h(33), c(33);
  const auto x = rows(50);
  float out[33];
  for (std::size_t i = 0; i < 50; ++i) {
    const auto expected = lstm_row(layer, {&x[i * 5], &x[i * 5] + 5}, h, c);
    network->step(state, &x[i * 5], out);
    for (std::size_t u = 0; u < 33; ++u)
      CHECK(std::fabs(static_cast<double>(out[u]) - expected[u]) < 1e-5);
  }
}

TEST_CASE("step, armed step and batch give the same bits") {
  for (const Isa isa : {Isa::PORTABLE, Isa::AVX2, Isa::AVX512}) {
    if (isa > best_isa()) continue;
    for (const auto& network :
         {two_layers(isa), all_kinds(isa, Precision::F32), all_kinds(isa, Precision::I8)})
      for (const std::size_t n : {1U, 4U, 16U, 17U, 67U}) {
        const auto step = bits(*network, n, Way::STEP);
        CHECK(step == bits(*network, n, Way::BATCH));
        CHECK(step == bits(*network, n, Way::ARMED));
      }
  }
}

TEST_CASE("AVX-512 and AVX2 give the same bits") {
  if (best_isa() != Isa::AVX512) return;
  CHECK(bits(*two_layers(Isa::AVX512), 500, Way::STEP) ==
        bits(*two_layers(Isa::AVX2), 500, Way::STEP));
  for (const Precision precision : {Precision::F32, Precision::I8})
    CHECK(bits(*all_kinds(Isa::AVX512, precision), 500, Way::STEP) ==
          bits(*all_kinds(Isa::AVX2, precision), 500, Way::STEP));
}

TEST_CASE("a window is a fresh pass over its rows, to the bit") {
  const std::size_t count = 40;
  const std::vector<double> x = rows(count);
  for (const Isa isa : {Isa::PORTABLE, Isa::AVX2, Isa::AVX512}) {
    if (isa > best_isa()) continue;
    for (const Precision precision : {Precision::F32, Precision::I8})
      for (const std::size_t length : {1U, 2U, 7U, 19U}) {
        const auto network = all_kinds(isa, precision);
        WindowState window(network, length);
        for (std::size_t i = 0; i < count; ++i) {
          float found[5], wanted[5];
          window.step(&x[i * 5], found);
          if (i % 3) window.settle();
          NetworkState fresh = network->state();
          for (std::size_t k = i + 1 < length ? 0 : i + 1 - length; k <= i; ++k)
            network->step(fresh, &x[k * 5], wanted);
          CHECK(std::memcmp(found, wanted, sizeof found) == 0);
        }
      }
  }
}

TEST_CASE("many streams at once give the bits of each alone") {
  for (const Precision precision : {Precision::F32, Precision::I8}) {
    const auto network = all_kinds(best_isa(), precision);
    const std::size_t n = 19, inputs = 5, outputs = network->outputs();
    std::vector<NetworkState> together, alone;
    std::vector<NetworkState*> states;
    for (std::size_t i = 0; i < n; ++i) {
      together.push_back(network->state());
      alone.push_back(network->state());
    }
    for (NetworkState& state : together) states.push_back(&state);
    const std::vector<double> x = rows(4 * n);
    std::vector<float> ours(n * outputs), theirs(n * outputs);
    for (std::size_t turn = 0; turn < 4; ++turn) {
      for (std::size_t i = 0; i < turn * 6; ++i) network->arm(together[i]);
      network->step_many(states.data(), n, &x[turn * n * inputs], ours.data());
      for (std::size_t i = 0; i < n; ++i)
        network->step(alone[i], &x[(turn * n + i) * inputs], &theirs[i * outputs]);
      CHECK(std::memcmp(ours.data(), theirs.data(), ours.size() * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("a window that is reset forgets its rows") {
  const auto network = all_kinds(best_isa(), Precision::F32);
  WindowState window(network, 4);
  const std::vector<double> x = rows(9);
  float first[5], again[5];
  window.step(x.data(), first);
  for (std::size_t i = 1; i < 9; ++i) window.step(&x[i * 5], again);
  window.reset();
  window.step(x.data(), again);
  CHECK(std::memcmp(first, again, sizeof first) == 0);
  CHECK_THROWS_AS(WindowState(network, 0), std::invalid_argument);
}

TEST_CASE("outputs are probabilities, then the forecast and the confidence") {
  const auto network = two_layers(best_isa());
  REQUIRE(network->outputs() == 5);
  NetworkState state = network->state();
  float y[5];
  const auto x = rows(1);
  network->step(state, x.data(), y);
  CHECK(y[0] + y[1] + y[2] == doctest::Approx(1.0));
  CHECK(y[3] == doctest::Approx(
                    0.5 * (-2.0 * static_cast<double>(y[0]) + 2.5 * static_cast<double>(y[2]))));
  CHECK(y[4] == std::max({y[0], y[1], y[2]}));
  state.reset();
  float again[5];
  network->step(state, x.data(), again);
  CHECK(std::memcmp(y, again, sizeof y) == 0);
}

TEST_CASE("what does not fit is refused") {
  const Scaler scaler{{0.0, 0.0}, {1.0, 1.0}, 5.0};
  CHECK_THROWS_AS(Network::build(scaler, {}), std::invalid_argument);
  CHECK_THROWS_AS(Network::build(scaler, {lstm(1, 3, 4)}), std::invalid_argument);
  CHECK_THROWS_AS(Network::build({{0.0}, {0.0}, 5.0}, {lstm(1, 1, 4)}), std::invalid_argument);
  LstmLayer broken = lstm(1, 2, 4);
  broken.bias[3] = std::nanf("");
  CHECK_THROWS_AS(Network::build(scaler, {broken}), std::invalid_argument);
  CHECK_THROWS_AS(Network::build(scaler, {conv(1, 2, 4, 0)}), std::invalid_argument);
  GruLayer huge = gru(1, 2, 4, Precision::I8);
  huge.recurrent[7] = 2e30f;
  CHECK_THROWS_AS(Network::build(scaler, {huge}), std::invalid_argument);
  huge.precision = Precision::F32;
  CHECK_NOTHROW(Network::build(scaler, {huge}));
}
