#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace hft {

void init_mids(nb::module_& /*m*/) {}

}  // namespace hft
