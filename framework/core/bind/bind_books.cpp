#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "../book.hpp"
#include "words.hpp"

using namespace nanobind::literals;

namespace hft {

namespace {

/// The book of one instrument's rows, as we see them.
class BookStream {
 public:
  /// Eight words a packet: ts_event, ts_recv, bid, bid_lots, ask, ask_lots, row, trading.
  Out<std::int64_t, 2> feed(const Words& words) {
    std::vector<std::int64_t> touches;
    std::size_t packets = 0;
    for (std::size_t i = 0; i < words.shape(0); ++i)
      packets += (event_at(words, i).flags & (LAST | SEEN_BY_US)) == (LAST | SEEN_BY_US);
    touches.reserve(packets * 8);
    for (std::size_t i = 0; i < words.shape(0); ++i, ++rows_) {
      const Event e = event_at(words, i);
      if (!(e.flags & SEEN_BY_US)) continue;
      book_.apply(e);
      if (e.flags & LAST)
        touches.insert(touches.end(),
                       {e.ts_event, e.ts_recv, book_.bid(), book_.bid_lots(), book_.ask(),
                        book_.ask_lots(), rows_, static_cast<std::int64_t>(book_.trading)});
    }
    return moved_to_numpy(std::move(touches), {packets, 8});
  }

  Out<std::int64_t, 2> levels(int side, std::size_t n) const {
    std::vector<std::int64_t> out;
    const Ladder& ladder = book_.side(side);
    for (std::int64_t k = ladder.best(); k != kNoKey && out.size() < 3 * n; k = ladder.next(k))
      out.insert(out.end(), {k * side, ladder.at(k),
                             book_.orders() ? book_.orders()->orders_at(side, k * side) : 0});
    const std::size_t found = out.size() / 3;
    return moved_to_numpy(std::move(out), {found, 3});
  }

  Out<std::int64_t, 2> queue(int side, Ticks price) const {
    std::vector<std::int64_t> out;
    if (book_.orders())
      book_.orders()->for_each_at(
          side, price, [&](std::int64_t id, Lots lots) { out.insert(out.end(), {id, lots}); });
    const std::size_t found = out.size() / 2;
    return moved_to_numpy(std::move(out), {found, 2});
  }

  const Book& book() const noexcept { return book_; }

 private:
  Book book_;
  std::int64_t rows_ = 0;
};

/// Order-by-order rows told as levels. Where rows are seen by one side alone, the two books differ,
/// and so do the levels they lead to. A packet is told when it ends, on both sides: its last row
/// may change nothing.
class LevelStream {
 public:
  Out<std::int64_t, 2> feed(const Words& words) {
    std::vector<Event> out;
    out.reserve(words.shape(0) + packet_.size());
    for (std::size_t i = 0; i < words.shape(0); ++i) {
      const Event e = event_at(words, i);
      tell(e);
      end(e, SEEN_BY_VENUE);
      end(e, SEEN_BY_US);
      if (open_ != 0) continue;
      out.insert(out.end(), packet_.begin(), packet_.end());
      packet_.clear();
    }
    return flat(out);
  }

  /// Rows of a packet that the feed left open.
  Out<std::int64_t, 2> rest() { return flat(std::exchange(packet_, {})); }

 private:
  static Out<std::int64_t, 2> flat(const std::vector<Event>& rows) {
    std::vector<std::int64_t> words(rows.size() * 8);
    if (!rows.empty()) std::memcpy(words.data(), rows.data(), rows.size() * sizeof(Event));
    return moved_to_numpy(std::move(words), {rows.size(), 8});
  }

  void tell(Event e) {
    const auto seen = static_cast<std::uint16_t>(e.flags & (SEEN_BY_VENUE | SEEN_BY_US));
    e.flags &= static_cast<std::uint16_t>(~LAST);
    if (!is_order(e.kind)) {
      if (seen & SEEN_BY_VENUE) venue_.apply(e);
      if (seen & SEEN_BY_US) ours_.apply(e);
      packet_.push_back(e);
      packet_.back().flags &= static_cast<std::uint16_t>(~NO_CHANGE);
      return;
    }
    e.flags &= static_cast<std::uint16_t>(~seen);
    if (is_print(e)) print(e, seen, packet_);
    const std::size_t before = packet_.size();
    if (seen & SEEN_BY_VENUE) change(venue_, e, SEEN_BY_VENUE, packet_);
    const std::size_t of_venue = packet_.size();
    if (seen & SEEN_BY_US) change(ours_, e, SEEN_BY_US, packet_);
    join_twins(before, of_venue, packet_);
  }

