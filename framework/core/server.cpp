#include "server.hpp"

#include <algorithm>
#include <utility>

#include "errors.hpp"

namespace hft {

namespace {

void want(bool holds, const char* key, std::int64_t value, const char* wanted) {
  if (!holds)
    throw ConfigError(std::string("latency.server.") + key + " is " + std::to_string(value) +
                      ", want " + wanted);
}

std::uint64_t stream_of(const Signal& row) noexcept {
  return static_cast<std::uint64_t>(row.model) << 32 | row.instrument;
}

}  // namespace

InferenceServer::InferenceServer(ServerConfig config)
    : config_(std::move(config)), expected_ns_(config_.service.median()) {
  want(config_.bound >= 1, "bound", config_.bound, "1 or more rows");
  want(config_.max_batch >= 1, "max_batch", config_.max_batch, "1 or more rows");
  want(config_.deadline_ns >= 0, "deadline", config_.deadline_ns, "0 ns or more");
  want(config_.hold_ns >= 0, "hold", config_.hold_ns, "0 ns or more");
  want(config_.per_item_ns >= 0, "per_item", config_.per_item_ns, "0 ns or more");
  want(config_.per_row_ns >= 0, "per_row", config_.per_row_ns, "0 ns or more");
}

void InferenceServer::offer(std::vector<Signal>& rows, Ts ts) {
  for (Signal& row : rows) admit(std::move(row), ts);
  rows.clear();
  if (!working()) begin_or_hold(ts);
}

void InferenceServer::admit(Signal&& row, Ts ts) {
  if (config_.mode == Mode::SKIP && working()) return drop(row, counters_.skipped);
  if (config_.mode == Mode::CONFLATE || config_.mode == Mode::DEADLINE) {
    const auto older = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& w) {
      return w.row.instrument == row.instrument && w.row.model == row.model;
    });
    if (older != waiting_.end()) {
      drop(older->row, counters_.conflated);
      *older = {std::move(row), ts};
      return;
    }
  }
  waiting_.push_back({std::move(row), ts});
  // While it idles, what it is about to take does not wait.
  const std::int64_t room = config_.bound + (working() ? 0 : config_.max_batch);
  if (config_.mode == Mode::QUEUE && static_cast<std::int64_t>(waiting_.size()) > room) {
    drop(waiting_.front().row, counters_.overflowed);
    waiting_.pop_front();
  }
}

const std::vector<Signal>& InferenceServer::complete() {
  finished_.swap(at_work_);
  at_work_.clear();
  // Who waited for company has waited enough; after a service, those who came may still wait.
  if (holding_) {
    begin(due_);
  } else {
    begin_or_hold(due_);
  }
  return finished_;
}

/// Free: begins, unless what waits may still wait for company. It waits from the first row on, also
/// where a newer one of its stream takes its place.
void InferenceServer::begin_or_hold(Ts ts) {
  if (config_.hold_ns > 0 && !waiting_.empty() &&
      static_cast<std::int64_t>(waiting_.size()) < config_.max_batch) {
    if (!holding_) due_ = waiting_.front().since + config_.hold_ns;
    holding_ = due_ > ts;
    if (holding_) return;
  }
  begin(ts);
}

/// Takes what it can serve together, and draws how long that takes.
void InferenceServer::begin(Ts ts) {
  holding_ = false;
  Ns missed_ns = 0;
  while (!waiting_.empty() && static_cast<std::int64_t>(at_work_.size()) < config_.max_batch) {
    Waiting& next = waiting_.front();
    if (too_late(next.row, ts)) {
      drop(next.row, counters_.expired);
    } else {
      waits_.add(ts - next.since);
      missed_ns += caught_up(next.row);
      next.row.ts_start = ts;
      at_work_.push_back(std::move(next.row));
    }
    waiting_.pop_front();
  }
  if (config_.mode == Mode::SKIP) {
    for (const Waiting& w : waiting_) drop(w.row, counters_.skipped);
    waiting_.clear();
  }
  due_ = kNever;
  if (at_work_.empty()) return;
  const auto further = static_cast<Ns>(at_work_.size() - 1);
  const Ns service = config_.service.at(ts, nth_(ts)) + config_.per_item_ns * further + missed_ns;
  ++counters_.services;
  services_.add(service);
  due_ = ts + service;
  for (Signal& row : at_work_) row.ts_end = due_;
}

void InferenceServer::drop(const Signal& row, std::int64_t& count) {
  ++count;
  if (on_drop) on_drop(row);
  if (config_.per_row_ns > 0) ++dropped_[stream_of(row)];
}

/// What the rows of its stream cost that were dropped since the stream's last service.
Ns InferenceServer::caught_up(const Signal& row) {
  if (config_.per_row_ns == 0) return 0;
  return config_.per_row_ns * std::exchange(dropped_[stream_of(row)], 0);
}

}  // namespace hft
