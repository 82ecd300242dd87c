#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <cstring>

#include "../replay_driver.hpp"
#include "sources.hpp"

using namespace nanobind::literals;

namespace hft {

/// Copies rows of a core struct into a NumPy array of bytes; Python views it with the matching
/// dtype.
nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>> bytes_of(const void* rows, std::size_t size) {
  auto* copy = new std::uint8_t[size == 0 ? 1 : size];
  if (size > 0) std::memcpy(copy, rows, size);
  nb::capsule owner(copy, [](void* p) noexcept { delete[] static_cast<std::uint8_t*>(p); });
  return {copy, {size}, owner};
}

namespace {

using Words = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

/// A run on recorded or synthetic data.
class Replay {
 public:
  Replay(std::vector<Instrument> instruments, const EngineConfig& config,
         std::vector<VenueConfig> venues, ReplayConfig replay)
      : session(std::make_shared<Session>(std::move(instruments), config)),
        driver(std::make_unique<ReplayDriver>(*session->engine, std::move(replay),
                                              std::move(venues))) {}

  /// `chunks`: an iterator of EVENT arrays viewed as int64 (n, 8).
  void add_stream(InstrumentId inst, nb::object chunks, bool one_book_of_orders) {
    auto held = std::make_shared<std::deque<Words>>();  // not the arrays: a cast may have copied
    auto next = [chunks, held](Chunk& chunk) {
      for (;;) {
        PyObject* item = PyIter_Next(chunks.ptr());
        if (item == nullptr) {
          if (PyErr_Occurred()) throw nb::python_error();
          return false;
        }
        const nb::object array = nb::steal(item);
        const auto words = nb::cast<Words>(array);
        if (words.shape(1) != 8)
          throw DataError("a chunk must be EVENT rows viewed as int64 with shape (n, 8)");
        if (words.shape(0) == 0) continue;
        held->push_back(words);
        chunk.rows = reinterpret_cast<const Event*>(words.data());
        chunk.size = words.shape(0);
        return true;
      }
    };
    driver->add_stream(inst, Stream(next, [held] { held->pop_front(); }), one_book_of_orders);
  }

  void run(nb::object strategy, nb::object poll) {
    const Attached attached(*session, strategy);
    driver->on_start = [this] { session->start(); };
    driver->on_stop = [this] { session->stop(); };
    driver->poll = [poll](std::int64_t rows, Ts now) {
      if (PyErr_CheckSignals() != 0) {
        if (!PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) throw nb::python_error();
        PyErr_Clear();
        return false;
      }
      return poll.is_none() || nb::cast<bool>(poll(rows, now));
    };
    const Forgetting forgetting{driver->poll};
    driver->run();
  }

