/// A model's memory of one stream of rows (instrument, model), whatever computes it: the native
/// network row by row or over a window, or another library behind the binding.
///
/// The engine's own are here. `rest` is the work of the next step that can be done beforehand; it
/// never changes a result, so a driver that has no idle moments need not call it.
#pragma once
#include <algorithm>
#include <memory>
#include <utility>

#include "network.hpp"
#include "window.hpp"

namespace hft {

class ModelStream {
 public:
  virtual ~ModelStream() = default;
  virtual std::size_t inputs() const noexcept = 0;
  virtual std::size_t outputs() const noexcept = 0;
  /// One row of features to `outputs()` numbers. Of another library this, `skip` and `reset` may
  /// throw ModelError.
  virtual void step(const double* features, float* out) = 0;
  /// Those of one company can take their rows together; who has none is its own.
  virtual const void* company() const noexcept { return this; }
  /// A row for each of `n` different streams of one company, this the first of them.
  virtual void step_together(ModelStream* const* streams, std::size_t n, const double* features,
                             float* out) {
    for (std::size_t i = 0; i < n; ++i)
      streams[i]->step(features + i * inputs(), out + i * outputs());
  }
  /// A row whose answer nobody needs; of models whose memory is a window, or none.
  virtual void skip(const double* features) = 0;
  virtual void rest() noexcept {}         ///< while idle, after a step
  virtual void touch() const noexcept {}  ///< while idle: keeps the weights in cache
  virtual void reset() = 0;               ///< after a gap
};

/// A network whose memory goes on from row to row.
class RunningNetwork final : public ModelStream {
 public:
  explicit RunningNetwork(std::shared_ptr<const Network> network)
      : network_(std::move(network)), state_(network_->state()) {}
  std::size_t inputs() const noexcept override { return network_->inputs(); }
  std::size_t outputs() const noexcept override { return network_->outputs(); }
  void step(const double* features, float* out) override { network_->step(state_, features, out); }
  const void* company() const noexcept override { return network_.get(); }
  void step_together(ModelStream* const* streams, std::size_t n, const double* features,
                     float* out) override {
    NetworkState* states[Network::kBatchRows];
    for (std::size_t first = 0; first < n; first += Network::kBatchRows) {
      const std::size_t count = std::min(Network::kBatchRows, n - first);
      for (std::size_t i = 0; i < count; ++i)
        states[i] = &static_cast<RunningNetwork*>(streams[first + i])->state_;
      network_->step_many(states, count, features + first * inputs(), out + first * outputs());
    }
  }
  void skip(const double*) override {}  // it remembers nothing, or the rule would not be allowed
  void rest() noexcept override { network_->arm(state_); }
  void touch() const noexcept override { network_->touch(); }
  void reset() override { state_.reset(); }

 private:
  std::shared_ptr<const Network> network_;
  NetworkState state_;
};

/// A network over exactly the last rows.
class WindowedNetwork final : public ModelStream {
 public:
  WindowedNetwork(std::shared_ptr<const Network> network, std::size_t rows)
      : network_(network), state_(std::move(network), rows) {}
  std::size_t inputs() const noexcept override { return network_->inputs(); }
  std::size_t outputs() const noexcept override { return network_->outputs(); }
  void step(const double* features, float* out) override { state_.step(features, out); }
  void skip(const double* features) override { state_.skip(features); }
  void rest() noexcept override { state_.settle(); }
  void touch() const noexcept override { network_->touch(); }
  void reset() override { state_.reset(); }

 private:
  std::shared_ptr<const Network> network_;
  WindowState state_;
};

}  // namespace hft
