// What may be asked of speculative decoding, and what it tells afterwards. How it works: engine/speculation.hpp.
//
//   options.speculation = {.drafter = prompt_lookup(), .max_guesses = 4};
//
// With the rule same_token the tokens are those of plain decoding; only the time changes. probability_ratio is the rule
// of Leviathan et al. 2023 (arXiv 2211.17192): the same distribution, other tokens. Counts are of tokens and passes,
// times in seconds.
#pragma once

#include <cstdint>
#include <memory>

#include "vitrine/core/config.hpp"
#include "vitrine/core/error.hpp"

VITRINE_NAMESPACE_BEGIN

class Drafter;

enum class AcceptRule {
  same_token,        // a guess is right when the target draws it: the tokens are those of plain decoding
  probability_ratio  // with probability min(1, p/q): the same distribution, but other tokens than plain decoding draws
};

struct SpeculationOptions {
  std::shared_ptr<Drafter> drafter{};  // prompt_lookup(), draft_model(small), or your own; none: plain decoding
  AcceptRule rule = AcceptRule::same_token;
  std::int64_t max_guesses = 8;  // 1 to 15 per pass
  bool adapt = true;             // fewer when guesses turn out wrong; false: always max_guesses
};

// Throws Error::bad_argument naming the option.
inline void check_speculation(const SpeculationOptions& options) {
  check(options.max_guesses >= 1 && options.max_guesses <= 15, ErrorKind::bad_argument,
        "max_guesses: expected 1 to 15, got ", options.max_guesses);
  check(options.rule == AcceptRule::same_token || options.rule == AcceptRule::probability_ratio,
        ErrorKind::bad_argument, "rule: expected same_token or probability_ratio, got AcceptRule(", int(options.rule),
        ")");
}

struct SpeculationResult {
  std::int64_t n_passes = 0;    // with guesses
  std::int64_t n_guesses = 0;   // computed
  std::int64_t n_judged = 0;    // of these, that the text came to: those behind a wrong one are not looked at
  std::int64_t n_accepted = 0;  // of these, that were right: each saved a pass
  double guess_seconds = 0, pass_seconds = 0;  // of the drafter, of the passes with guesses
  double plain_pass_seconds = 0;               // mean of the passes without guesses; the first one always is

  double acceptance() const { return n_judged > 0 ? double(n_accepted) / double(n_judged) : 0; }
  // Estimated: what as many tokens would have taken in passes without guesses, less what they did take.
  double saved_seconds() const {
    return double(n_accepted + n_passes) * plain_pass_seconds - guess_seconds - pass_seconds;
  }
};

VITRINE_NAMESPACE_END
