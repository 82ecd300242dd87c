// What this machine can do at most, measured without any code of the framework: multiply-adds with
// everything in registers, reading a block again and again, and the exponentials that gates need.
// Built and run by floors.py: `floors BYTES...` prints `what ns` and `read BYTES ns ns`: a byte, at
// best and most of the time.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>

namespace {

volatile float sink;  // what is computed must be wanted
constexpr int kTurns = 50'000;
constexpr int kAtOnce = 12;  // sums in flight: more than latency times throughput

double now_ns() {
  using namespace std::chrono;
  return duration<double, std::nano>(steady_clock::now().time_since_epoch()).count();
}

struct Times {
  double least, median;
};

template <class F>
Times times(F&& f) {
  std::vector<double> ns;
  for (int i = 0; i < 41; ++i) {
    const double start = now_ns();
    f();
    ns.push_back(now_ns() - start);
  }
  std::sort(ns.begin(), ns.end());
  return {ns.front(), ns[ns.size() / 2]};
}

/// Least of several runs: a floor is what the machine can do undisturbed.
template <class F>
double least_ns(F&& f) {
  return times(f).least;
}

#define FLOORS_FMA(T, set1, fma)                                       \
  T sum[kAtOnce];                                                      \
  for (auto& s : sum) s = set1(1.0f);                                  \
  const T a = set1(0.999f), b = set1(1e-3f);                           \
  for (int i = 0; i < kTurns; ++i) {                                   \
    _Pragma("GCC unroll 12") for (auto& s : sum) s = fma(s, a, b);     \
  }                                                                    \
  for (auto& s : sum) sink = s[0]

[[gnu::noinline, gnu::target("avx512f")]] void fma_avx512() {
  FLOORS_FMA(__m512, _mm512_set1_ps, _mm512_fmadd_ps);
}

[[gnu::noinline, gnu::target("avx2,fma")]] void fma_avx2() {
  FLOORS_FMA(__m256, _mm256_set1_ps, _mm256_fmadd_ps);
}

[[gnu::noinline, gnu::target("avx512f,avx512vnni")]] void dot_vnni() {
  __m512i sum[kAtOnce];
  for (auto& s : sum) s = _mm512_setzero_si512();
  const __m512i a = _mm512_set1_epi32(static_cast<int>(sink)), b = _mm512_set1_epi8(1);
  for (int i = 0; i < kTurns; ++i) {
    _Pragma("GCC unroll 12") for (auto& s : sum) s = _mm512_dpbusd_epi32(s, a, b);
  }
  for (auto& s : sum) sink = static_cast<float>(_mm512_cvtsi512_si32(s));
}

[[gnu::noinline, gnu::target("avx2")]] void dot_avx2() {
  __m256i sum[kAtOnce];
  for (auto& s : sum) s = _mm256_setzero_si256();
  __m256i a = _mm256_set1_epi32(static_cast<int>(sink));
  const __m256i b = _mm256_set1_epi8(1), ones = _mm256_set1_epi16(1);
  for (int i = 0; i < kTurns; ++i) {
    _Pragma("GCC unroll 12") for (auto& s : sum) s = _mm256_add_epi32(
        s, _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_xor_si256(a, s), b), ones));
  }
  for (auto& s : sum) sink = static_cast<float>(_mm256_extract_epi32(s, 0));
}

/// 1 / (1 + 2^x) of vectors in registers, by the shortest sequence that keeps seven digits:
/// a polynomial of degree 5, one scaling, one division.
[[gnu::noinline, gnu::target("avx512f,avx512dq")]] void sigmoid_avx512() {
  __m512 x[kAtOnce];
  for (int k = 0; k < kAtOnce; ++k) x[k] = _mm512_set1_ps(0.1f * static_cast<float>(k));
  const __m512 one = _mm512_set1_ps(1.0f);
  const __m512 c[6] = {_mm512_set1_ps(1.0f),        _mm512_set1_ps(0.69314718f),
                       _mm512_set1_ps(0.24022651f), _mm512_set1_ps(0.05550411f),
                       _mm512_set1_ps(0.00961813f), _mm512_set1_ps(0.00133336f)};
  for (int i = 0; i < kTurns; ++i) {
    _Pragma("GCC unroll 12") for (auto& v : x) {
      const __m512 whole = _mm512_roundscale_ps(v, 0), part = _mm512_sub_ps(v, whole);
      __m512 p = c[5];
      _Pragma("GCC unroll 5") for (int k = 4; k >= 0; --k) p = _mm512_fmadd_ps(p, part, c[k]);
      v = _mm512_div_ps(one, _mm512_add_ps(one, _mm512_scalef_ps(p, whole)));
    }
  }
  for (auto& v : x) sink = v[0];
}

#define FLOORS_READ(T, load, either, width)                                          \
  T any[8] = {};                                                                     \
  for (std::size_t i = 0; i + 8 * width <= n; i += 8 * width) {                      \
    _Pragma("GCC unroll 8") for (std::size_t k = 0; k < 8; ++k) any[k] =             \
        either(any[k], load(p + i + k * width));                                     \
  }                                                                                  \
  for (auto& x : any) sink = x[0]

[[gnu::noinline, gnu::target("avx512f,avx512dq")]] void read_avx512(const float* p,
                                                                    std::size_t n) {
  FLOORS_READ(__m512, _mm512_load_ps, _mm512_or_ps, 16);
}

[[gnu::noinline, gnu::target("avx2")]] void read_avx2(const float* p, std::size_t n) {
  FLOORS_READ(__m256, _mm256_load_ps, _mm256_or_ps, 8);
}

/// ns a byte to read a block again and again: the larger it is, the farther away it lies.
Times read_ns(std::size_t bytes, bool wide) {
  const std::size_t n = bytes / 512 * 128;  // floats, whole turns of the loop
  float* block = static_cast<float*>(std::aligned_alloc(4096, (n * 4 + 4095) / 4096 * 4096));
  std::fill(block, block + n, 1.0f);
  const int turns = static_cast<int>(4'000'000 / bytes) + 1;
  const Times ns = times([&] {
    for (int i = 0; i < turns; ++i) wide ? read_avx512(block, n) : read_avx2(block, n);
  });
  std::free(block);
  const double read = static_cast<double>(n) * 4 * turns;
  return {ns.least / read, ns.median / read};
}

}  // namespace

int main(int argc, char** argv) {
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
  const bool vnni = wide && __builtin_cpu_supports("avx512vnni");
  const double turns = static_cast<double>(kAtOnce) * kTurns;
  std::printf("fma_fp32 %.6f\n", least_ns(wide ? fma_avx512 : fma_avx2) / (turns * (wide ? 16 : 8)));
  std::printf("dot_int8 %.6f\n", least_ns(vnni ? dot_vnni : dot_avx2) / (turns * (vnni ? 64 : 32)));
  if (wide) std::printf("sigmoid %.6f\n", least_ns(sigmoid_avx512) / (turns * 16));
  for (int i = 1; i < argc; ++i) {
    const std::size_t bytes = std::strtoull(argv[i], nullptr, 10);
    Times ns = read_ns(bytes, false);
    if (wide) {
      const Times other = read_ns(bytes, true);
      ns = {std::min(ns.least, other.least), std::min(ns.median, other.median)};
    }
    std::printf("read %zu %.6f %.6f\n", bytes, ns.least, ns.median);
  }
}

#else

int main() {}

#endif
