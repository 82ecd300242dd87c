#include "fits.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "errors.hpp"
#include "rng.hpp"

namespace hft {

namespace {

constexpr std::uint64_t kReference = 0x666974;  // the stream of these draws; no run uses it

bool believed(const Book& book) noexcept {
  return book.live() && book.trading == Trading::OPEN && book.two_sided() &&
         book.bid() < book.ask();
}

}  // namespace

bool CancelPass::wanted(const Event& e) const noexcept {
  const bool changes = e.kind == Kind::CANCEL || e.kind == Kind::MODIFY || e.kind == Kind::REPLACE;
  return changes && !(e.flags & (RECOVERED | UNCERTAIN | OWN)) && believed(book_);
}

void CancelPass::apply(const Event& e, std::vector<CancelSeen>& out) {
  if (!(e.flags & SEEN_BY_VENUE)) return;
  OrderBook::Resting order;
  const bool there = wanted(e) && book_.orders() && book_.orders()->find(e.order_id, order) &&
                     book_.side(order.side).best() - order.key <= near_;
  if (!there) return book_.apply(e);
  CancelSeen seen = place(e, order);
  refer(seen, e.order_id, order);
  book_.apply(e);
  const auto changes = book_.changes();
  if (changes.empty()) return;
  const OrderBook::Change& c = changes[0];
  // Lots that only went to the back of their own level did not leave it.
  const bool stays = std::ranges::any_of(
      changes.subspan(1), [&](const auto& k) { return k.key == c.key && k.side == c.side; });
  if (c.gone <= 0 || c.traded || stays || c.key != order.key) return;
  seen.gone = c.gone;
  seen.ahead += order.lots - c.gone;  // a smaller order keeps its place: its last lots left
  out.push_back(seen);
}

CancelSeen CancelPass::place(const Event& e, const OrderBook::Resting& order) const {
  CancelSeen seen{};
  seen.ts = e.ts_event;
  seen.side = order.side;
  seen.distance = book_.side(order.side).best() - order.key;
  seen.spread = book_.ask() - book_.bid();
  bool met = false;
  book_.orders()->for_each_at(order.side, order.key * order.side, [&](std::int64_t id, Lots lots) {
    met |= id == e.order_id;
    if (!met) seen.ahead += lots;
    seen.level += lots;
    ++seen.orders;
  });
  return seen;
}

void CancelPass::refer(CancelSeen& c, std::int64_t id, const OrderBook::Resting& order) const {
  c.ref_front = c.ref_back = -1;
  if (c.orders < 2) return;
  const double u = draw_uniform(seed_, kReference, static_cast<std::uint64_t>(c.ts),
                                static_cast<std::uint64_t>(id));
  auto left = static_cast<std::int64_t>(u * static_cast<double>(c.orders - 1));
  Lots front = 0;
  bool met = false;
  book_.orders()->for_each_at(order.side, order.key * order.side,
                              [&](std::int64_t other, Lots lots) {
                                if (other == id) {
                                  met = true;
                                } else if (left-- == 0) {
                                  c.ref_front = front;
                                  c.ref_back = c.level - front - lots;
                                  c.ref_ahead = met;
                                }
                                front += lots;
                              });
}

bool TapePass::trading() const noexcept { return believed(book_); }

void TapePass::apply(const Event& e) {
  if (!(e.flags & SEEN_BY_VENUE)) return;
  emit_grid(e.ts_event);
  const bool follows =
      open_ && is_print(e) && e.ts_event == sweep_.ts && aggressor(e) == sweep_.side;
  if (open_ && !follows) close();
  if (is_print(e)) print(e);
  const bool of_levels = e.kind == Kind::LEVEL || e.kind == Kind::BBO;
  const bool moves = of_levels || (is_order(e.kind) && !(e.flags & NO_CHANGE));
  book_.apply(e);
  // Prints come before the rows that show them; from here on the levels do.
  if (moves && e.side != NO_SIDE) printed_[side_index(e.side)] = 0;
  if (e.flags & LAST) touch(e);
  last_ = e.ts_event;
}

void TapePass::emit_grid(Ts until) {
  const auto at_or_after = [&](Ts ts) { return (ts + step_ns_ - 1) / step_ns_ * step_ns_; };
  if (last_ == kNoTime) {
    next_ = at_or_after(until);
    return;
  }
  // Nothing at all for a minute is a night, or a feed that was down.
  const Ts end = std::min(until, last_ + kQuiet);
  if (trading()) {
    for (; next_ < end; next_ += step_ns_)
      grid.push_back(
          {next_, book_.mid2(), depth(BUY), depth(SELL), book_.bid_lots(), book_.ask_lots(), ofi_});
  }
  next_ = std::max(next_, at_or_after(until));
}

Lots TapePass::depth(int side) const noexcept {
  const Ladder& ladder = book_.side(side);
  Lots sum = 0;
  std::size_t n = 0;
  for (std::int64_t k = ladder.best(); k != kNoKey && n < levels_; k = ladder.next(k), ++n)
    sum += ladder.at(k);
  return sum;
}

void TapePass::print(const Event& e) {
  if (!trading()) return;
  if (aggressor(e) == NO_SIDE) {
    ++unsided;
    return;
  }
  if (!open_) open(e);
  sweep_.lots += e.qty;
  shown_later_ = e.kind != Kind::EXECUTE || (e.flags & NO_CHANGE) != 0;
}

void TapePass::open(const Event& e) {
  const std::int8_t side = aggressor(e);
  const Ladder& hit = book_.side(-side);
  shown_count_ = 0;
  for (std::int64_t k = hit.best(); k != kNoKey && shown_count_ < kWalk; k = hit.next(k))
    shown_[shown_count_++] = {k, hit.at(k)};
  sweep_ = {e.ts_event, side, 0, book_.mid2(), 0, shown_[0].second};
  printed_before_ = printed_[side_index(-side)];
  open_ = true;
}

void TapePass::close() {
  if (!open_) return;
  open_ = false;
  sweep_.walked = walk(printed_before_ + sweep_.lots) - walk(printed_before_);
  sweeps.push_back(sweep_);
  Lots& printed = printed_[side_index(static_cast<int>(-sweep_.side))];
  printed = shown_later_ ? printed_before_ + sweep_.lots : 0;
}

Ticks TapePass::walk(Lots lots) const noexcept {
  std::size_t i = 0;
  for (; i + 1 < shown_count_ && lots >= shown_[i].second; ++i) lots -= shown_[i].second;
  return shown_[0].first - shown_[i].first;
}

/// Order flow imbalance of Cont, Kukanov and Stoikov (2014), eq. 3, a packet at a time.
void TapePass::touch(const Event& e) {
  if (!trading()) {
    bid_ = ask_ = kNoPrice;
    mid2_ = kNoPrice;
    return;
  }
  const Ticks bid = book_.bid(), ask = book_.ask();
  const Lots bid_lots = book_.bid_lots(), ask_lots = book_.ask_lots();
  if (bid_ != kNoPrice) {
    ofi_ += (bid >= bid_ ? bid_lots : 0) - (bid <= bid_ ? bid_lots_ : 0);
    ofi_ -= (ask <= ask_ ? ask_lots : 0) - (ask >= ask_ ? ask_lots_ : 0);
  }
  bid_ = bid, ask_ = ask, bid_lots_ = bid_lots, ask_lots_ = ask_lots;
  if (bid + ask == mid2_) return;
  mid2_ = bid + ask;
  mids.push_back({e.ts_event, mid2_});
}

std::vector<double> decayed_sum(std::span<const Ts> at, std::span<const Ts> ts,
                                std::span<const double> values, double half_life_ns) {
  if (ts.size() != values.size())
    throw ConfigError("decayed_sum: " + std::to_string(ts.size()) + " times, " +
                      std::to_string(values.size()) + " values");
  if (!(half_life_ns > 0)) throw ConfigError("decayed_sum: a half-life must be above 0 ns");
  std::vector<double> out;
  out.reserve(at.size());
  double sum = 0;
  Ts last = 0;
  std::size_t i = 0;
  const auto move_to = [&](Ts to) {
    sum *= std::exp2(-static_cast<double>(to - last) / half_life_ns);
    last = to;
  };
  for (const Ts now : at) {
    for (; i < ts.size() && ts[i] <= now; ++i) {
      if (sum != 0) move_to(ts[i]);
      last = ts[i];
      sum += values[i];
    }
    if (sum != 0) move_to(now);
    out.push_back(sum);
  }
  return out;
}

}  // namespace hft
