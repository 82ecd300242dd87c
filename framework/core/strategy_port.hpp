/// How the engine calls a strategy. The binding implements it over a Python object; `wants` says
/// which handlers exist, so that nothing is built for one that does not.
#pragma once
#include <vector>

#include "bars.hpp"
#include "event.hpp"
#include "message.hpp"

namespace hft {

struct Order;

enum Wants : std::uint32_t {
  WANTS_BOOK = 1,
  WANTS_TRADE = 2,
  WANTS_BAR = 4,
  WANTS_FEATURES = 8,
  WANTS_SIGNAL = 16,
  WANTS_DATA = 32,
  WANTS_ORDER = 64,
  WANTS_FILL = 128,
  WANTS_GAP = 256,
  WANTS_READY = 512,
};

/// What a model said of one features row, as published to the strategy.
struct Signal {
  InstrumentId instrument = 0;
  std::uint32_t model = 0;
  std::uint32_t version = 0;  ///< the swap that brought the bundle; 0: it was there at the start
  Ts ts_features = kNoTime;   ///< our clock when the features row was made
  Ts ts_event = kNoTime;      ///< venue's time of the packet behind it
  Ts ts_recv = kNoTime;
  Ts ts_start = kNoTime, ts_end = kNoTime;  ///< of the model's service
  std::int64_t cause_row = -1;
  std::int64_t number = 0;  ///< of its row in the stream's similarity cache, where there is one
  bool reused = false;      ///< the answer of an earlier row, given again
  std::vector<float> outputs;
};

struct StrategyPort {
  std::uint32_t wants = 0;
  virtual ~StrategyPort() = default;
  virtual void on_ready(InstrumentId inst) = 0;
  virtual void on_book(InstrumentId inst) = 0;
  virtual void on_trade(const Event& print) = 0;
  virtual void on_bar(const Bar& bar) = 0;
  virtual void on_features(InstrumentId inst) = 0;
  virtual void on_signal(const Signal& signal) = 0;
  virtual void on_data(const Event& datum) = 0;
  virtual void on_order(Order& order) = 0;
  virtual void on_fill(Order& order, const Update& fill) = 0;
  virtual void on_gap(InstrumentId inst) = 0;
  virtual void on_timer(std::uint32_t timer) = 0;
};

}  // namespace hft
