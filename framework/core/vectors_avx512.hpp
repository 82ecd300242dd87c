/// Sixteen floats. Include after the target pragma.
#pragma once

namespace hft {
namespace {

struct V16 {
  using T = __m512;
  static constexpr std::size_t width = 16;
  static constexpr std::size_t step_panels = 4, step_regs = 4, batch_regs = 4;
  static constexpr std::size_t past_panels = 2, past_panels8 = 4, cell_parts = 1, chains8 = 2;
  static T load(const float* p) { return _mm512_load_ps(p); }
  static void store(float* p, T a) { _mm512_store_ps(p, a); }
  static T set1(float a) { return _mm512_set1_ps(a); }
  static T fma(T a, T b, T c) { return _mm512_fmadd_ps(a, b, c); }
  static T add(T a, T b) { return _mm512_add_ps(a, b); }
  static T sub(T a, T b) { return _mm512_sub_ps(a, b); }
  static T mul(T a, T b) { return _mm512_mul_ps(a, b); }
  static T div(T a, T b) { return _mm512_div_ps(a, b); }
  static T min(T a, T b) { return _mm512_min_ps(a, b); }
  static T max(T a, T b) { return _mm512_max_ps(a, b); }
  static T exponent(T shifted) {
    const __m512i n = _mm512_add_epi32(_mm512_castps_si512(shifted), _mm512_set1_epi32(127));
    return _mm512_castsi512_ps(_mm512_slli_epi32(n, 23));
  }
  static T doubled(T a, T shifted) {
    const __m512i n = _mm512_slli_epi32(_mm512_castps_si512(shifted), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a), n));
  }
};

}  // namespace
}  // namespace hft
