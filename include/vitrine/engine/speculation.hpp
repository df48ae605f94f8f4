// Speculative decoding: guess some tokens cheaply, compute them all in one pass, keep those that turn out right.
//
//   generate(session, prompt, {.speculation = {.drafter = prompt_lookup()}})
//
// A pass over one token reads all weights for one row of arithmetic. With k guesses it reads them once for k + 1 rows;
// row i has the logits after the first i guesses, bit by bit those of plain decoding. As long as the token drawn from a
// row is the next guess, the next row is there already. So greedy and sampled output are token for token what plain
// decoding gives. (Leviathan et al. 2023, arXiv 2211.17192, and Chen et al. 2023, arXiv 2302.01318, accept a guess with
// probability min(1, p/q) instead: AcceptRule::probability_ratio.)
//
// How many guesses: with a the share of them that were right lately, c the cost of a guess and v that of a further row,
// in passes of one token, the k with the most tokens per cost: (1 - a^(k+1)) / (1 - a) / (1 + k (c + v)). It follows
// from the tokens alone, never from the clock.
#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/core/token.hpp"
#include "vitrine/engine/drafter.hpp"
#include "vitrine/engine/session.hpp"
#include "vitrine/engine/speculation_options.hpp"
#include "vitrine/sample/sampler.hpp"

VITRINE_NAMESPACE_BEGIN

// How many guesses are worth their cost, from how many were right. After a while without any it tries one again.
class GuessCount {
 public:
  GuessCount(std::int64_t most, bool adapts) : most_(most), adapts_(adapts) {}
  std::int64_t next(double cost_of_guess);
  void judged(bool right);

 private:
  static constexpr double cost_of_row = 0.1;
  static constexpr std::int64_t retry_after = 16;  // passes without guesses
  std::int64_t most_;
  bool adapts_;
  double n_right_ = 1.5, n_judged_ = 2;  // those of long ago count less
  std::int64_t n_without_ = 0;
};

// The guess with probability min(1, p/q); otherwise a token from what p has more than q, max(p - q, 0), in proportion.
// The result is distributed as p. u_accept, u_rest: uniform in [0, 1). q null: the guess was certain.
Token accept_or_replace(const TokenDistribution& p, const TokenDistribution* q, Token guess, double u_accept,
                        double u_rest);

// The speculative part of a running generation.
class Speculation {
 public:
  // Throws Error::bad_argument naming the option, or what the drafter says.
  Speculation(const SpeculationOptions& options, const Model& target, const Sampler& sampler,
              const SamplingOptions& sampling, std::int64_t n_prompt);

  // Session::decode(token), with guesses when none stand: at most n_more tokens will be drawn after this call.
  Logits decode(Session& session, Token token, std::int64_t n_more, const std::stop_token& stop);
  // The token for the next place, from these logits.
  Token sample(Session& session, Sampler& sampler, const Logits& logits);

  const SpeculationResult& result() const { return result_; }

 private:
  SpeculationOptions options_;
  GuessCount count_;
  std::vector<Token> history_;
  std::vector<Token> guesses_;  // [max_guesses] room
  std::int64_t n_guesses_ = 0;  // of the last pass
  std::int64_t n_plain_ = 0;
  SpeculationResult result_;
};

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/engine/speculation.inl.hpp"
#endif
