/// Any x86-64 or other CPU, by GCC's vector extension, and the choice among the sets.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "errors.hpp"
#include "kernel_table.hpp"

namespace hft {
namespace {

struct V4 {
  using T = float __attribute__((vector_size(16)));
  using Bits = std::uint32_t __attribute__((vector_size(16)));
  static constexpr std::size_t width = 4;
  static constexpr std::size_t step_panels = 1, step_regs = 4, batch_regs = 2;
  static constexpr std::size_t past_panels = 1, past_panels8 = 1, cell_parts = 1, chains8 = 1;
  static T load(const float* p) { return *reinterpret_cast<const T*>(p); }
  static void store(float* p, T a) { *reinterpret_cast<T*>(p) = a; }
  static T set1(float a) { return T{a, a, a, a}; }
  static T fma(T a, T b, T c) { return a * b + c; }  // rounds twice, unlike the other sets
  static T add(T a, T b) { return a + b; }
  static T sub(T a, T b) { return a - b; }
  static T mul(T a, T b) { return a * b; }
  static T div(T a, T b) { return a / b; }
  static T min(T a, T b) { return a < b ? a : b; }
  static T max(T a, T b) { return a > b ? a : b; }
  static T exponent(T shifted) {
    return reinterpret_cast<T>((reinterpret_cast<Bits>(shifted) + 127) << 23);
  }
  static T doubled(T a, T shifted) {
    return reinterpret_cast<T>(reinterpret_cast<Bits>(a) + (reinterpret_cast<Bits>(shifted) << 23));
  }
};

struct Q4 : V4 {
  using Ints = std::int32_t __attribute__((vector_size(16)));
  using Quad = std::int16_t __attribute__((vector_size(16)));  // the four inputs, twice
  using Bytes = std::int8_t __attribute__((vector_size(16)));
  struct I {
    Ints left, right;  // two columns each, a column in two parts
  };
  static constexpr std::size_t batch_rows8 = 1;
  static T absolute(T a) { return a < 0.0f ? -a : a; }
  static float largest_of(T a) { return std::max(std::max(a[0], a[1]), std::max(a[2], a[3])); }
  static void store_bytes(std::int8_t* p, T a) {
    const T magic = set1(12582912.0f);  // 1.5 * 2^23: adding it rounds to a whole number
    const T whole = (a + magic) - magic;
    for (std::size_t i = 0; i < width; ++i) p[i] = static_cast<std::int8_t>(whole[i]);
  }
  static I start(const std::int32_t*) { return {Ints{}, Ints{}}; }
  static Quad quad(const std::int8_t* p) {
    std::int32_t four;
    __builtin_memcpy(&four, p, sizeof four);
    const auto x = reinterpret_cast<Bytes>(Ints{four, four, four, four});
    return reinterpret_cast<Quad>(
               __builtin_shufflevector(x, x, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7)) >>
           8;
  }
  static Bytes bytes(const std::int8_t* p) { return *reinterpret_cast<const Bytes*>(p); }
  /// Two products of 127 * 127 fit 16 bits, and so does their sum.
  static Ints two_columns(Quad x, Bytes each_twice) {
    const auto pairs = reinterpret_cast<Ints>((reinterpret_cast<Quad>(each_twice) >> 8) * x);
    return ((pairs << 16) >> 16) + (pairs >> 16);
  }
  static I dot(I sum, Quad x, Bytes w) {
    const Bytes a = __builtin_shufflevector(w, w, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    const Bytes b =
        __builtin_shufflevector(w, w, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15);
    return {sum.left + two_columns(x, a), sum.right + two_columns(x, b)};
  }
  static I zero() { return {Ints{}, Ints{}}; }
  static I plus(I a, I b) { return {a.left + b.left, a.right + b.right}; }
  static T to_float(I a) {
    return __builtin_convertvector(__builtin_shufflevector(a.left, a.right, 0, 2, 4, 6) +
                                       __builtin_shufflevector(a.left, a.right, 1, 3, 5, 7),
                                   T);
  }
};

bool has(Isa isa) noexcept {
#if defined(__x86_64__)
  switch (isa) {
    case Isa::AVX512:
      return __builtin_cpu_supports("avx512f") && has(Isa::AVX2);
    case Isa::AVX2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case Isa::PORTABLE:
      break;
  }
#endif
  return isa == Isa::PORTABLE;
}

}  // namespace

const Kernels kKernelsPortable = kKernelsOf<V4, Q4>;

bool has_vnni() noexcept {
#if defined(__x86_64__)
  return has(Isa::AVX512) && __builtin_cpu_supports("avx512vnni");
#else
  return false;
#endif
}

Isa best_isa() noexcept {
  return has(Isa::AVX512) ? Isa::AVX512 : has(Isa::AVX2) ? Isa::AVX2 : Isa::PORTABLE;
}

Isa default_isa() {
  const char* pinned = std::getenv("HFT_ISA");
  return pinned && *pinned ? isa_of(pinned) : best_isa();
}

std::string_view isa_name(Isa isa) noexcept {
  switch (isa) {
    case Isa::AVX512:
      return "avx512";
    case Isa::AVX2:
      return "avx2";
    case Isa::PORTABLE:
      break;
  }
  return "portable";
}

Isa isa_of(std::string_view name) {
  for (const Isa isa : {Isa::PORTABLE, Isa::AVX2, Isa::AVX512})
    if (isa_name(isa) == name) return isa;
  throw ConfigError("no instruction set '" + std::string(name) +
                    "'; there are avx512, avx2, portable");
}

const Kernels& kernels(Isa isa) {
  if (!has(isa))
    throw ConfigError("this CPU has no " + std::string(isa_name(isa)) + "; it has " +
                      std::string(isa_name(best_isa())));
#if defined(__x86_64__)
  if (isa == Isa::AVX512) return has_vnni() ? kKernelsVnni : kKernelsAvx512;
  if (isa == Isa::AVX2) return kKernelsAvx2;
#endif
  return kKernelsPortable;
}

}  // namespace hft
