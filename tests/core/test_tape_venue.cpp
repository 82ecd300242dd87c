#include <doctest/doctest.h>

#include "tape_venue.hpp"

using namespace hft;

namespace {

/// One instrument at one venue, without a driver: rows and commands by hand, answers as they come.
struct Bench {
  explicit Bench(VenueConfig config = {}) : venue(std::move(config), orders, fills) {
    inst.tick = inst.lot = 1;
    inst.validate();
    venue.open(listing, inst);
    venue.watch(&horizon, &stirred);
  }

  void level(int side, Ticks price, Lots qty, Ts ts) { row(Kind::LEVEL, side, price, qty, ts); }
  void row(Kind kind, int side, Ticks price, Lots qty, Ts ts, std::int64_t ref = 0) {
    Event e{};
    e.kind = kind;
    e.side = static_cast<std::int8_t>(side);
    e.price = price;
    e.qty = qty;
    e.ref_id = ref;
    e.ts_event = e.ts_recv = ts;
    e.flags = 7;
    venue.on_row(listing, e, rows++);
  }
  Order& send(int side, Ticks price, Lots lots, Ts ts, Tif tif = Tif::GTC) {
    Order& o = orders.add();
    o.row.side = static_cast<std::int8_t>(side);
    o.row.tif = tif;
    command(o, Command::Kind::NEW, price, lots, ts);
    return o;
  }
  void command(Order& o, Command::Kind kind, Ticks price, Lots lots, Ts ts) {
    Command c{};
    c.kind = kind;
    c.tif = o.row.tif;
    c.side = o.row.side;
    c.order = o.row.id;
    c.price = price;
    c.lots = lots;
    c.ts_arrive = ts;
    venue.on_command(listing, c);
  }

  Instrument inst;
  Orders orders;
  std::vector<FillRow> fills;
  Listing listing;
  TapeVenue venue;
  Ts horizon = kNever;
  bool stirred = false;
  std::int64_t rows = 0;
};

VenueConfig waiting() {
  VenueConfig config;
  config.fill_on_cross = false;
  return config;
}

}  // namespace

TEST_CASE("an answer lowers the horizon to when we hear it") {
  VenueConfig config;
  config.response = Latency(30);
  Bench b(config);
  b.level(BUY, 100, 10, 0);
  b.send(BUY, 100, 5, 10);
  CHECK(b.stirred);
  CHECK(b.horizon == 40);
  CHECK(b.venue.responses().front().ts_recv == 40);
}

TEST_CASE("answers of books that ran in turn are put in order") {
  Bench b;
  Listing other = b.listing;
  Instrument second = b.inst;
  second.id = 1;
  other.inst = &second;
  b.level(BUY, 100, 10, 0);
  Order& first = b.send(BUY, 101, 5, 0);
  Order& later = b.orders.add();
  later.row.side = BUY;
  Command c{};
  c.kind = Command::Kind::NEW;
  c.side = BUY;
  c.order = later.row.id;
  c.instrument = 1;
  c.price = 101;
  c.lots = 5;
  b.venue.on_command(other, c);
  b.venue.responses().clear();

  Event print{};
  print.kind = Kind::TRADE;
  print.side = SELL;
  print.price = 99;
  print.qty = 5;
  print.flags = 7;
  b.venue.hold();
  print.ts_event = 90;
  b.venue.on_row(b.listing, print, 1);
  print.ts_event = 50;
  b.venue.on_row(other, print, 1);
  CHECK(b.venue.responses().empty());
  b.venue.release();
  REQUIRE(b.venue.responses().size() == 2);
  CHECK(b.venue.responses()[0].order == later.row.id);
  CHECK(b.venue.responses()[0].ts_recv == 50);
  CHECK(b.venue.responses()[1].order == first.row.id);
}

