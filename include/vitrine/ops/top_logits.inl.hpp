// Bodies of ops/top_logits.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "vitrine/core/error.hpp"
#include "vitrine/core/rounding.hpp"
#include "vitrine/ops/top_logits.hpp"

VITRINE_NAMESPACE_BEGIN

// Both the product y and its bound u are float sums of n fused terms, blocks and peaks, each exact until it is added,
// with the same scale products s = float(d xd). Their errors are at most n 2^-24 (and a little) times the sums of the
// magnitudes: of a block |i| s <= 128 |q_x| s and, for u, 137 |q_x| s, with |q_x| the sum of its magnitudes; of a peak
// 128 d |x| (its weight d q is exact as a float) and 129 d |x|. So u >= y holds in floats when each block's bound is
// raised by more than 265 n 2^-24 |q_x|, and it is raised by n 2^-15 |q_x|; and each peak's by more than 257 n 2^-24 d
// |x|, and it is raised by d |x|, twice as much while n is below 2^15. Scale products below the range of normal floats
// do no harm: both sums have the same ones, and multiples of 2^-149 stay such. What a peak adds need not be one: each
// sum it is in may be off by 2^-150, all of them, eightfold in u, by 2^-132 at most, which half of d |x| covers where
// |x| is 2^-100 or more, d being 2^-24 at least if it is not 0. Smaller peaks have no bound.
VITRINE_INLINE bool bound_input(const LinearJob& job, XBlock32* out) {
  const std::int64_t n_blocks = job.n_cols / 32, n_of_peaks = n_peaks(job.n_cols), n_terms = n_blocks + n_of_peaks;
  const XBlock32* const x = job.x_32;
  double scales = 0;
  for (std::int64_t i = 0; i < n_of_peaks; ++i) {
    const float magnitude = std::fabs(job.peaks[i].x);
    if (magnitude > 0 && magnitude < 0x1p-100f) return false;
    scales += double(magnitude);
  }
  for (std::int64_t b = 0; b < n_blocks; ++b) {
    std::int64_t sum = 0, positive = 0;
    for (const std::int8_t q : x[b].q) {
      sum += q;
      positive += (std::max)(q, std::int8_t(0));
    }
    const std::int64_t magnitude = 2 * positive - sum, slack = magnitude * n_terms / 32768 + 1;
    out[b] = x[b];
    out[b].minus_sum = std::int32_t(divide_up(7 * positive + slack, 8) - 16 * sum);
    scales += double(x[b].scale);
  }
  // Times 65504, the largest of d, and 2^20, more than |i|: far from overflow. False for NaN.
  return scales <= 1e24 && n_terms < 32768;
}

VITRINE_INLINE TopLogits::TopLogits(const PackedMatrix& head) {
  check(head.in_planes(), ErrorKind::bad_argument, "top logits: expected a head in planes");
  const auto n_blocks = std::size_t(divide_up(head.n_panels(), block_panels));
  input_.resize(std::size_t(head.n_blocks()));
  bounds_.resize(n_blocks * std::size_t(block_panels), -std::numeric_limits<float>::infinity());
  block_bounds_.resize(n_blocks);
  order_.resize(n_blocks);
  computed_.resize(n_blocks);
  first_.reserve(std::size_t(most));
  first_logits_.reserve(std::size_t(most * panel_rows));
}

VITRINE_INLINE bool TopLogits::begins(std::int64_t n_top) {
  if (n_top > (std::min)(most, std::int64_t(block_bounds_.size()) / 2) || --n_to_wait_ >= 0) {
    ++counts_.n_left_out;
    return false;
  }
  n_to_wait_ = 0;
  n_top_ = (std::max)(n_top, std::int64_t(1));
  return true;
}

VITRINE_INLINE bool TopLogits::compute(Worker& worker, const KernelTable& table, const PackedMatrix& head,
                                       const LinearInput& input, std::span<float> logits, std::span<float> block_max) {
  LinearJob job = linear_job(head);
  input.give_to(job);
  job.y = logits.data();
  if (worker.id() == 0) has_bound_ = bound_input(job, input_.data());
  worker.sync();
  if (!has_bound_) return false;
  bound(worker, table, head, job, logits, block_max);
  worker.sync();
  if (worker.id() == 0) choose_first();
  worker.sync();
  const LinearKernel kernel = linear_forms(table.linear, head).one_token;
  worker.for_chunks(std::int64_t(first_.size()), 1, [&](std::int64_t begin, std::int64_t) {
    const auto block = first_[std::size_t(begin)];
    const auto* const of_block = bounds_.data() + block * block_panels;
    const auto i = std::max_element(of_block, of_block + block_panels) - of_block;
    kernel(job, block * block_panels + i, block * block_panels + i + 1);
    computed_[std::size_t(block)] = std::uint8_t(1 << i);
  });
  worker.sync();
  if (worker.id() == 0) set_threshold(logits);
  worker.sync();
  worker.for_chunks(std::int64_t(computed_.size()), 16, [&](std::int64_t begin, std::int64_t end) {
    for (auto block = begin; block < end; ++block)
      if (block_bounds_[std::size_t(block)] >= threshold_ || computed_[std::size_t(block)])
        complete(job, kernel, block, block_max);
  });
  return true;
}

