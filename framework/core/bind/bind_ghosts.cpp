#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace hft {

void init_ghosts(nb::module_& /*m*/) {}

}  // namespace hft
