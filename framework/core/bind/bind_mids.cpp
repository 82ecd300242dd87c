#include <nanobind/stl/vector.h>

#include "../errors.hpp"
#include "../mids.hpp"
#include "words.hpp"

using namespace nanobind::literals;

namespace hft {

namespace {

/// One pass over an iterator of EVENT arrays, left as soon as everything is answered.
Out<std::int64_t, 2> touches_at(nb::iterable chunks, const Times& ts) {
  std::vector<Ts> times(ts.data(), ts.data() + ts.shape(0));
  for (std::size_t i = 1; i < times.size(); ++i)
    if (times[i] < times[i - 1])
      throw DataError("touches_at: times must ascend, " + std::to_string(times[i]) +
                      " came after " + std::to_string(times[i - 1]));
  TouchesAt touches(std::move(times));
  bool more = ts.shape(0) > 0;
  if (more)
    for (nb::handle chunk : chunks) {
      const auto words = nb::cast<Words>(chunk);
      const auto* rows = reinterpret_cast<const Event*>(words.data());
      for (std::size_t i = 0; more && i < words.shape(0); ++i) more = touches.on_row(rows[i]);
      if (!more || PyErr_CheckSignals() != 0) break;
    }
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  std::vector<std::int64_t> out;
  out.reserve(2 * ts.shape(0));
  for (const TouchesAt::Touch& t : touches.finish()) out.insert(out.end(), {t.bid, t.ask});
  return moved_to_numpy(std::move(out), {ts.shape(0), 2});
}

}  // namespace

void init_mids(nb::module_& m) {
  m.def("touches_at", &touches_at, "chunks"_a, "ts"_a,
        "The venue's (bid, ask) in ticks after all rows with ts_event <= each of the ascending "
        "times, (n, 2); the least int64 where a side is empty or the book unknown.\n\n"
        "chunks: EVENT rows of one instrument viewed as (n, 8) int64, in order.");
}

}  // namespace hft
