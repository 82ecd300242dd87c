/// What we took of a book's levels and is still missing there.
///
/// A recorded book shows `H` lots at a level; of these we took `c`, so that `H - c` are there. What
/// we took heals by half-lives, shrinks with what the tape cancels (a cancelled lot was as likely
/// one of ours), and is met by later takers: a recorded print that finds less than it took goes on
/// to the next levels. On a feed of orders it is the first `c` lots of the queue. Without healing
/// and cancels of levels this is exactly the book in which our takes really happened
/// (tests/core/test_footprint.cpp); a clamp a level would leave too much there.
///
/// Levels with a record are hot in their ladder, all others cost nothing. Records are few (those
/// that heal are swept), so a list is searched. Reading changes nothing: healing is computed from
/// the time of the last change, however often one asks.
///
/// Given up: spilled lots never fill our own resting orders, and the tape's later decisions are
/// those it made without us.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "book.hpp"
#include "rng.hpp"

namespace hft {

struct FootprintConfig {
  Ns half_life_ns = 1'000'000'000;  ///< of what heals; 0: nothing heals
  double heals = 1;                 ///< probability that a take heals; else it stays away
  bool by_size = false;  ///< pro rata: what was taken has no place in the queue of a feed of orders
  std::uint64_t seed = 1;
  InstrumentId instrument = 0;
};

class Footprint {
 public:
  explicit Footprint(FootprintConfig config = {}) : config_(config) {}

  bool empty(int side) const noexcept { return taken_[side_index(side)].empty(); }
  bool empty() const noexcept { return taken_[0].empty() && taken_[1].empty(); }

  /// Calls `f(key)` for the levels of a side that have a record.
  template <class F>
  void for_each_key(int side, F&& f) const {
    for (const Record& t : taken_[side_index(side)]) f(t.key);
  }

  /// Lots at a level, less what its latest prints have already had and what we took.
  Lots available(const Book& book, int side, std::int64_t key, Ts ts) const noexcept {
    const Record* t = missing_at(side, key, ts);
    const Lots shown = book.side(side).at(key);
    return t == nullptr ? shown : left(static_cast<double>(shown), *t, ts);
  }
  /// The same of a level that has only `share` of what it shows.
  Lots available(const Book& book, int side, std::int64_t key, Ts ts, double share) const noexcept {
    const double shown = static_cast<double>(book.side(side).at(key)) * share;
    const Record* t = missing_at(side, key, ts);
    return t == nullptr ? whole(shown) : left(shown, *t, ts);
  }

  /// Whether it has a lot left. Mostly it has even if nothing healed, which is told without a
  /// power.
  bool any_left(const Book& book, int side, std::int64_t key, Ts ts) const noexcept {
    const Record* t = find(side, key);
    if (t == nullptr) return book.side(side).at(key) > 0;
    const double shown = static_cast<double>(book.side(side).at(key) - t->printed);
    return shown - t->healing - t->kept >= 1 || available(book, side, key, ts) > 0;
  }

  /// Lots of a level that we took and that are missing.
  double missing(int side, std::int64_t key, Ts ts) const noexcept {
    const Record* t = missing_at(side, key, ts);
    return t == nullptr ? 0.0 : missing(*t, ts);
  }

  /// We, or somebody whom we had left too little, took `lots` of a level.
  void take(Book& book, int side, std::int64_t key, Lots lots, Ts ts) {
    auto& taken = taken_[side_index(side)];
    std::erase_if(taken, [&](const Record& t) {
      const bool healed = missing(t, ts) <= 0;
      if (healed) book.side(side).cool(t.key);
      return healed;
    });
    Record* t = find(side, key);
    if (t == nullptr) {
      t = &taken.emplace_back(Record{key, 0, 0, ts, 0, kNoTime});
      book.side(side).heat(key);
    }
    t->healing = healing(*t, ts);
    t->ts = ts;
    (heals(key, ts) ? t->healing : t->kept) += static_cast<double>(lots);
  }

  /// A feed of levels: a level went from `before` to `after`. What its prints do not explain was
  /// cancelled.
  void on_level(Book& book, int side, std::int64_t key, Lots before, Lots after, Ts ts) {
    Record* t = find(side, key);
    if (t == nullptr) return;
    if (after == 0 || missing(*t, ts) <= 0) return drop(book, side, key);
    const Lots shrunk = before - after;
    const Lots printed = std::clamp(shrunk, Lots{0}, t->printed);
    // As `Queue::resize`: a print and the rows that show it may come as several rows.
    t->printed = ts <= t->printed_ts + kPrintGuardNs ? t->printed - printed : 0;
    if (shrunk <= 0) return;
    cap(*t, before - printed, ts);
    scale(*t, after, before - printed);
  }

