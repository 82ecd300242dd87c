#include <doctest/doctest.h>

#include <cmath>

#include "errors.hpp"
#include "features.hpp"

using namespace hft;

namespace {

constexpr Ts kStart = 1'700'000'000'000'000'000;

Event row(Kind kind, int side, Ticks price, Lots qty, Ts ts, bool last = true) {
  Event e{};
  e.ts_event = e.ts_recv = ts;
  e.price = price;
  e.qty = qty;
  e.kind = kind;
  e.side = static_cast<std::int8_t>(side);
  e.flags = static_cast<std::uint16_t>(SEEN_BY_VENUE | SEEN_BY_US | (last ? LAST : 0));
  return e;
}

FeatureSpec spec(FeatureKind kind, int levels = 1, Ns window_ns = 0, Side side = NO_SIDE) {
  FeatureSpec s;
  s.kind = kind;
  s.levels = levels;
  s.window_ns = window_ns;
  s.side = side;
  s.name = std::string(feature_kind_name(kind));
  return s;
}

/// A book and its features, fed row by row.
struct Fed {
  Book book;
  FeatureSet features;

  Fed(std::vector<FeatureSpec> specs, Trigger trigger) : features(std::move(specs), trigger) {}

  bool feed(const Event& e) {
    book.apply(e);
    features.on_row(e, book);
    return (e.flags & LAST) && features.end_packet(book, e.ts_recv);
  }
  void two_sided(Ts ts) {
    feed(row(Kind::LEVEL, BUY, 100, 6, ts, false));
    feed(row(Kind::LEVEL, SELL, 102, 2, ts));
  }
};

}  // namespace

TEST_CASE("features read the book as a trader would") {
  Fed f({spec(FeatureKind::MID), spec(FeatureKind::MICRO_PRICE), spec(FeatureKind::SPREAD),
         spec(FeatureKind::IMBALANCE), spec(FeatureKind::LEVEL_DISTANCE, 3, 0, SELL)},
        {Trigger::Kind::PACKET});
  f.two_sided(kStart);
  const auto row = f.features.row();
  CHECK(row[0] == 101.0);
  CHECK(row[1] == 101.5);  // (100 * 2 + 102 * 6) / 8: the thin side is where it goes
  CHECK(row[2] == 2.0);
  CHECK(row[3] == 0.5);
  CHECK(row[4] == 3.0);  // a level at 1 tick, then two that are not there
}

TEST_CASE("order-flow imbalance follows Cont, Kukanov and Stoikov") {
  Fed f({spec(FeatureKind::OFI)}, {Trigger::Kind::PACKET});
  f.two_sided(kStart);
  f.feed(row(Kind::LEVEL, SELL, 104, 1, kStart));
  const auto ofi_after = [&](int side, Ticks price, Lots qty) {
    f.feed(row(Kind::LEVEL, side, price, qty, kStart + 1));
    return f.features.row()[0];
  };
  CHECK(ofi_after(BUY, 100, 10) == 4.0);   // size up at the best bid
  CHECK(ofi_after(BUY, 101, 3) == 3.0);    // a better bid counts whole
  CHECK(ofi_after(BUY, 101, 0) == -3.0);   // and leaves whole
  CHECK(ofi_after(SELL, 102, 7) == -5.0);  // size up at the best ask
  CHECK(ofi_after(SELL, 102, 0) == 7.0);   // the ask falls back
  CHECK(ofi_after(BUY, 90, 50) == 0.0);    // behind the best: not at one level
}

TEST_CASE("a touch trigger fires on prices, and on sizes if asked") {
  for (const bool sizes : {false, true}) {
    Fed f({spec(FeatureKind::MID)}, {Trigger::Kind::TOUCH, sizes});
    f.two_sided(kStart);
    CHECK(f.feed(row(Kind::LEVEL, BUY, 100, 9, kStart + 1)) == sizes);
    CHECK_FALSE(f.feed(row(Kind::LEVEL, BUY, 99, 9, kStart + 2)));
    CHECK(f.feed(row(Kind::LEVEL, BUY, 101, 9, kStart + 3)));
    CHECK_FALSE(f.feed(row(Kind::LEVEL, BUY, 103, 9, kStart + 4, false)));  // half a packet
  }
}

