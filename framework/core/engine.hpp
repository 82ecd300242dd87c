/// The engine: a function from one sequence of stamped inputs to orders and records. It never reads
/// a clock and never draws a random number, so the same inputs give the same outputs, to the byte,
/// whichever driver feeds them.
///
/// Inputs: `on_row` / `on_packet` (market), `on_update` (order answers), `on_signal` (inference
/// results), `on_due` (timers, bars, feature clocks). Outputs: `outbox` (commands), `requests`
/// (rows a model answered, to be published when its time has passed) and the journal. A handler's
/// commands leave when it returns.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <queue>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "account.hpp"
#include "batcher.hpp"
#include "book.hpp"
#include "features.hpp"
#include "journal.hpp"
#include "model_stream.hpp"
#include "order.hpp"
#include "risk.hpp"
#include "seen_book.hpp"
#include "similarity.hpp"
#include "strategy_port.hpp"
#include "swap.hpp"

namespace hft {

class WallClock;

/// What a target verb does while an order is on its way out.
enum class Moves : std::uint8_t {
  ON_ANSWER =
      0,    ///< replace where the venue can; else cancel, and the new order follows the answer
  ON_CALL,  ///< cancel now; the new order waits for the next call of the verb
  OVERLAP,  ///< cancel and new together: for one round trip more can rest than was asked
};

struct EngineConfig {
  RiskLimits risk;
  Moves moves = Moves::ON_ANSWER;
  std::uint64_t seed = 1;
  bool placebo = false;  ///< publish outputs drawn from other rows of the same stream
  /// Replay: what a strategy reads of a book lacks what we took. Live, the feed shows it.
  bool sees_own = false;
};

/// What a target verb was last asked for, on one side of one instrument.
struct Target {
  bool set = false;
  Ticks start = 0;
  std::int64_t step = 1;
  int levels = 0;
  Lots lots = 0;
  Lots sized = 0;              ///< lots that the orders at their levels were last made for
  std::uint64_t seen = ~0ULL;  ///< order generation at which everything already stood as asked
  std::vector<Order*> orders;
};

/// A features source and the model, if any, that reads it.
struct Source {
  std::unique_ptr<FeatureSet> features;
  std::unique_ptr<ModelStream> network;    ///< null: rows go to on_features alone
  std::unique_ptr<Incoming> incoming;      ///< runs beside `network`, to take its place
  std::unique_ptr<SimilarityCache> reuse;  ///< null: every row is computed
  std::unique_ptr<TrailingRow> trailing;   ///< null: `network` and `reuse` see rows as they are
  std::uint32_t model = 0;
  std::uint32_t version = 0;  ///< the swap that brought `network`; 0: it was there at the start
  std::int64_t rows = 0, warm_up_rows = 0;
  bool publish_rows = false;
  bool waits = false;                     ///< a row of it does, to be computed in a batch
  bool reactive = false;                  ///< its features are made of the book less what we took
  std::vector<std::vector<float>> shelf;  ///< placebo: past outputs
};

/// One instrument as we know it.
struct Market {
  Instrument inst;
  Book book;  ///< the tape: what features, models, triggers and marks read
  OwnTakes own;
  std::unique_ptr<LeftBook> left;  ///< where a reactive source reads it
  std::vector<Source> sources;
  Account account;
  Exposure exposure;
  std::vector<Order*> live;
  Target targets[2];
  std::uint64_t order_generation = 0;
  BarBuilder bars;
  bool makes_bars = false, ready = false;
  bool swapping = false;  ///< a source has one that is to take over
  bool gap_open = false,
       gap_untold = false;    ///< messages were lost, and on_gap has not heard of it
  std::vector<Event> prints;  ///< of the packet being applied
  std::int64_t row = -1;      ///< last row applied
  Ts row_recv = kNoTime;      ///< and when it reached us
  Ticks seen_bid = kNoPrice, seen_ask = kNoPrice;
  std::int64_t sampled_mid2 = kNoPrice;  ///< at the last sample with two sides

  void apply(const Event& e) {
    if (own.empty()) [[likely]] {
      book.apply(e);
    } else {
      own.apply(book, e);
    }
  }
  /// What decisions are made on.
  SeenBook seen(Ts now) const noexcept { return {book, own, now}; }

