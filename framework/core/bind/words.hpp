/// EVENT rows as Python hands them over, (n, 8) int64, and arrays handed back without a copy.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstring>
#include <utility>
#include <vector>

#include "../event.hpp"

namespace hft {

namespace nb = nanobind;

using Times = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Words = nb::ndarray<const std::int64_t, nb::shape<-1, 8>, nb::c_contig, nb::device::cpu>;

template <class T, std::size_t N>
using Out = nb::ndarray<nb::numpy, T, nb::ndim<N>>;

inline Event event_at(const Words& words, std::size_t i) noexcept {
  Event e;
  std::memcpy(&e, words.data() + i * 8, sizeof e);
  return e;
}

template <class T, std::size_t N>
Out<T, N> moved_to_numpy(std::vector<T>&& values, const std::size_t (&shape)[N]) {
  auto* kept = new std::vector<T>(std::move(values));
  const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return Out<T, N>(kept->data(), N, shape, owner);
}

/// Structs as the 64-bit words that they are made of, a row each.
template <class Row>
Out<std::int64_t, 2> table_of(const std::vector<Row>& rows) {
  constexpr std::size_t kWords = sizeof(Row) / sizeof(std::int64_t);
  static_assert(sizeof(Row) % sizeof(std::int64_t) == 0);
  std::vector<std::int64_t> words(rows.size() * kWords);
  if (!rows.empty()) std::memcpy(words.data(), rows.data(), rows.size() * sizeof(Row));
  return moved_to_numpy(std::move(words), {rows.size(), kWords});
}

}  // namespace hft
