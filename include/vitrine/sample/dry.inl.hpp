// Bodies of sample/dry.hpp.
#pragma once

#include <algorithm>
#include <cstddef>

#include "vitrine/core/exact_math.hpp"
#include "vitrine/sample/dry.hpp"
#include "vitrine/sample/sampling_check.hpp"

VITRINE_NAMESPACE_BEGIN

namespace sampling_detail {

// z[k]: how long text[k..] and text agree, k > 0. `at(i)` is the i-th token of a text of length n.
template <class At>
void z_function(std::int32_t* z, std::int64_t n, At at) {
  std::int64_t left = 0, right = 0;  // the match that reaches furthest: text[left, right) = text[0, right - left)
  for (std::int64_t k = 1; k < n; ++k) {
    std::int64_t length = k < right ? (std::min)(right - k, std::int64_t(z[k - left])) : 0;
    while (k + length < n && at(length) == at(k + length)) ++length;
    z[k] = std::int32_t(length);
    if (k + length > right) {
      left = k;
      right = k + length;
    }
  }
}

}  // namespace sampling_detail

VITRINE_INLINE void Dry::check(std::int64_t n_vocab) const {
  sampling_detail::check_range("dry_multiplier", multiplier, 0.0, sampling_detail::most_float);
  sampling_detail::check_range("dry_base", base, 1.0, sampling_detail::most_float);
  sampling_detail::check_count("dry_allowed_length", allowed_length, 1);
  sampling_detail::check_count("dry_window", window);
  sampling_detail::check_tokens("dry_breakers", breakers, n_vocab);
  vitrine::check(std::is_sorted(breakers.begin(), breakers.end()), ErrorKind::bad_argument,
                 "dry_breakers: expected ascending ids, got others");
}

VITRINE_INLINE std::string Dry::describe() const {
  return sampling_detail::written(name, multiplier, base, allowed_length);
}

VITRINE_INLINE void Dry::apply(LogitEdit& edit) const {
  const auto tokens = edit.last(window);
  const auto n = std::int64_t(tokens.size());
  if (multiplier == 0 || n < 2) return;
  const auto backwards = [&](std::int64_t i) { return tokens[std::size_t(n - 1 - i)]; };
  const auto breaks = [&](Token token) { return std::binary_search(breakers.begin(), breakers.end(), token); };
  std::int64_t longest = 0;  // of a match that holds no breaker
  while (longest < n && !breaks(backwards(longest))) ++longest;
  if (longest < allowed_length) return;

  if (edit.scratch.size() < std::size_t(n)) edit.scratch.resize(2 * std::size_t(n));
  sampling_detail::z_function(edit.scratch.data(), n, backwards);
  const auto length_at = [&](std::int64_t k) {
    return (std::min)(std::int64_t(edit.scratch[std::size_t(k)]), longest);
  };
  for (std::int64_t k = 1; k < n; ++k) edit.check_id(backwards(k - 1));  // before anything is counted
  for (std::int64_t k = 1; k < n; ++k) {
    auto& most = edit.counts[std::size_t(backwards(k - 1))];
    most = (std::max)(most, std::int32_t(length_at(k)));
  }
  for (std::int64_t k = 1; k < n; ++k) {
    const Token next = backwards(k - 1);
    const std::int64_t length = edit.counts[std::size_t(next)];
    edit.counts[std::size_t(next)] = 0;
    if (length < allowed_length || breaks(next)) continue;
    float& z = edit.logit(next);
    const double penalty = multiplier * exact::pow(base, double(length - allowed_length));
    // As low as a finite logit can be, where the power has no bounds: still a candidate, if all others are banned.
    if (z > -sampling_detail::most_float) z = float((std::max)(-sampling_detail::most_float, double(z) - penalty));
  }
}

VITRINE_NAMESPACE_END
