#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>

#include "../errors.hpp"
#include "../trailing.hpp"
#include "words.hpp"

using namespace nanobind::literals;

namespace hft {

namespace {

using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void want_columns(std::size_t have, std::size_t want) {
  if (have != want)
    throw ConfigError("rows of " + std::to_string(have) + " columns, want " + std::to_string(want));
}

void want_rows(std::size_t rows, std::size_t have, const char* what) {
  if (have != rows)
    throw ConfigError(std::to_string(rows) + " rows, " + std::to_string(have) + " " + what);
}

/// Estimates along a stream, all kept: what a data set is written from.
class TrailingStream {
 public:
  TrailingStream(Ns period_ns, Ns memory_ns, double drift, std::size_t columns)
      : scales_({period_ns, memory_ns, drift}, columns), columns_(columns) {}

  /// Continues where the last call ended. A row that is not finite leaves no trace.
  Out<std::int64_t, 1> feed(const Times& ts, const Matrix& rows) {
    const std::size_t n = ts.shape(0);
    want_columns(rows.shape(1), columns_);
    want_rows(rows.shape(0), n, "times");
    std::vector<std::int64_t> numbers(n);
    for (std::size_t i = 0; i < n; ++i) {
      const std::span row{rows.data() + i * columns_, columns_};
      if (is_finite(row)) {
        if (scales_.enter(ts.data()[i])) made_.push_back(*scales_.estimate());
        scales_.add(row.data());
      }
      numbers[i] = scales_.made() - 1;
    }
    return moved_to_numpy(std::move(numbers), {n});
  }

  const std::vector<TrailingScales::Estimate>& made() const noexcept { return made_; }
  template <class Of>
  Out<std::int64_t, 1> each(Of of) const {
    std::vector<std::int64_t> out;
    for (const auto& e : made_) out.push_back(of(e));
    return moved_to_numpy(std::move(out), {made_.size()});
  }
  Out<double, 2> all(std::vector<double> TrailingScales::Estimate::* values) const {
    std::vector<double> out;
    for (const auto& e : made_) out.insert(out.end(), (e.*values).begin(), (e.*values).end());
    return moved_to_numpy(std::move(out), {made_.size(), columns_});
  }

 private:
  TrailingScales scales_;
  std::size_t columns_;
  std::vector<TrailingScales::Estimate> made_;
};

/// Rows as a network in a run is given them.
Out<double, 2> in_own_terms(const Matrix& rows, const Times& number, const Matrix& mean,
                            const Matrix& scale, std::vector<double> own_mean,
                            std::vector<double> own_scale) {
  const std::size_t n = rows.shape(0), k = own_mean.size();
  want_rows(n, number.shape(0), "numbers of estimates");
  want_rows(mean.shape(0), scale.shape(0), "scales");
  want_columns(rows.shape(1), k);
  want_columns(mean.shape(1), k);
  want_columns(scale.shape(1), own_scale.size());
  want_columns(scale.shape(1), k);
  OwnTerms terms(std::move(own_mean), std::move(own_scale));
  std::vector<double> out(rows.data(), rows.data() + n * k);
  std::int64_t taken = -1;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t at = number.data()[i];
    if (at < 0) continue;
    if (at >= static_cast<std::int64_t>(mean.shape(0)))
      throw ConfigError("a row of estimate " + std::to_string(at) + ", there are " +
                        std::to_string(mean.shape(0)));
    const auto first = static_cast<std::size_t>(at) * k;
    if (at != taken) terms.take(mean.data() + first, scale.data() + first);
    taken = at;
    terms.put(rows.data() + i * k, out.data() + i * k);
  }
  return moved_to_numpy(std::move(out), {n, k});
}

Out<double, 1> varying_scales(const Vector& mean, const Vector& scale) {
  want_columns(scale.shape(0), mean.shape(0));
  std::vector<double> out(mean.shape(0));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = varying(mean.data()[i], scale.data()[i]);
  return moved_to_numpy(std::move(out), {mean.shape(0)});
}

}  // namespace

void init_trailing(nb::module_& m) {
  using Estimate = TrailingScales::Estimate;
  nb::class_<TrailingStream>(m, "TrailingStream", "Scales of one instrument's rows (trailing.hpp).")
      .def(nb::init<Ns, Ns, double, std::size_t>(), "period_ns"_a, "memory_ns"_a, "drift"_a,
           "columns"_a)
      .def("feed", &TrailingStream::feed, "ts"_a, "rows"_a,
           "Rows in order, (n,) and (n, k); the number of each one's estimate, -1: none yet.")
      .def_prop_ro(
          "start_ts",
          [](const TrailingStream& s) {
            return s.each([](const Estimate& e) { return e.start_ts; });
          },
          nb::rv_policy::move, "From when each estimate holds, (p,) [ns].")
      .def_prop_ro(
          "rows",
          [](const TrailingStream& s) { return s.each([](const Estimate& e) { return e.rows; }); },
          nb::rv_policy::move, "That each was made of, (p,).")
      .def_prop_ro(
          "drifted",
          [](const TrailingStream& s) {
            std::vector<bool> out;
            for (const Estimate& e : s.made()) out.push_back(e.drifted);
            return out;
          },
          "The block before looked unlike the estimate before, (p,).")
      .def_prop_ro(
          "mean", [](const TrailingStream& s) { return s.all(&Estimate::mean); },
          nb::rv_policy::move)
      .def_prop_ro(
          "scale", [](const TrailingStream& s) { return s.all(&Estimate::scale); },
          nb::rv_policy::move);
  nb::class_<Trails>(m, "Trails", "How a model's rows are scaled by what trails.")
      .def(
          "__init__",
          [](Trails* self, Ns period_ns, Ns memory_ns, double drift, std::vector<double> mean,
             std::vector<double> scale) {
            const TrailingRule rule{period_ns, memory_ns, drift};
            rule.validate();
            want_columns(scale.size(), mean.size());
            new (self) Trails{rule, {std::move(mean), std::move(scale), 0}};
          },
          nb::kw_only(), "period_ns"_a, "memory_ns"_a, "drift"_a, "mean"_a, "scale"_a,
          "`mean` and `scale`: of the network's own scaler.");
  m.def(
      "in_own_terms", &in_own_terms, "rows"_a, "number"_a, "mean"_a, "scale"_a, "own_mean"_a,
      "own_scale"_a,
      "Rows (n, k) of estimates (n,), -1: none yet, as a network with that scaler is given them.");
  m.def("varying_scales", &varying_scales, "mean"_a, "scale"_a,
        "The scale of each column, 1 where it does not vary.");
}

}  // namespace hft
