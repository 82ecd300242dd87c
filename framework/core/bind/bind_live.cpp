#include <nanobind/ndarray.h>

#include <set>

#include "../live_driver.hpp"
#include "sources.hpp"

using namespace nanobind::literals;

namespace hft {

namespace {

using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

SessionCalls calls_of(Session& s) {
  return {[&s] { s.start(); }, [&s] { s.stop(); }, [&s] { s.wants = 0; }};
}

/// A session against the simulated venue.
struct LiveSim {
  std::shared_ptr<Session> session;
  std::unique_ptr<LiveDriver> driver;

  void run(nb::object strategy, Ns duration_ns, nb::object watch) {
    const Attached attached(*session, strategy);
    driver->calls = calls_of(*session);
    driver->poll = [watch] {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (!watch.is_none()) watch();
    };
    const Forgetting forgetting{driver->poll};
    driver->run(duration_ns);
  }

  /// Another Python thread prepares something: it gets the interpreter whenever we are idle.
  void lend(bool on) {  // NOLINT
    if (!on) {
      driver->lend = nullptr;
      return;
    }
    driver->lend = [](Ns at_most) {
      const nb::gil_scoped_release lent;
      if (at_most > 0) nap(at_most);
    };
  }
};

/// A live journal, fed back.
struct Verify {
  std::shared_ptr<Session> session;
  std::unique_ptr<VerifyDriver> driver;

