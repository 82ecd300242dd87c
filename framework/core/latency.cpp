#include "latency.hpp"

#include <cmath>

#include "errors.hpp"

namespace hft {

namespace {

constexpr Ns kLongest = 86'400'000'000'000;  // a day: sums with any time of a run stay in range

enum class Kind : std::uint8_t { CONSTANT, RECORDED, EMPIRICAL, WALK, BY_ORDER };

[[noreturn]] void refuse(const std::string& leg, const std::string& why) {
  throw ConfigError(leg + ": " + why);
}

std::string row(std::size_t i) { return "row " + std::to_string(i); }

void check_delays(const std::vector<Ns>& ns, const std::string& leg) {
  for (std::size_t i = 0; i < ns.size(); ++i)
    if (ns[i] < 0 || ns[i] > kLongest)
      refuse(leg, row(i) + " is " + std::to_string(ns[i]) + " ns; a latency is 0 ns to a day");
}

void check_times(const std::vector<Ts>& ts, const char* what, const std::string& leg) {
  for (std::size_t i = 0; i < ts.size(); ++i) {
    if (ts[i] < 0)
      refuse(leg, std::string(what) + " of " + row(i) + " is " + std::to_string(ts[i]) +
                      "; want ns since the epoch, 0 or more");
    if (i > 0 && ts[i] < ts[i - 1])
      refuse(leg, std::string(what) + " of " + row(i) + " is " + std::to_string(ts[i]) +
                      ", before that of the row above, " + std::to_string(ts[i - 1]) +
                      "; sort the rows by time");
  }
}

void check_lengths(std::size_t keys, const char* what, std::size_t values, const std::string& leg) {
  if (keys != values || keys == 0)
    refuse(leg, "needs as many " + std::string(what) + " as durations and at least one, had " +
                    std::to_string(keys) + " and " + std::to_string(values));
}

/// How many of a sorted column's times are at or before one: a directory of even stretches of time
/// leaves a few to compare, where a search of the whole would miss the cache at every other step.
class Sorted {
 public:
  Sorted() = default;
  explicit Sorted(std::vector<Ts> ts) : ts_(std::move(ts)) {
    const auto span = static_cast<std::uint64_t>(ts_.back()) - static_cast<std::uint64_t>(ts_[0]);
    while (span >> shift_ >= ts_.size()) ++shift_;
    first_.reserve((span >> shift_) + 2);
    for (std::uint64_t stretch = 0; stretch <= (span >> shift_) + 1; ++stretch) {
      std::size_t i = first_.empty() ? 0 : first_.back();
      while (i < ts_.size() && from_start(ts_[i]) >> shift_ < stretch) ++i;
      first_.push_back(static_cast<std::uint32_t>(i));
    }
  }

  std::size_t at_or_before(Ts t) const noexcept {
    if (t < ts_[0]) return 0;
    if (t >= ts_.back()) return ts_.size();
    const auto stretch = static_cast<std::size_t>(from_start(t) >> shift_);
    const auto from = ts_.begin() + first_[stretch], to = ts_.begin() + first_[stretch + 1];
    return static_cast<std::size_t>(std::upper_bound(from, to, t) - ts_.begin());
  }
  Ts operator[](std::size_t i) const noexcept { return ts_[i]; }
  std::size_t size() const noexcept { return ts_.size(); }

 private:
  std::uint64_t from_start(Ts t) const noexcept {
    return static_cast<std::uint64_t>(t) - static_cast<std::uint64_t>(ts_[0]);
  }
  std::vector<Ts> ts_;
  unsigned shift_ = 0;
  std::vector<std::uint32_t> first_;  ///< row at or after the start of each stretch
};

}  // namespace

struct Latency::Table {
  Kind kind = Kind::CONSTANT;
  Sorted ts;
  std::vector<Ns> ns;
  Sorted block_ts;
  std::vector<std::int64_t> block_at;
  Ts period = 0;
  std::uint64_t seed = 0, stream = 0;
  std::vector<OrderId> ids;  // ascending
  Latency otherwise;

