// The chain of steps that a sampler runs, in the order in which they stand.
//
//   std::vector<SamplingStep> chain = {RepetitionPenalty{1.1}, Temperature{0.7}, TopK{40}, TopP{0.9}};
//
// The order matters: with logits 3, 2, 1, temperature 0.5 and top_p 0.8, temperature first keeps one candidate, top-p
// first keeps two. sample/sampling_options.hpp makes chains in the orders that other programs have. Steps that change
// logits come first, Mirostat comes last.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/sample/dry.hpp"
#include "vitrine/sample/logit_edits.hpp"
#include "vitrine/sample/mirostat.hpp"
#include "vitrine/sample/temperature.hpp"
#include "vitrine/sample/truncation.hpp"

VITRINE_NAMESPACE_BEGIN

using SamplingStep = std::variant<LogitBias, RepetitionPenalty, PresenceFrequency, Dry, NoRepeatNgram, BannedTokens,
                                  MinTokens, NoEndTokens, ForcedTokens, Temperature, DynamicTemperature, TopK, TopP,
                                  MinP, Typical, TopNSigma, EpsilonCutoff, EtaCutoff, TopH, Xtc, Mirostat>;

using SamplingChain = std::vector<SamplingStep>;

// The two kinds of steps: those that change logits, and those that take candidates.
template <class Step>
inline constexpr bool edits_logits = requires(const Step& step, LogitEdit& edit) {
  step.apply(edit);
};
bool changes_logits(const SamplingStep& step);

// Throws Error(bad_argument) that names the first parameter outside its range, or the step out of place; NaN is outside
// every range. n_vocab: tokens named in it must be less.
void check_sampling(const SamplingChain& chain, std::int64_t n_vocab);

// "temperature(0.7) -> top_k(40)", or "none"
std::string describe(const SamplingChain& chain);
std::string describe(const SamplingStep& step);

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/sample/sampling_chain.inl.hpp"
#endif
