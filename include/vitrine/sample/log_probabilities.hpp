// Log-probabilities of tokens: how likely the model found what was chosen, and what else it might have said.
//
//   log p_i = z_i - log sum_j exp(z_j)
//
// Raw ones are of the logits as they came; processed ones of what the sampler made of them, where a dropped token has
// -infinity. Natural logarithms.
#pragma once

#include <cstdint>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/core/parallel.hpp"
#include "vitrine/core/token.hpp"
#include "vitrine/sample/candidates.hpp"

VITRINE_NAMESPACE_BEGIN

struct LogProbabilities {
  struct Entry {
    Token id;
    double log_probability;
  };
  double of_token = 0;     // -infinity if it is not among the candidates
  std::int64_t rank = 0;   // how many logits are larger, or equal with a lower id
  std::vector<Entry> top;  // the most probable candidates, in order
};

struct TokenLogProbabilities {
  LogProbabilities raw, processed;
};

// Of the candidates as they are: with the logits [n_vocab] just reset, raw ones.
inline LogProbabilities log_probabilities(Candidates& candidates, Token token, std::int64_t n_top) {
  const parallel_detail::DefaultFloatEnvironment environment;
  LogProbabilities result{candidates.log_probability(token), candidates.rank(token), {}};
  for (std::int64_t i = 0; i < n_top && i < candidates.size(); ++i)
    result.top.push_back({candidates.id(i), candidates.log_probability(candidates.id(i))});
  return result;
}

VITRINE_NAMESPACE_END
