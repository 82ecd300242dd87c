#include "sim_flow.hpp"

#include <algorithm>
#include <cmath>

namespace hft {

namespace {

enum Stream : std::uint64_t { ACTIONS = 101, ALPHA, COMMON_ALPHA, REGIME, FEED, FEED_JITTER };

constexpr double kGridS = static_cast<double>(SimLatents::kGridNs) * 1e-9;
// Arrivals: share of messages that earlier ones excite, and how fast the excitement fades.
constexpr double kFastShare = 0.35, kFastPerS = 200.0;
constexpr double kSlowShare = 0.35, kSlowPerS = 4.0;
constexpr double kTakerMark = 4.0;  // a taker excites four times as much as the mean message
// Signs.
constexpr double kMetaShare = 0.6;      // of takers that belong to a metaorder
constexpr double kFlowMemory = 0.02;    // weight of the newest taker in the slow average
constexpr double kLean = 0.35;          // makers' answer to it
constexpr double kPlacementTilt = 0.5;  // share of the alpha's tilt that makers share
constexpr double kMaxTilt = 0.9;
constexpr double kAnchor = 0.5;  // pull towards the first price, as tilt per relative distance
// Storms.
constexpr double kStormTakers = 1.25, kStormDepth = 0.6;

}  // namespace

SimLatents::SimLatents(std::uint64_t seed, Ts start, const SimInstrument& instrument,
                       const SimRegimes& regimes)
    : regimes_(regimes),
      common_rng_(seed, COMMON_ALPHA, 0),
      own_rng_(seed, ALPHA, instrument.id),
      regime_rng_(seed, REGIME, 0),
      feed_rng_(seed, FEED, instrument.id),
      ts_(start),
      keep_(portable_exp(-0.693147180559945309417 * kGridS / instrument.alpha_half_life_s)),
      shock_(std::sqrt(1.0 - keep_ * keep_)),
      own_weight_(std::sqrt(1.0 - instrument.common_share)),
      common_weight_(std::sqrt(instrument.common_share)),
      feed_median_ns_(static_cast<double>(instrument.feed_latency_ns)),
      feed_latency_ns_(feed_median_ns_) {}

void SimLatents::advance(Ts now) noexcept {
  for (; ts_ + kGridNs <= now; ts_ += kGridNs) step();
}

void SimLatents::step() noexcept {
  own_ = keep_ * own_ + shock_ * own_rng_.normal();
  common_ = keep_ * common_ + shock_ * common_rng_.normal();
  step_regime();
  if (feed_median_ns_ > 0) step_feed();
}

void SimLatents::step_regime() noexcept {
  const double dwell_s = storm() ? regimes_.storm_s : regimes_.calm_s;
  if (!regime_rng_.chance(kGridS / dwell_s)) return;
  const double width = regimes_.storm_intensity_max - regimes_.storm_intensity_min;
  intensity_ = storm() ? 1.0 : regimes_.storm_intensity_min + width * regime_rng_.uniform();
}

/// Lognormal level that wanders within half a second, and spikes that fade within tens of ms.
void SimLatents::step_feed() noexcept {
  constexpr double kKeep = 0.99, kShock = 0.14106735979665885;  // sqrt(1 - 0.99^2)
  feed_level_ = kKeep * feed_level_ + kShock * feed_rng_.normal();
  feed_spike_ *= 0.7;
  if (feed_rng_.chance(0.2 * kGridS * intensity_)) feed_spike_ = 5.0 + 25.0 * feed_rng_.uniform();
  feed_latency_ns_ = feed_median_ns_ * (portable_exp(0.3 * feed_level_) + feed_spike_);
}

SimFlow::SimFlow(std::uint64_t seed, Ts start, const SimInstrument& instrument,
                 const SimRegimes& regimes)
    : instrument_(instrument),
      latents_(seed, start, instrument, regimes),
      rng_(seed, ACTIONS, instrument.id),
      feed_rng_(seed, FEED_JITTER, instrument.id),
      add_lots_(pareto_quantiles(static_cast<double>(instrument.min_lots), 1.6)),
      take_lots_(pareto_quantiles(2.0 * static_cast<double>(instrument.min_lots), 1.4)),
      near_(geometric_quantiles(1.5)),
      far_(geometric_quantiles(20.0)),
      metaorder_length_(pareto_quantiles(5.0, 1.5)),
      jitter_permille_([](double u) { return -50.0 * portable_log(u); }) {}

/// Ogata's thinning: the intensity only falls between actions, so that the present one bounds it.
Ts SimFlow::next(Ts now) noexcept {
  const double base =
      instrument_.messages_per_s * (1.0 - kFastShare - kSlowShare) * latents_.intensity();
  double wait_s = 0;
  for (;;) {
    const double bound = base + fast_ + slow_;
    const double dt = rng_.exponential() / bound;
    fast_ *= portable_exp(-kFastPerS * dt);
    slow_ *= portable_exp(-kSlowPerS * dt);
    wait_s += dt;
    if (rng_.uniform() * bound <= base + fast_ + slow_) break;
  }
  return now + std::max<Ns>(1, static_cast<Ns>(wait_s * 1e9));
}

SimAction SimFlow::decide(const SimBook& book, Ts now) noexcept {
  latents_.advance(now);
  const bool storm = latents_.storm();
  const double tilted = tilt(book);
  const bool aggressive = rng_.chance(instrument_.take_share * (storm ? kStormTakers : 1.0));
  excite(aggressive);
  if (aggressive) return take(tilted);
  const auto resting =
      static_cast<double>(book.market_orders(BUY).size() + book.market_orders(SELL).size());
  const double wanted = 2.0 * instrument_.depth_orders * (storm ? kStormDepth : 1.0);
  return rng_.chance(resting / (resting + wanted)) ? cancel(book, tilted) : add(book, tilted);
}

SimAction SimFlow::refill(const SimBook& book, Side side, Ticks anchor) noexcept {
  const Ticks opposite = book.best(-side);  // kNoPrice only before the first order of all
  Ticks price = anchor - side * (1 + near_.draw(rng_));
  if (opposite != kNoPrice && price * side >= opposite * side) price = opposite - side;
  return {SimAction::Kind::ADD, side, std::max<Ticks>(1, price), add_lots_.draw(rng_), -1};
}

Ts SimFlow::receive(Ts ts_event) noexcept {
  if (instrument_.feed_latency_ns == 0) return ts_event;
  const double jitter = 1.0 + 1e-3 * static_cast<double>(jitter_permille_.draw(feed_rng_));
  const auto latency_ns = static_cast<Ns>(latents_.feed_latency_ns() * jitter);
  return last_recv_ = std::max(last_recv_, ts_event + latency_ns);
}

SimAction SimFlow::take(double tilt) noexcept {
  const Side side = taker_side(tilt);
  flow_ += kFlowMemory * (static_cast<double>(side) - flow_);
  return {SimAction::Kind::TAKE, side, kNoPrice, take_lots_.draw(rng_), -1};
}

SimAction SimFlow::add(const SimBook& book, double tilt) noexcept {
  const auto side = static_cast<Side>(rng_.sign(kPlacementTilt * tilt - kLean * flow_));
  return {SimAction::Kind::ADD, side, placement(book, side), add_lots_.draw(rng_), -1};
}

/// Of two orders drawn at random the one nearer to the touch goes: cancels crowd there.
SimAction SimFlow::cancel(const SimBook& book, double tilt) noexcept {
  const auto bids = static_cast<double>(book.market_orders(BUY).size());
  const auto asks = static_cast<double>(book.market_orders(SELL).size());
  const double ask_share = asks / (bids + asks);
  const double p_ask = ask_share + 0.5 * (kPlacementTilt * tilt - kLean * flow_);
  const Side side = rng_.chance(p_ask) ? SELL : BUY;
  const auto& orders = book.market_orders(side);
  if (orders.size() <= kMinOrders) return add(book, tilt);
  const auto a = orders[rng_.below(orders.size())];
  const auto b = orders[rng_.below(orders.size())];
  const bool a_nearer = book.order(a).price * side >= book.order(b).price * side;
  return {SimAction::Kind::CANCEL, side, 0, 0, a_nearer ? a : b};
}

Side SimFlow::taker_side(double tilt) noexcept {
  if (!rng_.chance(kMetaShare)) return static_cast<Side>(rng_.sign(tilt));
  Metaorder& meta = metaorders_[rng_.below(metaorders_.size())];
  if (meta.left == 0) meta = {static_cast<Side>(rng_.sign()), metaorder_length_.draw(rng_)};
  --meta.left;
  return meta.side;
}

/// In a wide spread most orders improve the touch; otherwise near it, or far and wide behind it.
Ticks SimFlow::placement(const SimBook& book, Side side) noexcept {
  const Ticks room = book.best(SELL) - book.best(BUY) - 1;
  if (room > 0 && rng_.chance(room == 1 ? 0.25 : 0.5)) {
    const auto better = 1 + rng_.below(static_cast<std::size_t>(room));
    return book.best(side) + side * static_cast<Ticks>(better);
  }
  const Ticks behind = rng_.chance(0.6) ? near_.draw(rng_) : far_.draw(rng_);
  return std::max<Ticks>(1, book.best(side) - side * behind);
}

double SimFlow::tilt(const SimBook& book) const noexcept {
  const auto mid = 0.5 * static_cast<double>(book.best(BUY) + book.best(SELL));
  const double away = mid / static_cast<double>(instrument_.price0_ticks) - 1.0;
  // Drift is tilt times messages: without the division a storm would be all signal.
  const double signal = instrument_.alpha_strength * latents_.alpha() / latents_.intensity();
  const double tilt = signal - kAnchor * away;
  return std::clamp(tilt, -kMaxTilt, kMaxTilt);
}

void SimFlow::excite(bool aggressive) noexcept {
  const double share = instrument_.take_share;
  const double mark = aggressive ? kTakerMark : (1.0 - kTakerMark * share) / (1.0 - share);
  fast_ += kFastShare * kFastPerS * mark;
  slow_ += kSlowShare * kSlowPerS * mark;
}

}  // namespace hft
