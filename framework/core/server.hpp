/// Inference as a server beside the strategy's thread: it works on one row at a time, or on one
/// batch, and what comes meanwhile waits, is conflated, or is dropped, as `mode` says.
///
/// Times are its own: whoever drives it offers rows at the time they come and calls `complete` at
/// `due`. A row offered at the very instant of `due` comes before what happens then.
/// A stream is one model of one instrument. Its state has moved over every row before the row is
/// offered; what is dropped here is the publication, never the state.
#pragma once
#include <deque>
#include <functional>
#include <unordered_map>
#include <vector>

#include "latency.hpp"
#include "strategy_port.hpp"
#include "thinned.hpp"

namespace hft {

struct ServerConfig {
  enum class Mode : std::uint8_t {
    CONFLATE = 0,  ///< of each stream the newest row waits, in the place of the older one
    QUEUE,         ///< up to `bound` rows wait; beyond it the oldest is dropped
    SKIP,          ///< nothing waits
    DEADLINE,      ///< CONFLATE, and a row that could not be answered in time is dropped
  };
  Mode mode = Mode::CONFLATE;
  std::int64_t bound = 1024;
  /// From the row's market event to its answer, which is expected after the median service.
  Ns deadline_ns = 8'000'000;
  std::int64_t max_batch = 1;  ///< rows served together
  Ns hold_ns = 0;      ///< while it is free: how long a row waits until `max_batch` are there
  Ns per_item_ns = 0;  ///< every further row of a batch
  Ns per_row_ns = 0;   ///< every row of the batch's streams dropped since their last service
  Latency service;
};

class InferenceServer {
 public:
  struct Counters {
    std::int64_t conflated = 0, skipped = 0, expired = 0, overflowed = 0, services = 0;
  };

  explicit InferenceServer(ServerConfig config);

  std::function<void(const Signal&)> on_drop;  ///< told of every row that gets no answer

  /// Rows that come at `ts`, in order; takes them out of `rows`.
  void offer(std::vector<Signal>& rows, Ts ts);
  /// End of the service at work, or of waiting for company; kNever: it has nothing to do.
  Ts due() const noexcept { return due_; }
  bool busy() const noexcept { return due_ != kNever; }
  /// At `due`: ends the service at work, whose rows it returns until the next call, if there is
  /// one, and begins the next.
  const std::vector<Signal>& complete();

  const Counters& counters() const noexcept { return counters_; }
  const ThinnedNs& waits() const noexcept { return waits_; }        ///< of rows that were served
  const ThinnedNs& services() const noexcept { return services_; }  ///< their lengths

 private:
  using Mode = ServerConfig::Mode;
  struct Waiting {
    Signal row;
    Ts since;
  };

  void admit(Signal&& row, Ts ts);
  bool working() const noexcept { return !at_work_.empty(); }
  void begin_or_hold(Ts ts);
  void begin(Ts ts);
  bool too_late(const Signal& row, Ts ts) const noexcept {
    return config_.mode == Mode::DEADLINE && ts + expected_ns_ > row.ts_event + config_.deadline_ns;
  }
  void drop(const Signal& row, std::int64_t& count);
  Ns caught_up(const Signal& row);

  ServerConfig config_;
  Ns expected_ns_;
  Ts due_ = kNever;
  bool holding_ = false;  // `due_` is when waiting for company ends
  Nth nth_;
  std::vector<Signal> at_work_, finished_;
  std::deque<Waiting> waiting_;
  std::unordered_map<std::uint64_t, std::int64_t> dropped_;  // by stream, since its last service
  Counters counters_;
  ThinnedNs waits_, services_;
};

}  // namespace hft
