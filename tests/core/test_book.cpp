#include <doctest/doctest.h>

#include "book.hpp"

using namespace hft;

namespace {

Event row(Kind kind, int side, Ticks price, Lots qty, std::int64_t ref = 0,
          std::uint16_t flags = 7) {
  Event e{};
  e.kind = kind;
  e.side = static_cast<std::int8_t>(side);
  e.price = price;
  e.qty = qty;
  e.ref_id = ref;
  e.flags = flags;
  return e;
}

Book two_sided() {
  Book b;
  for (int k = 0; k < 3; ++k) {
    b.apply(row(Kind::LEVEL, BUY, 100 - k, 10 + k));
    b.apply(row(Kind::LEVEL, SELL, 101 + k, 20 + k));
  }
  return b;
}

}  // namespace

TEST_CASE("a book shows both touches, and says so when a side is empty") {
  Book b;
  CHECK(b.bid() == kNoPrice);
  CHECK(b.ask() == kNoPrice);
  CHECK(b.mid2() == kNoPrice);
  CHECK(b.bid_lots() == 0);
  b = two_sided();
  CHECK(b.bid() == 100);
  CHECK(b.ask() == 101);
  CHECK(b.mid2() == 201);
  CHECK(b.ask_lots() == 20);
  CHECK(b.lots_at(SELL, 103) == 22);
}

TEST_CASE("a book is live after its first whole packet, not within it") {
  Book b;
  CHECK(b.state == BookState::EMPTY);
  b.apply(row(Kind::LEVEL, BUY, 100, 1, 0, 3));
  CHECK_FALSE(b.live());
  b.apply(row(Kind::LEVEL, SELL, 101, 1, 0, 7));
  CHECK(b.live());
}

TEST_CASE("a clear drops a side, both, or only from the touch to a price") {
  Book b = two_sided();
  b.apply(row(Kind::CLEAR, BUY, 99, 0, 1));
  CHECK(b.bid() == 98);
  CHECK(b.ask() == 101);
  b.apply(row(Kind::CLEAR, SELL, 0, 0));
  CHECK_FALSE(b.has_ask());
  CHECK(b.bid() == 98);
  b = two_sided();
  b.apply(row(Kind::CLEAR, NO_SIDE, 0, 0));
  CHECK_FALSE(b.has_bid());
  CHECK_FALSE(b.has_ask());
}

TEST_CASE("lost messages make a book unreadable until a snapshot is whole") {
  Book b = two_sided();
  b.apply(row(Kind::STATUS, 0, 0, 0, static_cast<std::int64_t>(Trading::GAP)));
  CHECK(b.state == BookState::GAP);
  CHECK(b.trading == Trading::OPEN);  // a gap is ours, not the venue's
  b.apply(row(Kind::LEVEL, BUY, 100, 1));
  CHECK(b.state == BookState::GAP);
  b.apply(row(Kind::SNAPSHOT_BEGIN, 0, 0, 0));
  CHECK(b.state == BookState::SYNCING);
  CHECK_FALSE(b.has_bid());
  b.apply(row(Kind::LEVEL, BUY, 97, 1));
  CHECK_FALSE(b.live());
  b.apply(row(Kind::SNAPSHOT_END, 0, 0, 0));
  CHECK(b.live());
  CHECK(b.bid() == 97);
}

TEST_CASE("a best-level feed removes what was better") {
  Book b = two_sided();
  b.apply(row(Kind::BBO, BUY, 99, 4));
  CHECK(b.bid() == 99);
  CHECK(b.bid_lots() == 4);
  b.apply(row(Kind::BBO, SELL, 100, 4));
  CHECK(b.ask() == 100);
  CHECK(b.lots_at(SELL, 101) == 20);
}