// The first pass, which also makes all logits those of rows that are not computed.
VITRINE_INLINE void TopLogits::bound(Worker& worker, const KernelTable& table, const PackedMatrix& head, LinearJob job,
                                     std::span<float> logits, std::span<float> block_max) {
  job.x_32 = input_.data();
  job.y = bounds_.data();
  constexpr std::int64_t chunk = 2 * block_panels;
  job.fetch_end = head.panel(worker.share(head.n_panels(), chunk).end);
  worker.for_chunks(head.n_panels(), chunk, [&](std::int64_t first, std::int64_t last) {
    table.linear.upper_bounds(job, first, last);
    const auto end = (std::min)(last * panel_rows, head.n_rows());
    std::fill(logits.begin() + first * panel_rows, logits.begin() + end, -std::numeric_limits<float>::infinity());
    for (auto block = first / block_panels; block * block_panels < last; ++block) {
      const auto* const of_block = bounds_.data() + block * block_panels;
      block_bounds_[std::size_t(block)] = *std::max_element(of_block, of_block + block_panels);
      block_max[std::size_t(block)] = std::numeric_limits<float>::lowest();
      computed_[std::size_t(block)] = 0;
    }
  });
}

// The blocks with the largest bounds, n_top of them.
VITRINE_INLINE void TopLogits::choose_first() {
  first_.clear();
  if (n_top_ == 1) {
    first_.push_back(std::max_element(block_bounds_.begin(), block_bounds_.end()) - block_bounds_.begin());
    return;
  }
  std::copy(block_bounds_.begin(), block_bounds_.end(), order_.begin());
  const auto nth = order_.begin() + (n_top_ - 1);
  std::nth_element(order_.begin(), nth, order_.end(), std::greater<>());
  for (std::size_t block = 0; block < block_bounds_.size() && std::int64_t(first_.size()) < n_top_; ++block)
    if (block_bounds_[block] >= *nth) first_.push_back(std::int64_t(block));
}

// The n_top-th largest of what has been computed. (If some are as large as the last chosen block's bound and were not
// chosen, there are fewer good ones among them: the threshold is lower than it might be, never too high.)
VITRINE_INLINE void TopLogits::set_threshold(std::span<const float> logits) {
  first_logits_.clear();
  bool all_finite = true;
  for (const auto block : first_) {
    const auto begin = block * SamplingKernels::block;
    const auto end = (std::min)(begin + SamplingKernels::block, std::int64_t(logits.size()));
    for (auto i = begin; i < end; ++i) {
      const float z = logits[std::size_t(i)];
      const bool is_computed = computed_[std::size_t(block)] >> (i - begin) / panel_rows & 1;
      if (!is_computed) continue;
      all_finite = all_finite && std::isfinite(z);
      first_logits_.push_back(z);
    }
  }
  threshold_ = -std::numeric_limits<float>::infinity();
  if (all_finite && std::int64_t(first_logits_.size()) >= n_top_) {
    const auto nth = first_logits_.begin() + (n_top_ - 1);
    std::nth_element(first_logits_.begin(), nth, first_logits_.end(), std::greater<>());
    threshold_ = *nth;
  }
  const auto n = std::int64_t(bounds_.size());
  const auto n_left = std::count_if(bounds_.begin(), bounds_.end(), [&](float bound) { return bound >= threshold_; });
  ++counts_.n_steps;
  counts_.n_panels += n;
  counts_.n_panels_completed += n_left;
  // Above a third this way is the longer one: it is left for a while, for longer each time.
  constexpr std::int64_t longest_wait = 64;
  wait_ = 3 * n_left > n ? (std::min)(2 * wait_ + 2, longest_wait) : wait_ / 4;
  if (3 * n_left > n) n_to_wait_ = wait_;
}

VITRINE_INLINE void TopLogits::complete(const LinearJob& job, LinearKernel kernel, std::int64_t block,
                                        std::span<float> block_max) {
  float largest = std::numeric_limits<float>::lowest();
  bool all_finite = true;
  for (std::int64_t i = 0; i < block_panels; ++i) {
    const auto panel = block * block_panels + i, row = panel * panel_rows;
    const bool is_computed = computed_[std::size_t(block)] >> i & 1;
    if (row >= job.n_rows || (!is_computed && !(bounds_[std::size_t(panel)] >= threshold_))) continue;
    if (!is_computed) kernel(job, panel, panel + 1);
    for (auto r = row; r < (std::min)(row + panel_rows, job.n_rows); ++r) {
      all_finite = all_finite && std::isfinite(job.y[r]);
      largest = (std::max)(largest, job.y[r]);
    }
  }
  block_max[std::size_t(block)] = all_finite ? largest : std::numeric_limits<float>::quiet_NaN();
}

VITRINE_NAMESPACE_END