  /// What the position is marked at. A side that is empty for a moment must not book the whole
  /// position as a loss.
  std::int64_t mark_mid2() const noexcept { return book.two_sided() ? book.mid2() : sampled_mid2; }

  /// Prices at or below zero exist only where the market itself stands there: spreads, some
  /// futures.
  bool possible(Ticks price) const noexcept {
    constexpr Ticks kFarthest = 9'000'000'000'000'000;  // up to here a float of ticks is whole
    if (price > 0) return price < kFarthest;
    const bool below = (book.has_bid() && book.bid() <= 0) || (book.has_ask() && book.ask() <= 0);
    return below && !inst.inverse && price > -kFarthest;
  }
};

struct Parent {
  InstrumentId instrument;
  std::int8_t side;
  Lots lots, filled;
};

enum Changed : std::uint32_t { TOUCH = 1, POSITION = 2, ORDERS = 4 };

class Engine {
 public:
  Engine(std::vector<Instrument> instruments, EngineConfig config, StrategyPort& port);

  // ---- set-up, before the first input
  void add_source(InstrumentId inst, Source source) {
    if (source.reactive && config_.sees_own) market(inst).left = std::make_unique<LeftBook>();
    market(inst).sources.push_back(std::move(source));
  }
  void make_bars(Ns interval_ns);
  /// A model's answers may be given again; after all sources were added.
  void reuse(std::uint32_t model, const ReuseRule& rule);
  /// A model's rows are scaled by what trails; likewise.
  void trail(std::uint32_t model, const Trails& trails);
  /// Live: rows are not computed in their packet but wait for company, up to `most` (2 or more).
  void batch(std::int64_t most) { batcher_ = std::make_unique<Batcher>(most); }

  // ---- inputs
  /// `anchor`: UTC less monotonic time, live.
  void start(Ts now, Ns anchor = 0);
  /// Rows of a packet before its last: state only.
  void on_row(Market& m, const Event& e, std::int64_t row);
  /// After the packet's last row was given to on_row: triggers and handlers.
  void on_packet(Market& m, Ts now);
  /// Rows nobody listens to, in bulk.
  void apply_quietly(Market& m, const Event& e) noexcept {
    m.apply(e);
    if (e.kind == Kind::STATUS) [[unlikely]]
      on_status(m);
  }
  void on_update(const Update& u, Ts now);
  void on_signal(const Signal& s, Ts now);
  /// Rows that wait have waited long enough: they are computed, and their answers are requests.
  void on_batch(Ts now);
  /// A request that will not be answered.
  void on_drop(const Signal& s) noexcept;
  Ts next_due() const noexcept;
  /// Fires the one timer, bar or clock that `next_due` announced.
  void on_due(Ts now);
  /// From here on a bundle runs beside the old one, to take over when it is warm; a newer one takes
  /// the place of one that is not yet.
  void swap(Swap swap, Ts now);
  /// Tells handlers what became true since: readiness, gaps, refusals by the gate.
  void settle(Ts now);
  void stop(Ts now, std::int64_t why = 0) { record(RecordKind::STOP, now, 0, 0, 0, 0, why); }
  /// The instrument's trading day ends: what rests is cancelled, the position goes at market, and
  /// the gate refuses what is new. True: something is left, so ask again.
  bool wind_down(InstrumentId inst, Ts now);
  /// A handler or `model` failed live: everything is cancelled and nothing new passes.
  void abandon(Ts now, std::int64_t why, const ModelFailure* model = nullptr);
  /// While idle, when all is sent: what models can do before their next row.
  void rest() noexcept;
  /// While idle for long: other work pushes weights out of the cache.
  void touch_models() noexcept;
  /// The clock before the next input.
  void wake(Ts now) noexcept { now_ = std::max(now_, now); }

  // ---- outputs
  std::vector<Command> outbox;
  std::vector<Signal> requests;
  /// A request that was heard: its memory is used again.
  void done(Signal&& s) {
    if (batcher_) batcher_->give_back(std::move(s.outputs));
  }
  Journal journal;
  /// Live: every firing is an input with a stamp of its own. In replay a timer fires when it was
  /// asked to, so it is recorded only with the first thing it causes.
  bool journal_every_timer = false;
  bool rests = false;    ///< live: the driver calls `rest` when it is idle
  bool handled = false;  ///< a handler ran since the driver last cleared this

