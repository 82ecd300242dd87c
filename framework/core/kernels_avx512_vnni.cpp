// Sixteen floats, or sixteen sums of four byte products, at a time.
//
// The target pragma comes after every header but our templates: an inline function of the standard
// library compiled for AVX-512 here could be the copy that the linker keeps for everybody.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC 105593: its own AVX-512 header
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels.hpp"

#pragma GCC target("avx512f,avx512vnni")
#include "vectors_avx512.hpp"
//
#include "kernel_table.hpp"

namespace hft {
namespace {

struct Q16 : V16 {
  using I = __m512i;
  using Quad = __m512i;
  static constexpr std::size_t batch_rows8 = 4;
  static T absolute(T a) { return _mm512_abs_ps(a); }
  static float largest_of(T a) { return _mm512_reduce_max_ps(a); }
  /// With 128 added: VNNI takes the row's bytes unsigned.
  static void store_bytes(std::int8_t* p, T a) {
    const I n = _mm512_add_epi32(_mm512_cvtps_epi32(a), _mm512_set1_epi32(128));
    _mm_store_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtusepi32_epi8(n));
  }
  static I start(const std::int32_t* offsets) { return _mm512_load_si512(offsets); }
  static Quad quad(const std::int8_t* p) {
    std::int32_t four;
    __builtin_memcpy(&four, p, sizeof four);
    return _mm512_set1_epi32(four);
  }
  static I bytes(const std::int8_t* p) { return _mm512_load_si512(p); }
  static I dot(I sum, Quad x, I w) { return _mm512_dpbusd_epi32(sum, x, w); }
  static I zero() { return _mm512_setzero_si512(); }
  static I plus(I a, I b) { return _mm512_add_epi32(a, b); }
  static T to_float(I a) { return _mm512_cvtepi32_ps(a); }
};

}  // namespace

const Kernels kKernelsVnni = kKernelsOf<V16, Q16>;

}  // namespace hft
