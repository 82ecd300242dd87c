#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace hft {

void init_latency(nb::module_& /*m*/) {}

}  // namespace hft
