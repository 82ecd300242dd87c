/// Target verbs: a strategy says what should rest, the engine sends what is missing.
///
/// An unchanged target is O(1): the last one is remembered with the order generation at which
/// everything stood as asked. An order that is right keeps its place; a move is a replace where the
/// venue has one, else a cancel and, on its answer, a new order (`Moves`). In flight included,
/// never more rests than was asked, but for `OVERLAP`.
#include <cmath>

#include "engine.hpp"

namespace hft {

Ticks Engine::clamp_passive(const Market& m, int side, Ticks price) const noexcept {
  const std::int64_t key = price * side;
  const SeenBook book = m.seen(now_);
  if (const std::int64_t own = book.best(side); own != kNoKey) return std::min(key, own) * side;
  const std::int64_t other = book.best(-side);
  if (other != kNoKey) return std::min(key, -other - 1) * side;
  return price;
}

void Engine::ladder(InstrumentId inst, int side, double start, std::int64_t step, int levels,
                    Lots lots) {
  if (step <= 0 && levels > 1)
    throw OrderError("ladder: the step must be positive, was " + std::to_string(step));
  if (levels < 1)
    throw OrderError("ladder: levels must be at least 1, was " + std::to_string(levels));
  if (lots < 0) throw OrderError("lots must not be negative, was " + std::to_string(lots));
  Market& m = market(inst);
  Target& t = m.targets[side_index(side)];
  if (levels == 1) step = 1;  // it says nothing then, and may be 0
  if (lots == 0) levels = 0;
  Ticks first = t.start;
  if (levels > 0) {
    if (!(std::abs(start) < 9e15))
      throw OrderError("quote: the price must be finite, was " + std::to_string(start));
    // Outward: a bid down, an ask up, never better than asked for.
    first = clamp_passive(m, side,
                          static_cast<Ticks>(side == BUY ? std::floor(start) : std::ceil(start)));
  }
  if (t.set && t.start == first && t.step == step && t.levels == levels && t.lots == lots &&
      t.seen == m.order_generation)
    return;
  t.set = true;
  t.start = first;
  t.step = step;
  t.levels = levels;
  t.lots = lots;
  const bool done = place(m, side);
  t.seen = done ? m.order_generation : ~0ULL;
}

/// False when the gate refused a part, or the market is shut and would: the next call asks again.
bool Engine::place(Market& m, int side) {
  Target& t = m.targets[side_index(side)];
  const bool shut = m.book.trading == Trading::HALT || m.book.trading == Trading::CLOSED;
  if (shut && t.levels > 0) return false;
  const auto level_of = [&](Ticks price) {  // -1: none of those asked for
    const std::int64_t away = (t.start - price) * side;
    return away >= 0 && away % t.step == 0 && away / t.step < t.levels ? away / t.step : -1;
  };
  const auto going_to = [](const Order* o) {  // where it will rest if all in flight succeeds
    return o->row.state == OrderState::PENDING_REPLACE ? o->asked_price : o->row.price;
  };
  const bool can_replace = m.inst.can_replace && config_.moves == Moves::ON_ANSWER;

  held_.assign(static_cast<std::size_t>(t.levels), false);
  const auto hold = [&](Ticks price) {
    if (const std::int64_t k = level_of(price); k >= 0) held_[static_cast<std::size_t>(k)] = true;
  };
  for (const Order* o : t.orders)
    if (config_.moves == Moves::OVERLAP || !o->cancelling) hold(going_to(o));
  // Two own orders of both sides at one price would trade with each other.
  for (const Order* o : m.targets[side_index(-side)].orders) hold(o->row.price);
  missing_.clear();
  for (int k = 0; k < t.levels; ++k) {
    const Ticks price = t.start - side * t.step * k;
    if (!held_[static_cast<std::size_t>(k)] && m.possible(price)) missing_.push_back(price);
  }

  std::size_t next = 0;
  bool done = true, all_steady = true;
  for (std::size_t i = 0; i < t.orders.size(); ++i) {
    Order* o = t.orders[i];
    if (!o->steady()) {
      all_steady = false;
      continue;
    }
    if (level_of(o->row.price) >= 0) {
      // What a fill took is not topped up, for that costs the place: only a new size asked for is.
      const Lots leaves = o->leaves();
      if (leaves <= t.lots && (leaves == t.lots || t.sized == t.lots)) continue;
      if (can_replace) {
        done &= replace(*o, o->row.price, o->row.cum_lots + t.lots);
      } else {
        cancel(*o);
      }
      continue;
    }
    if (can_replace && next < missing_.size()) {
      done &= replace(*o, missing_[next++], o->row.cum_lots + t.lots);
    } else {
      cancel(*o);
    }
  }
  if (all_steady) t.sized = t.lots;

  Lots resting = 0;
  for (const Order* o : t.orders) resting += o->reserved;
  for (; next < missing_.size(); ++next) {
    if (config_.moves != Moves::OVERLAP) {
      if (resting + t.lots > t.levels * t.lots) break;  // never more than asked, in flight included
      resting += t.lots;
    }
    Order& o = submit(m.inst.id, side, t.lots, missing_[next], Tif::POST_ONLY, 0, 0);
    if (!o.alive()) return false;
    o.quoted = true;
    t.orders.push_back(&o);
  }
  return done;
}

/// A move finishes when its cancel is answered. A refusal does not retry: the next call judges
/// anew.
void Engine::place_again(Order& o) {
  if (config_.moves != Moves::ON_ANSWER || o.row.state == OrderState::REJECTED) return;
  Market& m = market(o.row.instrument);
  Target& t = m.targets[side_index(o.row.side)];
  if (!t.set || o.row.state == OrderState::FILLED || !m.book.live()) return;
  if (t.levels > 0) t.start = clamp_passive(m, o.row.side, t.start);
  place(m, o.row.side);
  t.seen = ~0ULL;
}

}  // namespace hft