TEST_CASE("a level of ours is hot while we rest there or have taken from it") {
  Bench b;
  b.level(BUY, 100, 10, 0);
  b.level(SELL, 101, 10, 0);
  Order& o = b.send(BUY, 100, 5, 1);
  CHECK(b.listing.book.side(BUY).hot(100));
  b.command(o, Command::Kind::CANCEL, 0, 0, 2);
  CHECK_FALSE(b.listing.book.side(BUY).hot(100));
  b.send(BUY, 101, 4, 3, Tif::IOC);
  CHECK(b.listing.book.side(SELL).hot(-101));
  b.level(SELL, 101, 0, 4);
  CHECK_FALSE(b.listing.book.side(SELL).hot(-101));
}

TEST_CASE("what we took is missing for takers until it heals or the tape removes it") {
  VenueConfig config;
  config.refill_half_life_ns = 1'000;
  Bench b(config);
  b.level(SELL, 101, 10, 0);
  CHECK(b.send(BUY, 101, 10, 0, Tif::IOC).venue.cum == 10);
  CHECK(b.send(BUY, 101, 10, 0, Tif::IOC).venue.cum == 0);
  CHECK(b.send(BUY, 101, 10, 1'000, Tif::IOC).venue.cum == 5);
  b.level(SELL, 101, 20, 1'000);  // ten new lots are real
  CHECK(b.send(BUY, 101, 100, 1'000, Tif::IOC).venue.cum == 10);
  CHECK(b.send(BUY, 101, 100, 1'000'000, Tif::IOC).venue.cum == 20);  // healed wholly
}

TEST_CASE("post-only does not mind a level that we have emptied") {
  VenueConfig config;
  config.refill_half_life_ns = 0;
  Bench b(config);
  b.level(SELL, 101, 10, 0);
  b.send(BUY, 101, 10, 0, Tif::IOC);
  CHECK(b.send(BUY, 101, 5, 1, Tif::POST_ONLY).venue.live);
}

TEST_CASE("ahead follows the model at our level and is capped by what is shown") {
  Bench b(waiting());
  b.level(BUY, 100, 10, 0);
  Order& o = b.send(BUY, 100, 5, 1);
  CHECK(o.venue.ahead == 10);
  b.level(BUY, 100, 30, 5'000'000);
  CHECK(o.venue.ahead == 10);
  b.level(BUY, 100, 4, 9'000'000);
  CHECK(o.venue.ahead <= 4);
}

TEST_CASE("a clear does not move us up; the level told again caps what is ahead") {
  Bench b(waiting());
  b.level(BUY, 100, 4, 0);
  Order& o = b.send(BUY, 100, 5, 1);
  b.row(Kind::CLEAR, BUY, 0, 0, 10'000'000);
  CHECK(o.venue.ahead == 4);
  b.level(BUY, 100, 3, 10'000'000);
  CHECK(o.venue.ahead == 3);
  b.row(Kind::TRADE, SELL, 100, 5, 11'000'000);
  CHECK(o.venue.cum == 2);
}

TEST_CASE("splitting a shrink into steps moves the place little") {
  Bench whole(waiting()), split(waiting());
  for (Bench* b : {&whole, &split}) {
    b->level(BUY, 100, 50, 0);
    b->send(BUY, 100, 1, 1);
    b->level(BUY, 100, 100, 2'000'000);
  }
  whole.level(BUY, 100, 80, 4'000'000);
  for (Lots size = 99; size >= 80; --size)
    split.level(BUY, 100, size, 4'000'000 + (100 - size) * 2'000'000);
  const double a = whole.orders[1].venue.ahead, s = split.orders[1].venue.ahead;
  CHECK(std::abs(a - s) < 1.0);
}

TEST_CASE("through, at and beyond: a print serves the best of ours first and its size but once") {
  Bench b(waiting());
  b.level(BUY, 99, 4, 0);
  Order& at = b.send(BUY, 99, 10, 1);
  Order& better = b.send(BUY, 100, 10, 1);
  Order& worse = b.send(BUY, 98, 10, 1);
  b.row(Kind::TRADE, SELL, 99, 17, 2);
  CHECK(better.venue.cum == 10);
  CHECK(at.venue.cum == 3);
  CHECK(worse.venue.cum == 0);
  CHECK(b.fills[0].reason == FillReason::THROUGH);
  CHECK(b.fills[1].reason == FillReason::QUEUE);
  CHECK(b.fills[1].cause_row == 1);
}

TEST_CASE("markouts are the mid some time after, as soon as the tape gets there") {
  Bench b;
  b.level(BUY, 100, 10, 0);
  b.level(SELL, 102, 10, 0);
  b.send(BUY, 102, 1, 0, Tif::IOC);
  CHECK(b.fills[0].mid2 == 202);
  CHECK(b.listing.busy());
  CHECK(b.listing.markouts.next_due() == kMarkoutNs[0]);
  b.level(BUY, 101, 10, 5'000'000);
  b.listing.markouts.read(b.fills, kMarkoutNs[0], b.listing.book.mid2());
  CHECK(b.fills[0].markout_mid2[0] == 203);
  CHECK(b.fills[0].markout_mid2[1] == kNoPrice);
}

TEST_CASE("a position keeps the venue's book moving: it may owe funding") {
  Bench b;
  b.level(SELL, 102, 10, 0);
  CHECK_FALSE(b.listing.busy());
  b.send(BUY, 102, 4, 0, Tif::IOC);
  for (const Ns h : kMarkoutNs) b.listing.markouts.read(b.fills, h, 0);
  CHECK(b.listing.busy());
}

TEST_CASE("a print that finds less than it took goes on, and never fills ours by what went on") {
  VenueConfig config = waiting();
  config.refill_half_life_ns = 0;
  Bench b(config);
  b.level(SELL, 101, 10, 0);
  b.level(SELL, 102, 10, 0);
  Order& resting = b.send(SELL, 102, 5, 1);
  b.send(BUY, 101, 10, 2, Tif::IOC);
  b.row(Kind::TRADE, BUY, 101, 10, 3);
  CHECK(resting.venue.cum == 0);
  CHECK(b.listing.footprint.missing(SELL, -102, 3) == 10);
  b.level(SELL, 101, 0, 3);
  CHECK(b.send(BUY, 102, 10, 4, Tif::IOC).venue.cum == 0);
}

TEST_CASE("what our resting orders got of a print the tape's levels did not lose") {
  VenueConfig config = waiting();
  config.refill_half_life_ns = 0;
  Bench b(config);
  b.level(SELL, 101, 10, 0);
  b.level(SELL, 102, 10, 0);
  b.send(BUY, 101, 10, 1, Tif::IOC);
  Order& better = b.send(SELL, 100, 6, 2);
  b.row(Kind::TRADE, BUY, 101, 10, 3);
  CHECK(better.venue.cum == 6);
  CHECK(b.listing.footprint.missing(SELL, -102, 3) == 4);
}

TEST_CASE("takers are counted: what faded, what the cap kept, what they did not get") {
  VenueConfig config;
  config.fade = 0.5;
  config.participation_cap = 0.5;
  Bench b(config);
  b.level(SELL, 101, 10, 0);
  b.row(Kind::TRADE, BUY, 101, 6, 1);
  CHECK(b.send(BUY, 101, 9, 2, Tif::IOC).venue.cum == 3);
  const Listing::Counters& c = b.listing.counters;
  CHECK(c.faded == 4);
  CHECK(c.capped == 2);
  CHECK(c.taker_unfilled == 6);
  CHECK(c.extrapolated == 1);
  CHECK(b.fills[0].extrapolated == 1);
  CHECK(b.venue.responses()[0].extrapolated);
}

TEST_CASE("an instrument of orders stays awake while something of ours is missing there") {
  VenueConfig config;
  config.refill_half_life_ns = 0;
  Bench b(config);
  b.row(Kind::ADD, SELL, 101, 10, 0);
  b.send(BUY, 101, 4, 1, Tif::IOC);
  b.send(SELL, kNoPrice, 4, 1);
  for (const Ns h : kMarkoutNs) b.listing.markouts.read(b.fills, h + 1, 0);
  b.listing.account.position = 0;
  CHECK(b.listing.busy());
  b.row(Kind::CLEAR, SELL, 0, 0, 2);
  CHECK_FALSE(b.listing.busy());
}
