// Steps that change logits: bias, bans, forced tokens, penalties. They run before any candidate is dropped.
//
//   LogitBias          z += bias; -inf forbids                                  OpenAI's logit_bias
//   RepetitionPenalty  z = z / penalty if z > 0, else z * penalty, once for each distinct token seen
//                      (Keskar et al. 2019, "CTRL"; not invariant to a shift of all logits, as the paper leaves it)
//   PresenceFrequency  z -= presence * (count > 0) + frequency * count          OpenAI's, over generated tokens only
//   NoRepeatNgram      bans what would complete an n-gram that was there before (Paulus et al. 2017)
//   BannedTokens       bans tokens, and the last token of a sequence whose others have just come
//   MinTokens          bans the end tokens until so many tokens are generated
//   NoEndTokens        bans them throughout
//   ForcedTokens       bans all but the one that was asked for at this place, which comes even if a step before this
//                      one has banned it
// DRY, the longest of them, is in sample/dry.hpp.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/core/token.hpp"

VITRINE_NAMESPACE_BEGIN

// What such a step works on.
struct LogitEdit {
  std::span<float> logits;             // [n_vocab], changed in place
  std::span<const Token> history;      // the sequence so far, the prompt included
  std::int64_t n_prompt;               // how many of the history are the prompt
  std::span<std::uint8_t> changed;     // [ceil(n_vocab / 64)], set where a logit was changed
  std::span<std::int32_t> counts;      // [n_vocab], all 0 between steps
  std::vector<std::int32_t>& scratch;  // grows with the history

  static constexpr float banned = -std::numeric_limits<float>::infinity();

  // Throws Error(bad_argument) for an id outside the vocabulary.
  void check_id(Token token) const;
  // The same, then the logit, to be changed.
  float& logit(Token token);
  // Throws Error(numeric_failure) naming the step if it takes a finite logit out of the range of float.
  template <class Step>
  void set(Token token, double value, const Step& step);
  std::span<const Token> last(std::int64_t window) const;  // of the history; 0: all of it
  std::span<const Token> generated() const;
};

struct TokenBias {
  Token id;
  float bias;
};

struct LogitBias {
  static constexpr const char* name = "logit_bias";
  std::vector<TokenBias> biases;  // each token once; finite, or -inf to forbid it

  void check(std::int64_t n_vocab) const;
  std::string describe() const;
  void apply(LogitEdit& edit) const;
};

struct RepetitionPenalty {
  static constexpr const char* name = "repetition_penalty";
  double penalty;           // 1.2e-38 to 3.4e38; 1 changes nothing
  std::int64_t window = 0;  // how many of the last tokens count as seen; 0: all, the prompt included

  void check(std::int64_t n_vocab) const;
  std::string describe() const;
  void apply(LogitEdit& edit) const;
};

struct PresenceFrequency {
  static constexpr const char* name = "presence_frequency";
  double presence, frequency;  // -2 to 2 each

  void check(std::int64_t n_vocab) const;
  std::string describe() const;
  void apply(LogitEdit& edit) const;
};

struct NoRepeatNgram {
  static constexpr const char* name = "no_repeat_ngram_size";
  std::int64_t n;  // 0: off

  void check(std::int64_t n_vocab) const;
  std::string describe() const;
  void apply(LogitEdit& edit) const;
};

struct BannedTokens {
  static constexpr const char* name = "banned";
  std::vector<std::vector<Token>> sequences;  // none empty

  void check(std::int64_t n_vocab) const;
  std::string describe() const;
  void apply(LogitEdit& edit) const;
};

struct MinTokens {
  static constexpr const char* name = "min_new_tokens";
  std::int64_t n;
  std::vector<Token> end_tokens;

  void check(std::int64_t n_vocab) const;
  std::string describe() const;
  void apply(LogitEdit& edit) const;
};

struct NoEndTokens {
  static constexpr const char* name = "ignore_end";
  std::vector<Token> end_tokens;

  void check(std::int64_t n_vocab) const;
  std::string describe() const;
  void apply(LogitEdit& edit) const;
};

struct ForcedToken {
  std::int64_t index;  // of the generated tokens, 0 is the first
  Token id;
};

struct ForcedTokens {
  static constexpr const char* name = "forced";
  std::vector<ForcedToken> tokens;  // each index once

  void check(std::int64_t n_vocab) const;
  std::string describe() const;
  void apply(LogitEdit& edit) const;
};

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/sample/logit_edits.inl.hpp"
#endif
