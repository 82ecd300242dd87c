/// A network over exactly the last T rows, at the cost of one step on the critical path.
///
/// A recurrent network run over a window from nothing is not the one that runs on and on: the
/// window forgets what is older. T streams that began one row after another, each from nothing,
/// hold every window there will be. A row steps only the oldest, whose window it completes;
/// `settle` brings the others up to it afterwards, all at once, so that they share each pass over
/// the weights. Equal to the bit to a fresh pass over the window.
///
/// Fast: `step` costs what an armed step of a stream costs. Slow: `settle` is the work of T - 1
/// rows: for T = 100 and LSTM 64x2 on 40 inputs 50 us, 26 us in 8 bits (tests/bench/lstm.py), which
/// bounds how many rows a second a core can take: 20,000 and 38,000. A network trained on a running
/// state needs none of this.
#pragma once
#include "network.hpp"

namespace hft {

class WindowState {
 public:
  /// Throws std::invalid_argument where `rows` is 0.
  WindowState(std::shared_ptr<const Network> network, std::size_t rows);

  /// What the network says of the last `rows` rows, this one included; of fewer at first. A row
  /// that is not finite is answered by NaN and counts as none.
  void step(const double* features, float* out) noexcept;
  /// A row whose answer nobody needs: a window that is full is spared its last step.
  void skip(const double* features) noexcept;
  /// While idle, after a step: the work the next step would have to do first.
  void settle() noexcept;
  void reset() noexcept;  ///< after a gap: no rows
  std::size_t rows() const noexcept { return lanes_ + 1; }

 private:
  float* lane(std::size_t i) noexcept { return memory_.get() + i * stride_; }
  void advance(std::size_t first, std::size_t count) noexcept;
  void rotate() noexcept;

  std::shared_ptr<const Network> network_;
  NetworkState oldest_;         // the stream whose window the next row completes
  std::size_t lanes_, stride_;  // the others, a ring: memory only, `stride_` floats apart
  std::size_t plans_ = 0;       // layers up to the last one with memory: all that they need
  AlignedFloats memory_, row_;
  std::size_t next_ = 0;  // lane that is the oldest of them
  std::size_t seen_ = 0;  // rows settled, up to `lanes_`
  bool pending_ = false;  // a row has stepped the oldest, not yet the others
};

}  // namespace hft
