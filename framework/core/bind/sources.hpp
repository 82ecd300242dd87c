/// What every kind of run is given before it starts, and what it leaves: bound once, for `Replay`,
/// `LiveSim` and `Verify` alike. Each has a `session`.
#pragma once
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "../thinned.hpp"
#include "model_streams.hpp"
#include "session.hpp"
#include "words.hpp"

namespace hft {

void add_source(Session& s, InstrumentId inst, std::vector<FeatureSpec> specs, Trigger trigger,
                std::optional<nb::object> computes, std::size_t window_rows, std::uint32_t model,
                std::int64_t warm_up_rows, bool publish_rows, bool reactive, std::uint32_t version);
void set_model(Session& s, std::uint32_t model, const std::string& name, const std::string& tier,
               nb::dict outputs, nb::dict columns);
nb::dict results_of(Engine& engine, const std::vector<FillRow>& fills);
/// Adds what a model's rows waited for, and how long it worked.
void add_model_times(nb::dict out, const ThinnedNs& waits, const ThinnedNs& services);

/// A callback that holds the run it is a part of would keep it for ever.
template <class Call>
struct Forgetting {
  std::function<Call>& call;
  ~Forgetting() { call = nullptr; }
};

template <class Run>
void bind_sources(nb::class_<Run>& c) {
  using namespace nanobind::literals;
  c.def(
       "add_source",
       [](Run& run, InstrumentId inst, std::vector<FeatureSpec> specs, Trigger trigger,
          std::optional<nb::object> computes, std::uint32_t model, std::int64_t warm_up_rows,
          bool publish_rows, bool reactive, std::size_t window_rows, std::uint32_t version) {
         add_source(*run.session, inst, std::move(specs), trigger, std::move(computes), window_rows,
                    model, warm_up_rows, publish_rows, reactive, version);
       },
       "instrument"_a, "specs"_a, "trigger"_a, "computes"_a.none(), "model"_a, "warm_up_rows"_a,
       "publish_rows"_a, "reactive"_a, "window_rows"_a = std::size_t{0}, "version"_a = 0u,
       "`computes`: a Network (over `window_rows`), a backend, or None; after `set_model`.")
      .def(
          "set_model",
          [](Run& run, std::uint32_t model, const std::string& name, const std::string& tier,
             nb::dict outputs,
             nb::dict columns) { set_model(*run.session, model, name, tier, outputs, columns); },
          "model"_a, "name"_a, "tier"_a, "outputs"_a, "columns"_a)
      .def(
          "reuse",
          [](Run& run, std::uint32_t model, const ReuseRule& rule) {
            run.session->engine->reuse(model, rule);
          },
          "model"_a, "rule"_a, "The model's answers may be given again; after `add_source`.")
      .def(
          "trail",
          [](Run& run, std::uint32_t model, const Trails& trails) {
            run.session->engine->trail(model, trails);
          },
          "model"_a, "trails"_a, "The model's rows are scaled by what trails; after `add_source`.")
      .def(
          "make_bars", [](Run& run, Ns interval) { run.session->engine->make_bars(interval); },
          "interval_ns"_a)
      .def(
          "keep_rows", [](Run& run) { run.session->engine->keep_rows = true; },
          "From now on features rows are kept until `take_rows`.")
      .def(
          "take_rows",
          [](Run& run) {
            Engine& engine = *run.session->engine;
            const auto rows = std::exchange(engine.kept_rows, {});
            std::vector<std::int64_t> keys;
            keys.reserve(3 * rows.size());
            for (const auto& row : rows)
              keys.insert(keys.end(), {row.ts, row.instrument, static_cast<Ts>(row.model)});
            const std::size_t values = engine.kept_values.size();
            return std::make_pair(moved_to_numpy(std::move(keys), {rows.size(), std::size_t{3}}),
                                  moved_to_numpy(std::exchange(engine.kept_values, {}), {values}));
          },
          "Rows since the last call: (n, 3) ts, instrument, model; and their values, flat.");
}

}  // namespace hft
