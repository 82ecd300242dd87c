/// A Dense layer of any vector width; conditions as in lstm.hpp.
#pragma once
#include "lstm.hpp"

namespace hft {

/// Four partial sums (k mod 4) hide the latency of the additions; their order is fixed.
template <class V>
inline typename V::T dense_sum(const float* w, std::size_t inputs, const float* x,
                               typename V::T bias) noexcept {
  typename V::T sum[4] = {bias, V::set1(0.0f), V::set1(0.0f), V::set1(0.0f)};
  std::size_t k = 0;
  for (; k + 4 <= inputs; k += 4)
    for (std::size_t i = 0; i < 4; ++i)
      sum[i] = V::fma(V::load(w + (k + i) * kPanel), V::set1(x[k + i]), sum[i]);
  for (std::size_t i = 0; k + i < inputs; ++i)
    sum[i] = V::fma(V::load(w + (k + i) * kPanel), V::set1(x[k + i]), sum[i]);
  return V::add(V::add(sum[0], sum[1]), V::add(sum[2], sum[3]));
}

template <class V>
inline typename V::T activate(typename V::T x, Activation activation) noexcept {
  switch (activation) {
    case Activation::RELU:
      return V::max(x, V::set1(0.0f));
    case Activation::TANH:
      return vtanh<V>(x);
    case Activation::SIGMOID:
      return vsigmoid<V>(x);
    default:
      return x;
  }
}

template <class V>
inline void softmax(float* y, std::size_t units) noexcept {
  float largest = y[0];
  for (std::size_t i = 1; i < units; ++i) largest = y[i] > largest ? y[i] : largest;
  for (std::size_t i = 0; i < panels(units) * kPanel; i += V::width)
    V::store(y + i, vexp<V>(V::sub(V::load(y + i), V::set1(largest))));
  float total = 0.0f;
  for (std::size_t i = 0; i < units; ++i) total += y[i];
  for (std::size_t i = 0; i < units; ++i) y[i] /= total;
}

template <class V>
void dense(const DenseView& layer, const float* x, float* y) noexcept {
  for (std::size_t p = 0; p < panels(layer.units); ++p)
    for (std::size_t j = 0; j < kPanel; j += V::width) {
      const float* w = layer.kernel + p * layer.inputs * kPanel + j;
      const auto sum = dense_sum<V>(w, layer.inputs, x, V::load(layer.bias + p * kPanel + j));
      V::store(y + p * kPanel + j, activate<V>(sum, layer.activation));
    }
  if (layer.activation == Activation::SOFTMAX) softmax<V>(y, layer.units);
}

template <class V>
inline constexpr Kernels kKernelsOf = {gate_products<V>, lstm_gates<V>, dense<V>};

}  // namespace hft