TEST_CASE("a clock starts with the book and stands on whole multiples") {
  Fed f({spec(FeatureKind::MID)}, {Trigger::Kind::CLOCK, false, 1'000});
  CHECK(f.features.next_clock() == kNever);
  f.two_sided(kStart + 300);
  CHECK(f.features.next_clock() == kStart + 1'000);
  CHECK(f.features.on_clock(f.book, kStart + 1'000));
  CHECK(f.features.next_clock() == kStart + 2'000);
}

TEST_CASE("no row without two sides, a live book and filled windows") {
  Fed f({spec(FeatureKind::VOLATILITY, 1, 1'000'000)}, {Trigger::Kind::PACKET});
  f.two_sided(kStart);
  CHECK_FALSE(f.features.warm());
  CHECK(f.features.warm_up_ns() == 4'000'000);
  CHECK_FALSE(f.feed(row(Kind::LEVEL, BUY, 99, 1, kStart + 3'999'999)));
  CHECK(f.feed(row(Kind::LEVEL, BUY, 99, 2, kStart + 4'000'000)));
  CHECK_FALSE(f.feed(row(Kind::LEVEL, SELL, 102, 0, kStart + 5'000'000)));  // no asks left
  CHECK(f.feed(row(Kind::LEVEL, SELL, 102, 1, kStart + 6'000'000)));
  Event gap = row(Kind::STATUS, NO_SIDE, 0, 0, kStart + 7'000'000);
  gap.ref_id = static_cast<std::int64_t>(Trading::GAP);
  CHECK_FALSE(f.feed(gap));
  CHECK_FALSE(f.feed(row(Kind::SNAPSHOT_BEGIN, NO_SIDE, 0, 0, kStart + 8'000'000, false)));
  f.two_sided(kStart + 8'000'000);
  CHECK_FALSE(f.feed(row(Kind::SNAPSHOT_END, NO_SIDE, 0, 0, kStart + 8'000'000)));
  CHECK_FALSE(f.feed(row(Kind::LEVEL, BUY, 99, 1, kStart + 9'000'000)));  // starts to fill again
  CHECK(f.feed(row(Kind::LEVEL, BUY, 99, 2, kStart + 12'000'000)));
}

TEST_CASE("what cannot be computed is refused by name") {
  const auto refused = [](FeatureSpec s) {
    CHECK_THROWS_AS(FeatureSet({s}, {Trigger::Kind::PACKET}), ConfigError);
  };
  refused(spec(FeatureKind::IMBALANCE, 0));
  refused(spec(FeatureKind::IMBALANCE, FeatureSet::kMaxLevels + 1));
  refused(spec(FeatureKind::DEPTH_LOTS));
  refused(spec(FeatureKind::MID_RETURN));
  refused(spec(FeatureKind::TRADE_FLOW, 1, -1));
  refused(spec(FeatureKind::OWN));
  CHECK_THROWS_AS(FeatureSet({}, {Trigger::Kind::CLOCK}), ConfigError);
  CHECK_THROWS_AS(feature_kind_of("nonsense"), ConfigError);
}

TEST_CASE("smooth math agrees with libm") {
  double worst_exp = 0, worst_log = 0;
  for (int i = 0; i < 100'000; ++i) {
    const double x = i * 3.7e-4, y = std::exp(i * 4e-4) - 1.0;
    worst_exp = std::max(worst_exp, std::fabs(exp2_down(x) / std::exp2(-x) - 1.0));
    worst_log = std::max(worst_log, std::fabs(log_one_plus(y) - std::log1p(y)));
  }
  CHECK(worst_exp < 1e-15);
  CHECK(worst_log < 1e-14);
  CHECK(exp2_down(0) == 1.0);
  CHECK(exp2_down(5'000) == 0.0);
  CHECK(log_one_plus(0) == 0.0);
  CHECK(signed_log(-1.0) == -signed_log(1.0));
}

TEST_CASE("a clock that a busy strategy hears late reads windows fed since") {
  constexpr Ns kMs = 1'000'000;
  Fed f({spec(FeatureKind::OFI, 1, 10 * kMs)}, {Trigger::Kind::CLOCK, false, 100 * kMs});
  f.two_sided(kStart);
  const Ts due = f.features.next_clock();
  f.feed(row(Kind::LEVEL, BUY, 100, 9, due + 30 * kMs));
  REQUIRE(f.features.on_clock(f.book, due));
  CHECK(f.features.row()[0] == 3.0);
}

TEST_CASE("a clock stands while the market is closed") {
  Fed f({spec(FeatureKind::MID)}, {Trigger::Kind::CLOCK, false, 1'000});
  f.two_sided(kStart);
  CHECK(f.features.next_clock() == (kStart / 1'000 + 1) * 1'000);
  Event status = row(Kind::STATUS, NO_SIDE, 0, 0, kStart + 2'500);
  status.ref_id = static_cast<std::int64_t>(Trading::CLOSED);
  f.feed(status);
  CHECK_FALSE(f.features.on_clock(f.book, f.features.next_clock()));
  CHECK(f.features.next_clock() == kNever);
  status.ref_id = static_cast<std::int64_t>(Trading::OPEN);
  status.ts_recv = kStart + 10'000'500;
  f.feed(status);
  CHECK(f.features.next_clock() == (status.ts_recv / 1'000 + 1) * 1'000);
  CHECK(f.features.on_clock(f.book, f.features.next_clock()));
}
