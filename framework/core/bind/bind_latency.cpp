#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cmath>

#include "../errors.hpp"
#include "../latency.hpp"
#include "../rng.hpp"
#include "words.hpp"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace hft {

namespace {

template <class T>
using Column = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::string refused(const std::string& leg, const char* what, const std::string& why) {
  return leg + ": " + what + " " + why;
}

/// A cast of floats to whole numbers would turn NaN into a time.
void check_whole(const Column<double>& column, const std::string& leg, const char* what) {
  for (std::size_t i = 0; i < column.size(); ++i)
    if (const double x = column(i); !std::isfinite(x) || x != std::floor(x) || std::abs(x) > 9e15)
      throw ConfigError(refused(leg, what,
                                "of row " + std::to_string(i) + " is " +
                                    (std::isfinite(x) ? std::to_string(x) : "not a number") +
                                    "; want whole numbers"));
}

/// Whole numbers of a NumPy array, or of what NumPy makes one of.
template <class T>
std::vector<T> whole(nb::handle given, const std::string& leg, const char* what) {
  const nb::object numpy = nb::module_::import_("numpy");
  nb::object array = numpy.attr("ascontiguousarray")(given);
  const auto kind = nb::cast<std::string>(array.attr("dtype").attr("kind"));
  if (kind == "f") {
    array = array.attr("astype")("float64");
    check_whole(nb::cast<Column<double>>(array), leg, what);
  } else if (kind != "i" && kind != "u") {
    throw ConfigError(refused(leg, what,
                              "is an array of " +
                                  std::string(nb::str(nb::object(array.attr("dtype"))).c_str()) +
                                  "; want whole numbers"));
  }
  if (nb::cast<int>(array.attr("ndim")) != 1)
    throw ConfigError(refused(leg, what, "must be one column"));
  const auto column = nb::cast<Column<std::int64_t>>(array.attr("astype")("int64"));
  const auto* first = reinterpret_cast<const T*>(column.data());
  return {first, first + column.size()};
}

nb::ndarray<nb::numpy, Ns, nb::ndim<1>> at(const Latency& leg, nb::handle ts, nb::handle n,
                                           nb::handle order) {
  const auto times = whole<Ts>(ts, "Latency.at", "ts");
  std::vector<std::uint64_t> numbers(times.size());
  if (!n.is_none()) numbers = whole<std::uint64_t>(n, "Latency.at", "n");
  std::vector<OrderId> orders;
  if (!order.is_none()) orders = whole<OrderId>(order, "Latency.at", "order");
  if (numbers.size() != times.size() || (!order.is_none() && orders.size() != times.size()))
    throw ConfigError("Latency.at: ts, n and order must have the same length");
  auto* out = new Ns[std::max<std::size_t>(times.size(), 1)];
  nb::capsule owner(out, [](void* p) noexcept { delete[] static_cast<Ns*>(p); });
  for (std::size_t i = 0; i < times.size(); ++i)
    out[i] =
        order.is_none() ? leg.at(times[i], numbers[i]) : leg.of(orders[i], times[i], numbers[i]);
  return {out, {times.size()}, owner};
}

}  // namespace

void init_latency(nb::module_& m) {
  nb::class_<Latency>(m, "Latency",
                      "How long one leg takes, as a function of the time of sending and the number "
                      "of the message in that instant. `leg` names it in what is refused.")
      .def_static("constant", &Latency::constant, "ns"_a, "leg"_a = "latency")
      .def_static(
          "recorded",
          [](nb::handle ts, nb::handle ns, const std::string& leg) {
            return Latency::recorded(whole<Ts>(ts, leg, "the time"), whole<Ns>(ns, leg, "ns"), leg);
          },
          "ts"_a, "ns"_a, "leg"_a = "latency",
          "The row at or before holds, before the first row the first.")
      .def_static(
          "empirical",
          [](nb::handle ns, std::uint64_t seed, std::uint64_t stream, const std::string& leg) {
            return Latency::empirical(whole<Ns>(ns, leg, "ns"), seed, stream, leg);
          },
          "ns"_a, "seed"_a, "stream"_a, "leg"_a = "latency",
          "Sample draw_bits(seed, stream, ts, n) % len(ns).")
      .def_static(
          "walk",
          [](nb::handle ts, nb::handle ns, nb::handle block_ts, nb::handle block_at,
             const std::string& leg) {
            return Latency::walk(whole<Ts>(ts, leg, "the time"), whole<Ns>(ns, leg, "ns"),
                                 whole<Ts>(block_ts, leg, "block_ts"),
                                 whole<std::int64_t>(block_at, leg, "block_at"), leg);
          },
          "ts"_a, "ns"_a, "block_ts"_a, "block_at"_a, "leg"_a = "latency",
          "From block_ts[i] on the trace is read from its row block_at[i] on, circular; the row "
          "nearest in time, of two as near the earlier.")
      .def_static(
          "by_order",
          [](nb::handle ids, nb::handle ns, const Latency& otherwise, const std::string& leg) {
            return Latency::by_order(whole<OrderId>(ids, leg, "the order"),
                                     whole<Ns>(ns, leg, "ns"), otherwise, leg);
          },
          "ids"_a, "ns"_a, "otherwise"_a, "leg"_a = "latency",
          "Ascending order ids, and how long each one's messages took.")
      .def("at", &at, "ts"_a, "n"_a = nb::none(), "order"_a = nb::none(),
           "Delays [ns] of messages sent at `ts`, (m,); the n-th of that instant, by default 0; "
           "about `order`, by default none.")
      .def("scaled", &Latency::scaled, "factor"_a, "leg"_a = "latency",
           "Every delay times `factor`, to the nearest ns, halves to even.")
      .def_prop_ro("least", &Latency::least)
      .def_prop_ro("median", &Latency::median);
  m.def(
      "draw_bits",
      [](std::uint64_t seed, std::uint64_t stream, const Column<std::uint64_t>& entity,
         std::uint64_t n) {
        std::vector<std::uint64_t> bits(entity.size());
        for (std::size_t i = 0; i < bits.size(); ++i)
          bits[i] = draw_bits(seed, stream, entity(i), n);
        const std::size_t shape[] = {bits.size()};
        return moved_to_numpy(std::move(bits), shape);
      },
      "seed"_a, "stream"_a, "entity"_a, "n"_a = 0, "64 bits an entity, (m,).");
}

}  // namespace hft
