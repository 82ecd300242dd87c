/// Verification of what does not repeat by itself: another library failed once, at a row of some
/// model, and the journal says where. There the model fails again, and its library is not asked.
#pragma once
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine.hpp"

namespace hft {

/// Of a STOP: the model that ended the session; none: something else did.
std::optional<ModelFailure> model_failure_of(const Record& r) noexcept;

/// The failures of a journal, each told while the input at which it came is fed.
class Retelling {
 public:
  Retelling(const Record* records, std::size_t n);
  /// From here on the engine's models, and those that are to be swapped in, fail where they did.
  void listen(Engine& engine, std::vector<Swap>& swaps);
  /// Record `i` is fed next.
  void at(std::size_t i) noexcept { now_ = i; }
  bool tells(const ModelFailure& f) const noexcept {
    for (const auto& [input, failure] : failures_)
      if (input == now_ && failure == f) return true;
    return false;
  }

 private:
  std::vector<std::pair<std::size_t, ModelFailure>> failures_;  // number of the input
  std::size_t now_ = 0;
};

}  // namespace hft
