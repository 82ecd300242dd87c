// The target pragma comes after every header but our templates: an inline function of the standard
// library compiled for AVX2 here could be the copy that the linker keeps for everybody.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels.hpp"

#pragma GCC target("avx2,fma")
#include "dense.hpp"

namespace hft {
namespace {

struct V8 {
  using T = __m256;
  static constexpr std::size_t width = 8;
  static constexpr std::size_t step_panels = 1, step_regs = 8, batch_regs = 2;
  static T load(const float* p) { return _mm256_load_ps(p); }
  static void store(float* p, T a) { _mm256_store_ps(p, a); }
  static T set1(float a) { return _mm256_set1_ps(a); }
  static T fma(T a, T b, T c) { return _mm256_fmadd_ps(a, b, c); }
  static T add(T a, T b) { return _mm256_add_ps(a, b); }
  static T sub(T a, T b) { return _mm256_sub_ps(a, b); }
  static T mul(T a, T b) { return _mm256_mul_ps(a, b); }
  static T div(T a, T b) { return _mm256_div_ps(a, b); }
  static T min(T a, T b) { return _mm256_min_ps(a, b); }
  static T max(T a, T b) { return _mm256_max_ps(a, b); }
  static T exponent(T shifted) {
    const __m256i n = _mm256_add_epi32(_mm256_castps_si256(shifted), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(n, 23));
  }
};

}  // namespace

const Kernels kKernelsAvx2 = kKernelsOf<V8>;

}  // namespace hft
