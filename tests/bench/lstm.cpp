// Times the native networks and what the machine itself could do with their weights.
// Built and run by lstm.py; prints `set shape precision measure p50 p99 p999` in ns.
#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include "network.hpp"
#include "rng.hpp"
#include "window.hpp"

using namespace hft;

namespace {

constexpr std::size_t kRows = 4096, kBatch = 64, kStreams = 16;

std::vector<float> weights(std::uint64_t stream, std::size_t n) {
  std::vector<float> w(n);
  for (std::size_t i = 0; i < n; ++i)
    w[i] = static_cast<float>(0.5 * draw_uniform(1, stream, i) - 0.25);
  return w;
}

/// Layers of one kind, then Dense(3, softmax) in float.
struct Shape {
  const char* name;
  char kind;  // L: LSTM, G: GRU, C: convolution of 3 rows, D: Dense
  std::size_t inputs, units, layers;

  std::size_t gates() const { return kind == 'L' ? 4 : kind == 'G' ? 3 : 1; }
  std::size_t past(std::size_t width) const {
    return kind == 'D' ? 0 : kind == 'C' ? 2 * width : units;
  }
  double products() const {
    std::size_t n = 0;
    for (std::size_t i = 0; i < layers; ++i) {
      const std::size_t width = i ? units : inputs;
      n += (width + past(width)) * gates() * units;
    }
    return static_cast<double>(n);
  }
};

Layer layer(const Shape& s, std::size_t i, Precision precision) {
  const std::size_t width = i ? s.units : s.inputs, columns = s.gates() * s.units;
  const auto w = [&](std::size_t part, std::size_t n) { return weights(4 * i + part, n); };
  switch (s.kind) {
    case 'L':
      return LstmLayer{width,         s.units,  w(1, width * columns), w(2, s.units * columns),
                       w(3, columns), precision};
    case 'G':
      return GruLayer{
          width,    s.units, w(1, width * columns), w(2, s.units * columns), w(3, 2 * columns),
          precision};
    case 'C':
      return ConvLayer{width,         s.units,          3,        w(1, 3 * width * columns),
                       w(3, columns), Activation::RELU, precision};
    default:
      return DenseLayer{width,         s.units,          w(1, width * columns),
                        w(3, columns), Activation::RELU, precision};
  }
}

std::shared_ptr<const Network> network_of(const Shape& s, Precision precision, Isa isa) {
  std::vector<Layer> layers;
  for (std::size_t i = 0; i < s.layers; ++i) layers.push_back(layer(s, i, precision));
  layers.push_back(
      DenseLayer{s.units, 3, weights(90, s.units * 3), weights(91, 3), Activation::SOFTMAX});
  const Scaler scaler{std::vector<double>(s.inputs, 0.0), std::vector<double>(s.inputs, 1.0), 5.0};
  return Network::build(scaler, layers, {{-1, 0, 1}, 1}, isa);
}

double now_ns() {
  return std::chrono::duration<double, std::nano>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Sorts and prints what one case took.
void print(const std::string& name, const char* what, std::vector<double> ns) {
  std::sort(ns.begin(), ns.end());
  const auto at = [&](std::size_t permille) { return ns[ns.size() * permille / 1000]; };
  std::printf("%s %s %.0f %.0f %.0f\n", name.c_str(), what, at(500), at(990), at(999));
}

template <class Before, class F>
void time(const std::string& name, const char* what, std::size_t times, double per, Before&& before,
          F&& f) {
  std::vector<double> ns;
  for (std::size_t i = 0; i < times; ++i) {
    before();
    const double start = now_ns();
    f(i);
    ns.push_back((now_ns() - start) / per);
  }
  print(name, what, ns);
}

void time_network(const Shape& shape, Precision precision, Isa isa) {
  const auto network = network_of(shape, precision, isa);
  const std::string name = std::string(isa_name(isa)) + " " + shape.name +
                           (precision == Precision::I8 ? " int8" : " fp32");
  NetworkState state = network->state();
  std::vector<double> x(kRows * shape.inputs);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 4.0 * draw_uniform(3, 7, i) - 2.0;
  std::vector<float> y(kRows * network->outputs());
  std::vector<char> other(3 << 20);
  const auto row = [&](std::size_t i) { return &x[i % kRows * shape.inputs]; };
  const auto step = [&](std::size_t i) { network->step(state, row(i), y.data()); };
  const auto evict = [&] {
    for (std::size_t i = 0; i < other.size(); i += 64) ++other[i];
  };
  const std::size_t times = shape.products() > 1e6 ? 2'000 : 20'000;
  time(name, "step", times, 1, [] {}, step);
  time(name, "armed_step", times, 1, [&] { network->arm(state); }, step);
  time(name, "step_after_3MB", 400, 1, evict, step);
  time(
      name, "touched_armed", 400, 1,
      [&] {
        evict();
        network->touch();
        network->arm(state);
      },
      step);
  time(name, "touch_after_3MB", 400, 1, evict, [&](std::size_t) { network->touch(); });
  time(
      name, "batch_row", times / 40, kBatch, [] {},
      [&](std::size_t i) { network->batch(state, row(i * kBatch), kBatch, y.data()); });
  std::vector<NetworkState> streams;
  std::vector<NetworkState*> states;
  for (std::size_t i = 0; i < kStreams; ++i) streams.push_back(network->state());
  for (NetworkState& one : streams) states.push_back(&one);
  time(
      name, "stream_of_16", times / 10, kStreams, [] {},
      [&](std::size_t i) {
        network->step_many(states.data(), kStreams, row(i * kStreams), y.data());
      });
  if (shape.products() > 1e6 || shape.kind == 'D') return;
  WindowState window(network, 100);
  for (std::size_t i = 0; i < 200; ++i) window.step(row(i), y.data());
  time(
      name, "window_step", 1'000, 1, [&] { window.settle(); },
      [&](std::size_t i) { window.step(row(i), y.data()); });
  time(
      name, "window_settle", 1'000, 1, [&] { window.step(row(7), y.data()); },
      [&](std::size_t) { window.settle(); });
}

/// Least of several runs: a floor is what the machine can do undisturbed.
template <class F>
double least_ns(F&& f) {
  double least = 1e300;
  for (int i = 0; i < 30; ++i) {
    const double start = now_ns();
    f();
    least = std::min(least, now_ns() - start);
  }
  return least;
}

constexpr int kFmaTurns = 100'000;
volatile float sink;  // what is computed must be wanted

#define HFT_FMA_TURNS(T, set1, fma)                                \
  T sum[12];                                                       \
  for (auto& s : sum) s = set1(1.0f);                              \
  const T a = set1(0.999f), b = set1(1e-3f);                       \
  for (int i = 0; i < kFmaTurns; ++i) {                            \
    _Pragma("GCC unroll 12") for (auto& s : sum) s = fma(s, a, b); \
  }                                                                \
  for (auto& s : sum) sink = s[0]

[[gnu::noinline, gnu::target("avx512f")]] void fma_turns_avx512() {
  HFT_FMA_TURNS(__m512, _mm512_set1_ps, _mm512_fmadd_ps);
}

[[gnu::noinline, gnu::target("avx2,fma")]] void fma_turns_avx2() {
  HFT_FMA_TURNS(__m256, _mm256_set1_ps, _mm256_fmadd_ps);
}

[[gnu::noinline, gnu::target("avx512f,avx512vnni")]] void dot_turns() {
  __m512i sum[12];
  for (auto& s : sum) s = _mm512_setzero_si512();
  const __m512i a = _mm512_set1_epi32(static_cast<int>(sink)), b = _mm512_set1_epi8(1);
  for (int i = 0; i < kFmaTurns; ++i) {
    _Pragma("GCC unroll 12") for (auto& s : sum) s = _mm512_dpbusd_epi32(s, a, b);
  }
  for (auto& s : sum) sink = static_cast<float>(_mm512_cvtsi512_si32(s));
}

/// ns a multiply-add, were all of it in registers.
double fma_floor(Isa isa) {
  const bool wide = isa == Isa::AVX512;
  return least_ns(wide ? fma_turns_avx512 : fma_turns_avx2) / (12.0 * (wide ? 16 : 8) * kFmaTurns);
}

[[gnu::noinline, gnu::target("avx2")]] void read_all(const float* p, std::size_t floats) {
  __m256 any[8] = {};
  for (std::size_t i = 0; i + 64 <= floats; i += 64) {
#pragma GCC unroll 8
    for (std::size_t k = 0; k < 8; ++k)
      any[k] = _mm256_or_ps(any[k], _mm256_loadu_ps(p + i + k * 8));
  }
  for (auto& x : any) sink = x[0];
}

/// ns a byte to read a block again and again: the larger it is, the farther away it lies.
double read_floor(std::size_t bytes) {
  const int turns = static_cast<int>(20'000'000 / bytes);
  const std::vector<float> block(bytes / sizeof(float), 1.0f);
  return least_ns([&] {
           for (int i = 0; i < turns; ++i) read_all(block.data(), block.size());
         }) /
         (static_cast<double>(bytes) * turns);
}

constexpr Shape kShapes[] = {
    {"lstm64x2_16", 'L', 16, 64, 2},     {"lstm64x2_40", 'L', 40, 64, 2},
    {"lstm128x2_128", 'L', 128, 128, 2}, {"lstm256x3_256", 'L', 256, 256, 3},
    {"gru64x2_40", 'G', 40, 64, 2},      {"conv64x2_40", 'C', 40, 64, 2},
    {"dense64x3_40", 'D', 40, 64, 3},
};

/// Our own gates of all layers, alone and one after another, from sums in L1.
double gates_ns(const Shape& s, Isa isa) {
  if (s.kind != 'L' && s.kind != 'G') return 0.0;
  const CellKernels& cell = s.kind == 'L' ? kernels(isa).lstm : kernels(isa).gru;
  const std::size_t columns = panels(s.units) * kPanel * s.gates();
  const AlignedFloats zx = zeros(columns), zh = zeros(columns), memory = zeros(columns),
                      y = zeros(columns);
  constexpr int kTurns = 1'000;
  return static_cast<double>(s.layers) / kTurns * least_ns([&] {
           for (int i = 0; i < kTurns; ++i) {
             zx[0] = y[s.units - 1];  // a layer waits for the one before
             cell.gates(panels(s.units), zx.get(), zh.get(), memory.get(), y.get());
           }
         });
}

/// The larger of products and reading is what a step cannot be faster than.
void print_floor(const Shape& s, Precision precision, Isa isa, double product_ns) {
  const double bytes = s.products() * (precision == Precision::I8 ? 1.0 : 4.0);
  const double read = read_floor(static_cast<std::size_t>(bytes)) * bytes;
  std::printf("%s %s %s floor %.0f %.0f %.0f\n", std::string(isa_name(isa)).c_str(), s.name,
              precision == Precision::I8 ? "int8" : "fp32", s.products() * product_ns, read,
              gates_ns(s, isa));
}

}  // namespace

int main() {
  time("any clock -", "empty", 20'000, 1, [] {}, [](std::size_t) {});
  for (const Isa isa : {Isa::AVX512, Isa::AVX2, Isa::PORTABLE}) {
    if (isa > best_isa()) continue;
    for (const Shape& shape : kShapes) {
      if (isa != Isa::AVX512 && &shape - kShapes > 2) break;
      for (const Precision precision : {Precision::F32, Precision::I8}) {
        time_network(shape, precision, isa);
        if (isa == Isa::PORTABLE || (isa == Isa::AVX2 && precision == Precision::I8)) continue;
        if (precision == Precision::I8 && !has_vnni()) continue;
        const double product_ns = precision == Precision::I8
                                      ? least_ns(dot_turns) / (12.0 * 64 * kFmaTurns)
                                      : fma_floor(isa);
        print_floor(shape, precision, isa, product_ns);
      }
    }
  }
}
