// Generation: prefill the prompt, then sample and decode until something ends it.
//
//   Generation generation = generate(session, prompt, {.max_new_tokens = 100});
//   for (const GeneratedToken& token : generation) std::cout << token.text << std::flush;
//   const GenerateResult& result = generation.result();      // text, tokens, why it ended, timings, seed
//
// Or with a callback, which returns false to end: generate(session, prompt, options, [](const GeneratedToken&) {...}).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/engine/generate_options.hpp"
#include "vitrine/engine/session.hpp"
#include "vitrine/engine/speculation.hpp"
#include "vitrine/engine/stop_rules.hpp"
#include "vitrine/engine/timings.hpp"
#include "vitrine/sample/sampler.hpp"

VITRINE_NAMESPACE_BEGIN

struct GeneratedToken {
  Token id = 0;
  std::string_view text;   // whole characters only, may be empty; valid until the next token
  std::int64_t index = 0;  // 0 for the first
  double seconds = 0;      // since the request
  const TokenLogProbabilities* log_probabilities = nullptr;  // if they were asked for; valid as the text
};

struct GenerateResult {
  std::vector<Token> tokens;  // without the end token; with those that hold a stop string
  std::string text;           // without the stop string
  FinishReason reason = FinishReason::none;
  Timings timings;
  std::uint64_t seed = 0;   // the one in use; the same seed, prompt and options give the same tokens
  std::string sampling;     // the chain of steps, in order
  std::string stop_string;  // the one that ended it, if one did
  SpeculationResult speculation;
  std::vector<TokenLogProbabilities> log_probabilities;    // one per token, if asked for
  std::vector<LogProbabilities> prompt_log_probabilities;  // raw; of prompt[1], prompt[2], ... if asked for
};

// A running generation. It borrows the session, which must neither move nor end before it, nor be used otherwise in
// between. The last token of the result is not yet in the session. It stays where it was made (a token's text points
// into it).
//
// The texts of the tokens make up the result's text, unless it was cancelled or failed while text was held back (half a
// character, or what could be the beginning of a stop string). Should an end token come then, it is given, too, with
// that text; otherwise it is not.
class Generation {
 public:
  // Throws Error: bad_argument naming the option; context_full with the three numbers if the prompt leaves no room.
  Generation(Session& session, std::vector<Token> prompt, GenerateOptions options = {});
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  // The next token, or null when it has ended; until then nobody else may change the session (bad_argument). Throws
  // what Session and Sampler throw, but for cancellation; that ends it, too: the session is then as it was before the
  // call, and the result holds what came until then.
  const GeneratedToken* next();
  void cancel();
  const GenerateResult& result() const { return result_; }

  class Iterator {
   public:
    using value_type = GeneratedToken;
    using difference_type = std::ptrdiff_t;
    explicit Iterator(Generation* generation = nullptr) : generation_(generation) { ++*this; }
    const GeneratedToken& operator*() const { return *token_; }
    const GeneratedToken* operator->() const { return token_; }
    Iterator& operator++() {
      token_ = nullptr;  // so it stays if next() throws
      if (generation_) token_ = generation_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return token_ == nullptr; }

   private:
    Generation* generation_;
    const GeneratedToken* token_ = nullptr;
  };
  Iterator begin() { return Iterator(this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  const GeneratedToken* step();
  Logits advance();
  Logits prefill();
  const GeneratedToken* finish(FinishReason reason);
  void fail(std::int64_t length);

  Session* session_;
  std::vector<Token> prompt_;
  GenerateOptions options_;
  StopRules rules_;
  Sampler sampler_;
  std::optional<Speculation> speculation_;
  std::int64_t length_;  // of the session, as the last step left it
  Stopwatch watch_;
  double last_seconds_ = 0;
  std::string text_;                   // of the current token
  std::vector<float> last_of_prompt_;  // its logits [n_vocab], if the prompt's log-probabilities are asked for
  GeneratedToken token_;
  GenerateResult result_;
};

inline Generation generate(Session& session, std::vector<Token> prompt, GenerateOptions options = {}) {
  return Generation(session, std::move(prompt), std::move(options));
}
GenerateResult generate(Session& session, std::vector<Token> prompt, GenerateOptions options,
                        const std::function<bool(const GeneratedToken&)>& on_token);

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/engine/generate.inl.hpp"
#endif