  /// Ends the packet of one side with the last row of it that was told.
  void end(const Event& e, EventFlag side) {
    if (!(e.flags & side)) return;
    open_ |= side;
    if (!(e.flags & LAST)) return;
    open_ &= static_cast<std::uint16_t>(~side);
    const auto last = std::find_if(packet_.rbegin(), packet_.rend(),
                                   [&](const Event& row) { return row.flags & side; });
    if (last != packet_.rend()) last->flags |= LAST;
  }

  static void print(const Event& e, std::uint16_t seen, std::vector<Event>& out) {
    Event trade = e;
    trade.kind = Kind::TRADE;
    trade.side = aggressor(e);
    trade.flags = static_cast<std::uint16_t>((e.flags | seen) & ~(NO_PRINT | NO_CHANGE));
    out.push_back(trade);
  }

  /// One row a level, however often the order's row changed it. An inferred row infers the level
  /// too, but what it empties is gone: UNCERTAIN would say that it is only out of view.
  static void change(Book& book, const Event& e, std::uint16_t seen, std::vector<Event>& out) {
    const auto changes = book.apply_order(e);
    for (std::size_t i = 0; i < changes.size(); ++i) {
      const OrderBook::Change& c = changes[i];
      const auto same_level = [&](const auto& k) { return k.key == c.key && k.side == c.side; };
      if (std::ranges::any_of(changes.subspan(i + 1), same_level)) continue;
      Event level = e;
      level.kind = Kind::LEVEL;
      level.side = c.side;
      level.price = c.key * c.side;
      level.qty = c.after;
      level.order_id = level.ref_id = 0;
      level.flags = static_cast<std::uint16_t>((e.flags | seen) & ~(NO_PRINT | NO_CHANGE));
      if (level.qty == 0) level.flags &= static_cast<std::uint16_t>(~UNCERTAIN);
      out.push_back(level);
    }
  }

  /// Both books changed alike: one row tells both sides.
  static void join_twins(std::size_t begin, std::size_t middle, std::vector<Event>& out) {
    const std::size_t n = middle - begin;
    if (out.size() - middle != n) return;
    for (std::size_t i = 0; i < n; ++i) {
      const Event &a = out[begin + i], &b = out[middle + i];
      if (a.price != b.price || a.qty != b.qty || a.side != b.side) return;
    }
    for (std::size_t i = begin; i < middle; ++i) out[i].flags |= SEEN_BY_US;
    out.resize(middle);
  }

  Book venue_, ours_;
  std::vector<Event> packet_;  // all that was told since both sides were between packets
  std::uint16_t open_ = 0;     // sides that are within a packet
};

nb::dict faults_of(const OrderBook* orders) {
  const OrderBook::Faults faults = orders ? orders->faults() : OrderBook::Faults{};
  nb::dict d;
  d["unknown_id"] = faults.unknown_id;
  d["reused_id"] = faults.reused_id;
  d["overfill"] = faults.overfill;
  return d;
}

const char* name_of(BookState state) noexcept {
  constexpr const char* kNames[] = {"EMPTY", "SYNCING", "LIVE", "GAP"};
  return kNames[static_cast<int>(state)];
}

}  // namespace

void init_books(nb::module_& m) {
  nb::class_<BookStream>(m, "BookStream", "The book of one instrument's rows, chunk by chunk.")
      .def(nb::init<>())
      .def("feed", &BookStream::feed, "words"_a,
           "EVENT rows viewed as (n, 8) int64 -> (packets, 8) int64.")
      .def("levels", &BookStream::levels, "side"_a, "n"_a, "(k, 3): price, lots, orders.")
      .def("queue", &BookStream::queue, "side"_a, "price"_a, "(k, 2): order id, lots.")
      .def_prop_ro("live_orders",
                   [](const BookStream& b) {
                     return b.book().orders() ? b.book().orders()->size() : std::size_t{0};
                   })
      .def_prop_ro("faults", [](const BookStream& b) { return faults_of(b.book().orders()); })
      .def_prop_ro("trading",
                   [](const BookStream& b) { return static_cast<int>(b.book().trading); })
      .def_prop_ro("state", [](const BookStream& b) { return name_of(b.book().state); });
  nb::class_<LevelStream>(m, "LevelStream", "Order-by-order rows told as levels, chunk by chunk.")
      .def(nb::init<>())
      .def("feed", &LevelStream::feed, "words"_a, "(n, 8) int64 -> (k, 8) int64.")
      .def("rest", &LevelStream::rest, "Rows of a packet that the feed left open.");
}

}  // namespace hft
