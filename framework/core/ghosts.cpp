#include "ghosts.hpp"

#include <tuple>
#include <utility>

#include "rng.hpp"

namespace hft {

namespace {

// Streams of keyed draws that no engine uses.
constexpr std::uint64_t kChoice = 0x67686f7374000001ULL, kPlaces = 0x67686f7374000002ULL;

int levels_before(const Ladder& ladder, std::int64_t key, int most) noexcept {
  int n = 0;
  for (std::int64_t k = ladder.best(); k != kNoKey && k > key && n < most; k = ladder.next(k)) ++n;
  return n;
}

}  // namespace

bool may_be_ghost(const Book& book, const Event& e, int levels) noexcept {
  if (e.kind != Kind::ADD || book.trading != Trading::OPEN || !book.live()) return false;
  const Ladder& other = book.side(-e.side);
  if (other.best() != kNoKey && e.price * e.side >= -other.best()) return false;
  return levels_before(book.side(e.side), e.price * e.side, levels) < levels;
}

void GhostScan::apply(const Event& e) {
  const std::int64_t row = row_++;
  if (!(e.flags & SEEN_BY_VENUE)) return;
  saw_orders_ |= is_order(e.kind);
  book_.apply(e);
  if (may_be_ghost(book_, e, levels_)) rows_.push_back(row);
}

std::vector<std::int64_t> GhostScan::choose(std::size_t most) const {
  if (rows_.size() <= most) return rows_;
  std::vector<std::pair<std::uint64_t, std::int64_t>> drawn;
  drawn.reserve(rows_.size());
  for (const std::int64_t row : rows_)
    drawn.emplace_back(draw_bits(seed_, kChoice, static_cast<std::uint64_t>(row)), row);
  std::nth_element(drawn.begin(), drawn.begin() + static_cast<std::ptrdiff_t>(most), drawn.end());
  std::vector<std::int64_t> rows(most);
  for (std::size_t i = 0; i < most; ++i) rows[i] = drawn[i].second;
  std::sort(rows.begin(), rows.end());
  return rows;
}

Ghosts::Ghosts(GhostConfig config, std::vector<std::int64_t> rows)
    : config_(std::move(config)),
      chosen_(std::move(rows)),
      draws_(static_cast<std::size_t>(config_.particles)) {
  for (const QueueConfig& each : config_.models)  // mean shares would make no probability
    models_.emplace_back(QueueConfig{each.model, each.n, true});
  book_.keeps = config_.keeps;
  out_.reserve(chosen_.size());
  forecasts_.resize(chosen_.size() * models_.size());
}

void Ghosts::apply(const Event& e) {
  if (e.flags & SEEN_BY_VENUE) {
    if (is_waiting_ && !(e.kind == Kind::EXECUTE && e.flags & NO_CHANGE)) flush();
    close_due(e.ts_event);
    if (is_order(e.kind)) {
      on_order(e);
    } else if (e.kind == Kind::TRADE) {
      on_trade(e);
    } else {
      on_rare(e);
    }
    if (e.flags & LAST) {
      book_.end_packet(e);
      ++packet_;
    }
    if (!touched_.empty()) settle();
  }
  ++row_;
}

void Ghosts::finish() {
  if (is_waiting_) flush();
  settle();
  close_all(GhostEnd::DATA, book_.ts_event);
  forecasts_.resize(out_.size() * models_.size());
}

// ---- the tape moves ----

void Ghosts::on_order(const Event& e) {
  if (e.kind == Kind::EXECUTE) on_execute(e);
  const auto changes = book_.apply_order(e);
  bool hot = false;
  for (const auto& c : changes) hot |= book_.side(c.side).hot(c.key);
  if (hot) on_changes(e, changes);
  if (next_ < chosen_.size() && chosen_[next_] == row_) hide(e);
}

void Ghosts::on_execute(const Event& e) {
  if (e.ts_event != hits_ts_) {  // executions whose print never came
    for (const std::uint32_t slot : hits_) pool_[slot].hit = 0;
    hits_.clear();
    hits_ts_ = e.ts_event;
  }
  const bool matched = e.side == NO_SIDE;  // an auction's: it ends windows
  for (const std::int64_t id : {e.order_id, matched ? e.ref_id : 0}) {
    const std::size_t at = id == 0 || id == IntMap::kEmpty ? IntMap::kNone : ids_.find(id);
    if (at == IntMap::kNone) continue;
    if (matched) {
      leave(pool_[ids_.value(at)], GhostEnd::STOPPED, e.ts_event);
    } else {
      execute(ids_.value(at), e);
    }
  }
  if (matched || e.flags & NO_PRINT) return;
  print(e, e.side, true);
}

/// The ghost's own order traded.
void Ghosts::execute(std::uint32_t slot, const Event& e) {
  Ghost& g = pool_[slot];
  GhostRow& row = out_[g.index];
  if (e.price != row.price) return leave(g, GhostEnd::MOVED, e.ts_event);
  if (row.ts_fill == kNever) row.ts_fill = row.ts_place_fill = e.ts_event;
  if (g.hit == 0) hits_.push_back(slot);
  g.hit += e.qty;
  touched_.push_back(slot);
}

/// A print whose change of the book comes as rows of its own waits for the executions after it,
/// which say whom it met. Any other is a hidden order's or a cross's: levels cannot tell, `exact`
/// can.
void Ghosts::on_trade(const Event& e) {
  book_.last_price = e.price;
  if (book_.trading != Trading::OPEN) return;
  if (e.flags & NO_CHANGE) {
    waiting_ = e;
    is_waiting_ = true;
  } else {
    print(e, e.side != NO_SIDE ? -e.side : book_.passive_side(e.price), false);
  }
}

void Ghosts::flush() {
  is_waiting_ = false;
  const Event e = waiting_;
  print(e, e.side != NO_SIDE ? -e.side : book_.passive_side(e.price), true);
}

void Ghosts::on_rare(const Event& e) {
  const bool told_anew = e.kind == Kind::CLEAR || e.kind == Kind::SNAPSHOT_BEGIN;
  book_.apply_rare(e);
  if (told_anew || (e.kind == Kind::STATUS && e.ref_id != static_cast<std::int64_t>(Trading::OPEN)))
    close_all(GhostEnd::STOPPED, e.ts_event);
}

/// A print meets the shadows at better prices, then those at its own.
void Ghosts::print(const Event& e, int side, bool known) {
  if (side != NO_SIDE && book_.trading == Trading::OPEN) {
    const std::int64_t key = e.price * side;
    for (auto& [at, level] : levels_[side_index(side)]) {
      if (at < key) break;
      for (const std::uint32_t slot : level) {
        reach(pool_[slot], e.qty, at > key, known, e.ts_event);
        touched_.push_back(slot);
      }
    }
  }
  for (const std::uint32_t slot : hits_) pool_[slot].hit = 0;
  hits_.clear();
}

void Ghosts::reach(Ghost& g, Lots lots, bool through, bool known, Ts ts) {
  const Lots hit = std::min(g.hit, lots);
  const Lots told = config_.prints_removed ? lots - hit : lots;
  if (told == 0) return;
  if (known || through) reach_exact(g, told, through, ts);
  if (through) {
    if (g.averse_filled == kNever) g.averse_filled = ts;
  } else {
    if (averse_.print(g.averse, told, 0, ts) > 0 && g.averse_filled == kNever) g.averse_filled = ts;
    g.averse.traded -= told - (lots - hit);
  }
  if (g.unfilled > 0) reach_models(g, told, through, ts);
}

void Ghosts::reach_exact(Ghost& g, Lots lots, bool through, Ts ts) {
  // What a print took is told by rows after it: until they are all there, only `exact_ahead` knows.
  if (g.packet != packet_ && g.averse.traded == 0) g.exact_ahead = g.before;
  g.packet = packet_;
  GhostRow& row = out_[g.index];
  if (through || lots > g.exact_ahead) {
    if (!g.ended && row.ts_exact == kNever) row.ts_exact = ts;
    if (g.gone && row.ts_place_fill == kNever) row.ts_place_fill = ts;
  }
  g.exact_ahead = std::max(g.exact_ahead - lots, Lots{0});
}

void Ghosts::reach_models(Ghost& g, Lots lots, bool through, Ts ts) {
  const double size = static_cast<double>(lots);
  for (std::size_t i = 0; i < g.ahead.size(); ++i) {
    if (g.ahead[i] < 0) continue;
    if (through || g.ahead[i] < size) {
      g.ahead[i] = -1;
      g.filled[i] = ts;
      --g.unfilled;
    } else {
      g.ahead[i] -= size;
    }
  }
}

/// One row's changes of a level are one, as a feed of levels would tell them.
void Ghosts::on_changes(const Event& e, std::span<const OrderBook::Change> changes) {
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const OrderBook::Change& c = changes[i];
    const auto same = [&](const auto& k) { return k.key == c.key && k.side == c.side; };
    if (std::ranges::any_of(changes.subspan(i + 1), same)) continue;
    auto& levels = levels_[side_index(c.side)];
    const auto at = levels.find(c.key);
    if (at == levels.end()) continue;
    const Lots before = std::ranges::find_if(changes, same)->before;
    for (const std::uint32_t slot : at->second) {
      Ghost& g = pool_[slot];
      const Lots own = g.own;
      for (const auto& each : changes)
        if (same(each)) change(g, each, e);
      resize(g, before - own, c.after - g.own, e.ts_event);
    }
  }
}

