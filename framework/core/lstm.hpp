/// Gates of an LSTM layer, for any vector width; conditions as in activation.hpp.
#pragma once
#include "activation.hpp"

namespace hft {

/// c = f * c + i * tanh(candidate), h = o * tanh(c), gates in the order i, f, candidate, o.
template <class V>
void lstm_gates(std::size_t panel_count, const float* zx, const float* zh, float* c,
                float* h) noexcept {
  for (std::size_t p = 0; p < panel_count; ++p)
    for (std::size_t j = 0; j < kPanel; j += V::width) {
      const auto z = [&](std::size_t gate) {
        const std::size_t at = (p * 4 + gate) * kPanel + j;
        return V::add(V::load(zx + at), V::load(zh + at));
      };
      const std::size_t unit = p * kPanel + j;
      const auto kept = V::mul(vsigmoid<V>(z(1)), V::load(c + unit));
      const auto cell = V::fma(vsigmoid<V>(z(0)), vtanh<V>(z(2)), kept);
      V::store(c + unit, cell);
      V::store(h + unit, V::mul(vsigmoid<V>(z(3)), vtanh<V>(cell)));
    }
}

}  // namespace hft
