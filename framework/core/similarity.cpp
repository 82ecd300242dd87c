#include "similarity.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "errors.hpp"
#include "rng.hpp"

namespace hft {

namespace {

constexpr Ns kSecond = 1'000'000'000;

void want(bool holds, const char* key, double value, const char* wanted) {
  if (!holds)
    throw ConfigError(std::string("reuse.") + key + " is " + std::to_string(value) + ", want " +
                      wanted);
}

int sign(double x) noexcept { return (x > 0) - (x < 0); }

/// From the best class to the second; NaN where any is, so that nothing is sure.
double margin_of(const std::vector<float>& p, std::size_t best, std::size_t classes) noexcept {
  double margin = std::numeric_limits<double>::infinity();
  for (std::size_t c = 0; c < classes; ++c) {
    if (c == best) continue;
    const double gap = static_cast<double>(p[best]) - static_cast<double>(p[c]);
    if (std::isnan(gap)) return gap;
    margin = std::min(margin, gap);
  }
  return margin;
}

}  // namespace

void ReuseRule::validate() const {
  want(window_rows >= 1, "window_rows", static_cast<double>(window_rows), "1 or more");
  want(classes >= 2, "classes", static_cast<double>(classes), "2 or more");
  want(sensitivity > 0, "sensitivity", sensitivity, "more than 0");
  want(epsilon >= 0, "epsilon", epsilon, "0 or more");
  want(max_reuse >= 0, "max_reuse", static_cast<double>(max_reuse), "0 or more");
  want(max_age_ns >= 0, "max_age", static_cast<double>(max_age_ns), "0 ns or more");
  want(shadow >= 0 && shadow <= 1, "shadow", shadow, "0 to 1");
  want(budget >= 0 && budget <= 1, "budget", budget, "0 to 1");
  want(pause_ns >= 0, "pause", static_cast<double>(pause_ns), "0 ns or more");
}

SimilarityCache::SimilarityCache(const ReuseRule& rule, std::uint64_t seed, std::uint32_t model,
                                 InstrumentId instrument)
    : seed_(seed), model_(model), instrument_(instrument) {
  take(rule);
}

void SimilarityCache::take(const ReuseRule& rule) {
  rule.validate();
  rule_ = rule;
  ring_.clear();
  inverse_.clear();
  for (const double scale : rule.scaler.scale) inverse_.push_back(1 / scale);
}

void SimilarityCache::follow(const std::optional<ReuseRule>& rule) {
  reset();
  judged_.clear();
  disagreed_ = 0;
  off_until_ = rule ? kNoTime : kNever;
  if (rule) take(*rule);
}

bool SimilarityCache::answers(std::span<const double> row, int side, Ts now, Ts ts_event) {
  count_in(ts_event);
  ++seconds_.back().rows;
  finite_ = see(row);
  look_.number = number_++;
  look_.side = side;
  look_.ts = now;
  look_.shadow = false;
  if (std::uint32_t* const reason = why_not(side, now)) {
    ++*reason;
    return false;
  }
  look_.shadow = draws_shadow();
  if (look_.shadow) {
    ++seconds_.back().shadows;
    return false;
  }
  ++seconds_.back().reused;
  ++reused_in_a_row_;
  return true;
}

/// The counter of the first condition that fails; null: a hit.
std::uint32_t* SimilarityCache::why_not(int side, Ts now) {
  ReuseSecond& s = seconds_.back();
  if (now < off_until_) return &s.off;
  if (!under_way_.empty()) return &s.under_way;
  if (!answered_) return &s.no_answer;
  if (reused_in_a_row_ >= rule_.max_reuse) return &s.too_often;
  if (now - answer_.ts > rule_.max_age_ns) return &s.too_old;
  if (side != answer_.side) return &s.side;
  const double moved = distance();
  if (!(moved <= rule_.epsilon)) return &s.far;
  return answer_.margin > 2 * rule_.sensitivity * moved ? nullptr : &s.unsure;
}

/// A row that is not finite leaves no trace, as in the model; it is near to none.
bool SimilarityCache::see(std::span<const double> row) {
  const std::size_t k = row.size(), rows = rule_.window_rows;
  ring_.resize(2 * rows * k);
  if (!std::ranges::all_of(row, [](double x) { return std::isfinite(x); })) return false;
  double* const first = ring_.data() + at_ * k;
  for (std::size_t i = 0; i < k; ++i)
    first[i] = std::clamp((row[i] - rule_.scaler.mean[i]) * inverse_[i], -rule_.scaler.clip,
                          rule_.scaler.clip);
  std::copy_n(first, k, first + rows * k);
  at_ = (at_ + 1) % rows;
  seen_ = std::min(seen_ + 1, rows);
  return true;
}

/// Largest change of an input, the newest rows first; beyond epsilon the first one found.
double SimilarityCache::distance() const noexcept {
  if (!finite_) return std::numeric_limits<double>::infinity();
  const std::size_t size = answer_.rows.size();
  const double* const now = ring_.data() + at_ * (size / rule_.window_rows);
  double largest = 0;
  for (std::size_t i = size; i-- > 0;) {
    largest = std::max(largest, std::abs(now[i] - answer_.rows[i]));
    if (largest > rule_.epsilon) break;
  }
  return largest;
}

bool SimilarityCache::draws_shadow() const noexcept {
  return draw_uniform(seed_, stream_of(Draw::SHADOW, instrument_),
                      static_cast<std::uint64_t>(look_.number), model_) < rule_.shadow;
}

void SimilarityCache::ask(Signal& signal) {
  const std::size_t size = ring_.size() / 2;
  const double* const first = ring_.data() + at_ * (size / rule_.window_rows);
  look_.rows.assign(first, first + (seen_ == rule_.window_rows ? size : 0));
  signal.number = look_.number;
  under_way_.push_back(std::move(look_));
}

void SimilarityCache::said(const Signal& signal) {
  const auto at = asked(signal);
  if (at == under_way_.end()) return;
  const auto& outputs = signal.outputs;
  at->best = 0;
  for (std::size_t c = 1; c < rule_.classes; ++c)
    if (outputs[c] > outputs[at->best]) at->best = c;
  at->margin = margin_of(outputs, at->best, rule_.classes);
  at->forecast = rule_.has_forecast ? sign(static_cast<double>(outputs[rule_.classes])) : 0;
}

std::deque<SimilarityCache::Answer>::iterator SimilarityCache::asked(
    const Signal& signal) noexcept {
  return std::ranges::find(under_way_, signal.number, &Answer::number);
}

void SimilarityCache::publish(const Signal& signal, Ts now) {
  const auto at = asked(signal);
  if (at == under_way_.end()) return;  // asked before a gap
  Answer heard = std::move(*at);
  under_way_.erase(at);
  if (heard.shadow) judge(heard, now);
  answer_ = std::move(heard);
  answer_.outputs = signal.outputs;
  answered_ = !answer_.rows.empty();  // else its window was not full
  reused_in_a_row_ = 0;
}

/// `answer_` is still the one that the shadow would have been given: no other was under way.
void SimilarityCache::judge(const Answer& shadow, Ts now) {
  const bool differs = shadow.best != answer_.best || shadow.forecast != answer_.forecast;
  ReuseSecond& s = seconds_.back();
  ++s.compared;
  s.disagreed += differs;
  judged_.push_back(differs);
  disagreed_ += differs;
  if (judged_.size() > kJudged) {
    disagreed_ -= judged_.front();
    judged_.pop_front();
  }
  if (judged_.size() < kFewest ||
      static_cast<double>(disagreed_) <= rule_.budget * static_cast<double>(judged_.size()))
    return;
  ++s.trips;
  off_until_ = now + rule_.pause_ns;
  judged_.clear();
  disagreed_ = 0;
}

void SimilarityCache::drop(const Signal& signal) noexcept {
  std::erase_if(under_way_, [&](const Answer& a) { return a.number == signal.number; });
}

void SimilarityCache::reset() noexcept {
  under_way_.clear();
  answered_ = false;
  at_ = seen_ = 0;
}

/// Feeds reorder a little: a second that was left is not begun again.
void SimilarityCache::count_in(Ts ts_event) {
  const std::int64_t second = ts_event / kSecond;
  if (!seconds_.empty() && seconds_.back().second >= second) return;
  ReuseSecond fresh{};
  fresh.second = second;
  fresh.model = model_;
  fresh.instrument = instrument_;
  seconds_.push_back(fresh);
}

}  // namespace hft
