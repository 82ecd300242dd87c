#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <limits>

#include "../errors.hpp"
#include "../ghosts.hpp"
#include "words.hpp"

using namespace nanobind::literals;

namespace hft {

namespace {

template <class Pass>
void feed(Pass& pass, const Words& words) {
  const nb::gil_scoped_release released;
  for (std::size_t i = 0; i < words.shape(0); ++i) pass.apply(event_at(words, i));
}

Ghosts make_ghosts(std::vector<std::int64_t> rows,
                   const std::vector<std::pair<int, double>>& models, int particles, Ns horizon_ns,
                   bool prints_removed, int keeps, std::uint64_t seed) {
  if (particles < 1) throw ConfigError("particles must be at least 1");
  if (horizon_ns < 1) throw ConfigError("the horizon must be at least 1 ns");
  GhostConfig config;
  for (const auto& [model, n] : models) {
    if (!(n > 0 && n <= std::numeric_limits<double>::max()))
      throw ConfigError("n of a queue model must be finite and above 0");
    config.models.push_back({static_cast<QueueModel>(model), n, true});
  }
  config.particles = particles;
  config.horizon_ns = horizon_ns;
  config.prints_removed = prints_removed;
  config.keeps = static_cast<Keeps>(keeps);
  config.seed = seed;
  return Ghosts(std::move(config), std::move(rows));
}

}  // namespace

void init_ghosts(nb::module_& m) {
  nb::class_<GhostScan>(m, "GhostScan", "A first pass over a feed of orders: who may be hidden.")
      .def(
          "__init__",
          [](GhostScan* scan, int levels, int keeps, std::uint64_t seed) {
            new (scan) GhostScan(levels, static_cast<Keeps>(keeps), seed);
          },
          "levels"_a, "keeps"_a, "seed"_a)
      .def("feed", &feed<GhostScan>, "words"_a, "EVENT rows viewed as (n, 8) int64.")
      .def_prop_ro("candidates", &GhostScan::candidates)
      .def_prop_ro("saw_orders", &GhostScan::saw_orders)
      .def(
          "choose",
          [](const GhostScan& scan, std::size_t most) {
            auto rows = scan.choose(most);
            const std::size_t n = rows.size();
            return moved_to_numpy(std::move(rows), {n});
          },
          "most"_a, "At most this many of their rows, by keyed draws, rising.");
  nb::class_<Ghosts>(m, "Ghosts", "Orders hidden one by one, and what queue models make of each.")
      .def(
          "__init__",
          [](Ghosts* ghosts, std::vector<std::int64_t> rows,
             const std::vector<std::pair<int, double>>& models, int particles, Ns horizon_ns,
             bool prints_removed, int keeps, std::uint64_t seed) {
            new (ghosts) Ghosts(make_ghosts(std::move(rows), models, particles, horizon_ns,
                                            prints_removed, keeps, seed));
          },
          "rows"_a, "models"_a, "particles"_a, "horizon_ns"_a, "prints_removed"_a, "keeps"_a,
          "seed"_a, "`models`: of each its number and n.")
      .def("feed", &feed<Ghosts>, "words"_a, "EVENT rows viewed as (n, 8) int64.")
      .def("finish", &Ghosts::finish)
      .def(
          "rows", [](const Ghosts& g) { return table_of(g.rows()); }, "GhostRow bytes, (n, 11).")
      .def(
          "forecasts", [](const Ghosts& g) { return table_of(g.forecasts()); },
          "GhostForecast bytes, (n * models, 4), ghost by ghost.");
}

}  // namespace hft
