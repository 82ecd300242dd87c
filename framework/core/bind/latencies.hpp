/// A leg as Python hands it over.
#pragma once
#include <nanobind/nanobind.h>

#include "../latency.hpp"

namespace hft {

namespace nb = nanobind;

Latency latency_of(nb::handle spec);

}  // namespace hft
