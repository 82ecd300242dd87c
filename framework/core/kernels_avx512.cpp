// Sixteen floats at a time; bytes as AVX2 multiplies them, for a CPU without VNNI.
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

#pragma GCC target("avx512f,avx2,fma")
#include "vectors_avx2.hpp"
#include "vectors_avx512.hpp"
//
#include "kernel_table.hpp"

namespace hft {

const Kernels kKernelsAvx512 = kKernelsOf<V16, Q8>;

}  // namespace hft
