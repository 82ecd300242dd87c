/// `hft._core`: one `init_<subject>` a file; a subject whose classes are another's arguments comes
/// before it, or the stub would name C++ types.
#include <nanobind/nanobind.h>

#include <exception>
#include <stdexcept>

#include "../errors.hpp"
#include "shortcuts.hpp"

namespace nb = nanobind;

namespace hft {

void init_books(nb::module_& m);
void init_features(nb::module_& m);
void init_fits(nb::module_& m);
void init_ghosts(nb::module_& m);
void init_itch(nb::module_& m);
void init_latency(nb::module_& m);
void init_live(nb::module_& m);
void init_mids(nb::module_& m);
void init_network(nb::module_& m);
void init_replay(nb::module_& m);
void init_sim(nb::module_& m);
void init_strategy(nb::module_& m);
void init_trailing(nb::module_& m);
void init_venue(nb::module_& m);
void init_views(nb::module_& m);

namespace {

/// Imported at the throw: `hft` itself imports this module while it loads.
void raise(const char* python_class, const std::exception& e) {
  PyErr_SetString(nb::module_::import_("hft.errors").attr(python_class).ptr(), e.what());
}

void translate(const std::exception_ptr& thrown, void* /*payload*/) {
  try {
    std::rethrow_exception(thrown);
  } catch (const ConfigError& e) {
    raise("ConfigError", e);
  } catch (const DataError& e) {
    raise("DataError", e);
  } catch (const OrderError& e) {
    raise("OrderError", e);
  } catch (const CoreError& e) {
    raise("CoreError", e);
  } catch (const ModelError& e) {
    raise("ModelError", e);
  } catch (const std::invalid_argument& e) {  // what a constructor says of its configuration
    raise("ConfigError", e);
  }
}

}  // namespace

void raise_caught() noexcept {
  try {
    throw;
  } catch (nb::python_error& e) {
    e.restore();
  } catch (...) {
    try {
      translate(std::current_exception(), nullptr);
    } catch (const std::exception& e) {
      PyErr_SetString(PyExc_RuntimeError, e.what());
    }
  }
}

}  // namespace hft

NB_MODULE(_core, m) {
  m.doc() = "The C++ core of hft.";
  nb::register_exception_translator(hft::translate);
  hft::init_books(m);
  hft::init_features(m);
  hft::init_network(m);
  hft::init_trailing(m);
  hft::init_sim(m);
  hft::init_views(m);
  hft::init_strategy(m);
  hft::init_latency(m);
  hft::init_venue(m);
  hft::init_replay(m);
  hft::init_fits(m);
  hft::init_ghosts(m);
  hft::init_mids(m);
  hft::init_itch(m);
  hft::init_live(m);
}
