#include <doctest/doctest.h>

#include <list>
#include <map>

#include "book.hpp"
#include "rng.hpp"

using namespace hft;

namespace {

constexpr std::uint16_t kSeen = SEEN_BY_VENUE | SEEN_BY_US | LAST;

Event row(Kind kind, int side, Ticks price, Lots qty, std::int64_t id, std::int64_t ref = 0) {
  Event e{};
  e.kind = kind;
  e.side = static_cast<std::int8_t>(side);
  e.price = price;
  e.qty = qty;
  e.order_id = id;
  e.ref_id = ref;
  e.flags = kSeen;
  return e;
}

/// The same book from a list a level and a map of ids.
struct Twin {
  struct Entry {
    int side;
    Ticks price;
    Lots lots;
  };
  std::map<std::int64_t, Entry> orders;
  std::map<std::pair<int, Ticks>, std::list<std::int64_t>> queues;
  OrderBook::Faults faults;
  Keeps keeps = Keeps::SMALLER;

  void leave(std::int64_t id) {
    const Entry& o = orders.at(id);
    queues[{o.side, o.price}].remove(id);
    orders.erase(id);
  }
  void add(std::int64_t id, int side, Ticks price, Lots lots) {
    if (orders.contains(id)) {
      ++faults.reused_id;
      leave(id);
    }
    orders[id] = {side, price, lots};
    queues[{side, price}].push_back(id);
  }
  void reduce(std::int64_t id, Lots lots, bool all) {
    if (!orders.contains(id)) {
      ++faults.unknown_id;
      return;
    }
    Entry& o = orders.at(id);
    if (!all && lots > o.lots) ++faults.overfill;
    if (all || lots >= o.lots)
      leave(id);
    else
      o.lots -= lots;
  }
  void apply(const Event& e) {
    switch (e.kind) {
      case Kind::ADD:
        return add(e.order_id, e.side, e.price, e.qty);
      case Kind::CANCEL:
        return reduce(e.order_id, e.qty, e.qty == 0);
      case Kind::EXECUTE:
        reduce(e.order_id, e.qty, false);
        if (e.side == NO_SIDE) reduce(e.ref_id, e.qty, false);
        return;
      case Kind::REPLACE: {
        const int side = orders.contains(e.order_id) ? orders.at(e.order_id).side : e.side;
        reduce(e.order_id, 0, true);
        return add(e.ref_id, side, e.price, e.qty);
      }
      default:
        break;
    }
    if (!orders.contains(e.order_id) || e.qty == 0) return reduce(e.order_id, 0, true);
    Entry& o = orders.at(e.order_id);
    const bool stays = keeps != Keeps::NOTHING && o.price == e.price &&
                       (keeps == Keeps::SAME_PRICE || e.qty <= o.lots);
    if (stays) {
      o.lots = e.qty;
      return;
    }
    const int side = o.side;
    leave(e.order_id);
    add(e.order_id, side, e.price, e.qty);
  }
  Lots lots_at(int side, Ticks price) {
    Lots sum = 0;
    for (const auto id : queues[{side, price}]) sum += orders.at(id).lots;
    return sum;
  }
};

Event random_row(std::uint64_t seed, std::uint64_t step, std::int64_t ids, Ticks prices) {
  const auto draw = [&](std::uint64_t what, std::uint64_t n) {
    return static_cast<std::int64_t>(draw_bits(seed, what, 0, step) % n);
  };
  const Kind kinds[] = {Kind::ADD,    Kind::ADD,     Kind::ADD,    Kind::CANCEL,
                        Kind::MODIFY, Kind::EXECUTE, Kind::REPLACE};
  const Kind kind = kinds[draw(1, 7)];
  int side = draw(2, 2) ? BUY : SELL;
  if (kind == Kind::EXECUTE && draw(3, 4) == 0) side = NO_SIDE;
  const Lots least = kind == Kind::CANCEL || kind == Kind::MODIFY ? 0 : 1;
  return row(kind, side, 1'000 + draw(4, static_cast<std::uint64_t>(prices)), least + draw(5, 20),
             1 + draw(6, static_cast<std::uint64_t>(ids)),
             1 + draw(7, static_cast<std::uint64_t>(ids)));
}

void same(const Book& book, Twin& twin, Ticks prices) {
  REQUIRE(book.orders()->size() == twin.orders.size());
  for (const int side : {BUY, SELL})
    for (Ticks price = 1'000; price < 1'000 + prices; ++price) {
      REQUIRE(book.lots_at(side, price) == twin.lots_at(side, price));
      std::vector<std::pair<std::int64_t, Lots>> queue, expected;
      book.orders()->for_each_at(side, price,
                                 [&](std::int64_t id, Lots lots) { queue.emplace_back(id, lots); });
      for (const auto id : twin.queues[{side, price}])
        expected.emplace_back(id, twin.orders.at(id).lots);
      REQUIRE(queue == expected);
      REQUIRE(book.orders()->orders_at(side, price) == expected.size());
    }
}

}  // namespace

