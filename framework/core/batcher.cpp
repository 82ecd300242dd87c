#include "batcher.hpp"

#include <string>
#include <utility>

#include "errors.hpp"

namespace hft {

Batcher::Batcher(std::int64_t most) {
  if (most < 2 || most > kMost)
    throw ConfigError("latency.server.max_batch is " + std::to_string(most) +
                      ": rows wait for company where it is 2 to " + std::to_string(kMost));
  rows_.resize(static_cast<std::size_t>(most));
  spare_.reserve(rows_.size());
  streams_.reserve(rows_.size());
  theirs_.reserve(rows_.size());
}

Batcher::Row& Batcher::add(ModelStream& stream, std::span<const double> features, Ts now) {
  Row& row = rows_[count_++];
  row.stream = &stream;
  row.since = now;
  row.features.assign(features.begin(), features.end());
  if (row.signal.outputs.capacity() == 0 && !spare_.empty()) {
    row.signal.outputs = std::move(spare_.back());
    spare_.pop_back();
  }
  return row;
}

std::span<Batcher::Row> Batcher::compute() {
  const std::span<Row> rows(rows_.data(), std::exchange(count_, 0));
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].stream != nullptr) step_company(rows.subspan(i));
  return rows;
}

/// Steps the first row and those behind it that are of its company; they have no stream then.
void Batcher::step_company(std::span<Row> rows) {
  ModelStream& first = *rows[0].stream;
  const void* const company = first.company();
  streams_.clear();
  theirs_.clear();
  features_.clear();
  for (Row& row : rows) {
    if (row.stream == nullptr || row.stream->company() != company) continue;
    streams_.push_back(std::exchange(row.stream, nullptr));
    theirs_.push_back(&row);
    features_.insert(features_.end(), row.features.begin(), row.features.end());
  }
  const std::size_t width = first.outputs();
  outputs_.resize(theirs_.size() * width);
  first.step_together(streams_.data(), streams_.size(), features_.data(), outputs_.data());
  const float* said = outputs_.data();
  for (Row* row : theirs_) {
    row->signal.outputs.assign(said, said + width);
    said += width;
  }
}

}  // namespace hft