  void run(nb::object strategy, Bytes records, Bytes rows) {
    const Attached attached(*session, strategy);
    driver->calls = calls_of(*session);
    driver->run(reinterpret_cast<const Record*>(records.data()), records.size() / sizeof(Record),
                reinterpret_cast<const Event*>(rows.data()), rows.size() / sizeof(Event));
  }
};

}  // namespace

void init_live(nb::module_& m) {
  nb::class_<LiveSim> live(m, "LiveSim",
                           "A strategy on the wall clock against the simulated venue.");
  live.def(
          "__init__",
          [](LiveSim* self, std::vector<Instrument> instruments, const EngineConfig& engine,
             const SimMarketConfig& market, Ns entry_ns, Ns response_ns, Ns feed_ns, Ns sample_ns,
             const std::string& journal, const std::string& rows, Ns nap_ns, std::size_t feed_rows,
             std::int64_t max_batch, Ns hold_ns) {
            auto session = std::make_shared<Session>(std::move(instruments), engine);
            if (max_batch > 1) session->engine->batch(max_batch);
            SimVenueConfig venue{market, entry_ns, response_ns, feed_ns, feed_rows};
            LiveConfig config{journal, rows, sample_ns, nap_ns, hold_ns};
            auto driver =
                std::make_unique<LiveDriver>(*session->engine, std::move(config), std::move(venue));
            new (self) LiveSim{std::move(session), std::move(driver)};
          },
          "instruments"_a, "engine"_a, "market"_a, "entry_ns"_a, "response_ns"_a, "feed_ns"_a,
          "sample_ns"_a, "journal"_a, "rows"_a, "nap_ns"_a = Ns{0},
          "feed_rows"_a = std::size_t{1} << 16, "max_batch"_a = std::int64_t{1},
          "hold_ns"_a = Ns{0},
          "`max_batch` above 1: rows of models wait for company, for `hold_ns` at most.")
      .def("run", &LiveSim::run, "strategy"_a, "duration_ns"_a, "watch"_a = nb::none(),
           "`watch` is called each millisecond when there is time.")
      .def("lend", &LiveSim::lend, "on"_a,
           "While on, another Python thread gets the interpreter whenever the session is idle.")
      .def(
          "swap",
          [](LiveSim& l, std::uint32_t number, std::uint32_t model, nb::object computes,
             std::size_t window_rows, std::int64_t warm_up_rows, std::int64_t hash,
             std::optional<ReuseRule> reuse, std::optional<Trails> trails) {
            return l.driver->swap(swap_of(*l.session, number, model, computes, window_rows,
                                          warm_up_rows, hash, reuse, trails));
          },
          "number"_a, "model"_a, "computes"_a, "window_rows"_a, "warm_up_rows"_a, "hash"_a,
          "reuse"_a = nb::none(), "trails"_a = nb::none(),
          "From `watch`: another bundle begins to run beside the old one; False: it is too late.")
      .def(
          "taken_over",
          [](const LiveSim& l, std::uint32_t number) {
            nb::dict out;
            for (const Engine::TakeOver& t : l.session->engine->take_overs)
              if (t.number == number) out[nb::int_(t.instrument)] = t.ts;
            return out;
          },
          "number"_a, "Instruments at which that swap has taken over, and when.")
      .def(
          "dropped",
          [](const LiveSim& l, std::uint32_t number) -> std::optional<std::pair<Ts, std::string>> {
            for (const Engine::Dropped& d : l.session->engine->dropped)
              if (d.number == number) return std::pair{d.ts, d.why};
            return {};
          },
          "number"_a,
          "When that swap's bundle failed before it had taken over everywhere, and why.")
      .def(
          "in_use",
          [](const LiveSim& l, std::uint32_t model) {
            std::set<std::uint32_t> numbers;
            for (const Market& m : l.session->engine->markets())
              for (const Source& s : m.sources) {
                if (s.model != model) continue;
                numbers.insert(s.version);
                if (s.incoming) numbers.insert(s.incoming->number);
              }
            return std::vector(numbers.begin(), numbers.end());
          },
          "model"_a, "Swaps whose bundles compute it, or wait to; 0: the bundle of the start.")
      .def(
          "ask_to_stop", [](LiveSim& l) { l.driver->ask_to_stop(); },
          "Once: winds down. Again: does not wait for the answers that are due.")
      .def(
          "venue_position",
          [](const LiveSim& l, InstrumentId i) { return l.driver->venue().position(i); },
          "instrument"_a, "Sum of our fills by the venue's books, after the run.")
      .def("results", [](LiveSim& l) {
        nb::dict out = results_of(*l.session->engine, l.driver->fills());
        out["rows"] = l.driver->rows();
        out["ts_start"] = l.driver->start_ts();
        out["ts_end"] = l.driver->end_ts();
        out["interrupted"] = l.driver->interrupted();
        nb::dict counters = nb::cast<nb::dict>(out["counters"]);
        counters["orders_unanswered"] = l.driver->unanswered();
        const Engine& engine = *l.session->engine;
        if (engine.waiting() != nullptr) counters["services"] = engine.counters.batches;
        add_model_times(out, l.driver->waits(), l.driver->services());
        return out;
      });
  bind_sources(live);

  nb::class_<Verify> verify(m, "Verify", "Feeds a live journal's inputs back into the engine.");
  verify
      .def(
          "__init__",
          [](Verify* self, std::vector<Instrument> instruments, const EngineConfig& engine) {
            auto session = std::make_shared<Session>(std::move(instruments), engine);
            auto driver = std::make_unique<VerifyDriver>(*session->engine);
            new (self) Verify{std::move(session), std::move(driver)};
          },
          "instruments"_a, "engine"_a)
      .def("run", &Verify::run, "strategy"_a, "records"_a, "rows"_a)
      .def(
          "add_swap",
          [](Verify& v, std::uint32_t number, std::uint32_t model, nb::object computes,
             std::size_t window_rows, std::int64_t warm_up_rows, std::int64_t hash,
             std::optional<ReuseRule> reuse, std::optional<Trails> trails) {
            v.driver->swaps.push_back(swap_of(*v.session, number, model, computes, window_rows,
                                              warm_up_rows, hash, reuse, trails));
          },
          "number"_a, "model"_a, "computes"_a, "window_rows"_a, "warm_up_rows"_a, "hash"_a,
          "reuse"_a = nb::none(), "trails"_a = nb::none(),
          "The bundle of a swap that the journal tells of.")
      .def_prop_ro(
          "at", [](const Verify& v) { return v.driver->at(); },
          "The record being fed when it ended.")
      .def("results", [](Verify& v) { return results_of(*v.session->engine, {}); });
  bind_sources(verify);
}

}  // namespace hft
