/// All kernels of one vector type: float by V, bytes by Q (V with whole numbers).
#pragma once
#include "products.hpp"
#include "quantised.hpp"
#include "recurrent.hpp"

namespace hft {

template <template <class> class Cell, class V, class Q>
inline constexpr CellKernels kCellOf = {cell<Cell, V>, cell8<Cell, Q>, gates<Cell, V>};

template <class V, class Q>
inline constexpr Kernels kKernelsOf = {
    products<V>, quantise<Q>,   products8<Q>, kCellOf<LstmCell, V, Q>, kCellOf<GruCell, V, Q>,
    activate<V>, standardise<V>};

}  // namespace hft
