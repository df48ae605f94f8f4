// Bodies of sample/candidates.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <utility>

#include "vitrine/core/error.hpp"
#include "vitrine/core/exact_math.hpp"
#include "vitrine/core/float16.hpp"
#include "vitrine/core/rounding.hpp"
#include "vitrine/sample/candidates.hpp"

VITRINE_NAMESPACE_BEGIN

namespace candidates_detail {

inline constexpr float infinity = std::numeric_limits<float>::infinity();

// Smaller for a greater float; equal for +0 and -0, as they are to a comparison.
inline std::uint32_t descending_key(float value) {
  const std::uint32_t bits = float_to_bits(value + 0.0f);
  return bits & 0x80000000u ? bits : ~(bits | 0x80000000u);
}

}  // namespace candidates_detail

VITRINE_INLINE Candidates::Candidates(std::int64_t n_vocab, const KernelTable& table) : kernels_(&table) {
  check(n_vocab >= 1 && n_vocab < (1 << 28), ErrorKind::bad_argument, "n_vocab: expected 1 to 2^28 - 1, got ", n_vocab);
  const auto n = std::size_t(n_vocab), n_blocks = divide_up(n, std::size_t(block));
  edited_.resize(n);
  changed_blocks_.resize(n_blocks);
  own_block_max_.resize(n_blocks);
  block_order_.resize(n_blocks);
  sorted_.reserve(n);
  weights_.reserve(n);
  sorting_ = std::make_unique_for_overwrite<Candidate[]>(n);  // its pages are touched when it is used
}

VITRINE_INLINE void Candidates::reset(const Logits& logits) {
  owned(edited_.empty() ? nullptr : this, "sampler");
  check(logits.size() == edited_.size(), ErrorKind::bad_argument, "logits: expected ", edited_.size(),
        " of them, one per token of the vocabulary, got ", logits.size());
  const auto n = std::int64_t(logits.size());
  logits_ = logits;
  block_max_ = logits.block_max();
  if (!block_max_.empty())
    if (const Peak peak = find_peak(*kernels_, block_max_); peak.all_finite) return begin({peak.value, 0, n});
  block_max_ = own_block_max_;
  begin(kernels_->sampling.scan(logits.data(), n, own_block_max_.data()));
}

// With the facts about logits_.
VITRINE_INLINE void Candidates::begin(const SamplingKernels::Facts& facts) {
  using candidates_detail::infinity;
  begin_ = end_ = n_sorted_ = n_weights_ = 0;  // none, if what follows throws
  temperature_ = 1;
  total_ = 0;
  largest_ = facts.largest;
  n_admissible_ = facts.n_admissible;
  const auto n = logits_.size();
  check(facts.n_nan == 0, ErrorKind::numeric_failure, "logits: ", facts.n_nan, " of ", n, " are NaN");
  check(n_admissible_ > 0, ErrorKind::numeric_failure, "logits: no admissible token, all ", n, " are -inf");
  end_ = n_admissible_;
  first_ = largest_;
  if (largest_ == infinity) {
    const auto count = std::count(logits_.begin(), logits_.end(), infinity);
    check(count == 1, ErrorKind::numeric_failure, "logits: ", count, " of ", n, " are +inf");
    end_ = 1;
  }
}

VITRINE_INLINE std::int64_t Candidates::length_of(std::int64_t b) const {
  return (std::min)(block, std::int64_t(logits_.size()) - b * block);
}

VITRINE_INLINE void Candidates::begin_edit() {
  std::copy(logits_.begin(), logits_.end(), edited_.begin());
  std::fill(changed_blocks_.begin(), changed_blocks_.end(), std::uint8_t(0));
}

VITRINE_INLINE void Candidates::end_edit() {
  const auto n_blocks = std::int64_t(changed_blocks_.size());
  if (8 * std::count(changed_blocks_.begin(), changed_blocks_.end(), 1) > n_blocks) return reset(edited_);
  if (block_max_.data() != own_block_max_.data())
    std::copy(block_max_.begin(), block_max_.end(), own_block_max_.begin());
  block_max_ = own_block_max_;
  SamplingKernels::Facts facts{0, 0, n_admissible_};
  const auto scan = [&](std::span<const float> logits, std::int64_t b) {
    return kernels_->sampling.scan(logits.data() + b * block, length_of(b), &own_block_max_[std::size_t(b)]);
  };
  for (std::int64_t b = 0; b < n_blocks; ++b) {
    if (!changed_blocks_[std::size_t(b)]) continue;
    facts.n_admissible -= scan(logits_, b).n_admissible;
    const auto now = scan(edited_, b);
    facts.n_admissible += now.n_admissible;
    facts.n_nan += now.n_nan;
  }
  facts.largest = find_peak(*kernels_, block_max_).value;
  logits_ = edited_;
  begin(facts);
}

