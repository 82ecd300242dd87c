/// Reuse of published answers, for models without memory: a row that is near enough to the one that
/// was computed last is given its answer again, at once.
///
/// A row is a hit when all of these hold, tried in this order: the cache is not off, no answer of
/// the stream is under way, one is there, it was reused fewer than `max_reuse` times, its row is at
/// most `max_age_ns` old, more lots stand on the same side of the touch, no scaled input has moved
/// by more than `epsilon` (of a window: none of any row, place by place), and the gap between the
/// two best classes is wider than what that move can close: 2 * sensitivity * distance.
///
/// Of the hits a share, chosen by a keyed draw, are shadows: they are computed all the same, and
/// what would have been reused is compared with what comes. A shadow is published as any computed
/// row is, when its service is over: it has been paid for, the newer answer is the better one, and
/// so every row has one signal at most. What it shows is known at its publication, no sooner. When
/// too many of the last shadows disagreed the cache is off for a while.
///
/// Rows, answers and their losses come in the engine's order, and nothing else is read: fed again,
/// they give the same hits. A look costs a pass over what the model sees, up to the first input
/// that is too far, and a row that is computed a copy of it.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "layers.hpp"
#include "strategy_port.hpp"

namespace hft {

struct ReuseRule {
  Scaler scaler;                ///< of the model: distances are of scaled, clamped inputs
  std::size_t window_rows = 1;  ///< rows that the model sees
  std::size_t classes = 0;      ///< outputs that are class probabilities, the first ones; 2 or more
  bool has_forecast = false;    ///< the output after them is a forecast in ticks
  double sensitivity = 0;       ///< most a probability changes a change of a scaled input
  double epsilon = 0;
  std::int64_t max_reuse = 16;
  Ns max_age_ns = 100'000'000;
  double shadow = 0.05;  ///< share of hits that are computed all the same
  double budget = 0.02;  ///< share of shadows that may disagree
  Ns pause_ns = 10'000'000'000;

  void validate() const;  ///< Throws ConfigError.
};

/// What became of a stream's rows in one second of market time; NumPy sees the same bytes
/// (framework/hft/analysis/records.py).
struct ReuseSecond {
  std::int64_t second;  ///< since the epoch, by the venue's clock
  std::uint32_t model;
  InstrumentId instrument;
  std::uint32_t rows, reused, shadows;
  std::uint32_t compared, disagreed;  ///< shadows whose answers came before the next second's rows
  std::uint32_t trips;                ///< times the cache was turned off
  // Why the others were computed; shadows apart, the reasons add up to them.
  std::uint32_t off, under_way, no_answer, too_often, too_old, side, far, unsure;
};
static_assert(sizeof(ReuseSecond) == 72);

/// Of one stream: a model of one instrument.
class SimilarityCache {
 public:
  static constexpr std::size_t kJudged = 256;  ///< shadows that the budget is held against ...
  static constexpr std::size_t kFewest = 16;   ///< ... and how many there must be

  SimilarityCache(const ReuseRule& rule, std::uint64_t seed, std::uint32_t model,
                  InstrumentId instrument);

  /// Whether `outputs()` answers this row; else the caller computes it. `side`: sign of the bid's
  /// lots less the ask's.
  bool answers(std::span<const double> row, int side, Ts now, Ts ts_event);
  const std::vector<float>& outputs() const noexcept { return answer_.outputs; }
  /// The row of the last look is to be computed: its answer is on its way.
  void ask(Signal& signal);
  /// It was; `signal.outputs` are the model's own.
  void said(const Signal& signal);
  /// It is heard; from now on it is what is given again.
  void publish(const Signal& signal, Ts now);
  /// It never will be.
  void drop(const Signal& signal) noexcept;
  /// After a gap: nothing that was said counts.
  void reset() noexcept;
  /// Another network takes over; without a rule all of its rows are computed.
  void follow(const std::optional<ReuseRule>& rule);

  const std::vector<ReuseSecond>& seconds() const noexcept { return seconds_; }

 private:
  struct Answer {
    std::int64_t number = 0;   ///< of its row
    std::vector<double> rows;  ///< scaled, that the model saw, the oldest first
    int side = 0;
    Ts ts = kNoTime;
    std::size_t best = 0;  ///< class
    double margin = 0;     ///< to the second
    int forecast = 0;      ///< sign
    bool shadow = false;
    std::vector<float> outputs;  ///< as published
  };

  std::uint32_t* why_not(int side, Ts now);
  void take(const ReuseRule& rule);
  bool see(std::span<const double> row);
  double distance() const noexcept;
  bool draws_shadow() const noexcept;
  std::deque<Answer>::iterator asked(const Signal& signal) noexcept;
  void judge(const Answer& shadow, Ts now);
  void count_in(Ts ts_event);

  ReuseRule rule_;
  std::vector<double> inverse_;  // of the scale: as the network does, a product
  std::uint64_t seed_;
  std::uint32_t model_;
  InstrumentId instrument_;
  Answer look_;  // the row looked at last
  bool finite_ = true;
  std::vector<double> ring_;  // rows twice over, so that those the model sees lie side by side
  std::size_t at_ = 0, seen_ = 0;
  Answer answer_;
  bool answered_ = false;
  std::deque<Answer> under_way_;
  std::int64_t reused_in_a_row_ = 0, number_ = 0;
  std::deque<bool> judged_;  // disagreed?
  std::size_t disagreed_ = 0;
  Ts off_until_ = kNoTime;
  std::vector<ReuseSecond> seconds_;
};

}  // namespace hft
