/// One run as Python sees it: the engine, the strategy it calls, and the views it hands out.
///
/// A view (`book`, `signal`, `row`) lives until the handler returns. Views are reused between
/// handlers when nobody kept them; one that was kept is declared dead and replaced, so that it can
/// never show another moment's data.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <optional>

#include "../engine.hpp"

namespace hft {

namespace nb = nanobind;

class ForeignBatch;
class Session;

/// What raises Python's error of that name from `hft.errors`.
[[noreturn]] void raise_error(const char* name, const std::string& why);

struct BookView {
  Session* session;
  Market* market;
  bool alive = true;
};

struct RowView {
  Session* session;
  InstrumentId instrument;
  Ts ts;
  nb::dict names;  ///< name -> column
  std::vector<double> values;
  bool alive = true;
};

struct SignalView {
  Session* session;
  Signal signal;
  nb::dict names;  ///< name -> output
  std::string tier;
  std::string model;
  Ts now;
  bool alive = true;
};

/// A handle on an order; it shows the order as we know it now, during and after the run.
struct OrderHandle {
  std::shared_ptr<Session> session;
  Order* order;
  ~OrderHandle() {
    if (order) order->handle = nullptr;
  }
};

/// A value, not a view: it may outlive the run.
struct PrintView {
  nb::object instrument;
  Event event;
};

struct FillView {
  nb::object order;
  Update update;
  Ts now;
};

struct BarView {
  nb::object instrument;
  Bar bar;
};

struct PositionView {
  std::shared_ptr<Session> session;
  Market* market;
};

struct TimerHandle {
  std::shared_ptr<Session> session;
  std::uint32_t id;
};

/// The native base of `hft.Strategy`.
struct StrategyBase {
  std::shared_ptr<Session> session;
  Session& run() const {
    if (!session)
      raise_error("OrderError",
                  "the strategy is not running yet: use on_start instead of __init__");
    return *session;
  }
};

struct ModelFacts {
  std::string name;
  std::string tier;
  nb::dict outputs;  ///< name -> index
};

class Session final : public StrategyPort, public std::enable_shared_from_this<Session> {
 public:
  Session(std::vector<Instrument> instruments, const EngineConfig& config);

  /// Binds the strategy: fetches the handlers it overrides, once.
  void attach(nb::object strategy);
  /// Lets go of the strategy and every Python object; the engine stays readable.
  void detach();

  void on_ready(InstrumentId inst) override { call(on_ready_, instruments[inst]); }
  void on_book(InstrumentId inst) override { call(on_book_, book(inst)); }
  void on_trade(const Event& print) override;
  void on_bar(const Bar& bar) override;
  void on_features(InstrumentId inst) override;
  void on_signal(const Signal& signal) override;
  void on_data(const Event& datum) override;
  void on_order(Order& order) override { call(on_order_, handle_of(order)); }
  void on_fill(Order& order, const Update& fill) override;
  void on_gap(InstrumentId inst) override;
  void on_timer(std::uint32_t timer) override;
  void start() { call(on_start_); }
  void stop() { call(on_stop_); }

  nb::object book(InstrumentId inst);
  nb::object position(InstrumentId inst);
  nb::object handle_of(Order& order);
  InstrumentId only() const {
    if (instruments.size() != 1)
      raise_error("OrderError",
                  "there are " + std::to_string(instruments.size()) + " instruments: say which");
    return 0;
  }
  InstrumentId id_of(nb::handle inst) const;
  bool has_on_timer() const noexcept { return on_timer_.is_valid(); }
  void must_act() const {
    if (!acting) raise_error("OrderError", "orders and timers can be given only inside a handler");
  }

  struct TimerCall {
    nb::object fn;
    nb::object args;  ///< tuple
  };
  std::vector<TimerCall> timers;
  std::vector<nb::object> instruments;
  std::vector<ModelFacts> models;                            ///< by model id
  std::vector<nb::dict> row_names;                           ///< by model id: column names
  std::vector<std::weak_ptr<ForeignBatch>> foreign_batches;  ///< of backends that streams have
  std::unique_ptr<Engine> engine;
  bool acting = false;          ///< a handler runs
  bool handler_failed = false;  ///< what ended the run was raised in a handler

 private:
  void call(const nb::object& method, nb::object argument);
  void call(const nb::object& method);
  void finish(PyObject* result);
  void expire_views();

  nb::object strategy_;
  nb::object on_start_, on_stop_, on_ready_, on_book_, on_trade_, on_bar_, on_features_, on_signal_,
      on_data_, on_order_, on_fill_, on_gap_, on_timer_;
  std::vector<nb::object> books_;
  std::vector<nb::object> positions_;  ///< made once; each shows its position as it is now
  std::vector<InstrumentId> shown_;
  nb::object row_view_, signal_view_;
};

/// The session holds the strategy for the time of a run only.
class Attached {
 public:
  Attached(Session& session, nb::object strategy) : session_(session) {
    session_.attach(std::move(strategy));
  }
  ~Attached() { session_.detach(); }
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;

 private:
  Session& session_;
};

void init_views(nb::module_& m);

}  // namespace hft
