// When one request ends, and what of its text may be shown by then: the state that is needed for it, token by token.
//
//   StopRules rules(tokenizer, n_vocab, options, prompt.back());
//   const auto [reason, in_answer] = rules.push(token, seconds, has_room, text);   // after each token drawn
//
// `text` gets what the token adds to the answer: whole characters only, and nothing of a stop string. In this order: an
// end token (the text of which is not given); a stop string, wherever tokens divide it, or a special token of just its
// text; max_new_tokens; a context without room; the time limit. Whoever draws the tokens knows nothing of all this, so
// one conversation and a batch of many end alike.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/engine/generate_options.hpp"
#include "vitrine/text/stop_strings.hpp"
#include "vitrine/text/tokenizer.hpp"

VITRINE_NAMESPACE_BEGIN

class StopRules {
 public:
  // Throws Error(bad_argument) naming the option. `last_of_prompt`: its text is not looked at, but the first word of
  // the answer may go on with it.
  StopRules(Tokenizer tokenizer, std::int64_t n_vocab, const GenerateOptions& options, Token last_of_prompt);

  struct Verdict {
    FinishReason reason;  // none: go on
    bool in_answer;       // false for the end token: it is none of the answer's tokens
  };
  // seconds: since the request; has_room: the context can take this token. With the last token comes all text that was
  // held back.
  Verdict push(Token token, double seconds, bool has_room, std::string& text);

  // It ends for another reason: appends the text that was held back.
  void finish(std::string& text);

  bool is_time_over(double seconds) const { return time_limit_ > 0 && seconds >= time_limit_; }
  const std::string& stop_string() const { return found_; }  // the one that came; empty: none

 private:
  bool ends(Token token) const;
  bool flush(std::string& text);

  Tokenizer tokenizer_;
  std::vector<std::string> stop_strings_;
  StopMatcher matcher_;
  StreamDecoder decoder_;
  std::vector<Token> end_tokens_;                             // besides the model's own
  std::vector<std::pair<Token, std::size_t>> stop_tokens_{};  // special tokens whose text is a stop string
  std::int64_t max_new_tokens_, n_tokens_ = 0;
  double time_limit_;
  std::string piece_, found_;
};

// Throws Error(bad_argument) for an id of extra_end outside the vocabulary.
void check_end_tokens(const GenerateOptions& options, std::int64_t n_vocab);

// The sampling options of a generation, told which tokens may end it. That is how ignore_end works: the sampler bans
// them, so none comes to the rules.
SamplingOptions sampling_with_end_tokens(const GenerateOptions& options, const Tokenizer& tokenizer);

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/engine/stop_rules.inl.hpp"
#endif
