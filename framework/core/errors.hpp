/// Exceptions of the core, for load time and misuse only; the hot path returns values.
/// The binding turns each into the Python class of the same name (framework/hft/errors.py).
#pragma once
#include <stdexcept>
#include <string>

#include "types.hpp"

namespace hft {

struct ConfigError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct DataError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct OrderError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct CoreError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Which model failed, and at what.
struct ModelFailure {
  std::uint32_t model = 0;
  InstrumentId instrument = 0;
  std::uint32_t swap = 0;  ///< that brought it; 0: it was there at the start
  bool in_reset = false;   ///< after a gap; else at a row
  bool operator==(const ModelFailure&) const = default;
};
/// What computes a model has failed, while a run goes on.
struct ModelError : std::runtime_error {
  ModelError(const std::string& why, ModelFailure of_in) : std::runtime_error(why), of(of_in) {}
  ModelFailure of;
};

}  // namespace hft
