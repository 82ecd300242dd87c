#include "model_streams.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>

#include <algorithm>

namespace hft {

namespace {

/// What an error says need not be text that UTF-8 can hold: names of files may not be.
nb::str in_utf8(nb::handle value) {
  const nb::object bytes = nb::str(value).attr("encode")("utf-8", "backslashreplace");
  return nb::str(nb::object(bytes.attr("decode")()));
}

template <class T>
T* data_of(const nb::object& array) {
  return nb::cast<nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>>(array).data();
}

}  // namespace

/// What the streams of a backend share: the arrays of its `batch(states, rows, out)`, made once for
/// the most rows there can be, with a view and a list of each number that was met.
class ForeignBatch {
 public:
  ForeignBatch(nb::handle backend, std::size_t most, std::size_t inputs, std::size_t outputs)
      : backend_(backend.ptr()),
        batch_(backend.attr("batch")),
        most_(most),
        inputs_(inputs),
        outputs_(outputs),
        by_count_(most + 1) {}

  bool is_of(nb::handle backend) const noexcept { return backend_ == backend.ptr(); }
  std::size_t most() const noexcept { return most_; }

  /// What `state_of` gives of each row is its stream's. Null: it has raised.
  template <class StateOf>
  PyObject* call(std::size_t n, const double* features, const StateOf& state_of) {
    const Arrays& a = arrays(n);
    std::copy_n(features, n * inputs_, rows_at_);
    for (std::size_t i = 0; i < n; ++i)
      if (PyList_SetItem(a.states.ptr(), static_cast<Py_ssize_t>(i), Py_NewRef(state_of(i))) < 0)
        return nullptr;  // the backend has made the list shorter
    PyObject* const arguments[] = {a.states.ptr(), a.rows.ptr(), a.out.ptr()};
    return PyObject_Vectorcall(batch_.ptr(), arguments, 3, nullptr);
  }
  const float* said() const noexcept { return out_at_; }

 private:
  struct Arrays {
    nb::object states, rows, out;
  };

  const Arrays& arrays(std::size_t n) {
    if (!rows_.is_valid()) {
      const nb::object zeros = nb::module_::import_("numpy").attr("zeros");
      rows_ = zeros(most_ * inputs_, "float64");
      out_ = zeros(most_ * outputs_, "float32");
      rows_at_ = data_of<double>(rows_);
      out_at_ = data_of<float>(out_);
    }
    Arrays& a = by_count_[n];
    if (a.rows.is_valid()) return a;
    const auto first = [n](const nb::object& all, std::size_t width) -> nb::object {
      return all[nb::slice(static_cast<Py_ssize_t>(n * width))].attr("reshape")(n, width);
    };
    a.states = nb::steal(PyList_New(static_cast<Py_ssize_t>(n)));
    for (std::size_t i = 0; i < n; ++i)
      PyList_SetItem(a.states.ptr(), static_cast<Py_ssize_t>(i), Py_NewRef(Py_None));
    a.rows = first(rows_, inputs_);
    a.out = first(out_, outputs_);
    return a;
  }

  PyObject* backend_;  // its streams keep it alive, and this
  nb::object batch_;
  std::size_t most_, inputs_, outputs_;
  nb::object rows_, out_;
  double* rows_at_ = nullptr;
  float* out_at_ = nullptr;
  std::vector<Arrays> by_count_;
};

namespace {

std::shared_ptr<ForeignBatch> batch_of(Session& s, nb::handle backend, std::size_t inputs,
                                       std::size_t outputs) {
  std::erase_if(s.foreign_batches, [](const auto& each) { return each.expired(); });
  for (const auto& each : s.foreign_batches)
    if (const auto shared = each.lock(); shared && shared->is_of(backend)) return shared;
  const auto made =
      std::make_shared<ForeignBatch>(backend, s.engine->markets().size(), inputs, outputs);
  s.foreign_batches.push_back(made);
  return made;
}

/// A backend's `step(state, row, out)` over arrays made once. What it raises becomes a ModelError
/// that names model and instrument: it ends the run as a handler's failure does, or the bundle's
/// way into it. A library that gives up, `sys.exit` say, is one that failed.
class ForeignStream final : public ModelStream {
 public:
  ForeignStream(Session& s, nb::handle backend, ModelFailure as)
      : session_(&s),
        as_(as),
        inputs_(s.row_names[as.model].size()),
        outputs_(s.models[as.model].outputs.size()),
        backend_(nb::borrow(backend)),
        step_(backend.attr("step")),
        skip_(backend.attr("skip")),
        reset_(backend.attr("reset")),
        state_(backend.attr("state")()) {
    const nb::object zeros = nb::module_::import_("numpy").attr("zeros");
    row_ = zeros(inputs_, "float64");
    out_ = zeros(outputs_, "float32");
    row_at_ = data_of<double>(row_);
    out_at_ = data_of<float>(out_);
    if (nb::hasattr(backend, "batch")) shared_ = batch_of(s, backend, inputs_, outputs_);
  }

