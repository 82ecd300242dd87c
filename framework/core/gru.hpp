/// Gates of a GRU layer, for any vector width; conditions as in activation.hpp.
#pragma once
#include "activation.hpp"

namespace hft {

/// h = z * h + (1 - z) * g, g = tanh(xg + r * hg), gates in the order z, r, g. The reset gate acts
/// after the recurrent product and its bias (Keras: reset_after), which is what lets that product
/// be computed ahead. As in lstm.hpp h is one fraction, with z for exp(-z) and g for exp(-2 g):
///   h = (h (1 + g) + z (1 - g)) / ((1 + z) (1 + g)).
template <class V>
void gru_gates(std::size_t panel_count, const float* zx, const float* zh, float* h) noexcept {
  const auto one = V::set1(1.0f);
  for (std::size_t p = 0; p < panel_count; ++p)
    for (std::size_t j = 0; j < kPanel; j += V::width) {
      const std::size_t at = p * 3 * kPanel + j, unit = p * kPanel + j;
      const auto power = [&](std::size_t gate) {
        const std::size_t k = at + gate * kPanel;
        return gate_power<V>(V::add(V::load(zx + k), V::load(zh + k)), kSigmoidPower);
      };
      const auto z = power(0);
      const auto reset = V::div(one, V::add(one, power(1)));
      const auto g = gate_power<V>(
          V::fma(reset, V::load(zh + at + 2 * kPanel), V::load(zx + at + 2 * kPanel)), kTanhPower);
      const auto open = V::add(one, g);
      const auto fresh = V::mul(z, V::sub(one, g));
      V::store(h + unit,
               V::div(V::fma(V::load(h + unit), open, fresh), V::mul(V::add(one, z), open)));
    }
}

}  // namespace hft
