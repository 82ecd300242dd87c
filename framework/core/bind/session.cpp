#include "session.hpp"

#include "shortcuts.hpp"

namespace hft {

void raise_error(const char* name, const std::string& why) {
  PyErr_SetString(nb::module_::import_("hft.errors").attr(name).ptr(), why.c_str());
  throw nb::python_error();
}

Session::Session(std::vector<Instrument> instruments_in, const EngineConfig& config)
    : engine(std::make_unique<Engine>(std::move(instruments_in), config, *this)),
      books_(engine->markets().size()),
      positions_(engine->markets().size()) {
  for (const Market& m : engine->markets()) instruments.push_back(nb::cast(m.inst));
  use_shortcuts();
}

void Session::attach(nb::object strategy) {
  strategy_ = strategy;
  nb::cast<StrategyBase&>(strategy).session = shared_from_this();
  const nb::object base = nb::module_::import_("hft.strategy").attr("Strategy");
  const nb::handle type = strategy.type();
  struct {
    const char* name;
    nb::object* slot;
    std::uint32_t wants;
  } const handlers[] = {{"on_start", &on_start_, 0},
                        {"on_stop", &on_stop_, 0},
                        {"on_ready", &on_ready_, WANTS_READY},
                        {"on_book", &on_book_, WANTS_BOOK},
                        {"on_trade", &on_trade_, WANTS_TRADE},
                        {"on_bar", &on_bar_, WANTS_BAR},
                        {"on_features", &on_features_, WANTS_FEATURES},
                        {"on_signal", &on_signal_, WANTS_SIGNAL},
                        {"on_data", &on_data_, WANTS_DATA},
                        {"on_order", &on_order_, WANTS_ORDER},
                        {"on_fill", &on_fill_, WANTS_FILL},
                        {"on_gap", &on_gap_, WANTS_GAP},
                        {"on_timer", &on_timer_, 0}};
  wants = 0;
  for (const auto& h : handlers) {
    if (type.attr(h.name).is(base.attr(h.name))) continue;
    *h.slot = strategy.attr(h.name);
    wants |= h.wants;
  }
}

void Session::detach() {
  // A handler that threw left its view alive.
  if (row_view_.is_valid()) nb::cast<RowView&>(row_view_).alive = false;
  if (signal_view_.is_valid()) nb::cast<SignalView&>(signal_view_).alive = false;
  for (nb::object* o : {&strategy_, &on_start_, &on_stop_, &on_ready_, &on_book_, &on_trade_,
                        &on_bar_, &on_features_, &on_signal_, &on_data_, &on_order_, &on_fill_,
                        &on_gap_, &on_timer_, &row_view_, &signal_view_})
    o->reset();
  timers.clear();
  for (nb::object& o : positions_) o.reset();
  for (nb::object& o : books_) {
    if (o.is_valid()) nb::cast<BookView&>(o).alive = false;
    o.reset();
  }
}

void Session::call(const nb::object& method, nb::object argument) {
  if (!method.is_valid()) return;
  acting = true;
  PyObject* result = PyObject_CallOneArg(method.ptr(), argument.ptr());
  acting = false;
  argument.reset();
  expire_views();
  finish(result);
}

void Session::call(const nb::object& method) {
  if (!method.is_valid()) return;
  acting = true;
  PyObject* result = PyObject_CallNoArgs(method.ptr());
  acting = false;
  expire_views();
  finish(result);
}

void Session::finish(PyObject* result) {
  if (result == nullptr) {
    handler_failed = true;
    throw nb::python_error();
  }
  Py_DECREF(result);
}

/// A view that somebody kept must not come alive again in a later handler.
void Session::expire_views() {
  for (const InstrumentId inst : shown_) {
    nb::object& view = books_[inst];
    if (Py_REFCNT(view.ptr()) > 1) {
      nb::cast<BookView&>(view).alive = false;
      view.reset();
    }
  }
  shown_.clear();
}

nb::object Session::book(InstrumentId inst) {
  nb::object& view = books_[inst];
  if (!view.is_valid()) view = nb::cast(BookView{this, &engine->market(inst)});
  if (shown_.empty() || shown_.back() != inst) shown_.push_back(inst);
  return view;
}

nb::object Session::position(InstrumentId inst) {
  // Kept while the run lasts only: a view holds the session, which would hold the view for ever.
  if (!strategy_.is_valid())
    return nb::cast(PositionView{shared_from_this(), &engine->market(inst)});
  nb::object& view = positions_[inst];
  if (!view.is_valid()) view = nb::cast(PositionView{shared_from_this(), &engine->market(inst)});
  return view;
}

nb::object Session::handle_of(Order& order) {
  if (order.handle != nullptr) return nb::borrow(static_cast<PyObject*>(order.handle));
  nb::object handle =
      nb::cast(new OrderHandle{shared_from_this(), &order}, nb::rv_policy::take_ownership);
  order.handle = handle.ptr();
  return handle;
}

InstrumentId Session::id_of(nb::handle inst) const {
  if (nb::isinstance<Instrument>(inst)) {
    const InstrumentId id = nb::cast<const Instrument&>(inst).id;
    if (id < instruments.size()) return id;
  }
  if (nb::isinstance<nb::str>(inst)) {
    const std::string name = nb::cast<std::string>(inst);
    for (const Market& m : engine->markets())
      if (m.inst.name() == name || m.inst.symbol == name) return m.inst.id;
  }
  raise_error("OrderError",
              "no such instrument in this run: " + std::string(nb::repr(inst).c_str()));
}

void Session::on_trade(const Event& print) {
  call(on_trade_, nb::cast(PrintView{instruments[print.instrument], print}));
}
void Session::on_data(const Event& datum) {
  call(on_data_, nb::cast(PrintView{instruments[datum.instrument], datum}));
}
void Session::on_bar(const Bar& bar) {
  call(on_bar_, nb::cast(BarView{instruments[bar.instrument], bar}));
}
void Session::on_fill(Order& order, const Update& fill) {
  call(on_fill_, nb::cast(FillView{handle_of(order), fill, engine->now()}));
}

void Session::on_gap(InstrumentId inst) {
  acting = true;
  PyObject* result = PyObject_CallFunctionObjArgs(on_gap_.ptr(), instruments[inst].ptr(),
                                                  nb::str("messages were lost").ptr(), nullptr);
  acting = false;
  expire_views();
  finish(result);
}

void Session::on_features(InstrumentId inst) {
  const Source& source = *engine->row_source();
  const auto row = source.features->row();
  if (row_view_.is_valid() && Py_REFCNT(row_view_.ptr()) == 1) {
    auto& view = nb::cast<RowView&>(row_view_);
    view.instrument = inst;
    view.ts = engine->now();
    view.names = row_names[source.model];
    view.values.assign(row.begin(), row.end());
    view.alive = true;
  } else {
    row_view_ = nb::cast(
        RowView{this, inst, engine->now(), row_names[source.model], {row.begin(), row.end()}});
  }
  call(on_features_, row_view_);
  nb::cast<RowView&>(row_view_).alive = false;
}

void Session::on_signal(const Signal& signal) {
  const ModelFacts& model = models[signal.model];
  if (signal_view_.is_valid() && Py_REFCNT(signal_view_.ptr()) == 1) {
    auto& view = nb::cast<SignalView&>(signal_view_);
    view.signal = signal;
    view.names = model.outputs;
    view.model = model.name;
    view.now = engine->now();
    view.alive = true;
  } else {
    signal_view_ =
        nb::cast(SignalView{this, signal, model.outputs, model.tier, model.name, engine->now()});
  }
  call(on_signal_, signal_view_);
  nb::cast<SignalView&>(signal_view_).alive = false;
}

void Session::on_timer(std::uint32_t timer) {
  const TimerCall& t = timers[timer];
  acting = true;
  PyObject* result;
  if (t.fn.is_valid()) {
    const nb::object fn = t.fn, args = t.args;  // the callback may add timers
    result =
        args.is_valid() ? PyObject_CallObject(fn.ptr(), args.ptr()) : PyObject_CallNoArgs(fn.ptr());
  } else {
    const nb::object handle = nb::cast(TimerHandle{shared_from_this(), timer});
    result = PyObject_CallOneArg(on_timer_.ptr(), handle.ptr());
  }
  acting = false;
  expire_views();
  finish(result);
}

}  // namespace hft