void Ghosts::change(Ghost& g, const OrderBook::Change& c, const Event& e) {
  if (c.arrival > g.arrival) return;
  if (c.arrival < g.arrival) {
    g.before -= c.gone;
    if (!c.traded) g.exact_ahead = std::max(g.exact_ahead - c.gone, Lots{0});
    return;
  }
  g.own -= c.gone;
  if (g.own > 0) return;
  const bool moved = e.kind == Kind::MODIFY || e.kind == Kind::REPLACE;
  leave(g, c.traded ? GhostEnd::HORIZON : moved ? GhostEnd::MOVED : GhostEnd::CANCELED, e.ts_event);
}

void Ghosts::resize(Ghost& g, Lots before, Lots after, Ts ts) {
  if (after == before) return;  // without the order there is no such row
  if (after < before && g.unfilled > 0) thin(g, before, after, ts);
  averse_.resize(g.averse, before, after, ts);
}

/// A level with the shadow in it shrank. What prints do not explain was cancelled: before the
/// shadow or behind it, by a draw a particle.
void Ghosts::thin(Ghost& g, Lots before, Lots after, Ts ts) {
  const std::uint64_t key = draw_bits(config_.seed, kPlaces, static_cast<std::uint64_t>(row_),
                                      static_cast<std::uint64_t>(out_[g.index].row));
  for (std::size_t p = 0; p < draws_.size(); ++p)
    draws_[p] = static_cast<double>(mix64(key ^ p) >> 11) * 0x1.0p-53;
  Order::Resting shadow = g.averse;  // prints are the same to all
  for (std::size_t m = 0, i = 0; m < models_.size(); ++m)
    for (std::size_t p = 0; p < draws_.size(); ++p, ++i) {
      if (g.ahead[i] <= 0) continue;
      shadow.ahead = g.ahead[i];
      shadow.traded = g.averse.traded;
      models_[m].resize(shadow, before, after, ts, draws_[p]);
      g.ahead[i] = shadow.ahead;
    }
}

