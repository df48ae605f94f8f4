// What programs say of the logits [n_vocab] of a position.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include "vitrine/core/token.hpp"

namespace example {

using vitrine::Token;

inline std::size_t top_of(std::span<const float> logits) {
  return std::size_t(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// The n tokens with the largest logits, or all, the largest first; of equal ones the lowest first.
inline std::vector<Token> largest(std::span<const float> logits, std::size_t n) {
  std::vector<Token> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), Token(0));
  const auto end = tokens.begin() + std::ptrdiff_t(std::min(n, tokens.size()));
  std::partial_sort(tokens.begin(), end, tokens.end(), [&](Token a, Token b) {
    const float of_a = logits[std::size_t(a)], of_b = logits[std::size_t(b)];
    return of_a > of_b || (of_a == of_b && a < b);
  });
  tokens.erase(end, tokens.end());
  return tokens;
}

inline double log_sum_exp(std::span<const float> logits) {
  const double largest = logits[top_of(logits)];
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double(logit) - largest);
  return largest + std::log(sum);
}

// -log of the probability that the logits give to a token: how much it surprises.
inline double surprise(std::span<const float> logits, Token token) {
  return log_sum_exp(logits) - double(logits[std::size_t(token)]);
}

}  // namespace example
