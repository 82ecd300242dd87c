/// Rows of different streams that wait to be computed together, in the order in which they came.
///
/// It says nothing of when: a live driver does, by its clock, and the engine, which must not let
/// two rows of one stream wait. Streams of one company (`ModelStream::company`) take their rows in
/// one call; others of the batch have calls of their own.
///
/// A row is copied when it comes, and once more beside those of its company: little beside a step.
/// All room is kept: rows and batches make none after the first ones.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "model_stream.hpp"
#include "strategy_port.hpp"

namespace hft {

struct Source;

class Batcher {
 public:
  struct Row {
    ModelStream* stream = nullptr;
    Source* source = nullptr;  ///< the engine's
    Ts since = kNoTime;
    bool is_heard = false;         ///< its answer is wanted, not only its trace in the memory
    std::vector<double> features;  ///< as the stream takes them
    Signal signal;                 ///< `compute` fills its outputs
  };

  static constexpr std::int64_t kMost = 4096;  ///< as a recipe allows

  /// Throws ConfigError.
  explicit Batcher(std::int64_t most);

  bool empty() const noexcept { return count_ == 0; }
  bool full() const noexcept { return count_ == rows_.size(); }
  std::size_t size() const noexcept { return count_; }
  std::size_t most() const noexcept { return rows_.size(); }
  Ts since() const noexcept { return count_ == 0 ? kNever : rows_[0].since; }  ///< of the oldest

  /// One more waits, of a stream that has none here; while it is not full. The caller fills in the
  /// rest.
  Row& add(ModelStream& stream, std::span<const double> features, Ts now);
  /// Steps all that wait; then nobody does. The rows are good until the next one is added. What
  /// another library throws goes on.
  std::span<Row> compute();
  /// Outputs that were taken out of a row and are done with.
  void give_back(std::vector<float>&& outputs) {
    if (spare_.size() < rows_.size()) spare_.push_back(std::move(outputs));
  }

 private:
  void step_company(std::span<Row> rows);

  std::vector<Row> rows_;
  std::size_t count_ = 0;
  std::vector<std::vector<float>> spare_;
  // Scratch: a company's streams, whose rows they are, and what goes in and comes out.
  std::vector<ModelStream*> streams_;
  std::vector<Row*> theirs_;
  std::vector<double> features_;
  std::vector<float> outputs_;
};

}  // namespace hft