TEST_CASE("orders, queues and levels equal those of lists and maps") {
  for (const Keeps keeps : {Keeps::SMALLER, Keeps::SAME_PRICE, Keeps::NOTHING})
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      const std::int64_t ids = seed % 2 ? 60 : 3'000;  // few: ids are used again all the time
      const Ticks prices = seed < 3 ? 12 : 700;        // many: emptied levels are dropped
      Book book;
      book.keeps = keeps;
      Twin twin;
      twin.keeps = keeps;
      for (std::uint64_t step = 0; step < 6'000; ++step) {
        const Event e = random_row(seed, step, ids, prices);
        const auto before = [&](const OrderBook::Change& c) {
          return c.before - c.after == c.gone;
        };
        for (const OrderBook::Change& c : book.apply_order(e)) {
          REQUIRE(before(c));
          REQUIRE(c.after >= 0);
        }
        twin.apply(e);
        if (step % 500 == 0) same(book, twin, prices);
      }
      same(book, twin, prices);
      CHECK(book.orders()->faults().unknown_id == twin.faults.unknown_id);
      CHECK(book.orders()->faults().reused_id == twin.faults.reused_id);
      CHECK(book.orders()->faults().overfill == twin.faults.overfill);
      CHECK(book.orders()->faults().unknown_id > 0);
    }
}

TEST_CASE("a cleared side loses its orders, and their ids are free again") {
  Book book;
  for (std::int64_t id = 1; id <= 40; ++id)
    book.apply(row(Kind::ADD, id % 2 ? BUY : SELL, id % 2 ? 90 + id % 7 : 110 + id % 7, id, id));
  Event clear = row(Kind::CLEAR, BUY, 93, 0, 0, 1);  // from the touch down to 93
  book.apply(clear);
  CHECK(book.bid() < 93);
  CHECK(book.orders()->orders_at(BUY, 95) == 0);
  clear.ref_id = 0;
  book.apply(clear);
  CHECK_FALSE(book.has_bid());
  CHECK(book.orders()->size() == 20);
  book.apply(row(Kind::ADD, BUY, 95, 5, 1));
  CHECK(book.orders()->faults().reused_id == 0);
  CHECK(book.bid_lots() == 5);
}

TEST_CASE("no id is mistaken for an empty place of the table") {
  Book book;
  book.apply(row(Kind::ADD, BUY, 95, 5, std::numeric_limits<std::int64_t>::min()));
  book.apply(row(Kind::CANCEL, BUY, 95, 5, std::numeric_limits<std::int64_t>::min()));
  CHECK(book.orders()->size() == 0);
  CHECK(book.orders()->faults().unknown_id == 1);
}

