// Bodies of sample/candidates.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>

#include "vitrine/core/error.hpp"
#include "vitrine/core/exact_math.hpp"
#include "vitrine/sample/candidates.hpp"

VITRINE_NAMESPACE_BEGIN

namespace candidates_detail {

inline constexpr float infinity = std::numeric_limits<float>::infinity();

struct BlockFacts {
  float largest = -infinity;
  std::int32_t n_nan = 0, n_admissible = 0;
};

// Sixteen independent columns, so that the compiler turns the loop into vector code without changing its meaning; the
// maximum and the counts are exact in any order.
inline BlockFacts scan_block(const float* x, std::int64_t n) {
  BlockFacts facts;
  std::int64_t i = 0;
  if (n >= 16) {
    float largest[16];
    std::int32_t n_nan[16] = {}, n_admissible[16] = {};
    for (int lane = 0; lane < 16; ++lane) largest[lane] = -infinity;
    for (; i + 16 <= n; i += 16) {
      for (int lane = 0; lane < 16; ++lane) {
        const float value = x[i + lane];
        largest[lane] = value > largest[lane] ? value : largest[lane];
        n_nan[lane] += value != value;
        n_admissible[lane] += value > -infinity;
      }
    }
    for (int lane = 0; lane < 16; ++lane) {
      facts.largest = largest[lane] > facts.largest ? largest[lane] : facts.largest;
      facts.n_nan += n_nan[lane];
      facts.n_admissible += n_admissible[lane];
    }
  }
  for (; i < n; ++i) {
    facts.largest = x[i] > facts.largest ? x[i] : facts.largest;
    facts.n_nan += x[i] != x[i];
    facts.n_admissible += x[i] > -infinity;
  }
  return facts;
}

}  // namespace candidates_detail

VITRINE_INLINE Candidates::Candidates(std::int64_t n_vocab) {
  check(n_vocab >= 1 && n_vocab <= (std::numeric_limits<Token>::max)(), ErrorKind::bad_argument,
        "n_vocab: expected at least 1, got ", n_vocab);
  const auto n = std::size_t(n_vocab), n_blocks = (n + std::size_t(block) - 1) / std::size_t(block);
  edited_.resize(n);
  block_max_.resize(n_blocks);
  block_order_.resize(n_blocks);
  sorted_.reserve(n);
  weights_.reserve(n);
}

VITRINE_INLINE void Candidates::reset(std::span<const float> logits) {
  using candidates_detail::infinity;
  check(logits.size() == edited_.size(), ErrorKind::bad_argument, "logits: expected ", edited_.size(),
        " of them, one per token of the vocabulary, got ", logits.size());
  logits_ = logits;
  n_sorted_ = n_weights_ = 0;
  temperature_ = 1;
  total_ = 0;
  largest_ = -infinity;
  std::int64_t n_nan = 0;
  n_admissible_ = 0;
  const auto n = std::int64_t(logits.size());
  for (std::int64_t b = 0; b * block < n; ++b) {
    const auto facts = candidates_detail::scan_block(logits.data() + b * block, (std::min)(block, n - b * block));
    block_max_[std::size_t(b)] = facts.largest;
    largest_ = facts.largest > largest_ ? facts.largest : largest_;
    n_nan += facts.n_nan;
    n_admissible_ += facts.n_admissible;
  }
  check(n_nan == 0, ErrorKind::numeric_failure, "logits: ", n_nan, " of ", n, " are NaN");
  check(n_admissible_ > 0, ErrorKind::numeric_failure, "logits: no admissible token, all ", n, " are -inf");
  n_kept_ = n_admissible_;
  if (largest_ == infinity) {
    const auto count = std::count(logits.begin(), logits.end(), infinity);
    check(count == 1, ErrorKind::numeric_failure, "logits: ", count, " of ", n, " are +inf");
    n_kept_ = 1;
  }
}

