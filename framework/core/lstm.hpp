/// An LSTM's gates, for any vector width; conditions as in activation.hpp.
#pragma once
#include "activation.hpp"

namespace hft {

/// c = sigmoid(f) * c + sigmoid(i) * tanh(g), h = sigmoid(o) * tanh(c), gates in the order i, f, g
/// (the candidate), o. Each line is one fraction, with i for exp(-i) and g for exp(-2 g):
///   c = (c (1 + i) (1 + g) + (1 - g) (1 + f)) / ((1 + f) (1 + i) (1 + g)),
///   h = (1 - c) / ((1 + o) (1 + c)),
/// as a division costs as much as the rest of a gate.
template <class V>
struct LstmCell {
  using T = typename V::T;
  static constexpr std::size_t gates = 4;

  /// The units at `memory`, whose c is `width` floats on: c in place, the new h into `y`.
  static void update(const T (&zx)[gates], const T (&zh)[gates], float* memory, std::size_t width,
                     float* y) noexcept {
    const auto one = V::set1(1.0f);
    const auto power = [&](std::size_t gate, float factor) {
      return gate_power<V>(V::add(zx[gate], zh[gate]), factor);
    };
    float* c = memory + width;
    const auto input = V::add(one, power(0, kSigmoidPower));
    const auto forget = V::add(one, power(1, kSigmoidPower));
    const auto g = power(2, kTanhPower);
    const auto output = V::add(one, power(3, kSigmoidPower));
    const auto both = V::mul(input, V::add(one, g));
    const auto fresh = V::mul(V::sub(one, g), forget);
    const auto cell = V::div(V::fma(V::load(c), both, fresh), V::mul(forget, both));
    const auto e = gate_power<V>(cell, kTanhPower);
    V::store(c, cell);
    V::store(y, V::div(V::sub(one, e), V::mul(output, V::add(one, e))));
  }
};

}  // namespace hft
