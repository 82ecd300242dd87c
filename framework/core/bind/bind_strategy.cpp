#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "session.hpp"
#include "shortcuts.hpp"

using namespace nanobind::literals;

namespace hft {

namespace {

/// An instrument as an argument. Only instruments and names match, which keeps `submit(BUY, 10,
/// price)` from being read as (inst, side, lots) and lets the overload without an instrument be
/// found at once.
struct Which {
  nb::handle inst;
};

/// An int, or a member of one of our enums: nanobind tries those only when all overloads have
/// failed.
struct Code {
  int value;
};

}  // namespace

}  // namespace hft

namespace nanobind::detail {

template <>
struct type_caster<hft::Which> {
  NB_TYPE_CASTER(hft::Which, const_name("hft._core.Instrument | str"))
  bool from_python(handle from, std::uint8_t, cleanup_list*) noexcept {
    value.inst = from;
    return PyUnicode_Check(from.ptr()) || isinstance<hft::Instrument>(from);
  }
};

template <>
struct type_caster<hft::Code> {
  NB_TYPE_CASTER(hft::Code, const_name("int"))
  bool from_python(handle from, std::uint8_t, cleanup_list*) noexcept {
    if (!PyLong_Check(from.ptr())) return false;
    int overflow = 0;
    const long code = PyLong_AsLongAndOverflow(from.ptr(), &overflow);
    value.value = static_cast<int>(code);
    return overflow == 0 && code == value.value;
  }
};

}  // namespace nanobind::detail

