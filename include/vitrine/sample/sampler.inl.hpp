// Bodies of sample/sampler.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <exception>
#include <limits>
#include <random>
#include <utility>

#include "vitrine/core/error.hpp"
#include "vitrine/core/parallel.hpp"
#include "vitrine/sample/random.hpp"
#include "vitrine/sample/sampler.hpp"

VITRINE_NAMESPACE_BEGIN

namespace sampler_detail {

inline std::vector<SamplingStep> checked(std::vector<SamplingStep> chain) {
  check_sampling(chain);
  return chain;
}

// The logits with each distinct token of the history penalised once: z / penalty if z > 0, else z * penalty. Both spans
// are [n_vocab]; `logits` is a copy of `original` when it comes.
inline void penalise_repetition(std::span<float> logits, std::span<const float> original,
                                std::span<const Token> history, double penalty) {
  constexpr double largest = (std::numeric_limits<float>::max)();
  for (const Token token : history) {
    check(token >= 0 && std::size_t(token) < original.size(), ErrorKind::bad_argument,
          "history: expected token ids from 0 to ", original.size() - 1, ", got ", token);
    // Always computed from the original: a token seen twice is penalised once.
    const double value = original[std::size_t(token)];
    const double penalised = value > 0 ? value / penalty : value * penalty;
    // What is infinite or NaN to begin with is the model's doing, and reset() says so.
    check(!(std::fabs(penalised) > largest) || std::fabs(value) > largest, ErrorKind::numeric_failure,
          "repetition_penalty: ", penalty, " takes the logit ", value, " of token ", token, " out of float's range");
    logits[std::size_t(token)] = float(penalised);
  }
}

}  // namespace sampler_detail

VITRINE_INLINE std::uint64_t fresh_seed() {
  try {
    std::random_device entropy;
    const std::uint64_t upper = entropy();
    return upper << 32 | (entropy() & 0xffffffffu);
  } catch (const std::exception& error) {
    throw Error(ErrorKind::io, concat("seed: the system gives no random numbers (", error.what(), "); pass a seed"));
  }
}

VITRINE_INLINE Sampler::Sampler(const SamplingOptions& options, std::int64_t n_vocab)
    : Sampler(sampling_chain(options), options.seed, n_vocab) {}

VITRINE_INLINE Sampler::Sampler(std::vector<SamplingStep> chain, std::optional<std::uint64_t> seed,
                                std::int64_t n_vocab)
    : chain_(sampler_detail::checked(std::move(chain))), seed_(seed ? *seed : fresh_seed()), candidates_(n_vocab) {}

VITRINE_INLINE bool Sampler::is_greedy() const {
  return std::any_of(chain_.begin(), chain_.end(), [](const SamplingStep& step) {
    return (step.op == SamplingOp::temperature && step.value == 0) || (step.op == SamplingOp::top_k && step.value == 1);
  });
}

// The penalty changes logits, so it comes before the candidates are taken; without it the caller's logits are read
// where they are.
VITRINE_INLINE void Sampler::start(std::span<const float> logits, std::span<const Token> history) {
  const auto edited = candidates_.edited();
  // A wrong number of logits is left to reset(), which says so.
  if (chain_.empty() || chain_.front().op != SamplingOp::repetition_penalty || logits.size() != edited.size())
    return candidates_.reset(logits);
  const auto window = std::size_t(chain_.front().window);
  std::copy(logits.begin(), logits.end(), edited.begin());
  sampler_detail::penalise_repetition(
      edited, logits, window > 0 && window < history.size() ? history.last(window) : history, chain_.front().value);
  candidates_.reset(edited);
}

VITRINE_INLINE void Sampler::apply(const SamplingStep& step) {
  switch (step.op) {
    case SamplingOp::repetition_penalty: break;  // done in start()
    case SamplingOp::temperature: candidates_.divide_by(step.value); break;
    case SamplingOp::top_k:
      if (step.value > 0) candidates_.keep_first(std::int64_t(step.value));
      break;
    case SamplingOp::top_p: candidates_.keep_nucleus(step.value); break;
    case SamplingOp::min_p: candidates_.keep_probable(step.value); break;
  }
}

VITRINE_INLINE Token Sampler::sample(std::span<const float> logits, std::span<const Token> history,
                                     std::int64_t position) {
  const parallel_detail::DefaultFloatEnvironment environment;  // a host's flush-to-zero must not choose our tokens
  start(logits, history);
  if (is_greedy()) return candidates_.best();
  for (const auto& step : chain_) apply(step);
  if (candidates_.size() == 1) return candidates_.id(0);
  return candidates_.at_mass(random_uniform(seed_, std::uint64_t(position)));
}

VITRINE_INLINE std::vector<SamplingStage> Sampler::distribution(std::span<const float> logits,
                                                                std::span<const Token> history,
                                                                std::int64_t max_listed) {
  const parallel_detail::DefaultFloatEnvironment environment;
  std::vector<SamplingStage> stages;
  const auto list = [&](std::string name, double mass_kept) {
    SamplingStage stage{std::move(name), candidates_.size(), mass_kept, {}};
    const auto n = max_listed > 0 ? (std::min)(max_listed, candidates_.size()) : candidates_.size();
    for (std::int64_t i = 0; i < n; ++i)
      stage.kept.push_back({candidates_.id(i), candidates_.logit(i), candidates_.probability(i)});
    stages.push_back(std::move(stage));
  };
  // The logits as they came, shown before any penalty.
  candidates_.reset(logits);
  list("logits", 1);
  start(logits, history);
  for (const auto& step : chain_) {
    const double first_before = candidates_.probability(0);
    apply(step);
    // Dropping candidates multiplies every probability by the same factor; temperature drops none (unless it is 0).
    const bool drops = step.op != SamplingOp::temperature || step.value == 0;
    list(describe(step),
         drops && step.op != SamplingOp::repetition_penalty ? first_before / candidates_.probability(0) : 1.0);
  }
  return stages;
}

VITRINE_NAMESPACE_END