// ---- ghosts come and go ----

void Ghosts::hide(const Event& e) {
  ++next_;
  OrderBook::Resting x;
  if (!book_.orders()->find(e.order_id, x)) return;
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(pool_.size()));
    pool_.emplace_back();
  }
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  Ghost& g = pool_[slot];
  const std::size_t particles = models_.size() * draws_.size();
  const Ladder& ladder = book_.side(x.side);
  const Lots ahead = ladder.at(x.key) - x.lots;
  GhostRow row{};
  row.row = row_;
  row.ts = e.ts_event;
  row.ts_fill = row.ts_place_fill = row.ts_exact = kNever;
  row.ts_end = row.ts_place_end = e.ts_event + config_.horizon_ns;
  row.price = e.price;
  row.lots = x.lots;
  row.ahead = ahead;
  row.level = levels_before(ladder, x.key, std::numeric_limits<int>::max());
  row.side = x.side;
  g = Ghost{};
  g.index = out_.size();
  g.id = e.order_id;
  g.key = x.key;
  g.arrival = x.arrival;
  g.own = x.lots;
  g.before = g.exact_ahead = ahead;
  g.averse.ahead = static_cast<double>(ahead);
  g.ahead.assign(particles, static_cast<double>(ahead));
  g.filled.assign(particles, kNever);
  g.unfilled = static_cast<int>(particles);
  for (std::size_t m = 0; m < models_.size(); ++m) {
    if (config_.models[m].model != QueueModel::RISK_AVERSE) continue;  // `averse` has its one place
    std::fill_n(g.ahead.begin() + static_cast<std::ptrdiff_t>(m * draws_.size()), draws_.size(),
                -1.0);
    g.unfilled -= config_.particles;
  }
  g.open = true;
  out_.push_back(row);
  ids_.insert(g.id, slot);
  Level& level = levels_[side_index(x.side)][x.key];
  if (level.empty()) book_.side(x.side).heat(x.key);
  level.push_back(slot);
  due_.push_back(slot);
}