// Three stable passes over 11 bits of the key; the candidates come in ascending order of id, so ties stay in it.
VITRINE_INLINE void Candidates::radix_sort() {
  Candidate *from = sorted_.data(), *to = sorting_.get();
  const std::size_t n = sorted_.size();
  for (int shift = 0; shift < 33; shift += 11) {
    const auto digit = [&](const Candidate& c) { return candidates_detail::descending_key(c.logit) >> shift & 2047u; };
    std::uint32_t place[2048] = {};
    for (std::size_t i = 0; i < n; ++i) ++place[digit(from[i])];
    std::uint32_t sum = 0;
    for (auto& entry : place) sum += std::exchange(entry, sum);
    for (std::size_t i = 0; i < n; ++i) to[place[digit(from[i])]++] = from[i];
    std::swap(from, to);
  }
  std::copy(from, from + n, sorted_.data());  // three passes: the result is in the other buffer
}

// A logit that at least n reach, and not many more: all are counted by their distance from the largest, in steps of
// 1/64. (No float lies between largest - k/64 and what that is rounded to, so rounding leaves none out.)
VITRINE_INLINE float Candidates::bound_by_histogram(std::int64_t n) const {
  constexpr int n_bins = 2048;
  constexpr float per_step = 64;
  std::int32_t count[n_bins] = {};
  for (const float z : logits_) ++count[int((std::min)((largest_ - z) * per_step, float(n_bins - 1)))];
  int bin = 0;
  for (std::int64_t sum = count[0]; sum < n; sum += count[bin]) ++bin;
  if (bin == n_bins - 1) return std::numeric_limits<float>::lowest();
  return largest_ - float(bin + 1) / per_step;
}

VITRINE_INLINE void Candidates::sort_first(std::int64_t n) {
  if (n <= n_sorted_) return;
  // Grow by a factor, so that a walk that goes on and on costs no more than one sort of what it reads.
  const std::int64_t factor = n_sorted_ < 4096 ? 8 : 4;
  const std::int64_t target = (std::min)((std::max)({n, std::int64_t(64), factor * n_sorted_}), end_);
  const auto n_blocks = std::int64_t(block_max_.size());
  float least = std::numeric_limits<float>::lowest();  // -inf stays out
  if (8 * target < n_blocks) {
    std::copy(block_max_.begin(), block_max_.end(), block_order_.begin());
    const auto nth = block_order_.begin() + (target - 1);
    std::nth_element(block_order_.begin(), nth, block_order_.end(), std::greater<>());
    least = (std::max)(least, *nth);
  } else if (target < n_admissible_ && largest_ < candidates_detail::infinity) {
    least = (std::max)(least, bound_by_histogram(target));
  }
  sorted_.clear();
  for (std::int64_t b = 0; b < n_blocks; ++b) {
    if (block_max_[std::size_t(b)] < least) continue;
    for (std::int64_t i = b * block; i < b * block + length_of(b); ++i)
      if (logits_[std::size_t(i)] >= least) sorted_.push_back({logits_[std::size_t(i)], Token(i)});
  }
  constexpr std::size_t many = 4096;
  if (sorted_.size() >= many && target > std::int64_t(many) / 4) {
    radix_sort();
  } else {
    const auto before = [](const Candidate& a, const Candidate& b) {
      return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
    };
    const auto end = sorted_.begin() + target;
    if (end != sorted_.end()) std::nth_element(sorted_.begin(), end, sorted_.end(), before);
    std::sort(sorted_.begin(), end, before);
    sorted_.erase(end, sorted_.end());
  }
  n_sorted_ = (std::min)(std::int64_t(sorted_.size()), end_);
}

// (z_i - z_0) / T; the first one's is 0 also where both are infinite.
VITRINE_INLINE double Candidates::distance(std::int64_t i) const {
  return i == 0 ? 0 : (double(sorted_[std::size_t(begin_ + i)].logit) - double(first_)) / temperature_;
}

// The first few thousand in double, where every digit may matter to a cut; the long tail in float, sixteen at a time.
VITRINE_INLINE void Candidates::weigh_sorted() {
  constexpr std::int64_t precise = 4096;
  const std::int64_t n_known = n_sorted_ - begin_;
  weights_.resize(std::size_t(n_known));
  std::int64_t i = n_weights_;
  for (; i < (std::min)(n_known, precise); ++i) weights_[std::size_t(i)] = exact::exp(distance(i));
  float terms[256];
  while (i < n_known) {
    const std::int64_t n = (std::min)(n_known - i, std::int64_t(256));
    for (std::int64_t k = 0; k < n; ++k) terms[k] = float(distance(i + k));
    kernels_->elementwise.exp(terms, terms, n);
    for (std::int64_t k = 0; k < n; ++k) weights_[std::size_t(i + k)] = double(terms[k]);
    i += n;
  }
  n_weights_ = n_known;
}

VITRINE_INLINE double Candidates::weight(std::int64_t i) {
  sort_first(begin_ + i + 1);
  if (i >= n_weights_) weigh_sorted();
  return weights_[std::size_t(i)];
}

VITRINE_INLINE bool Candidates::in_lanes() const {
  return whole() && size() > 1 && temperature_ > 1e-30 && temperature_ < 1e30;  // what the kernels take as a float
}

