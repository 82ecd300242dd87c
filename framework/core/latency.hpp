/// How long one leg takes, as a pure function of when a message is sent and which of that instant
/// it is: no call moves another's draw, so leaving out one order changes nobody else's latency.
///
/// Fast: a constant is one load. Slow: every other kind searches its table, some 50 ns a message.
/// Given up: messages of one instant are numbered in the order they leave, so where several leave
/// at once, leaving out the first renumbers the rest of that instant.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "rng.hpp"
#include "types.hpp"

namespace hft {

class Latency {
 public:
  /// Nothing takes time.
  Latency() = default;
  explicit Latency(Ns constant) : Latency(Latency::constant(constant)) {}

  // `leg` names it where what was given is refused (ConfigError).
  static Latency constant(Ns ns, const std::string& leg = "latency");
  /// The row at or before holds; before the first row the first. Never interpolated: between two
  /// quiet probes a straight line would invent a latency nobody saw.
  static Latency recorded(std::vector<Ts> ts, std::vector<Ns> ns,
                          const std::string& leg = "latency");
  /// One of the samples, each as likely as any other, whatever came before.
  static Latency empirical(std::vector<Ns> ns, std::uint64_t seed, std::uint64_t stream,
                           const std::string& leg = "latency");
  /// Pieces of a recorded trace laid out in time: from `block_ts[i]` to the next block the trace is
  /// read from row `block_at[i]` on, at its own pace, beginning anew after its last row. The row
  /// nearest in time holds, of two as near the earlier.
  static Latency walk(std::vector<Ts> ts, std::vector<Ns> ns, std::vector<Ts> block_ts,
                      std::vector<std::int64_t> block_at, const std::string& leg = "latency");
  /// As recorded, by order; messages of other orders, and what belongs to no order, take
  /// `otherwise`.
  static Latency by_order(std::vector<OrderId> ids, std::vector<Ns> ns, Latency otherwise,
                          const std::string& leg = "latency");

  /// Delay of the `n`-th message (from 0) sent at `ts`.
  Ns at(Ts ts, std::uint64_t n = 0) const noexcept {
    if (table_ == nullptr) [[likely]]
      return least_;
    return look_up(ts, n);
  }
  /// ... of a message about `order`.
  Ns of(OrderId order, Ts ts, std::uint64_t n = 0) const noexcept {
    if (table_ == nullptr) [[likely]]
      return least_;
    return look_up_order(order, ts, n);
  }
  Ns least() const noexcept { return least_; }
  Ns median() const noexcept;  ///< of its rows, the lower of the middle two
  /// Every row times `factor`, to the nearest ns, halves to the even one.
  Latency scaled(double factor, const std::string& leg = "latency") const;

 private:
  struct Table;
  Latency(Ns least, std::shared_ptr<const Table> table) : least_(least), table_(std::move(table)) {}
  static Latency of_table(Table table);
  Ns look_up(Ts ts, std::uint64_t n) const noexcept;
  Ns look_up_order(OrderId order, Ts ts, std::uint64_t n) const noexcept;

  Ns least_ = 0;                        ///< the delay itself, of a constant
  std::shared_ptr<const Table> table_;  ///< null: constant
};

/// Numbers what happens at one instant: 0, 1, 2 ... Times do not go back.
class Nth {
 public:
  std::uint64_t operator()(Ts ts) noexcept {
    if (ts != ts_) n_ = 0;
    ts_ = ts;
    return n_++;
  }

 private:
  Ts ts_ = kNoTime;
  std::uint64_t n_ = 0;
};

enum class Ordering : std::uint8_t {
  FIFO = 0,     ///< one connection: nothing is delivered before what was sent ahead of it
  INDEPENDENT,  ///< each message travels alone, and may overtake
};

/// When messages arrive, given each one's own delay.
class Channel {
 public:
  explicit Channel(Ordering ordering = Ordering::FIFO) : ordering_(ordering) {}
  Ts deliver(Ts ts_send, Ns delay) noexcept {
    if (ordering_ == Ordering::INDEPENDENT) return ts_send + delay;
    return last_ = std::max(ts_send + delay, last_);
  }

 private:
  Ordering ordering_;
  Ts last_ = kNoTime;
};

/// Adds to messages in flight, kept by time of arrival; of two that arrive at once the one sent
/// first is ahead.
template <class T>
void put_in_flight(std::deque<T>& wire, const T& message, Ts T::* arrival) {
  if (wire.empty() || wire.back().*arrival <= message.*arrival) [[likely]] {
    wire.push_back(message);
    return;
  }
  wire.insert(std::upper_bound(wire.begin(), wire.end(), message.*arrival,
                               [arrival](Ts ts, const T& other) { return ts < other.*arrival; }),
              message);
}

}  // namespace hft
