#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "session.hpp"
#include "shortcuts.hpp"

using namespace nanobind::literals;

namespace hft {

namespace {

/// Member `value` of a Python enum in hft.analysis.records.
nb::object member(const char* type, int value) {
  return nb::module_::import_("hft.analysis.records").attr(type)(value);
}

const BookView& live(const BookView& v) {
  if (!v.alive || !v.session->acting)
    raise_error("OrderError",
                "this book is a view of a handler that has returned: use book.copy() to keep one");
  return v;
}

/// A book that lost messages cannot be read.
SeenBook readable(const BookView& v) {
  const SeenBook book = live(v).market->seen(v.session->engine->now());
  if (book.tape().state == BookState::GAP)
    raise_error("DataError", "the book of " + v.market->inst.name() +
                                 " lost messages: test book.live before reading it");
  return book;
}

const OrderBook& orders_of(const BookView& v) {
  const OrderBook* orders = readable(v).tape().orders();
  if (orders == nullptr)
    raise_error("DataError",
                "our book of " + v.market->inst.name() +
                    " keeps no orders: say needs = (\"L3\",) in the strategy, for a feed of them");
  return *orders;
}

std::optional<Ticks> price_or_none(Ticks price) {
  return price == kNoPrice ? std::nullopt : std::optional<Ticks>(price);
}

double micro_price(const SeenBook& b) {
  if (!b.two_sided()) return std::numeric_limits<double>::quiet_NaN();
  const auto bid_lots = static_cast<double>(b.bid_lots()),
             ask_lots = static_cast<double>(b.ask_lots());
  return (static_cast<double>(b.bid()) * ask_lots + static_cast<double>(b.ask()) * bid_lots) /
         (bid_lots + ask_lots);
}

std::vector<std::pair<Ticks, Lots>> levels(const SeenBook& b, int side, int n) {
  std::vector<std::pair<Ticks, Lots>> out;
  for (std::int64_t k = b.best(side); k != kNoKey && static_cast<int>(out.size()) < n;
       k = b.next(side, k))
    out.emplace_back(k * side, b.at(side, k));
  return out;
}

/// What we took is the first of the queue.
std::vector<std::pair<std::int64_t, Lots>> queue(const BookView& v, int side, Ticks price) {
  const OrderBook& orders = orders_of(v);
  const SeenBook book = readable(v);
  Lots gone = book.tape().lots_at(side, price) - book.lots_at(side, price);
  std::vector<std::pair<std::int64_t, Lots>> out;
  orders.for_each_at(side, price, [&](std::int64_t id, Lots lots) {
    const Lots taken = std::min(gone, lots);
    gone -= taken;
    if (lots > taken) out.emplace_back(id, lots - taken);
  });
  return out;
}

template <class T>
std::size_t column(const T& view, nb::handle name, const char* what) {
  PyObject* at = PyDict_GetItemWithError(view.names.ptr(), name.ptr());
  if (at == nullptr) {
    if (PyErr_Occurred()) throw nb::python_error();
    PyErr_Format(PyExc_KeyError, "no %s %R; there are %R", what, name.ptr(),
                 nb::list(view.names).ptr());
    throw nb::python_error();
  }
  return PyLong_AsSize_t(at);
}

const RowView& live(const RowView& v) {
  if (!v.alive)
    raise_error("OrderError",
                "this row is a view of a handler that has returned: use row.copy() to keep one");
  return v;
}
const SignalView& live(const SignalView& v) {
  if (!v.alive)
    raise_error(
        "OrderError",
        "this signal is a view of a handler that has returned: use signal.copy() to keep one");
  return v;
}

/// A copy is a plain `hft.views` object, free of the run.
nb::object frozen(const char* type, nb::dict fields) {
  return nb::module_::import_("hft.views").attr(type)(**fields);
}

nb::object copy_book(const BookView& v) {
  const SeenBook b = readable(v);
  nb::dict d;
  d["instrument"] = v.session->instruments[v.market->inst.id];
  d["bid"] = price_or_none(b.bid());
  d["ask"] = price_or_none(b.ask());
  d["bid_lots"] = b.bid_lots();
  d["ask_lots"] = b.ask_lots();
  d["ts_event"] = b.tape().ts_event;
  d["ts_recv"] = b.tape().ts_recv;
  d["bids"] = levels(b, BUY, 1 << 20);
  d["asks"] = levels(b, SELL, 1 << 20);
  return frozen("BookCopy", d);
}

nb::object copy_row(const RowView& v) {
  nb::dict d, values;
  for (const auto& [name, at] : live(v).names) values[name] = v.values[nb::cast<std::size_t>(at)];
  d["instrument"] = v.session->instruments[v.instrument];
  d["ts"] = v.ts;
  d["values"] = values;
  return frozen("RowCopy", d);
}

nb::object copy_signal(const SignalView& v) {
  nb::dict d, values;
  for (const auto& [name, at] : live(v).names)
    values[name] = v.signal.outputs[nb::cast<std::size_t>(at)];
  d["instrument"] = v.session->instruments[v.signal.instrument];
  d["ts"] = v.signal.ts_features;
  d["ts_event"] = v.signal.ts_event;
  d["age_ns"] = v.now - v.signal.ts_recv;
  d["tier"] = v.tier;
  d["model"] = v.model;
  d["reused"] = v.signal.reused;
  d["values"] = values;
  return frozen("SignalCopy", d);
}

double average(const OrderRow& r) {
  return r.cum_lots == 0 ? std::numeric_limits<double>::quiet_NaN()
                         : static_cast<double>(r.cum_ticks) / static_cast<double>(r.cum_lots);
}

}  // namespace

void init_views(nb::module_& m) {
  nb::class_<Instrument>(m, "Instrument", "Facts about one instrument of a run.")
      .def_ro("id", &Instrument::id)
      .def_ro("symbol", &Instrument::symbol)
      .def_ro("venue", &Instrument::venue)
      .def_prop_ro("name", &Instrument::name)
      .def_ro("tick", &Instrument::tick)
      .def_ro("lot", &Instrument::lot)
      .def_ro("multiplier", &Instrument::multiplier)
      .def_ro("inverse", &Instrument::inverse)
      .def_prop_ro("maker_fee",
                   [](const Instrument& i) { return static_cast<double>(i.maker_e9) * 1e-9; })
      .def_prop_ro("taker_fee",
                   [](const Instrument& i) { return static_cast<double>(i.taker_e9) * 1e-9; })
      .def(
          "price", [](const Instrument& i, double ticks) { return ticks * i.tick; }, "ticks"_a,
          "Ticks in currency.")
      .def(
          "ticks",
          [](const Instrument& i, double price) {
            return static_cast<Ticks>(std::llround(price / i.tick));
          },
          "price"_a, "Currency in whole ticks, to the nearest.")
      .def(
          "quantity",
          [](const Instrument& i, Lots lots) {
            return static_cast<double>(lots) * i.lot * i.multiplier;
          },
          "lots"_a, "Lots in units of the underlying (contracts times multiplier).")
      .def(
          "lots_of",
          [](const Instrument& i, const Instrument& other, Lots lots) {
            const double units = static_cast<double>(lots) * other.lot * other.multiplier;
            return static_cast<Lots>(std::floor(units / (i.lot * i.multiplier) + 1e-9));
          },
          "other"_a, "lots"_a, "Our whole lots within `lots` of another instrument.")
      .def("__repr__", [](const Instrument& i) { return "<Instrument " + i.name() + ">"; });

  nb::class_<BookView>(m, "Book", "Our book of one instrument; alive until the handler returns.")
      .def_prop_ro(
          "instrument",
          [](const BookView& v) { return v.session->instruments[live(v).market->inst.id]; })
      .def(quick_ro("bid", [](const BookView& v) { return price_or_none(readable(v).bid()); }),
           "Best bid [ticks], None: no bids.")
      .def(quick_ro("ask", [](const BookView& v) { return price_or_none(readable(v).ask()); }),
           "Best ask [ticks], None: no asks.")
      .def(quick_ro("bid_lots", [](const BookView& v) { return readable(v).bid_lots(); }))
      .def(quick_ro("ask_lots", [](const BookView& v) { return readable(v).ask_lots(); }))
      .def(quick_ro("mid",
                    [](const BookView& v) {
                      const std::int64_t mid2 = readable(v).mid2();
                      return mid2 == kNoPrice ? std::numeric_limits<double>::quiet_NaN()
                                              : static_cast<double>(mid2) * 0.5;
                    }),
           "Middle of the touch [ticks]; NaN unless two-sided.")
      .def_prop_ro(
          "micro_price", [](const BookView& v) { return micro_price(readable(v)); },
          "Touch weighted by the opposite side's size [ticks]; NaN unless two-sided.")
      .def_prop_ro("spread",
                   [](const BookView& v) {
                     const SeenBook b = readable(v);
                     return b.two_sided() ? std::optional<Ticks>(b.ask() - b.bid()) : std::nullopt;
                   })
      .def_prop_ro("touch",
                   [](const BookView& v) {
                     const SeenBook b = readable(v);
                     return nb::make_tuple(price_or_none(b.bid()), price_or_none(b.ask()));
                   })
      .def_prop_ro(
          "live", [](const BookView& v) { return live(v).market->book.live(); },
          "False before the first packet, inside a snapshot and after lost messages.")
      .def_prop_ro("two_sided", [](const BookView& v) { return readable(v).two_sided(); })
      .def_prop_ro("trading",
                   [](const BookView& v) {
                     return nb::module_::import_("hft.types")
                         .attr("Trading")(static_cast<int>(live(v).market->book.trading));
                   })
      .def_prop_ro("ts_event", [](const BookView& v) { return live(v).market->book.ts_event; })
      .def_prop_ro("ts_recv", [](const BookView& v) { return live(v).market->book.ts_recv; })
      .def_prop_ro(
          "age_ns",
          [](const BookView& v) {
            const Ts seen = live(v).market->book.ts_recv;
            return seen == kNoTime ? kNever : v.session->engine->now() - seen;
          },
          "Since the last packet, on our clock.")
      .def_prop_ro("last_price",
                   [](const BookView& v) { return price_or_none(readable(v).tape().last_price); })
      .def(
          "lots_at",
          [](const BookView& v, int side, Ticks price) { return readable(v).lots_at(side, price); },
          "side"_a, "price"_a)
      .def("queue", &queue, "side"_a, "price"_a,
           "Orders at a price [ticks], first in the queue first: (id, lots); needs an L3 feed.")
      .def(
          "order_count",
          [](const BookView& v, int side, Ticks price) {
            const OrderBook& orders = orders_of(v);
            return v.market->own.empty() ? orders.orders_at(side, price)
                                         : static_cast<std::uint32_t>(queue(v, side, price).size());
          },
          "side"_a, "price"_a, "Orders at a price [ticks]; needs an L3 feed.")
      .def(
          "levels", [](const BookView& v, int side, int n) { return levels(readable(v), side, n); },
          "side"_a, "n"_a = 10, "[(price, lots)] from the best outwards.")
      .def(
          "price",
          [](const BookView& v, double ticks) { return ticks * live(v).market->inst.tick; },
          "ticks"_a)
      .def("copy", &copy_book, "A frozen copy that outlives the handler.");

  nb::class_<RowView>(m, "Row", "One features row; alive until the handler returns.")
      .def_prop_ro("instrument",
                   [](const RowView& v) { return v.session->instruments[live(v).instrument]; })
      .def_prop_ro("ts", [](const RowView& v) { return live(v).ts; })
      .def_prop_ro("names", [](const RowView& v) { return nb::list(v.names); })
      .def("__getitem__", [](const RowView& v,
                             nb::str name) { return live(v).values[column(v, name, "feature")]; })
      .def("__getattr__",
           [](const RowView& v, nb::str name) {
             PyObject* at = PyDict_GetItemWithError(v.names.ptr(), name.ptr());
             if (at == nullptr) {
               PyErr_Format(PyExc_AttributeError, "no feature %R; there are %R", name.ptr(),
                            nb::list(v.names).ptr());
               throw nb::python_error();
             }
             return live(v).values[PyLong_AsSize_t(at)];
           })
      .def("copy", &copy_row, "A frozen copy that outlives the handler.");

  nb::class_<SignalView>(m, "Signal",
                         "What a model said of one features row; alive until the handler returns.")
      .def_prop_ro(
          "instrument",
          [](const SignalView& v) { return v.session->instruments[live(v).signal.instrument]; })
      .def_prop_ro(
          "ts", [](const SignalView& v) { return live(v).signal.ts_features; },
          "When its features row was made.")
      .def_prop_ro("ts_event", [](const SignalView& v) { return live(v).signal.ts_event; })
      .def_prop_ro(
          "age_ns", [](const SignalView& v) { return live(v).now - v.signal.ts_recv; },
          "Since the packet behind its features reached us.")
      .def_prop_ro(
          "reused", [](const SignalView& v) { return live(v).signal.reused; },
          "The answer of an earlier row, near enough to stand for this one's.")
      .def_prop_ro("tier", [](const SignalView& v) { return live(v).tier; })
      .def_prop_ro(
          "version", [](const SignalView& v) { return live(v).signal.version; },
          "Number of the swap that brought the bundle; 0: it was there at the start.")
      .def_prop_ro("model", [](const SignalView& v) { return live(v).model; })
      .def_prop_ro("names", [](const SignalView& v) { return nb::list(v.names); })
      .def_prop_ro(
          "confidence",
          [](const SignalView& v) {
            const nb::str name("confidence");
            return live(v).signal.outputs[column(v, name, "output")];
          },
          "Largest class probability.")
      .def("__getitem__",
           [](const SignalView& v, nb::str name) {
             return live(v).signal.outputs[column(v, name, "output")];
           })
      .def("copy", &copy_signal, "A frozen copy that outlives the handler.");

  nb::class_<PrintView>(m, "Trade", "A market print, or a small datum.")
      .def_prop_ro("instrument", [](const PrintView& v) { return v.instrument; })
      .def_prop_ro("price", [](const PrintView& v) { return v.event.price; })
      .def_prop_ro("lots", [](const PrintView& v) { return v.event.qty; })
      .def_prop_ro(
          "side", [](const PrintView& v) { return static_cast<int>(v.event.side); },
          "The aggressor's; 0: not told.")
      .def_prop_ro("ts_event", [](const PrintView& v) { return v.event.ts_event; })
      .def_prop_ro("ts_recv", [](const PrintView& v) { return v.event.ts_recv; })
      .def_prop_ro(
          "kind",
          [](const PrintView& v) {
            return v.event.kind == Kind::DATUM
                       ? nb::object(
                             nb::module_::import_("hft.types").attr("Datum")(v.event.order_id))
                       : nb::object(nb::module_::import_("hft.types")
                                        .attr("Kind")(static_cast<int>(v.event.kind)));
          })
      .def_prop_ro(
          "value", [](const PrintView& v) { return static_cast<double>(v.event.ref_id) * 1e-9; },
          "A datum's payload.");

  nb::class_<OrderHandle>(m, "Order", "An order as we know it now.")
      .def_prop_ro("id", [](const OrderHandle& h) { return h.order->row.id; })
      .def_prop_ro(
          "instrument",
          [](const OrderHandle& h) { return h.session->instruments[h.order->row.instrument]; })
      .def_prop_ro("side", [](const OrderHandle& h) { return static_cast<int>(h.order->row.side); })
      .def(
          quick_ro("price", [](const OrderHandle& h) { return price_or_none(h.order->row.price); }),
          "[ticks], as confirmed; None: market.")
      .def_prop_ro(
          "lots", [](const OrderHandle& h) { return h.order->row.lots; },
          "Total size, as confirmed.")
      .def_prop_ro(
          "cum_lots", [](const OrderHandle& h) { return h.order->row.cum_lots; }, "Filled.")
      .def_prop_ro(
          "leaves_lots", [](const OrderHandle& h) { return h.order->leaves(); },
          "Still open; 0 when it is over.")
      .def_prop_ro(
          "avg_price", [](const OrderHandle& h) { return average(h.order->row); },
          "[ticks]; NaN before the first fill.")
      .def_prop_ro("state",
                   [](const OrderHandle& h) {
                     return member("OrderState", static_cast<int>(h.order->row.state));
                   })
      .def_prop_ro("reason",
                   [](const OrderHandle& h) {
                     return member("Reason", static_cast<int>(h.order->row.reason));
                   })
      .def_prop_ro(
          "tif",
          [](const OrderHandle& h) { return member("Tif", static_cast<int>(h.order->row.tif)); })
      .def_prop_ro("tag",
                   [](const OrderHandle& h) { return h.session->engine->tags()[h.order->row.tag]; })
      .def(quick_ro("alive", [](const OrderHandle& h) { return h.order->alive(); }))
      .def(quick_ro("cancellable", [](const OrderHandle& h) { return h.order->steady(); }),
           "Confirmed, with no request in flight.")
      .def_prop_ro("rejected",
                   [](const OrderHandle& h) { return h.order->row.state == OrderState::REJECTED; })
      .def_prop_ro("filled",
                   [](const OrderHandle& h) { return h.order->row.state == OrderState::FILLED; })
      .def_prop_ro("ahead_at_accept",
                   [](const OrderHandle& h) { return h.order->row.ahead_at_accept; })
      .def(
          "__eq__",
          [](const OrderHandle& a, nb::handle b) {
            return nb::isinstance<OrderHandle>(b) &&
                   nb::cast<const OrderHandle&>(b).order == a.order;
          },
          nb::sig("def __eq__(self, arg: object, /) -> bool"))
      .def("__hash__", [](const OrderHandle& h) { return h.order->row.id; })
      .def("__repr__", [](const OrderHandle& h) {
        const OrderRow& r = h.order->row;
        return "<Order " + std::to_string(r.id) + (r.side > 0 ? " BUY " : " SELL ") +
               std::to_string(r.cum_lots) + "/" + std::to_string(r.lots) +
               (r.price == kNoPrice ? " market " : " @ " + std::to_string(r.price) + " ") +
               nb::cast<std::string>(member("OrderState", static_cast<int>(r.state)).attr("name")) +
               ">";
      });

  nb::class_<FillView>(m, "Fill", "A fill of one of our orders.")
      .def_prop_ro("order", [](const FillView& f) { return f.order; })
      .def_prop_ro("instrument", [](const FillView& f) { return f.order.attr("instrument"); })
      .def_prop_ro("side", [](const FillView& f) { return f.order.attr("side"); })
      .def_prop_ro("price", [](const FillView& f) { return f.update.price; })
      .def_prop_ro("lots", [](const FillView& f) { return f.update.lots; })
      .def_prop_ro("maker", [](const FillView& f) { return f.update.maker; })
      .def_prop_ro(
          "fee", [](const FillView& f) { return static_cast<double>(f.update.money) * 1e-9; },
          "[currency], negative: a rebate.")
      .def_prop_ro("reason",
                   [](const FillView& f) {
                     return member("FillReason", static_cast<int>(f.update.fill_reason));
                   })
      .def_prop_ro("ts_venue", [](const FillView& f) { return f.update.ts_venue; })
      .def_prop_ro("ts", [](const FillView& f) { return f.now; });

  nb::class_<BarView>(m, "Bar", "Prints of one interval of our clock.")
      .def_prop_ro("instrument", [](const BarView& b) { return b.instrument; })
      .def_prop_ro("ts_open", [](const BarView& b) { return b.bar.ts_open; })
      .def_prop_ro("ts_close", [](const BarView& b) { return b.bar.ts_close; })
      .def_prop_ro("open", [](const BarView& b) { return b.bar.open; })
      .def_prop_ro("high", [](const BarView& b) { return b.bar.high; })
      .def_prop_ro("low", [](const BarView& b) { return b.bar.low; })
      .def_prop_ro("close", [](const BarView& b) { return b.bar.close; })
      .def_prop_ro("lots", [](const BarView& b) { return b.bar.lots; })
      .def_prop_ro("buy_lots", [](const BarView& b) { return b.bar.buy_lots; })
      .def_prop_ro("prints", [](const BarView& b) { return b.bar.prints; });

  nb::class_<PositionView>(m, "Position", "Our position in one instrument, as fills reached us.")
      .def(quick_ro("lots", [](const PositionView& p) { return p.market->account.position; }))
      .def_prop_ro("flat", [](const PositionView& p) { return p.market->account.position == 0; })
      .def_prop_ro(
          "avg_price", [](const PositionView& p) { return p.market->account.avg_price; },
          "Average cost [ticks].")
      .def_prop_ro(
          "equity",
          [](const PositionView& p) {
            return static_cast<double>(
                       p.market->account.equity(p.market->inst, p.market->mark_mid2())) *
                   1e-9;
          },
          "Cash plus the position at the mid, after fees and funding [currency].")
      .def_prop_ro(
          "cash",
          [](const PositionView& p) { return static_cast<double>(p.market->account.cash) * 1e-9; })
      .def_prop_ro(
          "fees",
          [](const PositionView& p) { return static_cast<double>(p.market->account.fees) * 1e-9; })
      .def_prop_ro("funding",
                   [](const PositionView& p) {
                     return static_cast<double>(p.market->account.funding) * 1e-9;
                   })
      .def_prop_ro("turnover",
                   [](const PositionView& p) { return p.market->account.turnover * 1e-9; });

  nb::class_<TimerHandle>(m, "Timer")
      .def_prop_ro("id", [](const TimerHandle& t) { return t.id; })
      .def("cancel", [](const TimerHandle& t) { t.session->engine->stop_timer(t.id); });
}

}  // namespace hft
