/// Replay: market on two clocks, orders on the wire, inference and handlers that take time.
///
/// It runs to the next horizon instead of through one ordered queue: `T` is the earliest of
/// whatever the engine must hear next. The venue is advanced to T first (an answer made on the way
/// pulls T back), then our book, then the one input is delivered. Nothing decided at T can reach
/// the venue before T, so the outputs are those of the total order `(ts, rank, seq)`; one queue
/// entry a row costs five times more.
///
/// Ties, in this order: at the venue, tape rows before arriving orders; on our side order answers,
/// market packets, inference results, timers, the end of a trading day, samples.
///
/// The strategy is a single server: an input that arrives while a handler's compute time runs, or
/// the gate's for what it sent, is handled when that ends, with `now` raised to it. Commands leave
/// one after the other when the compute time is over, each after its time at the gate.
/// Inference is another server, beside it (`InferenceServer`): it hears the feed itself, not
/// through the strategy's thread. Answers of one batch are heard one after the other, with nothing
/// between.
#pragma once
#include <functional>

#include "engine.hpp"
#include "server.hpp"
#include "stream.hpp"
#include "tape_venue.hpp"

namespace hft {

struct ReplayConfig {
  Latency compute;  ///< a handler call
  Latency risk;     ///< the gate, for each message of a handler
  ServerConfig server;
  Ns sample_ns = 1'000'000'000;
  Ts until = kNever;
};

class ReplayDriver {
 public:
  ReplayDriver(Engine& engine, ReplayConfig config, std::vector<VenueConfig> venues);

  /// `one_book_of_orders`: every row tells orders to both sides, and nobody reads the orders of our
  /// book, so that the venue's serve both.
  void add_stream(InstrumentId inst, Stream stream, bool one_book_of_orders);
  /// Before `run`: an instrument's own overlay, instead of its venue's.
  void set_impact(InstrumentId inst, ImpactConfig impact);
  /// Before `run`: ends an instrument's trading at `ts`, by `Engine::wind_down` until it is flat.
  void wind_down(InstrumentId inst, Ts ts);
  /// Before `run`, in order of time: another bundle is given to the engine at `ts`.
  void swap_at(Ts ts, Swap swap);

  /// Called every few thousand steps with rows read so far and our clock; false ends the run early.
  std::function<bool(std::int64_t, Ts)> poll;
  /// Called once before the first input and once after the last, inside the engine's clock.
  std::function<void()> on_start, on_stop;

  void run();

  const std::vector<FillRow>& fills() const noexcept { return fills_; }
  std::int64_t rows() const noexcept;
  std::int64_t rows(InstrumentId inst) const noexcept;
  Ts start_ts() const noexcept { return start_; }
  Ts end_ts() const noexcept { return end_; }
  bool interrupted() const noexcept { return interrupted_; }
  const InferenceServer& server() const noexcept { return server_; }
  const Account& venue_account(InstrumentId inst) const noexcept { return listings_[inst].account; }
  const Listing& listing(InstrumentId inst) const noexcept { return listings_[inst]; }
  Ns venue_ns = 0, book_ns = 0, total_ns = 0;  ///< wall time, when the engine profiles

 private:
  /// What the engine hears next, in order of rank.
  enum class Input : std::uint8_t { NONE, UPDATE, PACKET, SIGNAL, DUE, SWAP, WIND_DOWN, SAMPLE };
  struct Next {
    Ts ts = kNever;
    Input what = Input::NONE;
    std::uint32_t which = 0;
  };
  struct Entry {  // commands on their way to one venue
    explicit Entry(const VenueConfig& venue);
    void send(Command& c);
    Latency legs[3];  // by Command::Kind
    Latency response;
    Channel channel;
    Nth nth;
    std::deque<Command> wire;  // by arrival
  };

  bool step();
  Next next_input() const noexcept;
  bool answered_by(Ts ts) const noexcept;
  bool more_to_come() const noexcept;
  Ts advance_venues(Ts until);
  void catch_up_venues(Ts until);
  bool rows_for_us() const noexcept;
  void run_rows(InstrumentId inst, Ts limit);
  void advance_books(Ts until, bool including);
  void apply_packet(InstrumentId inst);
  void ask(Ts ts);
  void deliver(const Next& next);
  void end_trading(Ts ts);
  template <class F>
  void handle(Ts ts, F&& input);
  Ts dispatch(Ts handled);
  void count_the_rest();
  void activate(InstrumentId inst);
  void catch_up(InstrumentId inst, Ts until);
  void drain();
  bool in_flight() const noexcept;

  Engine* engine_;
  ReplayConfig config_;
  InferenceServer server_;
  std::deque<Signal> given_again_;  // answers that nobody computes
  Nth nth_call_;
  std::vector<FillRow> fills_;
  std::vector<std::unique_ptr<TapeVenue>> venues_;
  std::vector<Entry> entries_;
  std::vector<Listing> listings_;
  std::vector<Stream> streams_;
  std::vector<InstrumentId> active_;  // listings that hold something of ours
  std::vector<std::uint8_t> is_active_;
  Ts horizon_ = kNever, busy_until_ = kNoTime, start_ = kNoTime, end_ = kNoTime,
     next_sample_ = kNever;
  struct WindDown {
    Ts next = kNever;  // when its trading day ends, or it is asked again
    Ns wait = 0;
    Lots left = 0;
  };
  struct SwapAt {
    Ts ts;
    Swap swap;
  };
  std::deque<SwapAt> swaps_;         // by time
  std::vector<WindDown> wind_down_;  // by instrument
  Ts next_wind_down_ = kNever;
  Ts books_at_ = kNoTime;     // last row that nobody listened to
  Ts quiet_until_ = kNoTime;  // no answer that is still to be made reaches us before
  Ns least_response_ = kNever;
  bool venues_lag_ = false;
  bool venues_lead_ =
      false;              ///< a book follows its venue's: never ahead of it while something rests
  bool stirred_ = false;  // the venue answered while rows ran
  bool interrupted_ = false;
  std::int64_t steps_ = 0;
};

}  // namespace hft
