/// Exceptions of the core, for load time and misuse only; the hot path returns values.
/// The binding turns each into the Python class of the same name (framework/hft/errors.py).
#pragma once
#include <stdexcept>
#include <string>

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

}  // namespace hft
