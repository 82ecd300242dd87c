#include "retelling.hpp"

namespace hft {

namespace {

/// A model's stream that fails where the journal says that it did.
class RetoldStream final : public ModelStream {
 public:
  RetoldStream(std::unique_ptr<ModelStream> stream, const Retelling& retelling, ModelFailure row)
      : stream_(std::move(stream)), retelling_(&retelling), row_(row), reset_(row) {
    reset_.in_reset = true;
  }
  std::size_t inputs() const noexcept override { return stream_->inputs(); }
  std::size_t outputs() const noexcept override { return stream_->outputs(); }
  void step(const double* features, float* out) override {
    hear(row_);
    stream_->step(features, out);
  }
  const void* company() const noexcept override { return stream_->company(); }
  void step_together(ModelStream* const* streams, std::size_t n, const double* features,
                     float* out) override {
    std::vector<ModelStream*> within(n);
    for (std::size_t i = 0; i < n; ++i) {  // all of a company are told of, or none
      auto& each = static_cast<RetoldStream&>(*streams[i]);
      each.hear(each.row_);
      within[i] = each.stream_.get();
    }
    stream_->step_together(within.data(), n, features, out);
  }
  void skip(const double* features) override {
    hear(row_);
    stream_->skip(features);
  }
  void rest() noexcept override { stream_->rest(); }
  void touch() const noexcept override { stream_->touch(); }
  void reset() override {
    hear(reset_);
    stream_->reset();
  }

 private:
  void hear(const ModelFailure& f) const {
    if (retelling_->tells(f)) throw ModelError("it failed here in the run", f);
  }
  std::unique_ptr<ModelStream> stream_;
  const Retelling* retelling_;
  ModelFailure row_, reset_;
};

/// Of a SWAP: the bundle that was dropped.
std::optional<ModelFailure> dropped_by(const Record& r) noexcept {
  if (r.kind != RecordKind::SWAP || r.b != 2) return {};
  return ModelFailure{static_cast<std::uint32_t>(r.lots), r.instrument,
                      static_cast<std::uint32_t>(r.order), r.c != 0};
}

bool is_input(const Record& r) noexcept {
  switch (r.kind) {
    case RecordKind::START:
    case RecordKind::PACKET:
    case RecordKind::UPDATE:
    case RecordKind::SIGNAL:
    case RecordKind::BATCH:
    case RecordKind::TIMER:
    case RecordKind::CLOCK:
    case RecordKind::STOP:
      return true;
    case RecordKind::SWAP:
      return r.b == 0;
    default:
      return false;
  }
}

}  // namespace

std::optional<ModelFailure> model_failure_of(const Record& r) noexcept {
  if (r.kind != RecordKind::STOP || r.b == 0) return {};
  return ModelFailure{static_cast<std::uint32_t>(r.lots), r.instrument,
                      static_cast<std::uint32_t>(r.order), r.b == 2};
}

/// What a failure left is recorded after its input, and before the next one.
Retelling::Retelling(const Record* records, std::size_t n) {
  std::size_t input = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (const auto dropped = dropped_by(records[i])) failures_.emplace_back(input, *dropped);
    if (const auto ended = model_failure_of(records[i])) failures_.emplace_back(input, *ended);
    if (is_input(records[i])) input = i;
  }
}

void Retelling::listen(Engine& engine, std::vector<Swap>& swaps) {
  if (failures_.empty()) return;
  const auto wrap = [&](std::unique_ptr<ModelStream>& stream, ModelFailure row) {
    stream = std::make_unique<RetoldStream>(std::move(stream), *this, row);
  };
  for (Market& m : engine.markets())
    for (Source& s : m.sources)
      if (s.network) wrap(s.network, {s.model, m.inst.id, s.version, false});
  for (Swap& swap : swaps)
    for (std::size_t i = 0; i < swap.streams.size(); ++i)
      wrap(swap.streams[i], {swap.model, static_cast<InstrumentId>(i), swap.number, false});
}

}  // namespace hft