namespace hft {

namespace {

/// A price as a strategy gives it: a whole number of ticks, whatever its Python type.
Ticks whole_ticks(nb::handle price) {
  if (PyLong_Check(price.ptr())) return nb::cast<Ticks>(price);
  const double ticks = PyFloat_AsDouble(price.ptr());
  if (ticks == -1.0 && PyErr_Occurred()) throw nb::python_error();
  if (!(std::abs(ticks) < 9e15) || ticks != std::floor(ticks))
    raise_error("OrderError", "a price is a whole number of ticks, was " +
                                  std::string(nb::repr(price).c_str()) +
                                  " (a currency price: instrument.ticks(price))");
  return static_cast<Ticks>(ticks);
}

double real(nb::handle price) {
  const double ticks = PyFloat_AsDouble(price.ptr());
  if (ticks == -1.0 && PyErr_Occurred()) throw nb::python_error();
  return ticks;
}

int checked_side(Code side) {
  if (side.value != BUY && side.value != SELL)
    raise_error("OrderError",
                "side must be BUY (1) or SELL (-1), was " + std::to_string(side.value));
  return side.value;
}

Ns duration(nb::handle interval) {
  if (PyLong_Check(interval.ptr())) return nb::cast<Ns>(interval);
  return nb::cast<Ns>(nb::module_::import_("hft.durations").attr("parse_ns")(interval));
}

const Signal* cause_of(nb::handle cause, Signal& scratch) {
  if (cause.is_none()) return nullptr;
  if (nb::isinstance<SignalView>(cause)) return &nb::cast<const SignalView&>(cause).signal;
  if (!nb::hasattr(cause, "ts_event"))
    raise_error("OrderError", "cause must be a signal or a copy of one");
  scratch.ts_event = nb::cast<Ts>(cause.attr("ts_event"));
  scratch.ts_features = nb::cast<Ts>(cause.attr("ts"));
  scratch.ts_recv = scratch.ts_features;
  return &scratch;
}

struct ParentHandle {
  std::shared_ptr<Session> session;
  std::uint32_t id;
  const Parent& parent() const { return session->engine->parents()[id]; }
};

std::uint32_t parent_of(Session& run, nb::handle parent) {
  if (parent.is_none()) return 0;
  if (!nb::isinstance<ParentHandle>(parent))
    raise_error("OrderError", "parent must come from parent_order(), was " +
                                  std::string(nb::repr(parent).c_str()));
  const auto& handle = nb::cast<const ParentHandle&>(parent);
  if (handle.session.get() != &run)
    raise_error("OrderError", "this parent order belongs to another run");
  return handle.id;
}

nb::object submit(StrategyBase& s, InstrumentId inst, Code side, Lots lots, nb::handle price,
                  Code tif, const std::string& tag, nb::handle cause, nb::handle parent) {
  Session& run = s.run();
  run.must_act();
  if (tif.value < 0 || tif.value > static_cast<int>(Tif::POST_ONLY))
    raise_error("OrderError", "unknown time in force " + std::to_string(tif.value));
  Signal scratch;
  const Ticks ticks = price.is_none() ? kNoPrice : whole_ticks(price);
  Order& o =
      run.engine->submit(inst, checked_side(side), lots, ticks, static_cast<Tif>(tif.value),
                         run.engine->tag_id(tag), parent_of(run, parent), cause_of(cause, scratch));
  return run.handle_of(o);
}

Order& order_of(Session& run, nb::handle order) {
  if (!nb::isinstance<OrderHandle>(order))
    raise_error("OrderError", "not an order: " + std::string(nb::repr(order).c_str()));
  auto& handle = nb::cast<OrderHandle&>(order);
  if (handle.session.get() != &run) raise_error("OrderError", "this order belongs to another run");
  return *handle.order;
}

bool replace(StrategyBase& s, nb::handle order, nb::handle price, std::optional<Lots> lots) {
  Session& run = s.run();
  run.must_act();
  Order& o = order_of(run, order);
  return run.engine->replace(o, price.is_none() ? o.row.price : whole_ticks(price),
                             lots.value_or(o.row.lots));
}

nb::list orders(StrategyBase& s, nb::handle inst, std::optional<std::string> tag) {
  Session& run = s.run();
  nb::list out;
  const bool all = inst.is_none();
  const InstrumentId only = all ? 0 : run.id_of(inst);
  const std::uint32_t wanted = tag ? run.engine->tag_id(*tag) : 0;
  for (Market& m : run.engine->markets()) {
    if (!all && m.inst.id != only) continue;
    for (Order* o : m.live)
      if (!tag || o->row.tag == wanted) out.append(run.handle_of(*o));
  }
  return out;
}

void cancel_all(StrategyBase& s, nb::handle inst, std::optional<std::string> tag) {
  Session& run = s.run();
  run.must_act();
  const std::int64_t wanted = tag ? static_cast<std::int64_t>(run.engine->tag_id(*tag)) : -1;
  for (Market& m : run.engine->markets())
    if (inst.is_none() || m.inst.id == run.id_of(inst)) run.engine->cancel_all(m.inst.id, wanted);
}

void flatten(StrategyBase& s, nb::handle inst) {
  Session& run = s.run();
  run.must_act();
  for (Market& m : run.engine->markets())
    if (inst.is_none() || m.inst.id == run.id_of(inst)) run.engine->flatten(m.inst.id);
}

void quotes(Session& run, InstrumentId inst, nb::handle bid, nb::handle ask, Lots bid_lots,
            Lots ask_lots) {
  run.must_act();
  run.engine->ladder(inst, BUY, real(bid), 1, 1, bid_lots);
  run.engine->ladder(inst, SELL, real(ask), 1, 1, ask_lots);
}

std::uint32_t changes(nb::handle if_changed) {
  std::uint32_t mask = 0;
  if (if_changed.is_none()) return mask;
  for (nb::handle key : nb::borrow<nb::iterable>(if_changed)) {
    const std::string name = nb::cast<std::string>(key);
    if (name == "touch") {
      mask |= TOUCH;
    } else if (name == "position") {
      mask |= POSITION;
    } else if (name == "orders") {
      mask |= ORDERS;
    } else {
      raise_error("OrderError", "if_changed knows touch, position and orders, not " + name);
    }
  }
  return mask;
}

nb::object add_timer(Session& run, std::uint32_t id, nb::object fn, nb::args args) {
  run.timers.resize(id + 1);
  if (!fn.is_none()) run.timers[id].fn = fn;
  if (nb::len(args) > 0) run.timers[id].args = args;
  return nb::cast(TimerHandle{run.shared_from_this(), id});
}

}  // namespace

void init_strategy(nb::module_& m) {
  nb::class_<ParentHandle>(m, "ParentOrder", "An order worked in slices: `submit(..., parent=it)`.")
      .def_ro("id", &ParentHandle::id)
      .def_prop_ro(
          "instrument",
          [](const ParentHandle& p) { return p.session->instruments[p.parent().instrument]; })
      .def_prop_ro("side", [](const ParentHandle& p) { return static_cast<int>(p.parent().side); })
      .def_prop_ro("lots", [](const ParentHandle& p) { return p.parent().lots; })
      .def_prop_ro("filled_lots", [](const ParentHandle& p) { return p.parent().filled; })
      .def_prop_ro("leaves_lots",
                   [](const ParentHandle& p) { return p.parent().lots - p.parent().filled; });

  using S = StrategyBase;
  nb::class_<S>(m, "StrategyBase", nb::dynamic_attr(), nb::is_weak_referenceable(),
                "Native base of hft.Strategy: what a strategy reads and does.")
      .def(nb::init<>())
      .def_prop_ro(
          "now", [](const S& s) { return s.run().engine->now(); },
          "Our clock [ns since the epoch, UTC].")
      .def(quick("book",
                 [](const S& s) {
                   Session& r = s.run();
                   return r.book(r.only());
                 }))
      .def(quick("book",
                 [](const S& s, Which inst) {
                   Session& r = s.run();
                   return r.book(r.id_of(inst.inst));
                 }),
           "inst"_a, "Our book of an instrument, as a view.")
      .def(quick("position",
                 [](const S& s) {
                   Session& r = s.run();
                   return r.position(r.only());
                 }))
      .def(quick("position",
                 [](const S& s, Which inst) {
                   Session& r = s.run();
                   return r.position(r.id_of(inst.inst));
                 }),
           "inst"_a)
      .def("orders", &orders, "inst"_a = nb::none(), nb::kw_only(), "tag"_a = nb::none(),
           "Orders that are not over.")
      .def(
          "submit",
          [](S& s, Which inst, Code side, Lots lots, nb::handle price, Code tif,
             const std::string& tag, nb::handle cause, nb::handle parent) {
            return submit(s, s.run().id_of(inst.inst), side, lots, price, tif, tag, cause, parent);
          },
          "inst"_a, "side"_a, "lots"_a, "price"_a = nb::none(), "tif"_a = 0, "tag"_a = "",
          "cause"_a = nb::none(), "parent"_a = nb::none(),
          "Sends an order when the handler returns; price None: market.")
      .def(
          "submit",
          [](S& s, Code side, Lots lots, nb::handle price, Code tif, const std::string& tag,
             nb::handle cause, nb::handle parent) {
            return submit(s, s.run().only(), side, lots, price, tif, tag, cause, parent);
          },
          "side"_a, "lots"_a, "price"_a = nb::none(), "tif"_a = 0, "tag"_a = "",
          "cause"_a = nb::none(), "parent"_a = nb::none())
      .def(
          "cancel",
          [](S& s, nb::handle order) {
            Session& r = s.run();
            r.must_act();
            return r.engine->withdraw(order_of(r, order));
          },
          "order"_a, "False: the order is over or already being cancelled.")
      .def("replace", &replace, "order"_a, "price"_a = nb::none(), "lots"_a = nb::none(),
           "New price or total size (filled part included). False: it is over, or the risk gate "
           "refused.")
      .def("cancel_all", &cancel_all, "inst"_a = nb::none(), nb::kw_only(), "tag"_a = nb::none())
      .def("flatten", &flatten, "inst"_a = nb::none(),
           "Cancels everything and closes the position at the market.")
      .def(quick("quotes",
                 [](S& s, nb::handle bid, nb::handle ask, Lots lots) {
                   Session& r = s.run();
                   quotes(r, r.only(), bid, ask, lots, lots);
                 }),
           "bid"_a, "ask"_a, "lots"_a)
      .def(quick("quotes",
                 [](S& s, Which inst, nb::handle bid, nb::handle ask, Lots lots) {
                   Session& r = s.run();
                   quotes(r, r.id_of(inst.inst), bid, ask, lots, lots);
                 }),
           "inst"_a, "bid"_a, "ask"_a, "lots"_a,
           "One bid and one ask that should rest; floats round outward and passive prices stop at "
           "the touch.")
      .def(quick("quote",
                 [](S& s, Code side, nb::handle price, Lots lots) {
                   Session& r = s.run();
                   r.must_act();
                   r.engine->ladder(r.only(), checked_side(side), real(price), 1, 1, lots);
                 }),
           "side"_a, "price"_a, "lots"_a)
      .def(quick("quote",
                 [](S& s, Which inst, Code side, nb::handle price, Lots lots) {
                   Session& r = s.run();
                   r.must_act();
                   r.engine->ladder(r.id_of(inst.inst), checked_side(side), real(price), 1, 1,
                                    lots);
                 }),
           "inst"_a, "side"_a, "price"_a, "lots"_a,
           "One order that should rest on a side; 0 lots pulls it.")
      .def(quick("ladder",
                 [](S& s, Code side, nb::handle start, std::int64_t step, int levels, Lots lots) {
                   Session& r = s.run();
                   r.must_act();
                   r.engine->ladder(r.only(), checked_side(side), real(start), step, levels, lots);
                 }),
           "side"_a, "start"_a, "step"_a, "levels"_a, "lots"_a)
      .def(quick("ladder",
                 [](S& s, Which inst, Code side, nb::handle start, std::int64_t step, int levels,
                    Lots lots) {
                   Session& r = s.run();
                   r.must_act();
                   r.engine->ladder(r.id_of(inst.inst), checked_side(side), real(start), step,
                                    levels, lots);
                 }),
           "inst"_a, "side"_a, "start"_a, "step"_a, "levels"_a, "lots"_a,
           "`levels` orders from `start` outwards in steps of `step` ticks that should rest on a "
           "side; 0 lots pulls them.")
      .def(
          "every",
          [](S& s, nb::handle interval, nb::object fn, nb::args args, nb::handle if_changed) {
            Session& r = s.run();
            r.must_act();
            if (fn.is_none() && !r.has_on_timer())
              raise_error("OrderError", "every: give a function, or define on_timer");
            return add_timer(r, r.engine->every(duration(interval), changes(if_changed)), fn, args);
          },
          "interval"_a, "fn"_a = nb::none(), "args"_a, nb::kw_only(), "if_changed"_a = nb::none(),
          nb::sig("def every(self, interval: str | int, fn: object | None = None, *args: object, "
                  "if_changed: object | None = None) -> Timer"),
          "Calls fn(*args), or on_timer, every interval; with if_changed only when the touch, the "
          "position or the orders changed.")
      .def(
          "at",
          [](S& s, Ts ts, nb::object fn, nb::args args) {
            Session& r = s.run();
            r.must_act();
            return add_timer(r, r.engine->at(ts), fn, args);
          },
          "ts"_a, "fn"_a, "args"_a,
          nb::sig("def at(self, ts: int, fn: object, *args: object) -> Timer"),
          "Calls fn(*args) once at a time of our clock.")
      .def(
          "parent_order",
          [](S& s, Which inst, Code side, Lots lots) {
            Session& r = s.run();
            return ParentHandle{
                s.session, r.engine->parent_order(r.id_of(inst.inst), checked_side(side), lots)};
          },
          "inst"_a, "side"_a, "lots"_a)
      .def_prop_ro(
          "listed", [](const S& s) { return nb::cast<nb::list>(nb::cast(s.run().instruments)); },
          "All instruments of the run, in order.");
}

}  // namespace hft
