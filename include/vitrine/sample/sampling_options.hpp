// What may be asked of the choice of a token, and the explicit chain of steps that it amounts to.
//
// The order is that of Hugging Face's generate(): repetition penalty, temperature, top-k, top-p, min-p. It matters:
// with logits 3, 2, 1, temperature 0.5 and top_p 0.8, temperature first keeps one candidate, top-p first keeps two.
// Whoever wants another order builds the chain by hand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

struct SamplingOptions {
  double temperature = 1.0;             // logits / temperature; 0: the largest logit (greedy); at most 3.4e38
  std::int32_t top_k = 0;               // keep the k largest logits; 0 or less: all; 1: greedy
  double top_p = 1.0;                   // keep the smallest set of most probable tokens with at least this mass; 1: all
  double min_p = 0.0;                   // keep p >= min_p * (largest p); 0: all
  double repetition_penalty = 1.0;      // seen tokens: logit / it if positive, * it if negative; 1.2e-38 to 3.4e38
  std::int64_t repetition_window = 0;   // how many of the last tokens count as seen; 0: all, the prompt included
  std::optional<std::uint64_t> seed{};  // none: fresh entropy; the sampler reports the seed that it uses
};

enum class SamplingOp { repetition_penalty, temperature, top_k, top_p, min_p };

struct SamplingStep {
  SamplingOp op;
  double value;             // top_k: a whole number
  std::int64_t window = 0;  // repetition_penalty only
};

// "temperature", "top_k", ...
const char* sampling_op_name(SamplingOp op);

// Throws Error(bad_argument) that names the first parameter outside its range; NaN is outside every range.
void check_sampling(const SamplingOptions& options);

// The same for a chain made by hand. The repetition penalty changes logits and the others work on
// probabilities, so it must be the first step.
void check_sampling(const std::vector<SamplingStep>& chain);

// The steps that these options switch on, in order; those that would change nothing are left out. Checks the options.
std::vector<SamplingStep> sampling_chain(const SamplingOptions& options);

// "temperature(0.7) -> top_k(40)", or "none"
std::string describe(const std::vector<SamplingStep>& chain);
std::string describe(const SamplingStep& step);

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/sample/sampling_options.inl.hpp"
#endif