VITRINE_INLINE double Candidates::total() {
  if (total_ > 0) return total_;
  total_ = 0;
  if (in_lanes()) {
    total_ = kernels_->sampling.mass(logits_.data(), std::int64_t(logits_.size()), first_, float(temperature_));
  } else {
    for (std::int64_t i = 0; i < size(); ++i) total_ += weight(i);
  }
  log_total_ = exact::log(total_);
  return total_;
}

VITRINE_INLINE double Candidates::log_total() {
  total();
  return log_total_;
}

VITRINE_INLINE double Candidates::surprise(std::int64_t i) {
  sort_first(begin_ + i + 1);
  return log_total() - distance(i);
}

// With d_i = log of the weight: log p_i = d_i - log(total).
VITRINE_INLINE double Candidates::entropy() {
  double moment = 0;  // sum of weight * d
  if (in_lanes()) {
    moment = kernels_->sampling.moment(logits_.data(), std::int64_t(logits_.size()), first_, float(temperature_));
  } else {
    for (std::int64_t i = 0; i < size(); ++i)
      if (const double w = weight(i); w > 0) moment += w * distance(i);
  }
  return (std::max)(0.0, log_total() - moment / total());
}

VITRINE_INLINE double Candidates::deviation() {
  if (size() == 1) return 0;
  const auto n = double(size());
  double sum = 0, sum_of_squares = 0;
  if (whole()) {
    const auto spread = [&](float centre) {
      return kernels_->sampling.spread(logits_.data(), std::int64_t(logits_.size()), centre);
    };
    const auto around = spread(float(double(first_) + spread(first_).sum / n));  // about the mean: no digits cancel
    sum = around.sum;
    sum_of_squares = around.sum_of_squares;
  } else {
    for (std::int64_t i = 0; i < size(); ++i) sum += double(logit(i)) - double(first_);
    const double mean = double(first_) + sum / n;
    sum = 0;
    for (std::int64_t i = 0; i < size(); ++i) sum_of_squares += (double(logit(i)) - mean) * (double(logit(i)) - mean);
  }
  return std::sqrt((std::max)(0.0, sum_of_squares / n - (sum / n) * (sum / n)));
}

VITRINE_INLINE void Candidates::divide_by(double temperature) {
  if (temperature == 0) return keep(0, 1);
  constexpr double least = (std::numeric_limits<double>::min)(), most = (std::numeric_limits<double>::max)();
  temperature_ = std::clamp(temperature_ * temperature, least, most);  // 0 / 0 and inf / inf must not come up
  n_weights_ = 0;
  total_ = 0;
}

VITRINE_INLINE void Candidates::keep(std::int64_t begin, std::int64_t end) {
  if (begin == 0 && end >= size()) return;
  end_ = begin_ + (std::min)(end, size());
  total_ = 0;
  if (begin == 0) return;
  sort_first(begin_ + begin + 1);
  begin_ += begin;
  first_ = sorted_[std::size_t(begin_)].logit;
  n_weights_ = 0;
}

VITRINE_INLINE Token Candidates::best() {
  if (begin_ > 0) return id(0);
  const auto first_block = find_peak(*kernels_, block_max_).id;
  return Token(std::find(logits_.begin() + first_block * block, logits_.end(), largest_) - logits_.begin());
}

VITRINE_INLINE Token Candidates::id(std::int64_t i) {
  sort_first(begin_ + i + 1);
  return sorted_[std::size_t(begin_ + i)].id;
}

VITRINE_INLINE float Candidates::logit(std::int64_t i) {
  sort_first(begin_ + i + 1);
  return sorted_[std::size_t(begin_ + i)].logit;
}

VITRINE_INLINE bool Candidates::has(Token token) {
  const float logit = logits_[std::size_t(token)];
  if (logit == -candidates_detail::infinity) return false;
  if (whole()) return true;
  sort_first(end_);
  const auto before = [&](const Candidate& c) { return c.logit > logit || (c.logit == logit && c.id < token); };
  const bool not_before_first = begin_ == 0 || before(sorted_[std::size_t(begin_ - 1)]);
  return not_before_first && !before(sorted_[std::size_t(end_ - 1)]);
}

VITRINE_INLINE double Candidates::log_probability(Token token) {
  if (!has(token)) return -double(candidates_detail::infinity);
  if (size() == 1) return 0;
  return (double(logits_[std::size_t(token)]) - double(first_)) / temperature_ - log_total();
}

VITRINE_INLINE std::int64_t Candidates::rank(Token token) {
  const float logit = logits_[std::size_t(token)];
  std::int64_t n = 0;
  for (const float z : logits_) n += z > logit ? 1 : 0;
  return n + std::count(logits_.begin(), logits_.begin() + token, logit);
}

VITRINE_INLINE Candidates::Drawn Candidates::at_mass(double point) {
  const double wanted = point * total();
  double sum = 0, before = 0;
  std::int64_t last = 0;  // rounding may leave the sum at or below `wanted`: then the last that has any weight
  for (std::int64_t i = 0; i < size() && weight(i) > 0; ++i) {
    before = sum;
    sum += weights_[std::size_t(i)];
    last = i;
    if (sum > wanted) break;
  }
  return {id(last), last, before, weight(last)};
}

VITRINE_NAMESPACE_END
