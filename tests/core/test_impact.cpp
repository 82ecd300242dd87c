#include <doctest/doctest.h>

#include <functional>
#include <random>

#include "impact.hpp"
#include "participation.hpp"
#include "tape_venue.hpp"

using namespace hft;

namespace {

constexpr Ns kSecond = 1'000'000'000;

struct Trade {
  Ts ts;
  int side;
  Lots lots;
};

ImpactConfig usual() { return {{0.02, 0.05}, {kSecond, 7 * kSecond}, 0.01}; }

/// Cost of a path [ticks * lots].
double cost_of(const std::vector<Trade>& path, const ImpactConfig& config = usual()) {
  Overlay overlay(config);
  double sum = 0;
  for (const Trade& t : path)
    sum += overlay.charge(t.side, t.lots, t.ts) * static_cast<double>(t.lots);
  return sum;
}

double kernel(const ImpactConfig& config, Ns dt) {
  double g = config.permanent;
  for (std::size_t k = 0; k < config.weights.size(); ++k)
    g += config.weights[k] *
         std::exp2(-static_cast<double>(dt) / static_cast<double>(config.half_lives_ns[k]));
  return g;
}

/// A round trip in parts, flat at its end.
std::vector<Trade> round_trip(std::mt19937& rng) {
  std::vector<Trade> path;
  Lots position = 0;
  Ts ts = 0;
  const auto parts = 2 + rng() % 12;
  for (std::size_t i = 0; i < parts; ++i) {
    ts += static_cast<Ns>(rng() % 5) * kSecond / 3;
    const Lots lots = 1 + static_cast<Lots>(rng() % 50);
    const int side = rng() % 2 ? BUY : SELL;
    path.push_back({ts, side, lots});
    position += side * lots;
  }
  if (position != 0) path.push_back({ts + kSecond, position > 0 ? SELL : BUY, std::abs(position)});
  return path;
}

/// The least cost of many random round trips; a model that is sound never pays.
double cheapest(const std::function<double(const std::vector<Trade>&)>& cost) {
  std::mt19937 rng(11);
  double least = 1e300;
  for (int i = 0; i < 2'000; ++i) least = std::min(least, cost(round_trip(rng)));
  return least;
}

/// One instrument with a book that does not change, at one venue.
struct Frozen {
  explicit Frozen(const ImpactConfig& impact, Lots depth = 1'000'000, Ticks levels = 1,
                  Ns half_life_ns = kSecond) {
    VenueConfig config;
    config.impact = impact;
    config.refill_half_life_ns = half_life_ns;
    inst.tick = 1;
    inst.lot = 1;
    inst.validate();
    venue.emplace(config, orders, fills);
    venue->open(listing, inst);
    venue->watch(&horizon, &stirred);
    for (const int side : {BUY, SELL})
      for (Ticks i = 0; i < levels; ++i) {
        Event e{};
        e.kind = Kind::LEVEL;
        e.side = static_cast<std::int8_t>(side);
        e.price = side == BUY ? 100 - i : 102 + i;
        e.qty = depth;
        e.flags = 7;
        venue->on_row(listing, e, 0);
      }
  }
  void trade(const Trade& t) {
    Order& o = orders.add();
    o.row.side = static_cast<std::int8_t>(t.side);
    o.row.tif = Tif::IOC;
    Command c{};
    c.kind = Command::Kind::NEW;
    c.tif = Tif::IOC;
    c.side = o.row.side;
    c.order = o.row.id;
    c.price = kNoPrice;
    c.lots = t.lots;
    c.ts_arrive = t.ts;
    venue->on_command(listing, c);
  }

  Instrument inst;
  Orders orders;
  std::vector<FillRow> fills;
  Listing listing;
  std::optional<TapeVenue> venue;
  Ts horizon = kNever;
  bool stirred = false;
};

}  // namespace

TEST_CASE("a block costs the same whole and in parts of one instant") {
  const std::vector<Trade> before = {{0, BUY, 30}, {2 * kSecond, SELL, 10}};
  auto whole = before, parts = before;
  whole.push_back({3 * kSecond, BUY, 100});
  for (const Lots lots : {1, 13, 50, 36}) parts.push_back({3 * kSecond, BUY, lots});
  CHECK(cost_of(whole) == doctest::Approx(cost_of(parts)).epsilon(1e-13));
}

TEST_CASE("buying and selling are mirrors") {
  std::mt19937 rng(3);
  for (int i = 0; i < 200; ++i) {
    const auto path = round_trip(rng);
    auto mirror = path;
    for (Trade& t : mirror) t.side = -t.side;
    CHECK(cost_of(path) == cost_of(mirror));
  }
}

TEST_CASE("two trades some time apart cost what the closed form says") {
  const ImpactConfig config = usual();
  for (const Ns dt : {Ns{0}, Ns{1}, kSecond / 2, 20 * kSecond})
    for (const int side : {BUY, SELL}) {
      const double a = 40, b = 25;
      const double g0 = kernel(config, 0), g = kernel(config, dt);
      CHECK(cost_of({{5, BUY, 40}, {5 + dt, side, 25}}) ==
            doctest::Approx(g0 * (a * a + b * b) / 2 + side * g * a * b).epsilon(1e-13));
    }
}

TEST_CASE("any path costs half of x'Gx") {
  const ImpactConfig config = usual();
  std::mt19937 rng(5);
  for (int i = 0; i < 100; ++i) {
    const auto path = round_trip(rng);
    double form = 0;
    for (const Trade& a : path)
      for (const Trade& b : path)
        form += a.side * b.side * static_cast<double>(a.lots * b.lots) *
                kernel(config, std::abs(a.ts - b.ts)) / 2;
    CHECK(cost_of(path) == doctest::Approx(form).epsilon(1e-10));
  }
}

TEST_CASE("waiting makes the second slice cheaper, size dearer and more than in proportion") {
  double last = 1e300;
  for (Ns gap = 0; gap < 20 * kSecond; gap += kSecond / 2) {
    const double cost = cost_of({{0, BUY, 50}, {gap, BUY, 50}});
    CHECK(cost < last);
    last = cost;
  }
  double before = 0, step = 0;
  for (Lots lots = 1; lots < 50; ++lots) {
    const double cost = cost_of({{0, BUY, 20}, {kSecond, BUY, lots}}) - cost_of({{0, BUY, 20}});
    CHECK(cost - before > step);
    step = cost - before;
    before = cost;
  }
}

TEST_CASE("after one take the push read back over time is the kernel") {
  const ImpactConfig config = usual();
  Overlay overlay(config);
  overlay.charge(SELL, 7, 1'000);
  for (Ns dt = 0; dt < 30 * kSecond; dt += kSecond / 3)
    CHECK(overlay.at(1'000 + dt) == doctest::Approx(-7 * kernel(config, dt)).epsilon(1e-14));
}

TEST_CASE("reading the push changes nothing") {
  Overlay often(usual()), once(usual());
  for (Overlay* o : {&often, &once}) o->charge(BUY, 9, 0);
  for (Ts ts = 1; ts < 1'000; ++ts) often.at(ts * 7'000'000);
  CHECK(often.charge(BUY, 4, 8 * kSecond) == once.charge(BUY, 4, 8 * kSecond));
}

TEST_CASE("no round trip earns by pushing") {
  const auto ours = [](const std::vector<Trade>& path) { return cost_of(path); };
  CHECK(cheapest(ours) > -1e-9);
}

TEST_CASE("without the half rule, or with a push that is concave in size, round trips do earn") {
  const auto no_half = [](const std::vector<Trade>& path) {  // nobody pays for his own push
    double sum = 0;
    for (std::size_t i = 0; i < path.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        sum += path[i].side * path[j].side * static_cast<double>(path[i].lots * path[j].lots) *
               kernel(usual(), path[i].ts - path[j].ts);
    return sum;
  };
  const auto root = [](const std::vector<Trade>& path) {  // pushes with the root of the size
    double sum = 0;
    for (std::size_t i = 0; i < path.size(); ++i) {
      double push = kernel(usual(), 0) * std::sqrt(static_cast<double>(path[i].lots)) / 2;
      for (std::size_t j = 0; j < i; ++j)
        push += path[i].side * path[j].side * std::sqrt(static_cast<double>(path[j].lots)) *
                kernel(usual(), path[i].ts - path[j].ts);
      sum += push * static_cast<double>(path[i].lots);
    }
    return sum;
  };
  CHECK(cheapest(no_half) < -1);
  CHECK(cheapest(root) < -1);
}

TEST_CASE("on a frozen book every round trip costs at least the half-spread on its volume") {
  std::mt19937 rng(17);
  for (int i = 0; i < 300; ++i) {
    Frozen market(usual());
    Lots volume = 0;
    for (const Trade& t : round_trip(rng)) {
      market.trade(t);
      volume += t.lots;
    }
    const Account& a = market.listing.account;
    REQUIRE(a.position == 0);
    const Money half_spread = 1'000'000'000;
    CHECK(-a.equity(market.inst, kNoPrice) >= volume * half_spread - 50);  // 50 roundings
    CHECK(a.impact == -a.equity(market.inst, kNoPrice) - volume * half_spread);
  }
}

TEST_CASE("nor does one earn where takes thin the book and it heals, at any speed") {
  const Money half_spread = 1'000'000'000;
  for (const Ns half_life : {Ns{0}, kSecond / 10, 2 * kSecond, 100 * kSecond})
    for (const auto& impact : {ImpactConfig{}, usual()}) {
      std::mt19937 rng(23);
      Money walked = 0;
      for (int i = 0; i < 100; ++i) {
        Frozen market(impact, 30, 60, half_life);
        Lots volume = 0;
        for (const Trade& t : round_trip(rng)) {
          market.trade(t);
          volume += t.lots;
        }
        const Account& a = market.listing.account;
        REQUIRE(a.position == 0);
        const Money cost = -a.equity(market.inst, kNoPrice);
        CHECK(cost >= volume * half_spread - 50);  // 50 roundings
        walked += cost - a.impact - volume * half_spread;
      }
      CHECK(walked > 0);
    }
}

TEST_CASE("the longer one waits the cheaper a thin book that heals sells the second slice") {
  const auto second = [](Ns gap) {
    Frozen market({}, 300, 60);
    market.trade({0, BUY, 1'000});
    const std::size_t first = market.fills.size();
    market.trade({gap, BUY, 1'000});
    Money paid = 0;
    for (std::size_t i = first; i < market.fills.size(); ++i)
      paid += (market.fills[i].price - 102) * market.fills[i].lots;
    return paid;
  };
  CHECK(second(0) == 200 * 3 + 300 * 4 + 300 * 5 + 200 * 6);
  for (Ns gap = 0; gap < 4 * kSecond; gap += kSecond / 4)
    CHECK(second(gap + kSecond / 4) < second(gap));
  CHECK(second(20 * kSecond) == 300 * 1 + 300 * 2 + 100 * 3);
}

TEST_CASE("the fill tells what it paid for the push, rounded once, and the account keeps it") {
  Frozen market({{0.5}, {kSecond}, 0.25});
  market.trade({0, BUY, 10});
  market.trade({kSecond, SELL, 4});
  REQUIRE(market.fills.size() == 2);
  CHECK(market.fills[0].price == 102);
  CHECK(market.fills[0].impact == 37'500'000'000);   // 10 lots at 0.75 * 10 / 2 ticks
  CHECK(market.fills[1].impact == -14'000'000'000);  // 4 at -(2.5 + 2.5) + 0.75 * 4 / 2
  CHECK(market.listing.account.impact == 23'500'000'000);
  CHECK(market.venue->responses().back().impact == -14'000'000'000);
  CHECK(market.listing.overlay.at(2 * kSecond) == doctest::Approx(0.25 * 6 + 0.5 * (5 - 4) / 2.0));
}

TEST_CASE("an inverse contract's tick is worth what it is at the fill's price") {
  Instrument inst;
  inst.tick = 0.5;
  inst.lot = 1;
  inst.multiplier = 100;
  inst.inverse = true;
  inst.validate();
  const double step = 0.001;  // the worth of many lots, half a tick apart
  const Lots many = 1'000'000;
  const double slope =
      static_cast<double>(inst.worth_half(many, 80'001) - inst.worth_half(many, 79'999)) /
      static_cast<double>(many);
  CHECK(-slope == doctest::Approx(inst.tick_worth(40'000)).epsilon(step));
}

TEST_CASE("configurations that could be traded against are refused with the reason") {
  const auto reason = [](const ImpactConfig& config) {
    try {
      config.validate();
    } catch (const ConfigError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const double nan = std::nan("");
  CHECK(reason(usual()).empty());
  CHECK(reason({{0.1}, {}, 0}).find("1 weights and 0 half_lives") != std::string::npos);
  CHECK(reason({{0.1, -0.2}, {1, 1}, 0}).find("weights[1] is -0.2") != std::string::npos);
  CHECK(reason({{nan}, {1}, 0}).find("weights[0] is nan") != std::string::npos);
  CHECK(reason({{0.1}, {0}, 0}).find("half_lives[0] is 0 ns") != std::string::npos);
  CHECK(reason({{}, {}, -1}).find("permanent is -1") != std::string::npos);
  SlippageConfig slippage{SlippageConfig::Model::SPREAD, nan, 1};
  CHECK_THROWS_AS(slippage.validate(), ConfigError);
  VenueConfig venue;
  venue.participation_window_ns = 0;
  CHECK_THROWS_AS(venue.validate(), ConfigError);
}

TEST_CASE("windows are fixed, and only the current and the one before count") {
  Participation p(100);
  p.on_print(5, 110);
  p.on_print(7, 199);
  CHECK(p.market(199) == 12);
  p.on_print(1, 200);
  CHECK(p.market(299) == 13);
  CHECK(p.elapsed(250) == 150);
  p.on_own(3, 300);
  CHECK(p.market(300) == 1);
  CHECK(p.own(399) == 3);
  CHECK(p.market(400) == 0);
  CHECK(p.own(500) == 0);
  CHECK(p.traded() == 13);
}

TEST_CASE("slippage without depth: of the spread, of the volatility, of the root of our share") {
  Participation p(kSecond);
  const Ts ts = 10 * kSecond;
  std::int64_t mid2 = 200;
  for (int i = 0; i < 16; ++i) p.on_mid(mid2 += i % 2 ? 4 : -4, ts + i);  // 15 moves of two ticks
  p.on_print(100, ts + 20);
  const Ts now = ts + kSecond / 2;  // 1.5 s of windows
  using Model = SlippageConfig::Model;
  CHECK(SlippageConfig{Model::SPREAD, 0.5, 1}.ticks(9, 3, p, now) == 1.5);
  CHECK(SlippageConfig{Model::VOLATILITY, 0.5, 2 * kSecond}.ticks(9, 3, p, now) ==
        doctest::Approx(0.5 * std::sqrt(60.0 / 1.5 * 2)));
  CHECK(SlippageConfig{Model::SQUARE_ROOT, 0.5, 1}.ticks(25, 3, p, now) ==
        doctest::Approx(0.5 * std::sqrt(60.0) * 0.5));
  CHECK(SlippageConfig{Model::SQUARE_ROOT, 0.5, 1}.ticks(400, 3, p, now) ==
        doctest::Approx(0.5 * std::sqrt(60.0)));
}
