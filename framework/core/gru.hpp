/// Gates of a GRU layer, for any vector width; conditions as in activation.hpp.
#pragma once
#include "activation.hpp"

namespace hft {

/// h = z * h + (1 - z) * candidate, candidate = tanh(zx + r * zh), gates in the order z, r,
/// candidate. The reset gate acts after the recurrent product and its bias (Keras: reset_after),
/// which is what lets that product be computed ahead.
template <class V>
void gru_gates(std::size_t panel_count, const float* zx, const float* zh, float* h) noexcept {
  for (std::size_t p = 0; p < panel_count; ++p)
    for (std::size_t j = 0; j < kPanel; j += V::width) {
      const std::size_t at = p * 3 * kPanel + j, unit = p * kPanel + j;
      const auto update = vsigmoid<V>(V::add(V::load(zx + at), V::load(zh + at)));
      const auto reset = vsigmoid<V>(V::add(V::load(zx + at + kPanel), V::load(zh + at + kPanel)));
      const auto candidate =
          vtanh<V>(V::fma(reset, V::load(zh + at + 2 * kPanel), V::load(zx + at + 2 * kPanel)));
      const auto change = V::sub(V::load(h + unit), candidate);
      V::store(h + unit, V::fma(update, change, candidate));
    }
}

}  // namespace hft
