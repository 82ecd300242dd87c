#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "../sim_market.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace hft {

namespace {

using Bytes = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// A market and what it has said that Python has not fetched yet.
struct BoundMarket {
  explicit BoundMarket(const SimMarketConfig& config) : market(config) {}

  SimMarket market;
  SimMarket::Rows rows;
  SimMarket::Reports reports;
};

/// Moves as many whole records as fit from the front of `from` into `buffer`.
template <class Record>
std::size_t move_out(std::vector<Record>& from, std::uint8_t* buffer, std::size_t bytes) {
  const std::size_t n = std::min(bytes / sizeof(Record), from.size());
  if (n > 0) std::memcpy(buffer, from.data(), n * sizeof(Record));
  from.erase(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(n));
  return n;
}

std::size_t fill(BoundMarket& self, Bytes buffer, Ts until_ts) {
  std::uint8_t* data = buffer.data();
  const std::size_t bytes = buffer.size();
  const nb::gil_scoped_release unlocked;
  self.market.step_until(until_ts, self.rows, self.reports, bytes / sizeof(Event));
  return move_out(self.rows, data, bytes);
}

std::size_t fill_reports(BoundMarket& self, Bytes buffer) {
  return move_out(self.reports, buffer.data(), buffer.size());
}

void bind_config(nb::module_& m) {
  nb::class_<SimInstrument>(m, "SimInstrument", "One simulated instrument; defaults are a perp's.")
      .def(nb::init<>())
      .def_rw("id", &SimInstrument::id)
      .def_rw("price0_ticks", &SimInstrument::price0_ticks)
      .def_rw("messages_per_s", &SimInstrument::messages_per_s)
      .def_rw("alpha_half_life_s", &SimInstrument::alpha_half_life_s)
      .def_rw("alpha_strength", &SimInstrument::alpha_strength)
      .def_rw("common_share", &SimInstrument::common_share)
      .def_rw("take_share", &SimInstrument::take_share)
      .def_rw("depth_orders", &SimInstrument::depth_orders)
      .def_rw("min_lots", &SimInstrument::min_lots)
      .def_rw("feed_latency_ns", &SimInstrument::feed_latency_ns);
  nb::class_<SimMarketConfig>(m, "SimMarketConfig", "Seed, start and instruments of a market.")
      .def(nb::init<>())
      .def_rw("seed", &SimMarketConfig::seed)
      .def_rw("start_ts", &SimMarketConfig::start_ts)
      .def_rw("instruments", &SimMarketConfig::instruments)
      .def_rw("funding", &SimMarketConfig::funding)
      .def_prop_rw(
          "order_by_order", [](const SimMarketConfig& c) { return c.feed == SimFeed::L3; },
          [](SimMarketConfig& c, bool on) { c.feed = on ? SimFeed::L3 : SimFeed::L2; },
          "Rows are ADD, MODIFY, CANCEL and EXECUTE instead of LEVEL and TRADE.")
      .def_prop_rw(
          "calm_s", [](const SimMarketConfig& c) { return c.regimes.calm_s; },
          [](SimMarketConfig& c, double s) { c.regimes.calm_s = s; }, "Mean length of a calm.")
      .def_prop_rw(
          "storm_s", [](const SimMarketConfig& c) { return c.regimes.storm_s; },
          [](SimMarketConfig& c, double s) { c.regimes.storm_s = s; }, "Mean length of a storm.");
}

}  // namespace

void init_sim(nb::module_& m) {
  bind_config(m);
  nb::class_<BoundMarket>(m, "SimMarket", "A seeded market, order by order.")
      .def(nb::init<const SimMarketConfig&>(), "config"_a)
      .def_prop_ro(
          "next_ts", [](const BoundMarket& s) { return s.market.next_ts(); },
          "Time of the crowd's next action.")
      .def("fill", &fill, "buffer"_a, "until_ts"_a,
           "Write the next rows up to and including `until_ts` into a writable buffer of EVENT "
           "bytes; returns how many. Fewer than fit: there are no more.")
      .def("fill_reports", &fill_reports, "buffer"_a,
           "Write answers not yet fetched into a buffer of SIM_REPORT bytes; returns how many.")
      .def(
          "submit",
          [](BoundMarket& s, InstrumentId instrument, OrderId our_id, std::int8_t side, Ticks price,
             Lots lots, std::uint8_t tif, Ts now) {
            s.market.submit(instrument, our_id, static_cast<Side>(side), price, lots,
                            static_cast<Tif>(tif), now, s.rows, s.reports);
          },
          "instrument"_a, "our_id"_a, "side"_a, "price"_a, "lots"_a, "tif"_a, "now"_a,
          "An order of ours arrives; rows and answers wait for `fill` and `fill_reports`.")
      .def(
          "cancel",
          [](BoundMarket& s, InstrumentId instrument, OrderId our_id, Ts now) {
            s.market.cancel(instrument, our_id, now, s.rows, s.reports);
          },
          "instrument"_a, "our_id"_a, "now"_a)
      .def(
          "replace",
          [](BoundMarket& s, InstrumentId instrument, OrderId our_id, Ticks price, Lots lots,
             Ts now) { s.market.replace(instrument, our_id, price, lots, now, s.rows, s.reports); },
          "instrument"_a, "our_id"_a, "price"_a, "lots"_a, "now"_a,
          "`lots` is the new total, filled lots included.")
      .def(
          "ahead", [](const BoundMarket& s, OrderId our_id) { return s.market.ahead(our_id); },
          "our_id"_a, "Others' lots ahead of our order in its true queue; NaN: it does not rest.")
      .def(
          "alpha", [](const BoundMarket& s, InstrumentId i) { return s.market.latents(i).alpha(); },
          "instrument"_a, "The latent alpha, in standard deviations: truth that no feed shows.")
      .def(
          "storm", [](const BoundMarket& s, InstrumentId i) { return s.market.latents(i).storm(); },
          "instrument"_a, "True while a storm lasts.");
}

}  // namespace hft
