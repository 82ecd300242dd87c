#include <utility>

#include "../errors.hpp"
#include "../fits.hpp"
#include "words.hpp"

using namespace nanobind::literals;

namespace hft {

namespace {

using Values = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

Out<std::int64_t, 2> feed_cancels(CancelPass& pass, const Words& words) {
  std::vector<CancelSeen> out;
  for (std::size_t i = 0; i < words.shape(0); ++i) pass.apply(event_at(words, i), out);
  return table_of(out);
}

void feed_tape(TapePass& pass, const Words& words) {
  for (std::size_t i = 0; i < words.shape(0); ++i) pass.apply(event_at(words, i));
}

nb::tuple take(TapePass& pass) {
  return nb::make_tuple(table_of(std::exchange(pass.grid, {})),
                        table_of(std::exchange(pass.sweeps, {})),
                        table_of(std::exchange(pass.mids, {})));
}

TapePass* tape_pass(Ns step_ns, std::size_t levels) {
  if (step_ns < 1 || levels < 1) throw ConfigError("TapePass: step_ns and levels must be above 0");
  return new TapePass(step_ns, levels);
}

Out<double, 1> decayed(const Times& at, const Times& ts, const Values& values,
                       double half_life_ns) {
  auto sums = decayed_sum({at.data(), at.size()}, {ts.data(), ts.size()},
                          {values.data(), values.size()}, half_life_ns);
  const std::size_t n = sums.size();
  return moved_to_numpy(std::move(sums), {n});
}

}  // namespace

void init_fits(nb::module_& m) {
  nb::class_<CancelPass>(m, "CancelPass", "Where cancelled lots stood in their queue.")
      .def(nb::init<Ticks, std::uint64_t>(), "near"_a, "seed"_a)
      .def("feed", &feed_cancels, "words"_a,
           "EVENT rows viewed as (n, 8) int64 -> (k, 11) int64, `hft.fitting.tape.CANCEL`.");
  nb::class_<TapePass>(m, "TapePass", "Price, depth and prints on the venue's clock.")
      .def(nb::new_(&tape_pass), "step_ns"_a, "levels"_a)
      .def("feed", &feed_tape, "words"_a, "EVENT rows viewed as (n, 8) int64.")
      .def("finish", &TapePass::finish, "End a sweep that is still open.")
      .def("take", &take,
           "What was found since the last call: grid (k, 7), sweeps (s, 6), mids (m, 2), int64.")
      .def_ro("unsided", &TapePass::unsided);
  m.def("decayed_sum", &decayed, "at"_a, "ts"_a, "values"_a, "half_life_ns"_a,
        "Sum of values_i * 2^(-(at - ts_i) / half_life) over ts_i <= at, (len(at),).");
}

}  // namespace hft
