#include "window.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace hft {
namespace {

std::size_t lanes_of(std::size_t rows) {
  if (rows == 0) throw std::invalid_argument("window: has 0 rows, needs 1 or more");
  return rows - 1;
}

}  // namespace

WindowState::WindowState(std::shared_ptr<const Network> network, std::size_t rows)
    : network_(std::move(network)),
      oldest_(network_->state()),
      lanes_(lanes_of(rows)),
      stride_(network_->memory_floats_),
      memory_(zeros(lanes_ * stride_)),
      row_(zeros(network_->row_floats_)) {
  for (std::size_t i = 0; i < network_->plans_.size(); ++i)
    if (network_->plans_[i].past.inputs) plans_ = i + 1;
}

void WindowState::reset() noexcept {
  oldest_.reset();
  std::fill_n(memory_.get(), lanes_ * stride_, 0.0f);
  next_ = seen_ = 0;
  pending_ = false;
}

void WindowState::step(const double* features, float* out) noexcept {
  settle();
  if (!network_->scale(features, row_.get())) return network_->answer_nan(out);
  std::memcpy(oldest_.block_.get() + network_->rows_at_[0], row_.get(),
              network_->row_floats_ * sizeof(float));
  network_->read_out(network_->forward(oldest_, 1), out);
  pending_ = true;
}

void WindowState::skip(const double* features) noexcept {
  settle();
  if (!network_->scale(features, row_.get())) return;
  if (seen_ < lanes_) {  // the first window: its stream goes on
    std::memcpy(oldest_.block_.get() + network_->rows_at_[0], row_.get(),
                network_->row_floats_ * sizeof(float));
    network_->forward(oldest_, 1);
  }
  pending_ = true;
}

/// Lane i began i + 1 rows after the oldest; until a first window is full, only as many have begun
/// as rows came after the first.
void WindowState::settle() noexcept {
  if (!pending_) return;
  pending_ = false;
  for (std::size_t first = 0; first < seen_; first += Network::kBatchRows)
    advance(first, std::min(Network::kBatchRows, seen_ - first));
  if (seen_ < lanes_)
    ++seen_;
  else
    rotate();
  network_->arm(oldest_);
}

/// The oldest window ends: the next takes its place, and leaves its lane to one that is to begin.
void WindowState::rotate() noexcept {
  if (lanes_ == 0) return oldest_.reset();
  std::memcpy(oldest_.block_.get(), lane(next_), stride_ * sizeof(float));
  std::fill_n(lane(next_), stride_, 0.0f);
  next_ = (next_ + 1) % lanes_;
}

/// One row for `count` streams, layer by layer. Up to the first layer with memory they see the
/// same.
void WindowState::advance(std::size_t first, std::size_t count) noexcept {
  const Network& n = *network_;
  float* block = oldest_.block_.get();
  float *z = block + n.z_at_, *zh = block + n.zh_at_;
  const float* x = row_.get();
  float* y = block + n.rows_at_[1];
  float* other = block + n.rows_at_[0];
  bool same = true;
  for (std::size_t p = 0; p < plans_; ++p) {
    const Network::Plan& plan = n.plans_[p];
    const bool parts = plan.past.inputs > 0;
    n.multiply(plan.present, x, n.row_floats_, same ? 1 : count, z, block);
    if (parts) n.multiply(plan.past, lane(first) + plan.memory, stride_, count, zh, block);
    for (std::size_t i = 0; i < (same && !parts ? 1 : count); ++i)
      n.finish(plan, z + (same ? 0 : i) * plan.present.columns(), zh + i * plan.past.columns(),
               x + (same ? 0 : i) * n.row_floats_, lane(first + i) + plan.memory,
               y + i * n.row_floats_);
    same = same && !parts;
    x = y;
    std::swap(y, other);
  }
}

}  // namespace hft