  // ---- what a strategy does
  Order& submit(InstrumentId inst, int side, Lots lots, Ticks price, Tif tif, std::uint32_t tag,
                std::uint32_t parent, const Signal* cause = nullptr);
  bool cancel(Order& o);
  /// A cancel by hand: a target verb that keeps the order does not bring it back by itself.
  bool withdraw(Order& o);
  bool replace(Order& o, Ticks price, Lots lots);
  void cancel_all(InstrumentId inst, std::int64_t tag = -1);
  Order* flatten(InstrumentId inst);
  /// `levels` orders of `lots` from `start` outwards in steps of `step` ticks; 0 lots: pull them
  /// all.
  void ladder(InstrumentId inst, int side, double start, std::int64_t step, int levels, Lots lots);
  std::uint32_t every(Ns interval, std::uint32_t if_changed);
  std::uint32_t at(Ts ts);
  void stop_timer(std::uint32_t timer) { timers_[timer].alive = false; }
  std::uint32_t parent_order(InstrumentId inst, int side, Lots lots);
  std::uint32_t tag_id(const std::string& tag);

  // ---- what everybody may read
  Ts now() const noexcept { return now_; }
  Market& market(InstrumentId inst) noexcept { return markets_[inst]; }
  std::vector<Market>& markets() noexcept { return markets_; }
  Orders& orders() noexcept { return orders_; }
  const std::vector<Parent>& parents() const noexcept { return parents_; }
  const std::vector<std::string>& tags() const noexcept { return tags_; }
  RiskGate& risk() noexcept { return risk_; }
  bool sees_own() const noexcept { return config_.sees_own; }
  bool wants_packets() const noexcept { return wants_packets_; }
  const Signal* signal() const noexcept { return signal_; }           ///< during on_signal
  const Batcher* waiting() const noexcept { return batcher_.get(); }  ///< null: rows never wait
  const Source* row_source() const noexcept { return row_source_; }   ///< during on_features
  void sample(Ts ts);
  struct TakeOver {
    Ts ts;
    std::uint32_t number;  ///< of the swap
    InstrumentId instrument;
  };
  std::vector<TakeOver> take_overs;
  /// A bundle that failed before it had taken over everywhere.
  struct Dropped {
    Ts ts;
    std::uint32_t number;  ///< of the swap
    std::string why;
  };
  std::vector<Dropped> dropped;
  std::vector<SampleRow> samples;
  std::vector<Ns> feed_latency;  ///< of a thinned choice of packets

  /// Features rows whole, where the journal has their digests: for who compares them with others.
  struct KeptRow {
    Ts ts;
    InstrumentId instrument;
    std::uint32_t model;
  };
  bool keep_rows = false;  ///< whoever sets it takes them out as the run goes on
  std::vector<KeptRow> kept_rows;
  std::vector<double> kept_values;  ///< one row after the other, each as wide as its source

  struct Counters {
    std::int64_t packets = 0, rows_features = 0, inferences = 0, signals = 0, handlers = 0,
                 gaps = 0;
    std::int64_t refused = 0, late_answers = 0, batches = 0;
  } counters;
  /// Time spent inside features, networks and handlers [ns], when `profile` is set.
  struct Stages {
    Ns features = 0, inference = 0, strategy = 0;
  } stages;
  bool profile = false;
  const WallClock* clock = nullptr;  ///< live: stamps a model's service; no output depends on it

 private:
  struct Timer {
    Ts next = kNever;
    Ns interval = 0;
    std::uint32_t if_changed = 0;
    std::uint64_t seen_touch = ~0ULL, seen_position = ~0ULL, seen_orders = ~0ULL;
    bool alive = true;
  };
  struct Due {
    Ts ts;
    std::uint64_t seq;
    std::uint32_t timer;
    bool operator>(const Due& o) const noexcept { return ts != o.ts ? ts > o.ts : seq > o.seq; }
  };

