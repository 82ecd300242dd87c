/// What every kind of run is given before it starts, and what it leaves: bound once, for `Replay`,
/// `LiveSim` and `Verify` alike. Each has a `session`.
#pragma once
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "../thinned.hpp"
#include "session.hpp"

namespace hft {

void add_source(Session& s, InstrumentId inst, std::vector<FeatureSpec> specs, Trigger trigger,
                std::optional<std::shared_ptr<Network>> network, std::uint32_t model,
                std::int64_t warm_up_rows, bool publish_rows, bool reactive);
void set_model(Session& s, std::uint32_t model, const std::string& name, const std::string& tier,
               nb::dict outputs, nb::dict columns);
nb::dict results_of(Engine& engine, const std::vector<FillRow>& fills);
/// Adds what a model's rows waited for, and how long it worked.
void add_model_times(nb::dict out, const ThinnedNs& waits, const ThinnedNs& services);

template <class Run>
void bind_sources(nb::class_<Run>& c) {
  using namespace nanobind::literals;
  c.def(
       "add_source",
       [](Run& run, InstrumentId inst, std::vector<FeatureSpec> specs, Trigger trigger,
          std::optional<std::shared_ptr<Network>> network, std::uint32_t model,
          std::int64_t warm_up_rows, bool publish_rows, bool reactive) {
         add_source(*run.session, inst, std::move(specs), trigger, std::move(network), model,
                    warm_up_rows, publish_rows, reactive);
       },
       "instrument"_a, "specs"_a, "trigger"_a, "network"_a, "model"_a, "warm_up_rows"_a,
       "publish_rows"_a, "reactive"_a)
      .def(
          "set_model",
          [](Run& run, std::uint32_t model, const std::string& name, const std::string& tier,
             nb::dict outputs,
             nb::dict columns) { set_model(*run.session, model, name, tier, outputs, columns); },
          "model"_a, "name"_a, "tier"_a, "outputs"_a, "columns"_a)
      .def(
          "make_bars", [](Run& run, Ns interval) { run.session->engine->make_bars(interval); },
          "interval_ns"_a);
}

}  // namespace hft