VITRINE_INLINE void Candidates::sort_first(std::int64_t n) {
  if (n <= n_sorted_) return;
  // Grow by a factor, so that a walk that goes on and on costs no more than one sort of what it reads.
  const std::int64_t target = (std::min)((std::max)({n, std::int64_t(64), 8 * n_sorted_}), n_kept_);
  const auto n_blocks = std::int64_t(block_max_.size());
  float least = std::numeric_limits<float>::lowest();  // -inf stays out
  if (target < n_blocks) {
    block_order_ = block_max_;  // same size: nothing is allocated
    const auto nth = block_order_.begin() + (target - 1);
    std::nth_element(block_order_.begin(), nth, block_order_.end(), std::greater<>());
    least = (std::max)(least, *nth);
  }
  sorted_.clear();
  const auto n_vocab = std::int64_t(logits_.size());
  for (std::int64_t b = 0; b < n_blocks; ++b) {
    if (block_max_[std::size_t(b)] < least) continue;
    const std::int64_t end = (std::min)(n_vocab, (b + 1) * block);
    for (std::int64_t i = b * block; i < end; ++i)
      if (logits_[std::size_t(i)] >= least) sorted_.push_back({logits_[std::size_t(i)], Token(i)});
  }
  const auto before = [](const Candidate& a, const Candidate& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
  };
  const auto end = sorted_.begin() + target;
  if (end != sorted_.end()) std::nth_element(sorted_.begin(), end, sorted_.end(), before);
  std::sort(sorted_.begin(), end, before);
  n_sorted_ = target;
}

VITRINE_INLINE double Candidates::weight(std::int64_t i) {
  sort_first(i + 1);
  if (i >= n_weights_) {
    weights_.resize(std::size_t(n_sorted_));
    for (; n_weights_ < n_sorted_; ++n_weights_) {
      const double distance = double(sorted_[std::size_t(n_weights_)].logit) - double(largest_);
      // +inf - +inf would be NaN; that candidate is alone.
      weights_[std::size_t(n_weights_)] = n_weights_ == 0 ? 1.0 : exact::exp(distance / temperature_);
    }
  }
  return weights_[std::size_t(i)];
}

VITRINE_INLINE double Candidates::total() {
  if (total_ > 0) return total_;
  double sum = 0;
  if (n_kept_ < n_admissible_ || n_kept_ == 1) {
    for (std::int64_t i = 0; i < n_kept_; ++i) sum += weight(i);
  } else {
    double lanes[16] = {};
    for (std::size_t i = 0; i < logits_.size(); ++i)
      lanes[i % 16] += exact::exp((double(logits_[i]) - double(largest_)) / temperature_);
    for (int width = 8; width >= 1; width /= 2)
      for (int lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
    sum = lanes[0];
  }
  return total_ = sum;
}

VITRINE_INLINE void Candidates::divide_by(double temperature) {
  if (temperature == 0) return keep_first(1);
  constexpr double least = (std::numeric_limits<double>::min)(), most = (std::numeric_limits<double>::max)();
  temperature_ = std::clamp(temperature_ * temperature, least, most);  // 0 / 0 and inf / inf must not come up
  n_weights_ = 0;
  total_ = 0;
}

VITRINE_INLINE void Candidates::keep_first(std::int64_t n) {
  if (n >= n_kept_) return;
  n_kept_ = n;
  total_ = 0;
}

VITRINE_INLINE void Candidates::keep_nucleus(double mass) {
  if (mass >= 1) return;
  const double wanted = mass * total();
  double before = weight(0);
  std::int64_t n = 1;
  while (n < n_kept_ && before < wanted) before += weight(n++);
  keep_first(n);
}

VITRINE_INLINE void Candidates::keep_probable(double of_largest) {
  if (of_largest <= 0) return;
  std::int64_t n = 1;  // the first has weight 1
  while (n < n_kept_ && weight(n) >= of_largest) ++n;
  keep_first(n);
}

VITRINE_INLINE Token Candidates::best() const {
  const auto first_block = std::find(block_max_.begin(), block_max_.end(), largest_) - block_max_.begin();
  return Token(std::find(logits_.begin() + first_block * block, logits_.end(), largest_) - logits_.begin());
}

VITRINE_INLINE Token Candidates::id(std::int64_t i) {
  sort_first(i + 1);
  return sorted_[std::size_t(i)].id;
}

VITRINE_INLINE float Candidates::logit(std::int64_t i) {
  sort_first(i + 1);
  return sorted_[std::size_t(i)].logit;
}

VITRINE_INLINE double Candidates::probability(std::int64_t i) { return weight(i) / total(); }

VITRINE_INLINE Token Candidates::at_mass(double point) {
  const double wanted = point * total();
  double sum = 0;
  std::int64_t last = 0;  // rounding may leave the sum at or below `wanted`: then the last that has any weight
  for (std::int64_t i = 0; i < n_kept_ && weight(i) > 0; ++i) {
    sum += weights_[std::size_t(i)];
    last = i;
    if (sum > wanted) break;
  }
  return id(last);
}

VITRINE_NAMESPACE_END