namespace {

/// Any row of a feed of orders: sometimes a side is cleared or the book is told anew.
Event any_row(std::uint64_t seed, std::uint64_t step, std::int64_t ids, Ticks prices) {
  const std::uint64_t draw = draw_bits(seed, 8, 0, step) % 100;
  if (draw > 2) return random_row(seed, step, ids, prices);
  if (draw == 0) return row(Kind::SNAPSHOT_BEGIN, NO_SIDE, 0, 0, 0);
  const Event any = random_row(seed, step, ids, prices);
  return row(Kind::CLEAR, step % 3 ? int{any.side} : 0, any.price, 0, 0, draw == 1);
}

struct Reader {
  Book* book;
  Book alone;  // of the same rows, with orders of its own
  std::size_t at = 0;
};

void read(Reader& reader, const Event& e, Ticks prices) {
  reader.book->apply(e);
  reader.alone.apply(e);
  ++reader.at;
  for (const int side : {BUY, SELL})
    for (Ticks price = 1'000; price < 1'000 + prices; ++price)
      REQUIRE(reader.book->lots_at(side, price) == reader.alone.lots_at(side, price));
  if (!is_order(e.kind)) return;
  const auto shared = reader.book->changes(), own = reader.alone.changes();
  REQUIRE(shared.size() == own.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    REQUIRE(shared[i].key == own[i].key);
    REQUIRE(shared[i].side == own[i].side);
    REQUIRE(shared[i].before == own[i].before);
    REQUIRE(shared[i].after == own[i].after);
    REQUIRE(shared[i].gone == own[i].gone);
  }
}

}  // namespace

TEST_CASE("two books that share their orders equal two that do not, whoever reads first") {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const std::int64_t ids = seed % 2 ? 30 : 1'000;
    const Ticks prices = 12;
    const std::size_t most_apart = seed < 4 ? 4 : 3'000;  // far apart: what waits outgrows its ring
    std::vector<Event> rows;
    for (std::uint64_t step = 0; step < 5'000; ++step)
      rows.push_back(any_row(seed, step, ids, prices));
    Book venue, ours;
    venue.lead(ours);
    Reader readers[] = {{&venue, {}}, {&ours, {}}};
    for (std::uint64_t turn = 0; readers[0].at + readers[1].at < 2 * rows.size(); ++turn) {
      Reader& reader = readers[draw_bits(seed, 9, 0, turn) % 2];
      const std::size_t other = readers[&reader == readers].at;
      for (std::uint64_t n = draw_bits(seed, 10, 0, turn) % most_apart;
           n > 0 && reader.at < std::min(rows.size(), other + most_apart); --n)
        read(reader, rows[reader.at], prices);
      if (readers[0].at < readers[1].at) continue;
      REQUIRE(venue.orders()->size() ==
              (readers[0].alone.orders() ? readers[0].alone.orders()->size() : 0));
    }
    CHECK(venue.waiting() == 0);
    for (const Reader& reader : readers) {
      CHECK(reader.book->faults()->unknown_id == reader.alone.faults()->unknown_id);
      CHECK(reader.book->faults()->reused_id == reader.alone.faults()->reused_id);
      CHECK(reader.book->faults()->overfill == reader.alone.faults()->overfill);
    }
  }
}

TEST_CASE("a table of levels that was large once serves few levels again") {
  Book book;
  for (std::int64_t id = 1; id <= 5'000; ++id) book.apply(row(Kind::ADD, BUY, 10'000 - id, 1, id));
  book.apply(row(Kind::CLEAR, BUY, 0, 0, 0));
  for (std::int64_t id = 1; id <= 20'000; ++id) {
    book.apply(row(Kind::ADD, id % 2 ? BUY : SELL, 50'000 + id, 1, id));
    book.apply(row(Kind::CANCEL, 0, 0, 0, id - 3));
  }
  CHECK(book.orders()->size() == 3);
  CHECK(book.orders()->orders_at(BUY, 69'999) == 1);
  CHECK(book.orders()->orders_at(SELL, 70'000) == 1);
  CHECK(book.bid() == 69'999);
}
