#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "../tape_venue.hpp"
#include "session.hpp"

using namespace nanobind::literals;

namespace hft {

void init_venue(nb::module_& m) {
  nb::class_<VenueConfig>(m, "VenueConfig")
      .def(nb::init<>())
      .def_prop_rw(
          "queue_model", [](const VenueConfig& c) { return static_cast<int>(c.queue.model); },
          [](VenueConfig& c, int model) { c.queue.model = static_cast<QueueModel>(model); })
      .def_prop_rw(
          "queue_n", [](const VenueConfig& c) { return c.queue.n; },
          [](VenueConfig& c, double n) { c.queue.n = n; })
      .def_prop_rw(
          "matching", [](const VenueConfig& c) { return static_cast<int>(c.matching); },
          [](VenueConfig& c, int matching) { c.matching = static_cast<Matching>(matching); })
      .def_prop_rw(
          "replace_keeps", [](const VenueConfig& c) { return static_cast<int>(c.keeps); },
          [](VenueConfig& c, int keeps) { c.keeps = static_cast<Keeps>(keeps); })
      .def_rw("partial_fills", &VenueConfig::partial_fills)
      .def_rw("share_prints", &VenueConfig::share_prints)
      .def_rw("through_fills_all", &VenueConfig::through_fills_all)
      .def_rw("fill_on_cross", &VenueConfig::fill_on_cross)
      .def_rw("refill_half_life_ns", &VenueConfig::refill_half_life_ns)
      .def_prop_rw(
          "queue_draws", [](const VenueConfig& c) { return c.queue.draws; },
          [](VenueConfig& c, bool draws) { c.queue.draws = draws; })
      .def_rw("refill_probability", &VenueConfig::refill_probability)
      .def_rw("fade", &VenueConfig::fade)
      .def_rw("fade_compounds", &VenueConfig::fade_compounds)
      .def_rw("participation_window_ns", &VenueConfig::participation_window_ns)
      .def_rw("participation_flag", &VenueConfig::participation_flag)
      .def_rw("participation_cap", &VenueConfig::participation_cap)
      .def_rw("depth_is_touch", &VenueConfig::depth_is_touch)
      .def_rw("seed", &VenueConfig::seed)
      .def(
          "set_impact",
          [](VenueConfig& c, std::vector<double> weights, std::vector<Ns> half_lives_ns,
             double permanent) {
            c.impact = {std::move(weights), std::move(half_lives_ns), permanent};
            c.impact.validate();
          },
          "weights"_a, "half_lives_ns"_a, "permanent"_a, "Weights in ticks a lot.")
      .def(
          "set_slippage",
          [](VenueConfig& c, int model, double coefficient, Ns horizon_ns) {
            c.slippage = {static_cast<SlippageConfig::Model>(model), coefficient, horizon_ns};
            c.slippage.validate();
          },
          "model"_a, "coefficient"_a, "horizon_ns"_a)
      .def(
          "set_latency",
          [](VenueConfig& c, const Latency& entry, const Latency& response,
             std::optional<Latency> entry_cancel, std::optional<Latency> entry_replace,
             int ordering) {
            c.entry = entry;
            c.response = response;
            c.entry_cancel = std::move(entry_cancel);
            c.entry_replace = std::move(entry_replace);
            c.ordering = static_cast<Ordering>(ordering);
          },
          "entry"_a, "response"_a, "entry_cancel"_a = nb::none(), "entry_replace"_a = nb::none(),
          "ordering"_a = 0,
          "Ordering 0: fifo, 1: independent. A message's entry and its first answer are drawn from "
          "the same sample where both legs are laid out alike.");
}

}  // namespace hft
