// Bodies of sample/truncation.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "vitrine/core/exact_math.hpp"
#include "vitrine/sample/truncation.hpp"

VITRINE_NAMESPACE_BEGIN

namespace sampling_detail {

// The first, and those after it that fulfil the condition; nothing is sorted beyond the first that does not.
template <class Condition>
void keep_while(Candidates& candidates, Condition condition) {
  std::int64_t n = 1;
  while (n < candidates.size() && condition(n)) ++n;
  candidates.keep(0, n);
}

inline void keep_probable(Candidates& candidates, double least) {
  const double weight = least * candidates.total();
  keep_while(candidates, [&](std::int64_t i) { return candidates.weight(i) >= weight; });
}

}  // namespace sampling_detail

VITRINE_INLINE void TopK::apply(Candidates& candidates) const {
  if (k > 0) candidates.keep(0, k);
}

// By an early exit for 1: a sum of floats may not reach it.
VITRINE_INLINE void TopP::apply(Candidates& candidates) const {
  if (p >= 1) return;
  const double wanted = p * candidates.total();
  double mass = candidates.weight(0);
  sampling_detail::keep_while(candidates, [&](std::int64_t i) {
    if (mass >= wanted) return false;
    mass += candidates.weight(i);
    return true;
  });
}

VITRINE_INLINE void MinP::apply(Candidates& candidates) const {
  if (of_largest <= 0) return;
  sampling_detail::keep_while(candidates, [&](std::int64_t i) { return candidates.weight(i) >= of_largest; });
}

// Surprise grows along the order, so the nearest ones are an interval, which grows to the nearer side.
VITRINE_INLINE void Typical::apply(Candidates& candidates) const {
  if (p >= 1 || candidates.size() == 1) return;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double entropy = candidates.entropy(), wanted = p * candidates.total();
  const std::int64_t n = candidates.size();
  std::int64_t begin = 0;
  while (begin < n && candidates.surprise(begin) < entropy) ++begin;
  std::int64_t end = begin;
  const auto before = [&] { return begin > 0 ? entropy - candidates.surprise(begin - 1) : infinity; };
  const auto behind = [&] { return end < n ? candidates.surprise(end) - entropy : infinity; };
  double mass = 0, border = -infinity;
  while ((begin > 0 || end < n) && (begin == end || mass < wanted || (std::min)(before(), behind()) <= border)) {
    border = (std::max)(border, (std::min)(before(), behind()));
    mass += before() <= behind() ? candidates.weight(--begin) : candidates.weight(end++);
  }
  candidates.keep(begin, end);
}

VITRINE_INLINE void TopNSigma::apply(Candidates& candidates) const {
  const double least = double(candidates.logit(0)) - n * candidates.deviation();
  sampling_detail::keep_while(candidates, [&](std::int64_t i) { return double(candidates.logit(i)) >= least; });
}

VITRINE_INLINE void EpsilonCutoff::apply(Candidates& candidates) const {
  sampling_detail::keep_probable(candidates, epsilon);
}

VITRINE_INLINE void EtaCutoff::apply(Candidates& candidates) const {
  const double least = std::sqrt(epsilon) * exact::exp(-candidates.entropy());
  sampling_detail::keep_probable(candidates, (std::min)(epsilon, least));
}

VITRINE_INLINE void TopH::apply(Candidates& candidates) const {
  candidates.keep(0, 100);
  const double wanted = h * candidates.entropy();
  const auto term = [&](std::int64_t i) { return candidates.probability(i) * candidates.surprise(i); };
  double entropy = term(0);
  sampling_detail::keep_while(candidates, [&](std::int64_t i) { return (entropy += term(i)) <= wanted; });
}

VITRINE_INLINE void Xtc::apply(Candidates& candidates, double draw) const {
  if (!(draw < probability)) return;
  const double least = threshold * candidates.total();
  std::int64_t n = 0;
  while (n < candidates.size() && candidates.weight(n) >= least) ++n;
  if (n >= 2) candidates.keep(n - 1, candidates.size());
}

VITRINE_NAMESPACE_END
