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
    row_at_ =
        nb::cast<nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>>(row_).data();
    out_at_ = nb::cast<nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>>(out_).data();
  }

  std::size_t inputs() const noexcept override { return inputs_; }
  std::size_t outputs() const noexcept override { return outputs_; }

  void step(const double* features, float* out) override {
    std::copy_n(features, inputs_, row_at_);
    PyObject* const arguments[] = {state_.ptr(), row_.ptr(), out_.ptr()};
    finish(PyObject_Vectorcall(step_.ptr(), arguments, 3, nullptr));
    std::copy_n(out_at_, outputs_, out);
  }
  void skip(const double* features) override {
    std::copy_n(features, inputs_, row_at_);
    PyObject* const arguments[] = {state_.ptr(), row_.ptr()};
    finish(PyObject_Vectorcall(skip_.ptr(), arguments, 2, nullptr));
  }
  void reset() override { finish(PyObject_CallOneArg(reset_.ptr(), state_.ptr()), true); }

 private:
  void finish(PyObject* result, bool in_reset = false) {
    if (result != nullptr) {
      Py_DECREF(result);
      return;
    }
    nb::python_error error;
    if (error.matches(PyExc_KeyboardInterrupt)) throw error;
    ModelFailure failed = as_;
    failed.in_reset = in_reset;
    throw ModelError("model '" + session_->models[as_.model].name + "' of " +
                         session_->engine->market(as_.instrument).inst.name() + ": " +
                         nb::str(error.type().attr("__name__")).c_str() + ": " +
                         in_utf8(error.value()).c_str(),
                     failed);
  }

  Session* session_;
  ModelFailure as_;
  std::size_t inputs_, outputs_;
  nb::object backend_, step_, skip_, reset_, state_, row_, out_;
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