  /// A feed of levels: somebody took `lots` at a level. What he did not find there he took from the
  /// levels behind it, if his was a market order; one with a limit would have rested instead.
  void on_print(Book& book, int side, std::int64_t key, Lots lots, Ts ts) {
    const Lots there = note_print(book, side, key, lots, lots, ts);
    spill(book, side, key, lots - there, ts);
  }

  /// A feed of orders: likewise, before the row is applied. `untold`: lots that rows after it will
  /// take out of the book; 0: this one does.
  void on_execute(Book& book, int side, std::int64_t key, Lots lots, Lots untold, Ts ts) {
    if (Record* t = find(side, key); t != nullptr && t->printed_ts != ts) t->printed = 0;
    const Lots there = note_print(book, side, key, lots, untold, ts);
    spill(book, side, key, lots - there, ts);
  }

  /// A feed of orders: what a row did to levels, after it. In a book that only follows another an
  /// order's place is not known, and what it takes away is its share.
  void on_changes(Book& book, const Event& e, std::span<const OrderBook::Change> changes) {
    const Ts ts = e.ts_event;
    const OrderBook* orders = book.orders();
    std::array<Lots, 3> traded{};  // of each change
    for (std::size_t i = 0; i < changes.size(); ++i) {
      const OrderBook::Change& c = changes[i];
      Record* t = find(c.side, c.key);
      if (t == nullptr) continue;
      if (book.side(c.side).at(c.key) == 0 || missing(*t, ts) <= 0) {
        drop(book, c.side, c.key);
        continue;
      }
      if (c.gone > 0 && c.traded) {
        traded[i] = e.kind == Kind::EXECUTE ? c.gone : printed_of(*t, changes.subspan(i));
        t->printed = e.kind == Kind::EXECUTE ? 0 : t->printed - traded[i];
        cap(*t, c.before - traded[i], ts);
      }
      if (config_.by_size || orders == nullptr || c.arrival == OrderBook::kUnknown) {
        thin(*t, changes, i, traded);
      } else if (c.gone > traded[i]) {
        pull(*t, *orders, changes.subspan(i), traded[i], ts);
      }
    }
  }

  /// Levels that are no longer there, after a rebuild.
  void forget_gone(Book& book) {
    for (const int side : {BUY, SELL})
      std::erase_if(taken_[side_index(side)], [&](const Record& t) {
        const bool gone = book.side(side).at(t.key) == 0;
        if (gone) book.side(side).cool(t.key);
        return gone;
      });
  }

 private:
  struct Record {
    std::int64_t key;
    double healing, kept;  ///< lots, as of `ts`; `kept` does not heal
    Ts ts;
    Lots printed;  ///< that the level does not show yet
    Ts printed_ts;
  };
  static constexpr Ns kPrintGuardNs = 1'000'000;
  static constexpr double kDust = 1e-9;

  static Lots whole(double lots) noexcept {
    return std::max<Lots>(0, static_cast<Lots>(std::floor(lots + kDust)));
  }

  /// Less than half a lot is nothing: a rest that only fades would keep a whole lot from everybody.
  double healing(const Record& t, Ts ts) const noexcept {
    if (config_.half_life_ns == 0) return t.healing;
    const double half_lives =
        static_cast<double>(std::max<Ns>(ts - t.ts, 0)) / static_cast<double>(config_.half_life_ns);
    const double lots = t.healing * std::exp2(-half_lives);
    return lots < 0.5 ? 0.0 : lots;
  }
  double missing(const Record& t, Ts ts) const noexcept { return healing(t, ts) + t.kept; }
  Lots left(double shown, const Record& t, Ts ts) const noexcept {
    const Lots printed = ts <= t.printed_ts + kPrintGuardNs ? t.printed : 0;
    return whole(shown - static_cast<double>(printed) - missing(t, ts));
  }

  const Record* find(int side, std::int64_t key) const noexcept {
    for (const Record& t : taken_[side_index(side)])
      if (t.key == key) return &t;
    return nullptr;
  }
  Record* find(int side, std::int64_t key) noexcept {
    return const_cast<Record*>(std::as_const(*this).find(side, key));
  }
  /// A record that has healed is none, whether it has been swept or not.
  const Record* missing_at(int side, std::int64_t key, Ts ts) const noexcept {
    const Record* t = find(side, key);
    return t != nullptr && missing(*t, ts) > 0 ? t : nullptr;
  }
  void drop(Book& book, int side, std::int64_t key) {
    std::erase_if(taken_[side_index(side)], [&](const Record& t) { return t.key == key; });
    book.side(side).cool(key);
  }

