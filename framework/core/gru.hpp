/// A GRU's gates, for any vector width; conditions as in activation.hpp.
#pragma once
#include "activation.hpp"

namespace hft {

/// h = z * h + (1 - z) * g, g = tanh(xg + r * hg), gates in the order z, r, g. The reset gate acts
/// after the recurrent product and its bias (Keras: reset_after), which is what lets that product
/// be computed ahead. As in lstm.hpp h is one fraction, with z for exp(-z) and g for exp(-2 g):
///   h = (h (1 + g) + z (1 - g)) / ((1 + z) (1 + g)).
template <class V>
struct GruCell {
  using T = typename V::T;
  static constexpr std::size_t gates = 3;

  /// The new h of the units at `memory` into `y`.
  static void update(const T (&zx)[gates], const T (&zh)[gates], float* memory,
                     std::size_t /*width*/, float* y) noexcept {
    const auto one = V::set1(1.0f);
    const auto z = gate_power<V>(V::add(zx[0], zh[0]), kSigmoidPower);
    const auto reset = V::div(one, V::add(one, gate_power<V>(V::add(zx[1], zh[1]), kSigmoidPower)));
    const auto g = gate_power<V>(V::fma(reset, zh[2], zx[2]), kTanhPower);
    const auto open = V::add(one, g);
    const auto fresh = V::mul(z, V::sub(one, g));
    V::store(y, V::div(V::fma(V::load(memory), open, fresh), V::mul(V::add(one, z), open)));
  }
};

}  // namespace hft