/// The order is gone; its shadow stays for the place's window. Forecasts are taken here and not by
/// time: what comes later with the same stamp is beyond the order's window.
void Ghosts::leave(Ghost& g, GhostEnd why, Ts ts) {
  if (g.gone) return;
  g.gone = true;
  ids_.erase(ids_.find(g.id));
  if (why != GhostEnd::HORIZON) end_window(g, why, ts);
}

void Ghosts::end_window(Ghost& g, GhostEnd why, Ts ts) {
  if (std::exchange(g.ended, true)) return;
  GhostRow& row = out_[g.index];
  row.end = why;
  row.ts_end = std::min(row.ts_end, ts);
  for (std::size_t m = 0; m < models_.size(); ++m)
    std::tie(said(g, m).filled, said(g, m).ts_filled) = filled_so_far(g, m);
}

void Ghosts::close_due(Ts ts) {
  while (!due_.empty()) {
    const Ghost& g = pool_[due_.front()];
    if (g.open && out_[g.index].ts + config_.horizon_ns >= ts) return;
    if (g.open) close(due_.front(), GhostEnd::HORIZON, ts);
    free_.push_back(due_.front());
    due_.pop_front();
  }
}

void Ghosts::close_all(GhostEnd why, Ts ts) {
  close_due(ts);
  for (const std::uint32_t slot : due_) {
    if (pool_[slot].open) close(slot, why, ts);
    free_.push_back(slot);
  }
  due_.clear();
  for (const std::uint32_t slot : hits_) pool_[slot].hit = 0;
  hits_.clear();
}

void Ghosts::close(std::uint32_t slot, GhostEnd why, Ts ts) {
  Ghost& g = pool_[slot];
  GhostRow& row = out_[g.index];
  row.ts_place_end = std::min(row.ts_place_end, ts);
  end_window(g, why, ts);
  for (std::size_t m = 0; m < models_.size(); ++m)
    std::tie(said(g, m).place_filled, said(g, m).ts_place_filled) = filled_so_far(g, m);
  auto& levels = levels_[side_index(row.side)];
  const auto at = levels.find(g.key);
  std::erase(at->second, slot);
  if (at->second.empty()) {
    book_.side(row.side).cool(g.key);
    levels.erase(at);
  }
  if (!g.gone) ids_.erase(ids_.find(g.id));
  g.open = false;
  g.ahead = {};
  g.filled = {};
}

/// Particles of a model that are filled, and the median of when.
std::pair<std::int64_t, Ts> Ghosts::filled_so_far(const Ghost& g, std::size_t model) {
  const std::size_t n = draws_.size();
  if (config_.models[model].model == QueueModel::RISK_AVERSE)
    return {g.averse_filled == kNever ? 0 : config_.particles, g.averse_filled};
  const auto first = g.filled.begin() + static_cast<std::ptrdiff_t>(model * n);
  sorted_.assign(first, first + static_cast<std::ptrdiff_t>(n));
  std::sort(sorted_.begin(), sorted_.end());
  const auto filled = std::ranges::lower_bound(sorted_, kNever) - sorted_.begin();
  return {filled, filled == 0 ? kNever : sorted_[static_cast<std::size_t>((filled - 1) / 2)]};
}

/// Nothing can change for a ghost whose models, order and place are all decided.
void Ghosts::settle() {
  for (const std::uint32_t slot : touched_) {
    const Ghost& g = pool_[slot];
    if (!g.open || g.unfilled > 0 || g.averse_filled == kNever) continue;
    const GhostRow& row = out_[g.index];
    if (row.ts_place_fill == kNever) continue;
    if (!g.ended && (row.ts_fill == kNever || row.ts_exact == kNever)) continue;
    close(slot, GhostEnd::HORIZON, kNever);
  }
  touched_.clear();
}

}  // namespace hft