  bool heals(std::int64_t key, Ts ts) const noexcept {
    return config_.heals >= 1 ||
           draw_uniform(config_.seed, stream_of(Draw::REFILL, config_.instrument),
                        static_cast<std::uint64_t>(ts),
                        static_cast<std::uint64_t>(key)) < config_.heals;
  }

  // Both parts of what is missing shrink alike.
  static void scale(Record& t, double to, double from) noexcept {
    t.healing *= to / from;
    t.kept *= to / from;
  }
  static void scale(Record& t, Lots to, Lots from) noexcept {
    if (to != from) scale(t, static_cast<double>(to), static_cast<double>(from));
  }
  /// No more is missing than was there.
  void cap(Record& t, Lots most, Ts ts) const noexcept {
    const double now = missing(t, ts);
    if (now > static_cast<double>(most)) scale(t, static_cast<double>(most), now);
  }

  /// Books a print at a level with a record, which does not show `untold` of it yet; returns how
  /// much of it was found there.
  Lots note_print(const Book& book, int side, std::int64_t key, Lots lots, Lots untold, Ts ts) {
    if (missing_at(side, key, ts) == nullptr) return lots;
    const Lots there = std::min(available(book, side, key, ts), lots);
    if (untold > 0) {
      Record* t = find(side, key);
      t->printed += untold;
      t->printed_ts = ts;
    }
    return there;
  }

  void spill(Book& book, int side, std::int64_t key, Lots lots, Ts ts) {
    for (std::int64_t k = lots > 0 ? book.side(side).next(key) : kNoKey; k != kNoKey && lots > 0;
         k = book.side(side).next(k)) {
      const Lots found = std::min(available(book, side, k, ts), lots);
      if (found > 0) take(book, side, k, found, ts);
      lots -= found;
    }
  }

  /// How much of what the first of `changes` took away was printed before: no more than went for
  /// good.
  static Lots printed_of(const Record& t, std::span<const OrderBook::Change> changes) noexcept {
    const OrderBook::Change& c = changes.front();
    Lots gone = c.gone;
    for (const OrderBook::Change& later : changes.subspan(1))
      if (later.key == c.key && later.side == c.side && later.gone < 0) gone += later.gone;
    return std::clamp(gone, Lots{0}, t.printed);
  }

  /// The share of a level's cancel that was ours; a row's changes of a level are one, so that an
  /// order that goes to the back takes nothing away.
  static void thin(Record& t, std::span<const OrderBook::Change> changes, std::size_t i,
                   const std::array<Lots, 3>& traded) noexcept {
    const OrderBook::Change& c = changes[i];
    const auto here = [&](const auto& k) { return k.key == c.key && k.side == c.side; };
    if (std::ranges::any_of(changes.subspan(i + 1), here)) return;
    Lots before = std::ranges::find_if(changes, here)->before;
    for (std::size_t k = 0; k < changes.size(); ++k)
      if (here(changes[k])) before -= traded[k];
    if (c.after < before && before > 0) scale(t, c.after, before);
  }

  /// An order left its place or shrank, by the first of `changes` and less what `traded` of that:
  /// what we had taken of it is gone with it, as far as nothing of it is left to miss. One that
  /// goes to the back takes only what does not fit into its new size.
  void pull(Record& t, const OrderBook& orders, std::span<const OrderBook::Change> changes,
            Lots traded, Ts ts) const noexcept {
    const OrderBook::Change& c = changes.front();
    auto [ahead, kept] = orders.place_of(c.side, c.key * c.side, c.arrival);
    const Lots size = c.gone - traded + kept;
    for (const OrderBook::Change& later : changes.subspan(1)) {
      if (later.key != c.key || later.side != c.side) continue;
      if (later.gone < 0) kept -= later.gone;
      if (later.gone > 0 && later.arrival < c.arrival) ahead += later.gone;
    }
    const double now = missing(t, ts);
    const double of_it =
        std::clamp(now - static_cast<double>(ahead), 0.0, static_cast<double>(size));
    const double after = now - std::max(of_it - static_cast<double>(kept), 0.0);
    if (after < now) scale(t, after, now);
  }

  FootprintConfig config_;
  std::vector<Record> taken_[2];
};

}  // namespace hft