  std::size_t inputs() const noexcept override { return inputs_; }
  std::size_t outputs() const noexcept override { return outputs_; }

  void step(const double* features, float* out) override {
    std::copy_n(features, inputs_, row_at_);
    PyObject* const arguments[] = {state_.ptr(), row_.ptr(), out_.ptr()};
    finish(PyObject_Vectorcall(step_.ptr(), arguments, 3, nullptr));
    std::copy_n(out_at_, outputs_, out);
  }
  const void* company() const noexcept override {
    return shared_ ? static_cast<const void*>(shared_.get()) : this;
  }
  void step_together(ModelStream* const* streams, std::size_t n, const double* features,
                     float* out) override {
    if (n == 1) return step(features, out);
    for (std::size_t first = 0; first < n; first += shared_->most()) {
      const std::size_t count = std::min(shared_->most(), n - first);
      finish(shared_->call(count, features + first * inputs_,
                           [&](std::size_t i) {
                             return static_cast<ForeignStream*>(streams[first + i])->state_.ptr();
                           }),
             false, count - 1);
      std::copy_n(shared_->said(), count * outputs_, out + first * outputs_);
    }
  }
  void skip(const double* features) override {
    std::copy_n(features, inputs_, row_at_);
    PyObject* const arguments[] = {state_.ptr(), row_.ptr()};
    finish(PyObject_Vectorcall(skip_.ptr(), arguments, 2, nullptr));
  }
  void reset() override { finish(PyObject_CallOneArg(reset_.ptr(), state_.ptr()), true); }

 private:
  static std::string with(std::size_t others) {
    return others == 0 ? "" : " and " + std::to_string(others) + " more in a batch";
  }
  /// `others`: rows of the call that are of other instruments.
  void finish(PyObject* result, bool in_reset = false, std::size_t others = 0) {
    if (result != nullptr) {
      Py_DECREF(result);
      return;
    }
    nb::python_error error;
    if (error.matches(PyExc_KeyboardInterrupt)) throw error;
    ModelFailure failed = as_;
    failed.in_reset = in_reset;
    throw ModelError("model '" + session_->models[as_.model].name + "' of " +
                         session_->engine->market(as_.instrument).inst.name() + with(others) +
                         ": " + nb::str(error.type().attr("__name__")).c_str() + ": " +
                         in_utf8(error.value()).c_str(),
                     failed);
  }

  Session* session_;
  ModelFailure as_;
  std::size_t inputs_, outputs_;
  nb::object backend_, step_, skip_, reset_, state_, row_, out_;
  std::shared_ptr<ForeignBatch> shared_;  // null: the backend has no `batch`
  double* row_at_;
  float* out_at_;
};

}  // namespace

std::unique_ptr<ModelStream> stream_of(Session& s, nb::handle computes, std::size_t window_rows,
                                       ModelFailure as) {
  if (!nb::isinstance<Network>(computes)) return std::make_unique<ForeignStream>(s, computes, as);
  const auto network = nb::cast<std::shared_ptr<Network>>(computes);
  if (window_rows > 0) return std::make_unique<WindowedNetwork>(network, window_rows);
  return std::make_unique<RunningNetwork>(network);
}

Swap swap_of(Session& s, std::uint32_t number, std::uint32_t model, nb::handle computes,
             std::size_t window_rows, std::int64_t warm_up_rows, std::int64_t hash,
             std::optional<ReuseRule> reuse, std::optional<Trails> trails) {
  if (reuse) reuse->validate();  // where it takes over is too late
  Swap swap{number, model, hash, warm_up_rows, {}, std::move(reuse), std::move(trails)};
  for (const Market& m : s.engine->markets())
    swap.streams.push_back(stream_of(s, computes, window_rows, {model, m.inst.id, number, false}));
  return swap;
}

}  // namespace hft
