// Times the native LSTM (64x2 on 16 inputs) and what the machine itself could do with its weights.
// Built and run by lstm.py; prints `set measure p50 p99` in ns.
#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include "network.hpp"
#include "rng.hpp"

using namespace hft;

namespace {

constexpr std::size_t kInputs = 16, kUnits = 64, kRows = 4096;

std::vector<float> weights(std::uint64_t stream, std::size_t n) {
  std::vector<float> w(n);
  for (std::size_t i = 0; i < n; ++i)
    w[i] = static_cast<float>(0.5 * draw_uniform(1, stream, i) - 0.25);
  return w;
}

LstmLayer lstm(std::uint64_t stream, std::size_t inputs) {
  return {inputs, kUnits, weights(stream, inputs * 4 * kUnits),
          weights(stream + 1, kUnits * 4 * kUnits), weights(stream + 2, 4 * kUnits)};
}

double now_ns() {
  return std::chrono::duration<double, std::nano>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void print(std::string_view set, const char* what, std::vector<double> ns) {
  std::sort(ns.begin(), ns.end());
  std::printf("%s %s %.0f %.0f\n", std::string(set).c_str(), what, ns[ns.size() / 2],
              ns[ns.size() * 99 / 100]);
}

template <class Before, class F>
void time(std::string_view set, const char* what, std::size_t times, double per, Before&& before,
          F&& f) {
  std::vector<double> ns;
  for (std::size_t i = 0; i < times; ++i) {
    before();
    const double start = now_ns();
    f(i);
    ns.push_back((now_ns() - start) / per);
  }
  print(set, what, ns);
}

void time_network(Isa isa) {
  const DenseLayer head{kUnits, 3, weights(9, kUnits * 3), weights(10, 3), Activation::SOFTMAX};
  const Scaler scaler{std::vector<double>(kInputs, 0.0), std::vector<double>(kInputs, 1.0), 5.0};
  const auto network =
      Network::build(scaler, {lstm(1, kInputs), lstm(5, kUnits), head}, {{-1, 0, 1}, 1}, isa);
  NetworkState state = network->state();
  std::vector<double> x(kRows * kInputs);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 4.0 * draw_uniform(3, 7, i) - 2.0;
  std::vector<float> y(kRows * network->outputs());
  std::vector<char> other(3 << 20);
  const auto set = isa_name(isa);
  const auto step = [&](std::size_t i) { network->step(state, &x[i % kRows * kInputs], y.data()); };
  const auto nothing = [] {};
  time(set, "step", 20'000, 1, nothing, step);
  time(set, "armed_step", 20'000, 1, [&] { network->arm(state); }, step);
  time(
      set, "step_after_3MB", 400, 1,
      [&] {
        for (std::size_t i = 0; i < other.size(); i += 64) ++other[i];
      },
      step);
  time(set, "batch", 10, kRows, nothing,
       [&](std::size_t) { network->batch(state, x.data(), kRows, y.data()); });
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

/// ns for the products of one step, were the weights in registers.
double fma_floor(Isa isa, double products) {
  const bool wide = isa == Isa::AVX512;
  const double ns = least_ns(wide ? fma_turns_avx512 : fma_turns_avx2);
  return ns / (12.0 * (wide ? 16 : 8) * kFmaTurns) * products;
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

/// ns to read the weights once from where they lie between steps (L2).
double read_floor(std::size_t floats) {
  constexpr int kTurns = 100;
  const std::vector<float> block(floats, 1.0f);
  return least_ns([&] {
           for (int i = 0; i < kTurns; ++i) read_all(block.data(), floats);
         }) /
         kTurns;
}

}  // namespace

int main() {
  constexpr double kProducts = kUnits * 4.0 * (kInputs + kUnits + kUnits + kUnits) + kUnits * 3.0;
  for (const Isa isa : {Isa::AVX512, Isa::AVX2, Isa::PORTABLE}) {
    if (isa > best_isa()) continue;
    time_network(isa);
    if (isa == Isa::PORTABLE) continue;
    std::printf("%s floor_fma %.0f 0\n", std::string(isa_name(isa)).c_str(),
                fma_floor(isa, kProducts));
  }
  if (best_isa() >= Isa::AVX2)
    std::printf("any floor_read %.0f 0\n", read_floor(static_cast<std::size_t>(kProducts)));
}
