/// A strategy that hears nothing: tests override what they listen to.
#pragma once
#include "strategy_port.hpp"

namespace hft {

struct DeafStrategy : StrategyPort {
  void on_ready(InstrumentId) override {}
  void on_book(InstrumentId) override {}
  void on_trade(const Event&) override {}
  void on_bar(const Bar&) override {}
  void on_features(InstrumentId) override {}
  void on_signal(const Signal&) override {}
  void on_data(const Event&) override {}
  void on_order(Order&) override {}
  void on_fill(Order&, const Update&) override {}
  void on_gap(InstrumentId) override {}
  void on_timer(std::uint32_t) override {}
};

}  // namespace hft