  template <class F>
  void call(F&& handler);
  void enter(Ts now) noexcept { now_ = now; }
  void record(RecordKind kind, Ts ts, InstrumentId inst = 0, OrderId order = 0, Ticks price = 0,
              Lots lots = 0, std::int64_t a = 0, std::int64_t b = 0, std::int64_t c = 0) {
    if (fired_ != kNoTimer) [[unlikely]]
      journal.append(
          {now_, 0, 0, 0, std::exchange(fired_, kNoTimer), 0, 0, 0, RecordKind::TIMER, 0});
    journal.append({ts, order, price, lots, a, b, c, inst, kind, 0});
  }
  Order& new_order(InstrumentId inst, int side, Lots lots, Ticks price, Tif tif, std::uint32_t tag,
                   std::uint32_t parent, const Signal* cause);
  void send_new(Order& o);
  void send(Order& o, Command::Kind kind, Ticks price, Lots lots);
  void refuse(Order& o, Reason reason);
  void reserve(Order& o, Lots lots) noexcept;
  void finish(Order& o, OrderState state, Reason reason, Ts now);
  void settle_state(Order& o) noexcept;
  void changed(Order& o) noexcept;
  void tell_order(Order& o);
  void apply_fill(Order& o, const Update& u, Ts now);
  void on_status(Market& m);
  void fire_sources(Market& m, Ts now, bool clock);
  static void settle_left(Market& m, Ts now);
  void infer(Market& m, Source& s, Ts now);
  void take_over(Market& m, Ts now);
  void retire(std::unique_ptr<ModelStream> old, const TrailingRow* trailing);
  void run_beside(const Market& m, Source& s);
  void reset_models(const Market& m, Source& s);
  void drop(ModelFailure failed, const char* why);
  std::span<const double> seen_by(TrailingRow* trailing, const FeatureSet& features);
  bool give_again(Market& m, Source& s, std::span<const double> row, Ts now);
  static std::unique_ptr<TrailingRow> trailing_of(const Swap& swap, const Source& s);
  void wait(const Market& m, Source& s, std::span<const double> features, Ts now);
  void compute_waiting();
  static void describe(Signal& signal, const Market& m, const Source& s, Ts now) noexcept;
  void request(Source& s, Signal signal);
  SimilarityCache* reuse_of(const Signal& s) noexcept;
  bool place(Market& m, int side);
  void place_again(Order& o);
  Ticks clamp_passive(const Market& m, int side, Ticks price) const noexcept;
  std::int64_t reference_mid2(const Market& m) const noexcept;
  void fire_timer(std::uint32_t id, Ts now);
  bool worth_calling(Timer& t) noexcept;

  std::vector<Market> markets_;
  EngineConfig config_;
  StrategyPort* port_;
  RiskGate risk_;
  Orders orders_;
  std::vector<Order*> refused_;
  std::unique_ptr<Batcher> batcher_;
  std::vector<ModelStream*> stepped_;                  // since the last rest
  std::vector<TrailingRow*> trailed_;                  // likewise
  std::vector<std::unique_ptr<ModelStream>> retired_;  // let go of in a rest
  std::size_t touched_ = 0;                            // market whose models were touched last
  std::vector<float> unheard_;  // scratch: what one says that has not taken over
  std::vector<bool> held_;      // scratch of place(): levels where something rests or will rest ...
  std::vector<Ticks> missing_;  // ... and prices where nothing does
  std::vector<Parent> parents_{{}};  // 0: none
  std::vector<std::string> tags_{""};
  std::unordered_map<std::string, std::uint32_t> tag_ids_;
  std::vector<Timer> timers_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  std::uint64_t timer_seq_ = 0, touch_generation_ = 0, position_generation_ = 0,
                order_generation_ = 0;
  static constexpr std::uint32_t kNoTimer = ~0U;
  std::uint32_t fired_ = kNoTimer;  // a timer at work that has caused nothing yet
  Ts now_ = kNoTime;
  bool wants_packets_ = false, has_clocks_ = false, unsettled_ = true;
  const Signal* signal_ = nullptr;
  const Source* row_source_ = nullptr;
  Market* cause_market_ = nullptr;  // whose packet, features or signal the handler answers
};

}  // namespace hft
