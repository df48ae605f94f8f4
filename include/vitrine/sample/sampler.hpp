// STEP 9/9 sample: from the logits of the last position to the next token.
//
//   logits -> steps that change logits -> candidates -> steps that drop candidates -> one of the rest is drawn
//
//   p_i = exp(z_i / T) / sum_j exp(z_j / T),   the token at point u of the cumulative distribution, most probable first
//
// The number u drawn belongs to (seed, position): it does not depend on the draws before it, on other requests, threads
// or machines. Ties go to the lowest id, in greedy decoding and at the k-th place alike. No allocation per token. What
// the steps do is in their headers; explain() shows it for one token.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/core/token.hpp"
#include "vitrine/sample/candidates.hpp"
#include "vitrine/sample/log_probabilities.hpp"
#include "vitrine/sample/sampling_options.hpp"

VITRINE_NAMESPACE_BEGIN

struct TokenProbability {
  Token id;
  float logit;         // after the steps that change logits, before temperature
  double probability;  // of the candidates that the step kept
};

// What one step did.
struct SamplingStage {
  std::string step;                        // "logits", then "temperature(0.7)", ...
  std::int64_t n_before = 0, n_after = 0;  // candidates
  double mass_removed = 0;                 // the dropped ones' part of the distribution before the step
  double entropy = 0;                      // of the distribution after it, in nats
  double temperature = 1;                  // by which logits are divided after it
  std::vector<TokenProbability> kept;      // most probable first, at most as many as asked for
};

struct SamplingExplanation {
  std::vector<SamplingStage> stages;  // of the logits as they came, then one per step of the chain
  Token token = 0;                    // what sample() gives
  double probability = 1;
  std::int64_t place = 0;        // of the token among the candidates that are left, 0 for the most probable
  double mass_before = 0;        // of the candidates before it: mass_before <= draw < mass_before + probability
  std::optional<double> draw{};  // the random number, if one was needed
};

// One request's choice of tokens. Holds scratch memory for a vocabulary, and Mirostat's state; nothing else of it
// changes from token to token.
class Sampler {
 public:
  // Throws Error(bad_argument) naming the parameter that is out of range; Error(io) when no seed is given and the
  // system has none. The kernels make no difference but time.
  Sampler(const SamplingOptions& options, std::int64_t n_vocab, const KernelTable& table = kernels());
  // A chain in the order of the caller's choice.
  Sampler(SamplingChain chain, std::optional<std::uint64_t> seed, std::int64_t n_vocab,
          const KernelTable& table = kernels());

  // A request begins: the first n_prompt tokens of its history are the prompt, those after them generated. Without it
  // all are taken as generated.
  void begin(std::int64_t n_prompt);

  // The token for place `position` of the sequence. logits: [n_vocab]; history: the tokens before it. Throws
  // Error(numeric_failure) when the logits hold NaN or leave no admissible token, and when a step takes one out of the
  // range of float.
  Token sample(const Logits& logits, std::span<const Token> history, std::int64_t position);

  // What each step does, and what sample() would give for the same arguments; changes nothing. Each stage lists at most
  // max_listed candidates (0: all). Allocates.
  SamplingExplanation explain(const Logits& logits, std::span<const Token> history = {}, std::int64_t position = 0,
                              std::int64_t max_listed = 0);

  // Of a token under the logits that sample() has just seen, with the n_top most probable ones: by the logits as they
  // came, and by what the chain made of them. Allocates.
  TokenLogProbabilities log_probabilities(const Logits& logits, Token token, std::int64_t n_top);

  std::uint64_t seed() const { return seed_; }  // the one in use, also when none was given
  const SamplingChain& chain() const { return chain_; }
  // How many of the largest logits are enough for sample(), as long as nothing else asks for more: all others may be
  // -infinity. 0: it may look at any.
  std::int64_t n_top() const;
  bool is_greedy() const { return greedy_; }  // the largest logit is taken: nothing is ever drawn

 private:
  struct Result {
    Candidates::Drawn drawn;
    std::optional<double> draw;
  };
  template <class Watch>
  Result run(const Logits& logits, std::span<const Token> history, std::int64_t position, Watch& watch);
  void apply(const SamplingStep& step, std::int64_t position);

  SamplingChain chain_;
  std::size_t n_edits_ = 0;  // the first steps, which change logits
  bool greedy_ = false;
  std::uint64_t seed_;
  const KernelTable* kernels_;
  Candidates candidates_;
  std::unique_ptr<Candidates> raw_;    // for log_probabilities
  std::vector<std::int32_t> counts_;   // [n_vocab] if any step changes logits
  std::vector<std::int32_t> scratch_;  // for DRY
  std::int64_t n_prompt_ = 0;
  double mu_ = 0;  // Mirostat's
};

// A seed from the system's entropy. Throws Error::io if the system has none to give.
std::uint64_t fresh_seed();

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/sample/sampler.inl.hpp"
#endif
