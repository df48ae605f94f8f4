// Where the guesses of speculative decoding come from (engine/speculation.hpp).
//
//   prompt_lookup()     the last few tokens occurred before: guess what followed them there. Costs nothing, and pays
//                       where text is repeated: summaries, corrections, code (the idea: Saxena 2023, "prompt lookup")
//   draft_model(small)  a quicker model with the same vocabulary guesses, with the target's sampling and seed; fewer
//                       layers of the target (LoadOptions::n_layers) or coarser weights will do
//
// Anything else that guesses may be a Drafter, too; no guess changes a token, a wrong one only costs time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/core/token.hpp"
#include "vitrine/sample/sampling_options.hpp"

VITRINE_NAMESPACE_BEGIN

class Model;

// Tokens and their probabilities; those not listed have none.
struct TokenDistribution {
  std::vector<Token> ids;
  std::vector<double> probabilities;
  double of(Token id) const;
};

// Used by one generation at a time.
class Drafter {
 public:
  virtual ~Drafter() = default;

  // A request of this model begins. Throws Error::bad_argument when the drafter cannot guess for it.
  virtual void begin(const Model& target, const SamplingOptions& sampling, std::int64_t n_prompt) = 0;
  // Fills up to guesses.size() guesses of what follows the history; says how many.
  virtual std::int64_t guess(std::span<const Token> history, std::span<Token> guesses) = 0;
  // What guess i of the last call was drawn from; null: it was certain. (For AcceptRule::probability_ratio.)
  virtual const TokenDistribution* distribution(std::int64_t) const { return nullptr; }
  // Of a guess, as a share of the target's pass of one token.
  virtual double cost() const { return 0; }
};

struct PromptLookupOptions {
  std::int64_t longest = 4, shortest = 2;  // tokens that must have occurred before, the longest match first
};
std::shared_ptr<Drafter> prompt_lookup(const PromptLookupOptions& options = {});

// `n_threads`: 0 for as many as this process may use. `with_distributions`: guesses are drawn for
// AcceptRule::probability_ratio, from distributions that are kept.
std::shared_ptr<Drafter> draft_model(std::shared_ptr<const Model> model, int n_threads = 0,
                                     bool with_distributions = false);

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/engine/drafter.inl.hpp"
#endif
