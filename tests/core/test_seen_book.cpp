#include <doctest/doctest.h>

#include <random>

#include "seen_book.hpp"

using namespace hft;

namespace {

Event row(Kind kind, int side, Ticks price, Lots lots, Ts ts, std::int64_t id = 0) {
  Event e{};
  e.kind = kind;
  e.side = static_cast<std::int8_t>(side);
  e.price = price;
  e.qty = lots;
  e.ts_event = ts;
  e.ts_recv = ts + 50;
  e.order_id = id;
  e.flags = SEEN_BY_VENUE | SEEN_BY_US | LAST;
  return e;
}

Update filled(Ticks price, Lots lots, Ts ts, FillReason reason) {
  Update u{};
  u.kind = Update::Kind::FILL;
  u.price = price;
  u.lots = lots;
  u.ts_venue = ts;
  u.fill_reason = reason;
  u.maker = reason != FillReason::TAKEN;
  return u;
}

struct Ours {
  Book book;
  OwnTakes own;

  explicit Ours(Ns half_life_ns = 0) { own.follow({.half_life_ns = half_life_ns}); }
  void apply(const Event& e) {
    if (own.empty())
      book.apply(e);
    else
      own.apply(book, e);
  }
  SeenBook seen() const { return {book, own, book.ts_recv}; }
};

}  // namespace

TEST_CASE("who never took sees the tape") {
  Ours us;
  us.apply(row(Kind::LEVEL, SELL, 101, 5, 1));
  us.own.on_fill(us.book, filled(101, 3, 1, FillReason::QUEUE), BUY);
  CHECK(us.own.empty());
  CHECK(us.seen().ask() == 101);
  CHECK(us.seen().ask_lots() == 5);
  CHECK(us.seen().bid() == kNoPrice);
}

TEST_CASE("a level with nothing left is skipped, and a rest is floored") {
  Ours us;
  us.apply(row(Kind::LEVEL, SELL, 101, 5, 1));
  us.apply(row(Kind::LEVEL, SELL, 102, 7, 2));
  us.own.on_fill(us.book, filled(101, 5, 2, FillReason::TAKEN), BUY);
  us.own.on_fill(us.book, filled(102, 3, 2, FillReason::TAKEN), BUY);
  CHECK(us.seen().ask() == 102);
  CHECK(us.seen().ask_lots() == 4);
  CHECK(us.seen().lots_at(SELL, 101) == 0);
  us.apply(row(Kind::LEVEL, SELL, 102, 0, 3));
  CHECK_FALSE(us.seen().has_ask());
}

TEST_CASE("a fill that our book has not come to waits, and is then dropped if nothing is there") {
  Ours us;
  us.apply(row(Kind::LEVEL, BUY, 99, 5, 1));
  us.own.on_fill(us.book, filled(101, 4, 100, FillReason::TAKEN), BUY);
  CHECK_FALSE(us.own.empty());
  us.apply(row(Kind::LEVEL, SELL, 101, 9, 90));
  CHECK(us.seen().ask_lots() == 9);
  us.apply(row(Kind::LEVEL, BUY, 98, 5, 100));
  CHECK(us.seen().ask_lots() == 5);
  us.own.on_fill(us.book, filled(110, 4, 200, FillReason::TAKEN), BUY);
  us.apply(row(Kind::LEVEL, SELL, 101, 0, 201));
  CHECK(us.own.empty());
}

TEST_CASE("size that met our resting order stood at its price or through it") {
  Ours us;
  us.apply(row(Kind::LEVEL, SELL, 99, 4, 10));
  us.apply(row(Kind::LEVEL, SELL, 101, 4, 10));
  us.own.on_fill(us.book, filled(100, 6, 10, FillReason::CROSSED), BUY);
  CHECK(us.seen().ask() == 101);
  CHECK(us.seen().ask_lots() == 4);
}

TEST_CASE("a book that follows another's orders sees what one with its own sees") {
  std::mt19937_64 rng(3);
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(rng() % n); };
  for (int round = 0; round < 40; ++round) {
    Ours alone(200), follower(200);
    Book venue;
    venue.lead(follower.book);
    Lots shown = 0;
    for (Ts ts = 1; ts < 300; ++ts) {
      const int side = below(2) ? BUY : SELL;
      Event e = row(Kind::ADD, side, 100 - side * (1 + below(3)), 1 + below(9), ts, 1 + below(40));
      if (const auto what = below(6); what > 2)
        e.kind = what == 3 ? Kind::CANCEL : what == 4 ? Kind::EXECUTE : Kind::MODIFY;
      venue.apply(e);
      for (Ours* us : {&alone, &follower}) us->apply(e);
      if (below(8) == 0) {
        const Ticks price = 100 - side * (1 + below(3));
        for (Ours* us : {&alone, &follower})
          us->own.on_fill(us->book, filled(price, 5, ts, FillReason::TAKEN), -side);
      }
      for (const int s : {BUY, SELL})
        for (Ticks away = 1; away <= 3; ++away) {
          const Ticks price = 100 - s * away;
          REQUIRE(alone.seen().lots_at(s, price) == follower.seen().lots_at(s, price));
          REQUIRE(alone.seen().lots_at(s, price) <= venue.lots_at(s, price));
          shown += alone.seen().lots_at(s, price);
        }
    }
    CHECK(shown > 0);
  }
}
