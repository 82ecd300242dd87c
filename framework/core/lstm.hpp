/// Gates of an LSTM layer, for any vector width; conditions as in activation.hpp.
#pragma once
#include "activation.hpp"

namespace hft {

/// c = sigmoid(f) * c + sigmoid(i) * tanh(g), h = sigmoid(o) * tanh(c), gates in the order i, f, g
/// (the candidate), o. Each line is one fraction, with i for exp(-i) and g for exp(-2 g):
///   c = (c (1 + i) (1 + g) + (1 - g) (1 + f)) / ((1 + f) (1 + i) (1 + g)),
///   h = (1 - c) / ((1 + o) (1 + c)),
/// as a division costs as much as the rest of a gate.
template <class V>
void lstm_gates(std::size_t panel_count, const float* zx, const float* zh, float* c,
                float* h) noexcept {
  const auto one = V::set1(1.0f);
  for (std::size_t p = 0; p < panel_count; ++p)
    for (std::size_t j = 0; j < kPanel; j += V::width) {
      const auto power = [&](std::size_t gate, float factor) {
        const std::size_t at = (p * 4 + gate) * kPanel + j;
        return gate_power<V>(V::add(V::load(zx + at), V::load(zh + at)), factor);
      };
      const std::size_t unit = p * kPanel + j;
      const auto input = V::add(one, power(0, kSigmoidPower));
      const auto forget = V::add(one, power(1, kSigmoidPower));
      const auto g = power(2, kTanhPower);
      const auto output = V::add(one, power(3, kSigmoidPower));
      const auto both = V::mul(input, V::add(one, g));
      const auto fresh = V::mul(V::sub(one, g), forget);
      const auto cell = V::div(V::fma(V::load(c + unit), both, fresh), V::mul(forget, both));
      const auto e = gate_power<V>(cell, kTanhPower);
      V::store(c + unit, cell);
      V::store(h + unit, V::div(V::sub(one, e), V::mul(output, V::add(one, e))));
    }
}

}  // namespace hft