  Ns recorded(Ts t) const noexcept { return ns[std::max<std::size_t>(ts.at_or_before(t), 1) - 1]; }
  Ns walked(Ts t) const noexcept;
};

Ns Latency::Table::walked(Ts t) const noexcept {
  const std::size_t block = std::max<std::size_t>(block_ts.at_or_before(t), 1) - 1;
  Ts into =
      (ts[static_cast<std::size_t>(block_at[block])] - ts[0] + (t - block_ts[block])) % period;
  if (into < 0) into += period;  // before the first block
  const Ts at = ts[0] + into;
  const std::size_t i = ts.at_or_before(at - 1);  // of rows at one time the first
  if (i == 0) return ns[0];
  const Ts next = i == ts.size() ? ts[0] + period : ts[i];
  if (at - ts[i - 1] <= next - at) return ns[i - 1];
  return i == ts.size() ? ns[0] : ns[i];
}

Latency Latency::of_table(Table table) {
  Ns least = std::ranges::min(table.ns);
  if (table.kind == Kind::BY_ORDER) least = std::min(least, table.otherwise.least());
  return {least, std::make_shared<const Table>(std::move(table))};
}

Latency Latency::constant(Ns ns, const std::string& leg) {
  check_delays({ns}, leg);
  return {ns, nullptr};
}

Latency Latency::recorded(std::vector<Ts> ts, std::vector<Ns> ns, const std::string& leg) {
  check_lengths(ts.size(), "times", ns.size(), leg);
  check_times(ts, "the time", leg);
  check_delays(ns, leg);
  Table t;
  t.kind = Kind::RECORDED;
  t.ts = Sorted(std::move(ts));
  t.ns = std::move(ns);
  return of_table(std::move(t));
}

Latency Latency::empirical(std::vector<Ns> ns, std::uint64_t seed, std::uint64_t stream,
                           const std::string& leg) {
  if (ns.empty()) refuse(leg, "has no samples to draw from");
  check_delays(ns, leg);
  Table t;
  t.kind = Kind::EMPIRICAL;
  t.ns = std::move(ns);
  t.seed = seed;
  t.stream = stream;
  return of_table(std::move(t));
}

Latency Latency::walk(std::vector<Ts> ts, std::vector<Ns> ns, std::vector<Ts> block_ts,
                      std::vector<std::int64_t> block_at, const std::string& leg) {
  check_lengths(ts.size(), "times", ns.size(), leg);
  check_times(ts, "the time", leg);
  check_delays(ns, leg);
  if (block_ts.size() != block_at.size() || block_ts.empty())
    refuse(leg,
           "needs as many beginnings of blocks as rows they begin with and at least one, had " +
               std::to_string(block_ts.size()) + " and " + std::to_string(block_at.size()));
  check_times(block_ts, "the beginning of the block", leg);
  for (std::size_t i = 0; i < block_at.size(); ++i)
    if (block_at[i] < 0 || static_cast<std::size_t>(block_at[i]) >= ts.size())
      refuse(leg, "the block of " + row(i) + " begins with row " + std::to_string(block_at[i]) +
                      " of the trace, which has " + std::to_string(ts.size()));
  Table t;
  t.kind = Kind::WALK;
  const Ts span = ts.back() - ts.front();
  const auto steps = static_cast<Ts>(std::max<std::size_t>(ts.size() - 1, 1));
  t.period = span + std::max<Ts>(span / steps, 1);
  t.ts = Sorted(std::move(ts));
  t.ns = std::move(ns);
  t.block_ts = Sorted(std::move(block_ts));
  t.block_at = std::move(block_at);
  return of_table(std::move(t));
}

Latency Latency::by_order(std::vector<OrderId> ids, std::vector<Ns> ns, Latency otherwise,
                          const std::string& leg) {
  check_lengths(ids.size(), "orders", ns.size(), leg);
  check_delays(ns, leg);
  for (std::size_t i = 1; i < ids.size(); ++i)
    if (ids[i] <= ids[i - 1])
      refuse(leg, "the order of " + row(i) + " is " + std::to_string(ids[i]) + " after " +
                      std::to_string(ids[i - 1]) + "; sort by order, each once");
  Table t;
  t.kind = Kind::BY_ORDER;
  t.ids = std::move(ids);
  t.ns = std::move(ns);
  t.otherwise = std::move(otherwise);
  return of_table(std::move(t));
}

Ns Latency::look_up(Ts ts, std::uint64_t n) const noexcept {
  const Table& t = *table_;
  switch (t.kind) {
    case Kind::RECORDED:
      return t.recorded(ts);
    case Kind::EMPIRICAL:
      return t.ns[draw_bits(t.seed, t.stream, static_cast<std::uint64_t>(ts), n) % t.ns.size()];
    case Kind::WALK:
      return t.walked(ts);
    case Kind::BY_ORDER:
      return t.otherwise.at(ts, n);
    case Kind::CONSTANT:
      break;
  }
  return least_;
}

Ns Latency::look_up_order(OrderId order, Ts ts, std::uint64_t n) const noexcept {
  const Table& t = *table_;
  if (t.kind != Kind::BY_ORDER) return look_up(ts, n);
  const auto at = std::lower_bound(t.ids.begin(), t.ids.end(), order);
  if (at == t.ids.end() || *at != order) return t.otherwise.of(order, ts, n);
  return t.ns[static_cast<std::size_t>(at - t.ids.begin())];
}

Ns Latency::median() const noexcept {
  if (table_ == nullptr) return least_;
  if (table_->kind == Kind::BY_ORDER) return table_->otherwise.median();
  std::vector<Ns> ns = table_->ns;
  const auto middle = ns.begin() + static_cast<std::ptrdiff_t>((ns.size() - 1) / 2);
  std::nth_element(ns.begin(), middle, ns.end());
  return *middle;
}

Latency Latency::scaled(double factor, const std::string& leg) const {
  if (!(factor >= 0) || !std::isfinite(factor))
    refuse(leg, "cannot be multiplied by " + std::to_string(factor) + "; want a number from 0");
  const auto times = [factor](Ns ns) {
    // Above, a product would leave the range of Ns; the check after refuses it.
    const double product = std::min(static_cast<double>(ns) * factor, 9e18);
    return static_cast<Ns>(std::nearbyint(product));
  };
  if (table_ == nullptr) return constant(times(least_), leg);
  Table t = *table_;
  for (Ns& ns : t.ns) ns = times(ns);
  check_delays(t.ns, leg);
  t.otherwise = t.otherwise.scaled(factor, leg);
  return of_table(std::move(t));
}

}  // namespace hft
