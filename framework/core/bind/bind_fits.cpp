#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace hft {

void init_fits(nb::module_& /*m*/) {}

}  // namespace hft
