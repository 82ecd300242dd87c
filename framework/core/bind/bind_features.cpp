#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <utility>

#include "../features.hpp"
#include "session.hpp"
#include "words.hpp"

using namespace nanobind::literals;

namespace hft {

namespace {

/// What Python's update function sees: alive during the call only.
struct BoundOwnRow {
  const OwnRow* row = nullptr;

  const OwnRow& live() const {
    if (row == nullptr)
      raise_error("OrderError", "a feature's row is used after its update returned");
    return *row;
  }
};

/// An own feature in Python: `update(state, row) -> (state, value)`, one state an instrument.
class PythonFeature final : public OwnFeature {
 public:
  PythonFeature(nb::object update, nb::object initial, std::string name)
      : update_(std::move(update)), initial_(std::move(initial)), name_(std::move(name)) {}

  double update(const OwnRow& row) override {
    const nb::gil_scoped_acquire locked;
    if (!state_) state_ = nb::module_::import_("copy").attr("deepcopy")(initial_);
    if (!view_) view_ = nb::cast(BoundOwnRow{});
    auto& view = nb::cast<BoundOwnRow&>(view_);
    view.row = &row;
    const Lease lease{view};
    const nb::object result = update_(state_, view_);
    if (!nb::isinstance<nb::tuple>(result) || nb::len(result) != 2)
      refuse("must return (state, value)", result);
    state_ = result[0];
    const double value = PyFloat_AsDouble(nb::object(result[1]).ptr());
    if (value == -1.0 && PyErr_Occurred()) throw nb::python_error();
    if (!std::isfinite(value)) refuse("must return a finite value", result);
    return value;
  }

  void reset() override {
    const nb::gil_scoped_acquire locked;
    state_.reset();
  }

 private:
  struct Lease {
    BoundOwnRow& view;
    ~Lease() { view.row = nullptr; }
  };

  [[noreturn]] void refuse(const std::string& why, const nb::object& result) const {
    raise_error("StrategyError", "feature '" + name_ + "' " + why + ", returned " +
                                     nb::cast<std::string>(nb::repr(result)));
  }

  nb::object update_, initial_, state_, view_;
  std::string name_;
};

FeatureSpec make_spec(const std::string& kind, const std::string& name, int levels, Ns window_ns,
                      int side, bool log, const nb::object& update, const nb::object& state) {
  FeatureSpec spec{
      feature_kind_of(kind), levels, window_ns, static_cast<Side>(side), log, name, {}};
  if (!update.is_none())
    spec.make_own = [update, state, name] {
      return std::make_unique<PythonFeature>(update, state, name);
    };
  return spec;
}

Trigger make_trigger(const std::string& kind, bool sizes, Ns interval_ns) {
  if (kind == "packet") return {Trigger::Kind::PACKET, sizes, interval_ns};
  if (kind == "touch") return {Trigger::Kind::TOUCH, sizes, interval_ns};
  if (kind == "trade") return {Trigger::Kind::TRADE, sizes, interval_ns};
  if (kind == "clock") return {Trigger::Kind::CLOCK, sizes, interval_ns};
  throw ConfigError("no trigger '" + kind + "'; there are packet, touch, trade, clock");
}

/// A book and its features without an engine: what training and research read.
class FeatureStream {
 public:
  FeatureStream(std::vector<FeatureSpec> specs, Trigger trigger)
      : features_(std::move(specs), trigger) {}

  /// Rows of one instrument as eight words each, in order; continues where the last call ended.
  std::pair<Out<Ts, 1>, Out<double, 2>> feed(const Words& words) {
    for (std::size_t i = 0; i < words.shape(0); ++i) {
      const Event e = event_at(words, i);
      if (e.flags & SEEN_BY_US) take(e);
    }
    const std::size_t n = ts_.size();
    return {moved_to_numpy(std::exchange(ts_, {}), {n}),
            moved_to_numpy(std::exchange(rows_, {}), {n, features_.size()})};
  }

  Ns warm_up_ns() const noexcept { return features_.warm_up_ns(); }

 private:
  void take(const Event& e) {
    while (features_.next_clock() < e.ts_recv)
      if (features_.on_clock(book_, features_.next_clock())) keep();
    book_.apply(e);
    features_.on_row(e, book_);
    if ((e.flags & LAST) && features_.end_packet(book_, e.ts_recv)) keep();
  }
  void keep() {
    ts_.push_back(features_.row_ts());
    rows_.insert(rows_.end(), features_.row().begin(), features_.row().end());
  }

  Book book_;
  FeatureSet features_;
  std::vector<Ts> ts_;
  std::vector<double> rows_;
};

void bind_own_row(nb::module_& m) {
  nb::class_<BoundOwnRow>(m, "OwnRow", "What an own feature may read, during its call.")
      .def_prop_ro("ts", [](const BoundOwnRow& r) { return r.live().ts; })
      .def_prop_ro(
          "signed_lots", [](const BoundOwnRow& r) { return r.live().signed_lots; },
          "Buyers' lots less sellers', over the feature's window.")
      .def_prop_ro("traded_lots", [](const BoundOwnRow& r) { return r.live().traded_lots; })
      .def_prop_ro("bid", [](const BoundOwnRow& r) { return r.live().bid(); })
      .def_prop_ro("ask", [](const BoundOwnRow& r) { return r.live().ask(); })
      .def_prop_ro("mid", [](const BoundOwnRow& r) { return r.live().mid(); })
      .def_prop_ro("micro_price", [](const BoundOwnRow& r) { return r.live().micro_price(); })
      .def_prop_ro("spread", [](const BoundOwnRow& r) { return r.live().spread(); })
      .def(
          "depth_lots",
          [](const BoundOwnRow& r, int levels) { return r.live().depth_lots(levels); }, "levels"_a,
          "Lots of both sides over the first `levels`.");
}

}  // namespace

void init_features(nb::module_& m) {
  bind_own_row(m);
  nb::class_<FeatureSpec>(m, "FeatureSpec", "One feature as the core computes it.")
      .def_ro("name", &FeatureSpec::name)
      .def_prop_ro("kind",
                   [](const FeatureSpec& s) { return std::string(feature_kind_name(s.kind)); })
      .def_ro("levels", &FeatureSpec::levels)
      .def_ro("window_ns", &FeatureSpec::window_ns);
  m.def("feature_spec", &make_spec, "kind"_a, "name"_a, "levels"_a = 1, "window_ns"_a = 0,
        "side"_a = 0, "log"_a = false, "update"_a = nb::none(), "state"_a = nb::none());
  nb::class_<Trigger>(m, "Trigger", "When a features row is made.")
      .def_ro("sizes", &Trigger::sizes)
      .def_ro("interval_ns", &Trigger::interval_ns);
  m.def("trigger", &make_trigger, "kind"_a, "sizes"_a = false, "interval_ns"_a = 0);
  nb::class_<FeatureStream>(m, "FeatureStream",
                            "Features of one instrument's rows, chunk by chunk.")
      .def(nb::init<std::vector<FeatureSpec>, Trigger>(), "specs"_a, "trigger"_a)
      .def("feed", &FeatureStream::feed, "words"_a,
           "EVENT rows viewed as (n, 8) int64 -> (ts (k,) int64, rows (k, features) float64).")
      .def_prop_ro("warm_up_ns", &FeatureStream::warm_up_ns);
}

}  // namespace hft
