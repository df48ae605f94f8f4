// STEP 9/9 sample: from the logits of the last position to the next token.
//
//   p_i = exp(z_i / T) / sum_j exp(z_j / T)     z: logits after the repetition penalty (Keskar et al. 2019, CTRL)
//   top-k (Fan et al. 2018), top-p or nucleus (Holtzman et al. 2019) and min-p (Nguyen et al. 2024) then drop
//   candidates, each from the distribution that the step before it left, and one of the rest is drawn.
//
// The number drawn belongs to (seed, position): it does not depend on the draws before it. Ties go to the lowest id, in
// greedy decoding and at the k-th place alike. No allocation per token.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/core/token.hpp"
#include "vitrine/sample/candidates.hpp"
#include "vitrine/sample/sampling_options.hpp"

VITRINE_NAMESPACE_BEGIN

struct TokenProbability {
  Token id;
  float logit;         // after the repetition penalty, before temperature
  double probability;  // of the candidates that the step kept
};

// What one step left.
struct SamplingStage {
  std::string step;                    // "logits", then "temperature(0.7)", ...
  std::int64_t n_kept = 0;             // candidates left
  double mass_kept = 1;                // their part of the distribution before the step
  std::vector<TokenProbability> kept;  // most probable first, at most as many as asked for
};

class Sampler {
 public:
  // Throws Error(bad_argument) naming the parameter that is out of range; Error(io) when no seed is given and the
  // system has none.
  Sampler(const SamplingOptions& options, std::int64_t n_vocab);
  // A chain in the order of the caller's choice.
  Sampler(std::vector<SamplingStep> chain, std::optional<std::uint64_t> seed, std::int64_t n_vocab);

  // The token for place `position` of the sequence. logits: [n_vocab]; history: the tokens before it, for the
  // repetition penalty. Throws Error(numeric_failure) when the logits hold NaN or leave no admissible token, and when
  // the penalty takes one out of the range of float.
  Token sample(std::span<const float> logits, std::span<const Token> history, std::int64_t position);

  // What each step keeps of these logits, for inspection: one stage for the logits and one per step of the chain, each
  // with at most max_listed candidates (0: all). Allocates; draws nothing.
  std::vector<SamplingStage> distribution(std::span<const float> logits, std::span<const Token> history = {},
                                          std::int64_t max_listed = 0);

  std::uint64_t seed() const { return seed_; }  // the one in use, also when none was given
  const std::vector<SamplingStep>& chain() const { return chain_; }
  bool is_greedy() const;  // temperature 0 or top_k 1: nothing is ever drawn

 private:
  void start(std::span<const float> logits, std::span<const Token> history);
  void apply(const SamplingStep& step);

  std::vector<SamplingStep> chain_;
  std::uint64_t seed_;
  Candidates candidates_;
};

// A seed from the system's entropy. Throws Error::io if the system has none to give.
std::uint64_t fresh_seed();

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/sample/sampler.inl.hpp"
#endif
