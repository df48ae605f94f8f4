// What may be asked of the choice of a token, by name, and the chain of steps that it amounts to.
//
// The order of the steps is that of one of three programs, since users bring their parameters from there:
//   huggingface  generate(): bias, penalties, bans, temperature, top_h, top_k, top_p, min_p, typical_p, epsilon, eta
//   llama.cpp    bias, penalties, dry, top_n_sigma, top_k, typical_p, top_p, min_p, xtc, temperature
//   openai       presence and frequency before the other penalties, then temperature, top_p, as huggingface
// What a program does not have stands where it does least harm: see sampling_chain(). A sampler reports its chain.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/core/token.hpp"
#include "vitrine/sample/sampling_chain.hpp"

VITRINE_NAMESPACE_BEGIN

enum class SamplingOrder { huggingface, llama_cpp, openai };

// Steps are described in the headers named; a value that changes nothing leaves its step out.
struct SamplingOptions {
  // sample/temperature.hpp
  double temperature = 1.0;     // logits / temperature; 0: the largest logit (greedy); at most 3.4e38
  double dynatemp_range = 0.0;  // temperature -+ range, by the entropy; 0: fixed
  double dynatemp_exponent = 1.0;
  // sample/truncation.hpp
  std::int32_t top_k = 0;        // keep the k largest logits; 0 or less: all; 1: greedy
  double top_p = 1.0;            // keep the smallest set of most probable tokens with at least this mass; 1: all
  double min_p = 0.0;            // keep p >= min_p * (largest p); 0: all
  double typical_p = 1.0;        // 1: all
  double top_n_sigma = 0.0;      // 0: all
  double epsilon_cutoff = 0.0;   // 0: all
  double eta_cutoff = 0.0;       // 0: all
  double top_h = 0.0;            // 0: all
  double xtc_probability = 0.0;  // 0: never
  double xtc_threshold = 0.1;
  // sample/mirostat.hpp
  double mirostat_tau = 0.0;  // 0: off
  double mirostat_eta = 0.1;
  // sample/logit_edits.hpp
  double repetition_penalty = 1.0;        // seen tokens: logit / it if positive, * it if negative; 1.2e-38 to 3.4e38
  std::int64_t repetition_window = 0;     // how many of the last tokens count as seen; 0: all, the prompt included
  double presence_penalty = 0.0;          // off the logits of generated tokens, once
  double frequency_penalty = 0.0;         // and for each time
  std::int64_t no_repeat_ngram_size = 0;  // 0: off
  std::vector<TokenBias> logit_bias{};
  std::vector<Token> suppress_tokens{};         // never chosen; may not be forced
  std::vector<std::vector<Token>> bad_words{};  // sequences never completed
  std::vector<ForcedToken> forced_tokens{};     // come over all other bans, as in generate(), min_new_tokens among them
  std::int64_t min_new_tokens = 0;              // end tokens are banned until then
  bool ignore_end = false;                      // or throughout; then none may be forced
  std::vector<Token> end_tokens{};              // for these two; generate() adds the model's
  // sample/dry.hpp
  double dry_multiplier = 0.0;  // 0: off
  double dry_base = 1.75;
  std::int64_t dry_allowed_length = 2;
  std::int64_t dry_window = 0;        // 0: all
  std::vector<Token> dry_breakers{};  // ascending; see text/token_search.hpp

  SamplingOrder order = SamplingOrder::huggingface;
  std::optional<std::uint64_t> seed{};  // none: fresh entropy; the sampler reports the seed that it uses
};

// "huggingface", "llama.cpp" or "openai": the order and what that program samples with when nothing is said. (Without a
// preset all steps are off.) Throws Error(bad_argument) for another name, with the known ones.
SamplingOptions sampling_preset(std::string_view name);
const char* sampling_order_name(SamplingOrder order);

// Throws Error(bad_argument) that names the first parameter outside its range, also of steps that are off; NaN is
// outside every range. Tokens must be less than n_vocab.
void check_sampling(const SamplingOptions& options, std::int64_t n_vocab = std::int64_t(1) << 28);

// The steps that these options switch on, in order; those that would change nothing are left out. Checks the options.
SamplingChain sampling_chain(const SamplingOptions& options, std::int64_t n_vocab = std::int64_t(1) << 28);

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/sample/sampling_options.inl.hpp"
#endif