  std::shared_ptr<Session> session;
  std::unique_ptr<ReplayDriver> driver;
};

}  // namespace

void add_source(Session& s, InstrumentId inst, std::vector<FeatureSpec> specs, Trigger trigger,
                std::optional<nb::object> computes, std::size_t window_rows, std::uint32_t model,
                std::int64_t warm_up_rows, bool publish_rows, bool reactive,
                std::uint32_t version) {
  Source source;
  source.features = std::make_unique<FeatureSet>(std::move(specs), trigger);
  if (computes) {
    source.network = stream_of(s, *computes, window_rows, {model, inst, version, false});
    if (source.network->inputs() != source.features->size())
      raise_error("ModelError", "the model wants " + std::to_string(source.network->inputs()) +
                                    " features, its source has " +
                                    std::to_string(source.features->size()));
  }
  source.model = model;
  source.version = version;
  source.warm_up_rows = warm_up_rows;
  source.publish_rows = publish_rows;
  source.reactive = reactive;
  s.engine->add_source(inst, std::move(source));
}

void set_model(Session& s, std::uint32_t model, const std::string& name, const std::string& tier,
               nb::dict outputs, nb::dict columns) {
  if (s.models.size() <= model) {
    s.models.resize(model + 1);
    s.row_names.resize(model + 1);
  }
  s.models[model] = {name, tier, outputs};
  s.row_names[model] = columns;
}

nb::dict results_of(Engine& engine, const std::vector<FillRow>& fills) {
  nb::dict out;
  std::vector<OrderRow> rows;
  rows.reserve(engine.orders().size());
  for (OrderId id = 1; id <= engine.orders().size(); ++id) {
    const Order& order = engine.orders()[id];
    rows.push_back(order.row);
    if (order.alive() && order.row.reason == Reason::NONE) rows.back().reason = Reason::END_OF_RUN;
  }
  out["orders"] = bytes_of(rows.data(), rows.size() * sizeof(OrderRow));
  out["fills"] = bytes_of(fills.data(), fills.size() * sizeof(FillRow));
  out["samples"] = bytes_of(engine.samples.data(), engine.samples.size() * sizeof(SampleRow));
  out["feed_latency_ns"] =
      bytes_of(engine.feed_latency.data(), engine.feed_latency.size() * sizeof(Ns));
  std::vector<Record> journal(engine.journal.size());
  engine.journal.copy_to(journal.data());
  out["journal"] = bytes_of(journal.data(), journal.size() * sizeof(Record));
  std::vector<ReuseSecond> reuse;
  for (const Market& market : engine.markets())
    for (const Source& source : market.sources)
      if (source.reuse)
        reuse.insert(reuse.end(), source.reuse->seconds().begin(), source.reuse->seconds().end());
  out["reuse"] = bytes_of(reuse.data(), reuse.size() * sizeof(ReuseSecond));
  out["tags"] = nb::cast(engine.tags());
  nb::dict counters;
  const auto& c = engine.counters;
  counters["packets"] = c.packets;
  counters["features_rows"] = c.rows_features;
  counters["inferences"] = c.inferences;
  counters["signals"] = c.signals;
  counters["handler_calls"] = c.handlers;
  counters["gaps"] = c.gaps;
  counters["refused_by_risk"] = c.refused;
  counters["late_answers"] = c.late_answers;
  OrderBook::Faults faults;
  bool by_orders = false;
  for (const Market& market : engine.markets()) {
    const OrderBook::Faults* of_feed = market.book.faults();
    if (of_feed == nullptr) continue;
    by_orders = true;
    faults.unknown_id += of_feed->unknown_id;
    faults.reused_id += of_feed->reused_id;
    faults.overfill += of_feed->overfill;
  }
  if (by_orders) {
    counters["l3_unknown_ids"] = faults.unknown_id;
    counters["l3_reused_ids"] = faults.reused_id;
    counters["l3_overfills"] = faults.overfill;
  }
  out["counters"] = counters;
  nb::list taken_over;
  for (const Engine::TakeOver& t : engine.take_overs)
    taken_over.append(nb::make_tuple(t.number, t.instrument, t.ts));
  out["taken_over"] = taken_over;
  nb::dict dropped;
  for (const Engine::Dropped& d : engine.dropped)
    dropped[nb::int_(d.number)] = nb::make_tuple(d.ts, d.why);
  out["dropped"] = dropped;
  return out;
}

void add_model_times(nb::dict out, const ThinnedNs& waits, const ThinnedNs& services) {
  const auto bytes = [](const std::vector<Ns>& ns) {
    return bytes_of(ns.data(), ns.size() * sizeof(Ns));
  };
  out["model_wait_ns"] = bytes(waits.values());
  out["model_service_ns"] = bytes(services.values());
}

void init_replay(nb::module_& m) {
  nb::class_<RiskLimits>(m, "RiskLimits")
      .def(nb::init<>())
      .def_rw("max_order_lots", &RiskLimits::max_order_lots)
      .def_rw("max_position_lots", &RiskLimits::max_position_lots)
      .def_rw("max_open_orders", &RiskLimits::max_open_orders)
      .def_rw("collar_bps", &RiskLimits::collar_bps)
      .def_rw("max_messages", &RiskLimits::max_messages)
      .def_rw("window_ns", &RiskLimits::window_ns);
  nb::class_<ServerConfig>(m, "ServerConfig", "The inference server of a replay.")
      .def(nb::init<>())
      .def_prop_rw(
          "mode", [](const ServerConfig& c) { return static_cast<int>(c.mode); },
          [](ServerConfig& c, int mode) { c.mode = static_cast<ServerConfig::Mode>(mode); },
          "0: conflate, 1: queue, 2: skip, 3: deadline.")
      .def_rw("bound", &ServerConfig::bound)
      .def_rw("deadline_ns", &ServerConfig::deadline_ns)
      .def_rw("max_batch", &ServerConfig::max_batch)
      .def_rw("hold_ns", &ServerConfig::hold_ns)
      .def_rw("per_item_ns", &ServerConfig::per_item_ns)
      .def_rw("per_row_ns", &ServerConfig::per_row_ns)
      .def_rw("service", &ServerConfig::service);
  nb::class_<ReuseRule>(m, "ReuseRule", "When a model's answer is given again (docs/reuse.md).")
      .def(
          "__init__",
          [](ReuseRule* self, std::vector<double> mean, std::vector<double> scale, double clip,
             std::size_t window_rows, std::size_t classes, bool has_forecast, double sensitivity,
             double epsilon, std::int64_t max_reuse, Ns max_age_ns, double shadow, double budget,
             Ns pause_ns) {
            new (self) ReuseRule{{std::move(mean), std::move(scale), clip},
                                 window_rows,
                                 classes,
                                 has_forecast,
                                 sensitivity,
                                 epsilon,
                                 max_reuse,
                                 max_age_ns,
                                 shadow,
                                 budget,
                                 pause_ns};
          },
          nb::kw_only(), "mean"_a, "scale"_a, "clip"_a, "window_rows"_a, "classes"_a,
          "has_forecast"_a, "sensitivity"_a, "epsilon"_a, "max_reuse"_a, "max_age_ns"_a, "shadow"_a,
          "budget"_a, "pause_ns"_a);
  nb::class_<EngineConfig>(m, "EngineConfig")
      .def(nb::init<>())
      .def_rw("risk", &EngineConfig::risk)
      .def_prop_rw(
          "moves", [](const EngineConfig& c) { return static_cast<int>(c.moves); },
          [](EngineConfig& c, int moves) { c.moves = static_cast<Moves>(moves); })
      .def_rw("seed", &EngineConfig::seed)
      .def_rw("placebo", &EngineConfig::placebo)
      .def_rw("sees_own", &EngineConfig::sees_own);
  m.def(
      "make_instrument",
      [](InstrumentId id, std::uint32_t venue_id, const std::string& symbol,
         const std::string& venue, double tick, double lot, double multiplier, bool inverse,
         std::int64_t maker_e9, std::int64_t taker_e9, bool can_replace) {
        Instrument i;
        i.id = id;
        i.venue_id = venue_id;
        i.symbol = symbol;
        i.venue = venue;
        i.tick = tick;
        i.lot = lot;
        i.multiplier = multiplier;
        i.inverse = inverse;
        i.maker_e9 = maker_e9;
        i.taker_e9 = taker_e9;
        i.can_replace = can_replace;
        i.validate();
        return i;
      },
      "id"_a, "venue_id"_a, "symbol"_a, "venue"_a, "tick"_a, "lot"_a, "multiplier"_a, "inverse"_a,
      "maker_e9"_a, "taker_e9"_a, "can_replace"_a);

  nb::class_<Replay> replay(m, "Replay", "A run of one strategy over recorded or synthetic rows.");
  replay
      .def(
          "__init__",
          [](Replay* self, std::vector<Instrument> instruments, const EngineConfig& engine,
             std::vector<VenueConfig> venues, const Latency& compute, const Latency& risk,
             const ServerConfig& server, Ns sample_ns, Ts until) {
            ReplayConfig replay;
            replay.compute = compute;
            replay.risk = risk;
            replay.server = server;
            replay.sample_ns = sample_ns;
            replay.until = until;
            new (self) Replay(std::move(instruments), engine, std::move(venues), std::move(replay));
          },
          "instruments"_a, "engine"_a, "venues"_a, "compute"_a, "risk"_a, "server"_a, "sample_ns"_a,
          "until"_a)
      .def("add_stream", &Replay::add_stream, "instrument"_a, "chunks"_a,
           "one_book_of_orders"_a = false)
      .def(
          "set_impact",
          [](Replay& r, InstrumentId i, std::vector<double> weights, std::vector<Ns> half_lives_ns,
             double permanent) {
            r.driver->set_impact(i, {std::move(weights), std::move(half_lives_ns), permanent});
          },
          "instrument"_a, "weights"_a, "half_lives_ns"_a, "permanent"_a,
          "One instrument's overlay instead of its venue's; weights in ticks a lot.")
      .def(
          "wind_down", [](Replay& r, InstrumentId i, Ts ts) { r.driver->wind_down(i, ts); },
          "instrument"_a, "ts"_a,
          "From `ts` on the instrument's orders are cancelled and refused, its position sold.")
      .def(
          "swap_at",
          [](Replay& r, Ts ts, std::uint32_t number, std::uint32_t model, nb::object computes,
             std::size_t window_rows, std::int64_t warm_up_rows, std::int64_t hash,
             std::optional<ReuseRule> reuse, std::optional<Trails> trails) {
            r.driver->swap_at(ts, swap_of(*r.session, number, model, computes, window_rows,
                                          warm_up_rows, hash, reuse, trails));
          },
          "ts"_a, "number"_a, "model"_a, "computes"_a, "window_rows"_a, "warm_up_rows"_a, "hash"_a,
          "reuse"_a = nb::none(), "trails"_a = nb::none(),
          "At `ts` another bundle begins to run beside the old one; in order of time.")
      .def(
          "profile", [](Replay& r) { r.session->engine->profile = true; },
          "Times each stage; costs a few clock reads an input.")
      .def_prop_ro(
          "handler_failed", [](const Replay& r) { return r.session->handler_failed; },
          "What ended the run was raised in a handler.")
      .def("run", &Replay::run, "strategy"_a, "poll"_a = nb::none())
      .def("results",
           [](Replay& r) {
             Engine& e = *r.session->engine;
             nb::dict out = results_of(e, r.driver->fills());
             out["rows"] = r.driver->rows();
             nb::list rows_by_instrument, traded_lots, overlay_ticks;
             Listing::Counters frictions;
             for (const Market& market : e.markets()) {
               const Listing& listing = r.driver->listing(market.inst.id);
               rows_by_instrument.append(r.driver->rows(market.inst.id));
               traded_lots.append(listing.lately.traded());
               overlay_ticks.append(listing.overlay.at(r.driver->end_ts()));
               frictions.add(listing.counters);
             }
             out["rows_by_instrument"] = rows_by_instrument;
             out["traded_lots"] = traded_lots;
             out["overlay_ticks"] = overlay_ticks;
             out["ts_start"] = r.driver->start_ts();
             out["ts_end"] = r.driver->end_ts();
             out["interrupted"] = r.driver->interrupted();
             nb::dict counters = nb::cast<nb::dict>(out["counters"]);
             const InferenceServer& server = r.driver->server();
             counters["signals_conflated"] = server.counters().conflated;
             counters["signals_skipped"] = server.counters().skipped;
             counters["signals_expired"] = server.counters().expired;
             counters["signals_overflowed"] = server.counters().overflowed;
             counters["services"] = server.counters().services;
             add_model_times(out, server.waits(), server.services());
             counters["taker_unfilled_lots"] = frictions.taker_unfilled;
             counters["faded_lots"] = frictions.faded;
             counters["capped_lots"] = frictions.capped;
             counters["fills_extrapolated"] = frictions.extrapolated;
             if (e.profile) {
               nb::dict stages;
               const Ns known = r.driver->venue_ns + r.driver->book_ns + e.stages.features +
                                e.stages.inference + e.stages.strategy;
               stages["venue"] = static_cast<double>(r.driver->venue_ns) * 1e-9;
               stages["book"] = static_cast<double>(r.driver->book_ns) * 1e-9;
               stages["features"] = static_cast<double>(e.stages.features) * 1e-9;
               stages["inference"] = static_cast<double>(e.stages.inference) * 1e-9;
               stages["strategy"] = static_cast<double>(e.stages.strategy) * 1e-9;
               stages["driver"] = static_cast<double>(r.driver->total_ns - known) * 1e-9;
               out["stages_s"] = stages;
             }
             return out;
           })
      .def(
          "venue_position",
          [](const Replay& r, InstrumentId i) { return r.driver->venue_account(i).position; },
          "instrument"_a);
  bind_sources(replay);
}

}  // namespace hft
