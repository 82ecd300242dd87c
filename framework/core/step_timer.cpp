#include "step_timer.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "window.hpp"

namespace hft {
namespace {

std::int64_t now_ns() noexcept {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

template <class Before, class Step>
std::vector<std::int64_t> timed(std::size_t n, std::int64_t gap_ns, Before&& before, Step&& step) {
  std::vector<std::int64_t> ns(n);
  std::int64_t due = now_ns();
  for (std::size_t i = 0; i < n; ++i) {
    before(i);
    std::int64_t start = now_ns();
    while (start < due) start = now_ns();
    step(i);
    ns[i] = now_ns() - start;
    due = start + gap_ns;
  }
  return ns;
}

}  // namespace

TimedStep timed_step_of(const std::string& name) {
  constexpr const char* kNames[] = {"step", "armed", "touched", "window"};
  for (std::uint8_t i = 0; i < 4; ++i)
    if (name == kNames[i]) return static_cast<TimedStep>(i);
  throw std::invalid_argument("no mode '" + name + "'; there are step, armed, touched, window");
}

std::vector<std::int64_t> time_steps(const std::shared_ptr<const Network>& network,
                                     const double* rows, std::size_t n, const StepTiming& timing) {
  std::vector<unsigned char> other(timing.evict_bytes);
  const auto evict = [&] {
    for (std::size_t at = 0; at < other.size(); at += 64) {
      volatile unsigned char& one = other[at];
      one = static_cast<unsigned char>(one + 1);
    }
  };
  std::vector<float> out(network->outputs());
  std::vector<double> row(network->inputs());
  const auto make_row = [&](std::size_t i) {  // last, as the engine makes it: into its cache
    std::copy_n(rows + i * row.size(), row.size(), row.data());
  };
  if (timing.mode == TimedStep::WINDOW) {
    WindowState window(network, timing.window_rows);
    const auto before = [&](std::size_t i) {
      window.settle();
      evict();
      make_row(i);
    };
    return timed(n, timing.gap_ns, before,
                 [&](std::size_t) { window.step(row.data(), out.data()); });
  }
  NetworkState state = network->state();
  const auto before = [&](std::size_t i) {
    if (timing.mode != TimedStep::STEP) network->arm(state);
    evict();
    if (timing.mode == TimedStep::TOUCHED) {
      network->touch();
      network->touch(state);
    }
    make_row(i);
  };
  return timed(n, timing.gap_ns, before,
               [&](std::size_t) { network->step(state, row.data(), out.data()); });
}

std::int64_t clock_overhead_ns() {
  auto ns = timed(1'001, 0, [](std::size_t) {}, [](std::size_t) {});
  std::nth_element(ns.begin(), ns.begin() + 500, ns.end());
  return ns[500];
}

}  // namespace hft
