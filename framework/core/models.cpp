/// The engine's models: what answers a features row, and which bundle does.
///
/// A row goes to `infer`; what the model says becomes a request, which the driver publishes when
/// its time has passed or drops (`on_drop`). Live, rows may wait for company: in the batcher, until
/// the driver says so (`on_batch`), or a stream cannot wait any longer (`compute_waiting`). Another
/// bundle runs beside the old one from `swap` on and takes over before a packet's inference
/// (`take_over`), unless it fails.
#include "clock.hpp"
#include "engine.hpp"
#include "stage_timer.hpp"

namespace hft {

namespace {

constexpr std::size_t kShelf = 4096;  // placebo: outputs to draw from

}  // namespace

void Engine::reuse(std::uint32_t model, const ReuseRule& rule) {
  for (Market& m : markets_)
    for (Source& s : m.sources)
      if (s.model == model && s.network)
        s.reuse = std::make_unique<SimilarityCache>(rule, config_.seed, model, m.inst.id);
}

void Engine::trail(std::uint32_t model, const Trails& trails) {
  for (Market& m : markets_)
    for (Source& s : m.sources)
      if (s.model == model && s.network) s.trailing = std::make_unique<TrailingRow>(trails);
}

/// A row as a network, and what stands for it, sees it.
std::span<const double> Engine::seen_by(TrailingRow* trailing, const FeatureSet& features) {
  if (trailing == nullptr) [[likely]]
    return features.row();
  if (rests) trailed_.push_back(trailing);
  return trailing->see(features.row(), features.row_ts());
}

/// The model's state moves over every row; only what it says may be dropped on the way (by the
/// server).
void Engine::infer(Market& m, Source& s, Ts now) {
  const std::span<const double> row = seen_by(s.trailing.get(), *s.features);
  if (s.reuse && give_again(m, s, row, now)) return;
  if (batcher_) return wait(m, s, row, now);
  Signal signal;
  signal.outputs.resize(s.network->outputs());
  {
    const StageTimer timer(profile, stages.inference);
    if (clock != nullptr) signal.ts_start = clock->now();
    s.network->step(row.data(), signal.outputs.data());
  }
  if (clock != nullptr) signal.ts_end = clock->now();
  ++counters.inferences;
  if (rests) stepped_.push_back(s.network.get());
  if (s.incoming) [[unlikely]]
    run_beside(m, s);
  if (++s.rows <= s.warm_up_rows) return;
  describe(signal, m, s, now);
  if (s.reuse) s.reuse->ask(signal);
  request(s, std::move(signal));
}

/// A stream moves over its rows one by one: the next one ends the wait of the one before.
void Engine::wait(const Market& m, Source& s, std::span<const double> features, Ts now) {
  if (s.waits || batcher_->full()) compute_waiting();
  Batcher::Row& row = batcher_->add(*s.network, features, now);
  row.source = &s;
  s.waits = true;
  if (s.incoming) [[unlikely]]
    run_beside(m, s);
  row.is_heard = ++s.rows > s.warm_up_rows;
  if (!row.is_heard) return;
  describe(row.signal, m, s, now);
  if (s.reuse) s.reuse->ask(row.signal);
}

void Engine::on_batch(Ts now) {
  enter(now);
  const auto rows = static_cast<std::int64_t>(batcher_ ? batcher_->size() : 0);
  if (rows == 0) throw CoreError("a batch was asked for where no row waits");
  record(RecordKind::BATCH, now, 0, 0, 0, 0, rows);
  compute_waiting();
}

/// All of a batch are at work from its beginning to its end.
void Engine::compute_waiting() {
  if (!batcher_ || batcher_->empty()) return;
  const Ts began = clock != nullptr ? clock->now() : kNoTime;
  std::span<Batcher::Row> rows;
  {
    const StageTimer timer(profile, stages.inference);
    rows = batcher_->compute();
  }
  const Ts ended = clock != nullptr ? clock->now() : kNoTime;
  ++counters.batches;
  counters.inferences += static_cast<std::int64_t>(rows.size());
  for (Batcher::Row& row : rows) {
    row.source->waits = false;
    if (rests) stepped_.push_back(row.source->network.get());
    if (!row.is_heard) continue;
    row.signal.ts_start = began;
    row.signal.ts_end = ended;
    request(*row.source, std::move(row.signal));
  }
}

/// The one that has not taken over sees every row. That it fails is no reason to stop trading.
void Engine::run_beside(const Market& m, Source& s) {
  Incoming& next = *s.incoming;
  unheard_.resize(next.network->outputs());
  const std::span<const double> row = seen_by(next.trailing.get(), *s.features);
  try {
    next.network->step(row.data(), unheard_.data());
  } catch (const ModelError& e) {
    drop({s.model, m.inst.id, next.number, false}, e.what());
    return;
  }
  ++next.rows;
  if (rests) stepped_.push_back(next.network.get());
}

void Engine::reset_models(const Market& m, Source& s) {
  if (s.reuse) s.reuse->reset();
  s.rows = 0;
  if (s.network) s.network->reset();
  if (!s.incoming) return;
  s.incoming->rows = 0;
  try {
    s.incoming->network->reset();
  } catch (const ModelError& e) {
    drop({s.model, m.inst.id, s.incoming->number, true}, e.what());
  }
}

/// At once for all instruments: what failed for one is not trusted with another.
void Engine::drop(ModelFailure failed, const char* why) {
  dropped.push_back({now_, failed.swap, why});
  std::int64_t hash = 0;
  for (Market& m : markets_)
    for (Source& s : m.sources) {
      if (!s.incoming || s.incoming->number != failed.swap) continue;
      hash = s.incoming->hash;
      retire(std::move(s.incoming->network), s.incoming->trailing.get());
      s.incoming.reset();
    }
  record(RecordKind::SWAP, now_, failed.instrument, failed.swap, 0, failed.model, hash, 2,
         failed.in_reset);
}

/// Nothing is computed: the answer of a row that is near enough stands for this one's.
bool Engine::give_again(Market& m, Source& s, std::span<const double> row, Ts now) {
  const Lots heavier = m.book.bid_lots() - m.book.ask_lots();
  if (!s.reuse->answers(row, (heavier > 0) - (heavier < 0), now, m.book.ts_event)) return false;
  Signal signal;
  signal.reused = true;
  signal.outputs = s.reuse->outputs();
  signal.ts_start = signal.ts_end = clock != nullptr ? clock->now() : now;
  s.network->skip(row.data());
  if (rests) stepped_.push_back(s.network.get());
  if (s.incoming) [[unlikely]]
    run_beside(m, s);
  ++s.rows;
  describe(signal, m, s, now);
  requests.push_back(std::move(signal));
  return true;
}

void Engine::describe(Signal& signal, const Market& m, const Source& s, Ts now) noexcept {
  signal.instrument = m.inst.id;
  signal.model = s.model;
  signal.version = s.version;
  signal.ts_features = now;
  signal.ts_event = m.book.ts_event;
  signal.ts_recv = m.book.ts_recv;
  signal.cause_row = m.row;
}

/// What the model said, or, of a placebo, what it said of some other row of this stream.
void Engine::request(Source& s, Signal signal) {
  if (s.reuse) s.reuse->said(signal);
  if (config_.placebo) {
    if (s.shelf.size() < kShelf) {
      s.shelf.push_back(signal.outputs);
    } else {
      s.shelf[static_cast<std::size_t>(s.rows) % kShelf] = signal.outputs;
    }
    const auto pick =
        draw_bits(config_.seed, 0x9c0b, signal.instrument, static_cast<std::uint64_t>(s.rows));
    signal.outputs = s.shelf[pick % s.shelf.size()];
  }
  requests.push_back(std::move(signal));
}

/// A bundle with the same rule goes on from the estimates there are; another begins its own.
std::unique_ptr<TrailingRow> Engine::trailing_of(const Swap& swap, const Source& s) {
  if (!swap.trails) return nullptr;
  if (s.trailing && s.trailing->scales()->rule() == swap.trails->rule)
    return std::make_unique<TrailingRow>(*swap.trails, s.trailing->scales());
  return std::make_unique<TrailingRow>(*swap.trails);
}

void Engine::swap(Swap swap, Ts now) {
  enter(now);
  record(RecordKind::SWAP, now, 0, swap.number, 0, swap.model, swap.hash);
  for (Market& m : markets_)
    for (Source& s : m.sources) {
      if (s.model != swap.model || !s.network) continue;
      if (s.incoming) retire(std::move(s.incoming->network), s.incoming->trailing.get());
      s.incoming = std::make_unique<Incoming>(Incoming{std::move(swap.streams.at(m.inst.id)),
                                                       swap.number, swap.hash, 0, swap.warm_up_rows,
                                                       swap.reuse, trailing_of(swap, s)});
      m.swapping = true;
    }
}

/// Before the packet's inference. Answers of the old one that are under way are published as they
/// come; they carry its version.
void Engine::take_over(Market& m, Ts now) {
  m.swapping = false;
  for (Source& s : m.sources) {
    if (!s.incoming) continue;
    Incoming& next = *s.incoming;
    if (next.rows < next.warm_up_rows || next.rows == 0) {
      m.swapping = true;
      continue;
    }
    if (s.waits) compute_waiting();  // by the old one
    std::swap(s.network, next.network);
    s.version = next.number;
    s.rows = next.rows;
    s.warm_up_rows = next.warm_up_rows;
    if (s.reuse) s.reuse->follow(next.reuse);
    if (next.trailing) next.trailing->lead();
    std::swap(s.trailing, next.trailing);
    record(RecordKind::SWAP, now, m.inst.id, next.number, 0, s.model, next.hash, 1);
    take_overs.push_back({now, next.number, m.inst.id});
    retire(std::move(next.network), next.trailing.get());
    s.incoming.reset();
  }
}

void Engine::retire(std::unique_ptr<ModelStream> old, const TrailingRow* trailing) {
  if (!rests) return;
  std::erase(trailed_, trailing);
  std::erase(stepped_, old.get());
  retired_.push_back(std::move(old));  // to free its weights takes longer than to change over
}

void Engine::rest() noexcept {
  for (ModelStream* stream : stepped_) stream->rest();
  for (TrailingRow* trailing : trailed_) trailing->rest();
  stepped_.clear();
  trailed_.clear();
  retired_.clear();
}

/// One instrument a call: they share their weights, except while some have changed over and some
/// have not.
void Engine::touch_models() noexcept {
  if (markets_.empty()) return;
  touched_ = (touched_ + 1) % markets_.size();
  for (const Source& s : markets_[touched_].sources) {
    if (s.network) s.network->touch();
    if (s.incoming) s.incoming->network->touch();
  }
}

void Engine::on_drop(const Signal& s) noexcept {
  if (SimilarityCache* const cache = reuse_of(s)) cache->drop(s);
}

SimilarityCache* Engine::reuse_of(const Signal& s) noexcept {
  for (Source& source : market(s.instrument).sources)
    if (source.model == s.model) return source.reuse.get();
  return nullptr;
}

}  // namespace hft
