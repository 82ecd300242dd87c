// The target pragma comes after every header but our templates: an inline function of the standard
// library compiled for AVX2 here could be the copy that the linker keeps for everybody.
#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels.hpp"

#pragma GCC target("avx2,fma")
#include "vectors_avx2.hpp"
//
#include "kernel_table.hpp"

namespace hft {

const Kernels kKernelsAvx2 = kKernelsOf<V8, Q8>;

}  // namespace hft
