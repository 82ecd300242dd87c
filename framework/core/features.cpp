#include "features.hpp"

#include <array>

#include "errors.hpp"

namespace hft {
namespace {

constexpr std::array<std::string_view, 21> kFeatureNames = {"mid",
                                                            "micro_price",
                                                            "micro_price_minus_mid",
                                                            "spread",
                                                            "imbalance",
                                                            "ofi",
                                                            "trade_flow",
                                                            "trade_lots",
                                                            "trade_count",
                                                            "volatility",
                                                            "mid_return",
                                                            "depth_lots",
                                                            "level_distance",
                                                            "since_event",
                                                            "since_trade",
                                                            "since_row",
                                                            "order_count",
                                                            "order_count_imbalance",
                                                            "add_flow",
                                                            "cancel_flow",
                                                            "own"};

double log_us(Ns duration) noexcept {
  return log_one_plus(static_cast<double>(std::max<Ns>(duration, 0)) / 1e3);
}

bool needs_side(FeatureKind kind) noexcept {
  return kind == FeatureKind::DEPTH_LOTS || kind == FeatureKind::LEVEL_DISTANCE ||
         kind == FeatureKind::ORDER_COUNT;
}

bool reads_levels(FeatureKind kind) noexcept {
  return needs_side(kind) || kind == FeatureKind::IMBALANCE || kind == FeatureKind::OFI ||
         kind == FeatureKind::ORDER_COUNT_IMBALANCE;
}

bool needs_window(FeatureKind kind) noexcept {
  return kind == FeatureKind::VOLATILITY || kind == FeatureKind::MID_RETURN;
}

[[noreturn]] void refuse(const FeatureSpec& spec, const std::string& why) {
  throw ConfigError("feature '" + spec.name + "': " + why);
}

void check(const FeatureSpec& spec) {
  if (spec.levels < 1 || spec.levels > FeatureSet::kMaxLevels)
    refuse(spec, "levels is " + std::to_string(spec.levels) + ", must be 1 to " +
                     std::to_string(FeatureSet::kMaxLevels));
  if (spec.window_ns < 0) refuse(spec, "window is negative");
  if (needs_window(spec.kind) && spec.window_ns < 1'000)
    refuse(spec, "needs a window of 1us or more");
  if (needs_side(spec.kind) && spec.side == NO_SIDE) refuse(spec, "needs a side, BUY or SELL");
  if (spec.kind == FeatureKind::OWN && !spec.make_own) refuse(spec, "has no update function");
}

/// Until its window holds what it will hold from then on.
Ns warm_up_of(const FeatureSpec& spec, Ns grid_ns) noexcept {
  if (spec.kind == FeatureKind::MID_RETURN) return spec.window_ns + grid_ns;
  return FeatureSet::kHalfLivesToWarm * spec.window_ns;
}

}  // namespace

FeatureKind feature_kind_of(std::string_view name) {
  for (std::size_t i = 0; i < kFeatureNames.size(); ++i)
    if (kFeatureNames[i] == name) return static_cast<FeatureKind>(i);
  std::string known;
  for (const auto& each : kFeatureNames) known += (known.empty() ? "" : ", ") + std::string(each);
  throw ConfigError("no feature kind '" + std::string(name) + "'; there are " + known);
}

std::string_view feature_kind_name(FeatureKind kind) noexcept {
  return kFeatureNames[static_cast<std::size_t>(kind)];
}

double OwnRow::mid() const noexcept { return 0.5 * static_cast<double>(bid() + ask()); }

double OwnRow::micro_price() const noexcept {
  const auto bid_lots = static_cast<double>(book_.bid_lots());
  const auto ask_lots = static_cast<double>(book_.ask_lots());
  return mid() +
         0.5 * static_cast<double>(spread()) * (bid_lots - ask_lots) / (bid_lots + ask_lots);
}

Lots OwnRow::depth_lots(int levels) const noexcept {
  Lots total = 0;
  for (const int s : {BUY, SELL}) {
    const Ladder& ladder = book_.side(s);
    std::int64_t key = ladder.best();
    for (int i = 0; i < levels && key != kNoKey; ++i, key = ladder.next(key))
      total += ladder.at(key);
  }
  return total;
}

FeatureSet::FeatureSet(std::vector<FeatureSpec> specs, Trigger trigger)
    : specs_(std::move(specs)), trigger_(trigger) {
  if (trigger_.kind == Trigger::Kind::CLOCK && trigger_.interval_ns <= 0)
    throw ConfigError("trigger: the clock's interval must be positive");
  deep_.depth = 1;
  for (const FeatureSpec& spec : specs_) plan(spec);
  for (auto& side : levels_) side.resize(deep_.depth);
  before_.resize(flow_.depth);
  row_.resize(specs_.size());
}

void FeatureSet::plan(const FeatureSpec& spec) {
  check(spec);
  Ns grid_ns = 0;
  const auto levels = static_cast<std::size_t>(spec.levels);
  if (reads_levels(spec.kind)) deep_.depth = std::max(deep_.depth, levels);
  if (spec.kind == FeatureKind::OFI) flow_.depth = std::max(flow_.depth, levels);
  switch (spec.kind) {
    case FeatureKind::OFI:
      ofi_.push_back(sums_.size());
      break;
    case FeatureKind::VOLATILITY:
      variance_.push_back(sums_.size());
      break;
    case FeatureKind::TRADE_FLOW:
    case FeatureKind::TRADE_LOTS:
    case FeatureKind::TRADE_COUNT:
    case FeatureKind::OWN:
      traded_.push_back(sums_.size());
      break;
    case FeatureKind::ADD_FLOW:
    case FeatureKind::CANCEL_FLOW:
      ordered_.push_back(sums_.size());
      break;
    default:
      break;
  }
  if (spec.kind == FeatureKind::MID_RETURN) {
    grid_ns = (spec.window_ns + MidHistory::kGrid - 1) / MidHistory::kGrid;
    part_.push_back(histories_.size());
    histories_.push_back({grid_ns, 0, std::vector<double>(MidHistory::kSlots)});
  } else {
    const double per_ns = spec.window_ns == 0 ? 0.0 : 1.0 / static_cast<double>(spec.window_ns);
    part_.push_back(sums_.size());
    sums_.push_back({spec.kind, spec.levels, {per_ns, 0, 0}, {per_ns, 0, 0}});
  }
  own_.push_back(spec.kind == FeatureKind::OWN ? spec.make_own() : nullptr);
  warm_up_ns_ = std::max(warm_up_ns_, warm_up_of(spec, grid_ns));
}

void FeatureSet::reset() {
  for (auto& sum : sums_) sum.sum.value = sum.lots.value = 0;
  for (auto& own : own_)
    if (own) own->reset();
  packet_signed_ = packet_lots_ = packet_prints_ = packet_added_ = packet_cancelled_ = 0;
  touch_bid_ = touch_ask_ = kNoPrice;
  touch_bid_lots_ = touch_ask_lots_ = 0;
  started_ = last_packet_ = packet_before_ = last_trade_ = last_fired_ = kNoTime;
  next_clock_ = kNever;
  warm_ = false;
}

void FeatureSet::on_row(const Event& e, const Book& book) noexcept {
  if (is_order(e.kind)) follow_orders(book);
  switch (e.kind) {
    [[likely]] case Kind::LEVEL: {
      const int side = side_index(e.side);
      flow_.touch(side, e.price * e.side);
      deep_.touch(side, e.price * e.side);
      break;
    }
    case Kind::TRADE:
    case Kind::EXECUTE:
      if (!is_print(e) || (e.flags & OWN)) break;
      packet_signed_ += static_cast<double>(aggressor(e) * e.qty);
      packet_lots_ += static_cast<double>(e.qty);
      packet_prints_ += 1;
      break;
    case Kind::STATUS:
      if (static_cast<Trading>(e.ref_id) == Trading::GAP) reset();
      break;
    case Kind::DATUM:
    case Kind::BAR:
    case Kind::ADD:
    case Kind::MODIFY:
    case Kind::CANCEL:
    case Kind::REPLACE:
      break;
    default:
      flow_.invalidate();
      deep_.invalidate();
  }
}

/// An order that moves counts as cancelled and added.
void FeatureSet::follow_orders(const Book& book) noexcept {
  for (const OrderBook::Change& c : book.changes()) {
    const int side = side_index(c.side);
    flow_.touch(side, c.key);
    deep_.touch(side, c.key);
    if (c.traded || book.state == BookState::SYNCING) continue;
    (c.gone < 0 ? packet_added_ : packet_cancelled_) +=
        static_cast<double>(c.side * (c.gone < 0 ? -c.gone : c.gone));
  }
}

bool FeatureSet::end_packet(const Book& book, Ts now) {
  packet_before_ = last_packet_;
  last_packet_ = now;
  const bool traded = packet_prints_ > 0;
  if (traded) add_trades(now);
  if (packet_added_ != 0 || packet_cancelled_ != 0) add_order_flows(now);
  if (!book.live() || !book.two_sided()) {
    warm_ = false;
    return false;
  }
  if (started_ == kNoTime) {
    start(book, now);
  } else {
    follow_book(book, now);
  }
  warm_ = now - started_ >= warm_up_ns_;
  if (trigger_.kind == Trigger::Kind::CLOCK && next_clock_ == kNever) wind_clock(book, now);
  switch (trigger_.kind) {
    case Trigger::Kind::PACKET:
      return fire(book, now);
    case Trigger::Kind::TRADE:
      return traded && fire(book, now);
    case Trigger::Kind::TOUCH:
      return touch_moved(book) && fire(book, now);
    case Trigger::Kind::CLOCK:
      break;
  }
  return false;
}

/// Nights and weekends have no rows: the clock stands while the market is closed.
void FeatureSet::wind_clock(const Book& book, Ts now) noexcept {
  next_clock_ = book.trading == Trading::CLOSED
                    ? kNever
                    : (now / trigger_.interval_ns + 1) * trigger_.interval_ns;
}

bool FeatureSet::on_clock(const Book& book, Ts now) {
  wind_clock(book, now);
  if (next_clock_ == kNever) return false;
  packet_before_ =
      last_packet_;  // at an instant between packets, the packet before is the last one
  warm_ = book.live() && book.two_sided() && started_ != kNoTime && now - started_ >= warm_up_ns_;
  return fire(book, now);
}

void FeatureSet::start(const Book& book, Ts now) noexcept {
  started_ = now;
  flow_.invalidate();
  deep_.invalidate();
  for (const int s : {BUY, SELL}) refresh(book.side(s), side_index(s), flow_);
  mid_ = 0.5 * static_cast<double>(book.mid2());
  for (auto& history : histories_) history.start(now);
}

void FeatureSet::follow_book(const Book& book, Ts now) noexcept {
  for (const int s : {BUY, SELL}) {
    const int side = side_index(s);
    if (!flow_.stale[side]) continue;
    std::copy_n(levels_[side].begin(), flow_.depth, before_.begin());
    refresh(book.side(s), side, flow_);
    add_order_flow(s, now);
  }
  const double mid = 0.5 * static_cast<double>(book.mid2());
  if (mid != mid_) move_mid(mid, now);
}

void FeatureSet::refresh(const Ladder& ladder, int side, DepthCache& cache) noexcept {
  std::int64_t key = ladder.best();
  for (std::size_t i = 0; i < cache.depth; ++i) {
    levels_[side][i] = {key, key == kNoKey ? 0 : ladder.at(key)};
    cache.worst[side] = key;  // kNoKey where levels are missing: any row may fill them
    if (key != kNoKey) key = ladder.next(key);
  }
  cache.stale[side] = false;
}

/// Cont, Kukanov, Stoikov (2014), equation 4, rank by rank. In keys a better price is the larger
/// one on either side, so that one rule serves both; an absent level is the worst of all, with no
/// lots.
void FeatureSet::add_order_flow(int side, Ts now) noexcept {
  const auto& after = levels_[side_index(side)];
  std::array<double, kMaxLevels> flow;
  double total = 0;
  for (std::size_t i = 0; i < flow_.depth; ++i) {
    Lots lots = 0;
    if (after[i].key >= before_[i].key) lots += after[i].lots;
    if (after[i].key <= before_[i].key) lots -= before_[i].lots;
    total += static_cast<double>(side * lots);
    flow[i] = total;
  }
  for (const std::size_t place : ofi_) {
    WindowSum& sum = sums_[place];
    const double term = flow[static_cast<std::size_t>(sum.levels - 1)];
    if (term != 0) sum.sum.add(term, now);
  }
}

void FeatureSet::move_mid(double mid, Ts now) noexcept {
  const double change = mid - mid_;
  for (const std::size_t place : variance_) sums_[place].sum.add(change * change, now);
  for (auto& history : histories_) history.advance(now, mid_);
  mid_ = mid;
}

/// An instant at `now` itself stays open: a later packet of the same instant may still move the
/// mid.
void FeatureSet::MidHistory::advance(Ts now, double mid_before) noexcept {
  const std::int64_t last = (now - 1) / grid_ns;
  for (std::int64_t k = std::max(filled + 1, last - kSlots + 1); k <= last; ++k)
    mids[slot(k)] = mid_before;
  filled = std::max(filled, last);
}

void FeatureSet::add_trades(Ts now) noexcept {
  for (const std::size_t place : traded_) {
    WindowSum& sum = sums_[place];
    switch (sum.kind) {
      case FeatureKind::TRADE_FLOW:
        sum.sum.add(packet_signed_, now);
        break;
      case FeatureKind::TRADE_LOTS:
        sum.sum.add(packet_lots_, now);
        break;
      case FeatureKind::TRADE_COUNT:
        sum.sum.add(packet_prints_, now);
        break;
      default:
        sum.sum.add(packet_signed_, now);
        sum.lots.add(packet_lots_, now);
    }
  }
  last_trade_ = now;
  packet_signed_ = packet_lots_ = packet_prints_ = 0;
}

void FeatureSet::add_order_flows(Ts now) noexcept {
  for (const std::size_t place : ordered_)
    sums_[place].sum.add(
        sums_[place].kind == FeatureKind::ADD_FLOW ? packet_added_ : packet_cancelled_, now);
  packet_added_ = packet_cancelled_ = 0;
}

bool FeatureSet::touch_moved(const Book& book) noexcept {
  const Ticks bid = book.bid(), ask = book.ask();
  bool moved = bid != touch_bid_ || ask != touch_ask_;
  touch_bid_ = bid;
  touch_ask_ = ask;
  if (trigger_.sizes) {
    const Lots bid_lots = book.bid_lots(), ask_lots = book.ask_lots();
    moved |= bid_lots != touch_bid_lots_ || ask_lots != touch_ask_lots_;
    touch_bid_lots_ = bid_lots;
    touch_ask_lots_ = ask_lots;
  }
  return moved;
}

bool FeatureSet::fire(const Book& book, Ts now) {
  if (warm_) {
    for (const int s : {BUY, SELL})
      if (deep_.stale[side_index(s)]) refresh(book.side(s), side_index(s), deep_);
    for (auto& history : histories_) history.advance(now, mid_);
    for (std::size_t i = 0; i < specs_.size(); ++i) row_[i] = value(i, book, now);
    row_ts_ = now;
  }
  for (WindowSum& sum : sums_)
    if (sum.sum.per_ns == 0) sum.sum.value = sum.lots.value = 0;
  last_fired_ = now;
  return warm_;
}

double FeatureSet::value(std::size_t i, const Book& book, Ts now) {
  const FeatureSpec& spec = specs_[i];
  double x;
  if (spec.kind == FeatureKind::OWN) {
    const WindowSum& sum = sums_[part_[i]];
    x = own_[i]->update(OwnRow(book, now, sum.sum.read(now), sum.lots.read(now)));
  } else {
    x = built_in(i, book, now);
  }
  return spec.log ? signed_log(x) : x;
}

double FeatureSet::built_in(std::size_t i, const Book& book, Ts now) const noexcept {
  const FeatureSpec& spec = specs_[i];
  const std::size_t side = static_cast<std::size_t>(side_index(spec.side));
  switch (spec.kind) {
    case FeatureKind::MID:
      return mid_;
    case FeatureKind::MICRO_PRICE:
      return mid_ + micro_price_minus_mid();
    case FeatureKind::MICRO_PRICE_MINUS_MID:
      return micro_price_minus_mid();
    case FeatureKind::SPREAD:
      return static_cast<double>(-levels_[1][0].key - levels_[0][0].key);
    case FeatureKind::IMBALANCE:
      return imbalance(spec.levels);
    case FeatureKind::OFI:
    case FeatureKind::TRADE_FLOW:
    case FeatureKind::TRADE_LOTS:
    case FeatureKind::TRADE_COUNT:
    case FeatureKind::ADD_FLOW:
    case FeatureKind::CANCEL_FLOW:
      return sums_[part_[i]].sum.read(now);
    case FeatureKind::VOLATILITY:  // the decayed window is window / ln 2 long
      return std::sqrt(sums_[part_[i]].sum.read(now) * smooth::kLn2 * 1e9 /
                       static_cast<double>(spec.window_ns));
    case FeatureKind::MID_RETURN:
      return mid_ - histories_[part_[i]].mid_at(now - spec.window_ns);
    case FeatureKind::DEPTH_LOTS:
      return log_one_plus(
          static_cast<double>(levels_[side][static_cast<std::size_t>(spec.levels - 1)].lots));
    case FeatureKind::LEVEL_DISTANCE:
      return level_distance(spec.side, spec.levels);
    case FeatureKind::ORDER_COUNT:
      return log_one_plus(order_count(book, spec.side, spec.levels));
    case FeatureKind::ORDER_COUNT_IMBALANCE:
      return order_count_imbalance(book, spec.levels);
    case FeatureKind::SINCE_EVENT:
      return packet_before_ == kNoTime ? 0.0 : log_us(now - packet_before_);
    case FeatureKind::SINCE_TRADE:
      return log_us(now - (last_trade_ == kNoTime ? started_ : last_trade_));
    case FeatureKind::SINCE_ROW:
      return log_us(now - (last_fired_ == kNoTime ? started_ : last_fired_));
    case FeatureKind::OWN:
      break;
  }
  return 0.0;
}

double FeatureSet::imbalance(int levels) const noexcept {
  Lots bid_lots = 0, ask_lots = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(levels); ++i) {
    bid_lots += levels_[0][i].lots;
    ask_lots += levels_[1][i].lots;
  }
  return static_cast<double>(bid_lots - ask_lots) / static_cast<double>(bid_lots + ask_lots);
}

double FeatureSet::order_count(const Book& book, int side, int rank) const noexcept {
  const std::int64_t key = levels_[side_index(side)][static_cast<std::size_t>(rank - 1)].key;
  return key == kNoKey || !book.orders() ? 0.0 : book.orders()->orders_at(side, key * side);
}

double FeatureSet::order_count_imbalance(const Book& book, int levels) const noexcept {
  double bids = 0, asks = 0;
  for (int rank = 1; rank <= levels; ++rank) {
    bids += order_count(book, BUY, rank);
    asks += order_count(book, SELL, rank);
  }
  return bids + asks == 0 ? 0.0 : (bids - asks) / (bids + asks);
}

double FeatureSet::micro_price_minus_mid() const noexcept {
  const auto spread = static_cast<double>(-levels_[1][0].key - levels_[0][0].key);
  return 0.5 * spread * imbalance(1);
}

/// A level that is not there counts one tick beyond the one before it.
double FeatureSet::level_distance(int side, int rank) const noexcept {
  const auto& levels = levels_[side_index(side)];
  int found = rank - 1;
  while (levels[static_cast<std::size_t>(found)].key == kNoKey) --found;
  const double price = static_cast<double>(levels[static_cast<std::size_t>(found)].key * side);
  return (mid_ - price) * side + (rank - 1 - found);
}

}  // namespace hft
