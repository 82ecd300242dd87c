/// Live: the engine on the wall clock, on the calling thread, against the simulated venue.
///
/// One busy thread owns feed, book, features, native inference (inline, or in batches between
/// inputs), strategy, risk and order entry. An input is stamped when it is dequeued; a stamp older
/// than the engine's clock is raised to it. Every input is in the journal before the engine sees it
/// and every command before it is sent, so the journal replays to the byte (`VerifyDriver`). Our
/// own resting lots and prints are taken out of the feed before the engine sees it: it knows the
/// market without us, as in replay.
#pragma once
#include <atomic>
#include <functional>

#include "clock.hpp"
#include "engine.hpp"
#include "markouts.hpp"
#include "retelling.hpp"
#include "sim_venue.hpp"
#include "thinned.hpp"

namespace hft {

/// A session's way to call the strategy's own start and stop.
struct SessionCalls {
  std::function<void()> start, stop;
  std::function<void()> silence;  ///< turns the handlers off, after one has thrown
};

struct LiveConfig {
  std::string journal_path, market_path;
  Ns sample_ns = 1'000'000'000;
  /// Longest nap of a thread that finds nothing to do; 0: it spins, which is best on a core of its
  /// own.
  Ns nap_ns = 0;
  /// Where rows wait for company (`Engine::batch`): for how long. 0: as long as there is something
  /// else to take in, but no longer than so many turns, a packet each, as a batch has rows.
  Ns hold_ns = 0;
};

class LiveDriver {
 public:
  LiveDriver(Engine& engine, LiveConfig config, SimVenueConfig venue);

  SessionCalls calls;
  std::function<void()> poll;  ///< called each millisecond when there is time
  /// While something is prepared beside the session: called instead of a nap of at most so many ns,
  /// and each millisecond with 0. Empty: nothing is.
  std::function<void(Ns)> lend;

  /// Until `duration_ns` has passed or `ask_to_stop` was called. A handler that throws: all orders
  /// are cancelled, no new ones pass, and the exception goes on.
  void run(Ns duration_ns);
  /// Once: winds down. Again: does not wait for the answers that are due. From `poll` or any
  /// thread.
  void ask_to_stop() noexcept { asked_.fetch_add(1, std::memory_order_relaxed); }

  /// From `poll`: another bundle is given to the engine; false: it is too late for that.
  bool swap(Swap swap);

  const std::vector<FillRow>& fills() const noexcept { return fills_; }
  std::int64_t rows() const noexcept { return rows_; }
  Ts start_ts() const noexcept { return start_; }
  Ts end_ts() const noexcept { return end_; }
  bool interrupted() const noexcept { return interrupted_; }
  /// Orders whose end no answer has told us, state UNKNOWN.
  std::int64_t unanswered() const noexcept { return unanswered_; }
  const SimVenue& venue() const noexcept { return venue_; }
  const ThinnedNs& waits() const noexcept { return waits_; }  ///< of rows for a model's service
  const ThinnedNs& services() const noexcept { return services_; }  ///< their lengths

 private:
  void trade(Ts until);
  bool step();
  bool take_due();
  void fire_due(Ts now);
  bool take_answer();
  void answer(Update u);
  bool take_packet();
  void give_packet();
  bool take_batch();
  Ts batch_due() const noexcept;
  bool more_to_take() noexcept;
  void speak();
  void send();
  void fail(const ModelFailure* model);
  void wind_down();
  void close();
  void idle(Ts now, Ts until) const;
  void keep_fill(const Update& u);
  Ts stamp() noexcept;

  Engine* engine_;
  LiveConfig config_;
  WallClock clock_;
  SimVenue venue_;
  MappedFile market_file_;
  std::vector<Event> packet_;
  std::vector<FillRow> fills_;
  std::vector<Markouts> markouts_;
  ThinnedNs waits_, services_;
  std::int64_t rows_ = 0, unanswered_ = 0;
  Ts waited_since_ = kNoTime;  // by the row that was the oldest at the last turn
  std::size_t turns_waited_ = 0;
  Ts served_ = kNoTime;  // when the newest service began
  Ts start_ = kNoTime, end_ = kNoTime, next_sample_ = kNever, next_poll_ = kNever;
  std::atomic<int> asked_{0};
  bool interrupted_ = false, trading_ = false;
};

/// Feeds a journal's inputs back; the engine writes a journal of its own, to be compared with the
/// first.
class VerifyDriver {
 public:
  explicit VerifyDriver(Engine& engine) : engine_(&engine) {}
  SessionCalls calls;
  std::vector<Swap> swaps;  ///< all that the journal asks for
  /// `records` and the market rows they point to. Throws DataError where rows are not those
  /// journaled; a handler's exception goes on unless the journal says that it failed there too.
  /// What the journal says of a model that failed happens again, whatever its library does now.
  void run(const Record* records, std::size_t n, const Event* rows, std::size_t n_rows);
  std::size_t at() const noexcept { return at_; }  ///< the record being fed

 private:
  void feed(const Record& r, const Event* rows, std::size_t n_rows);
  void packet(const Record& r, const Event* rows, std::size_t n_rows);
  Engine* engine_;
  std::optional<Retelling> retelling_;
  std::size_t at_ = 0;
};

/// The market without us: rows that are wholly ours go, our lots leave the levels that others
/// share. A packet of nothing else ends up empty: in replay it would not exist either.
void take_out_own(std::vector<Event>& packet);
Update update_of(const Record& r) noexcept;
std::int64_t digest_of(const Event* rows, std::size_t n) noexcept;

}  // namespace hft
