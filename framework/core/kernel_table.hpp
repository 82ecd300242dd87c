/// All kernels of one vector type: float by V, bytes by Q (V with whole numbers).
#pragma once
#include "gru.hpp"
#include "lstm.hpp"
#include "products.hpp"
#include "quantised.hpp"

namespace hft {

template <class V, class Q>
inline constexpr Kernels kKernelsOf = {products<V>,  quantise<Q>, products8<Q>,  lstm_gates<V>,
                                       gru_gates<V>, activate<V>, standardise<V>};

}  // namespace hft
