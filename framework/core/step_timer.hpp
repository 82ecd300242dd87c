/// Service times of a network's steps, taken next to them: a caller's own clock in Python would add
/// more than a step takes.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "network.hpp"

namespace hft {

/// What precedes a timed step and is not timed. ARMED: arming. TOUCHED: that, and when other work
/// has run, reading weights and memory again. WINDOW: settling the window that is stepped.
enum class TimedStep : std::uint8_t { STEP = 0, ARMED, TOUCHED, WINDOW };
TimedStep timed_step_of(const std::string& name);  ///< throws std::invalid_argument

struct StepTiming {
  TimedStep mode = TimedStep::STEP;
  std::size_t evict_bytes = 0;    ///< other work before a step: writes to as much memory; 0: none
  std::int64_t gap_ns = 0;        ///< least time from the start of a step to that of the next
  std::size_t window_rows = 100;  ///< of WINDOW
};

/// ns of each of `n` steps of one new stream.
std::vector<std::int64_t> time_steps(const std::shared_ptr<const Network>& network,
                                     const double* rows, std::size_t n, const StepTiming& timing);
/// What reading the clock twice adds to each: the median of many [ns].
std::int64_t clock_overhead_ns();

}  // namespace hft
