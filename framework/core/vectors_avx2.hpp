/// Eight floats, or eight sums of four byte products. Include after the target pragma.
#pragma once

namespace hft {
namespace {

struct V8 {
  using T = __m256;
  static constexpr std::size_t width = 8;
  static constexpr std::size_t step_panels = 1, step_regs = 8, batch_regs = 2;
  static constexpr std::size_t past_panels = 1, past_panels8 = 1, cell_parts = 2, chains8 = 1;
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
  static T doubled(T a, T shifted) {
    const __m256i n = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), n));
  }
};

struct Q8 : V8 {
  using I = __m256i;
  struct Quad {
    I x, size;
  };
  static constexpr std::size_t batch_rows8 = 2;
  static T absolute(T a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
  static float largest_of(T a) {
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
  }
  static void store_bytes(std::int8_t* p, T a) {
    const I n = _mm256_cvtps_epi32(a);
    const __m128i words =
        _mm_packs_epi32(_mm256_castsi256_si128(n), _mm256_extracti128_si256(n, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(words, words));
  }
  static I start(const std::int32_t*) { return _mm256_setzero_si256(); }
  static Quad quad(const std::int8_t* p) {
    std::int32_t four;
    __builtin_memcpy(&four, p, sizeof four);
    const I x = _mm256_set1_epi32(four);
    return {x, _mm256_abs_epi8(x)};
  }
  static I bytes(const std::int8_t* p) {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(p));
  }
  static I dot(I sum, Quad q, I w) {
    const I pairs = _mm256_maddubs_epi16(q.size, _mm256_sign_epi8(w, q.x));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
  static I zero() { return _mm256_setzero_si256(); }
  static I plus(I a, I b) { return _mm256_add_epi32(a, b); }
  static T to_float(I a) { return _mm256_cvtepi32_ps(a); }
};

}  // namespace
}  // namespace hft
