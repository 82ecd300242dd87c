/// A choice of a series' values, evenly spread over it: all of them while they are few, then every
/// second, fourth, eighth ... of those seen, so that memory stays small and no random number is
/// drawn.
#pragma once
#include <cstdint>
#include <vector>

#include "types.hpp"

namespace hft {

class ThinnedNs {
 public:
  static constexpr std::size_t kMost = 1 << 16;

  void add(Ns ns) {
    if (seen_++ % stride_ != 0) return;
    if (values_.size() == kMost) halve();
    if ((seen_ - 1) % stride_ == 0) values_.push_back(ns);
  }
  const std::vector<Ns>& values() const noexcept { return values_; }

 private:
  void halve() {
    for (std::size_t i = 0; 2 * i < values_.size(); ++i) values_[i] = values_[2 * i];
    values_.resize((values_.size() + 1) / 2);
    stride_ *= 2;
  }

  std::uint64_t seen_ = 0, stride_ = 1;
  std::vector<Ns> values_;
};

}  // namespace hft
