// Bodies of sample/logit_edits.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "vitrine/core/error.hpp"
#include "vitrine/ops/logits.hpp"
#include "vitrine/sample/logit_edits.hpp"
#include "vitrine/sample/sampling_check.hpp"

VITRINE_NAMESPACE_BEGIN

namespace sampling_detail {

// How often each token stands in a part of the history. The counts are back at 0 when this goes.
class TokenCounts {
 public:
  TokenCounts(LogitEdit& edit, std::span<const Token> tokens) : counts_(edit.counts), tokens_(tokens) {
    for (const Token token : tokens) edit.check_id(token);  // all ids are checked before the first is counted
    for (const Token token : tokens) ++counts_[std::size_t(token)];
  }
  ~TokenCounts() {
    for (const Token token : tokens_) counts_[std::size_t(token)] = 0;
  }
  TokenCounts(const TokenCounts&) = delete;
  TokenCounts& operator=(const TokenCounts&) = delete;

  // f(token, count) for each distinct token.
  template <class F>
  void for_each(F f) {
    for (const Token token : tokens_)
      if (const auto count = std::exchange(counts_[std::size_t(token)], 0); count > 0) f(token, count);
  }

 private:
  std::span<std::int32_t> counts_;
  std::span<const Token> tokens_;
};

inline void ban_all(LogitEdit& edit, const std::vector<Token>& tokens) {
  for (const Token token : tokens) edit.logit(token) = LogitEdit::banned;
}

}  // namespace sampling_detail

VITRINE_INLINE void LogitEdit::check_id(Token token) const {
  check(token >= 0 && std::size_t(token) < logits.size(), ErrorKind::bad_argument,
        "history: expected token ids from 0 to ", logits.size() - 1, ", got ", token);
}

VITRINE_INLINE float& LogitEdit::logit(Token token) {
  check_id(token);
  changed[std::size_t(token / Logits::block)] = 1;
  return logits[std::size_t(token)];
}

template <class Step>
void LogitEdit::set(Token token, double value, const Step& step) {
  float& z = logit(token);
  // What is infinite or NaN to begin with is the model's doing, and Candidates says so.
  if (std::fabs(value) > sampling_detail::most_float && std::fabs(double(z)) <= sampling_detail::most_float)
    throw Error(ErrorKind::numeric_failure,
                concat(step.describe(), " takes the logit ", z, " of token ", token, " out of float's range"));
  z = float(value);
}

VITRINE_INLINE std::span<const Token> LogitEdit::last(std::int64_t window) const {
  return window > 0 && std::size_t(window) < history.size() ? history.last(std::size_t(window)) : history;
}

VITRINE_INLINE std::span<const Token> LogitEdit::generated() const {
  return history.subspan((std::min)(std::size_t(n_prompt), history.size()));
}

VITRINE_INLINE void LogitBias::check(std::int64_t n_vocab) const {
  std::vector<Token> ids;
  for (const auto& [id, bias] : biases) {
    vitrine::check(bias <= float(sampling_detail::most_float) && !std::isnan(bias), ErrorKind::bad_argument, name,
                   ": expected a finite bias or -inf for token ", id, ", got ", bias);
    ids.push_back(id);
  }
  sampling_detail::check_tokens(name, ids, n_vocab);
  std::sort(ids.begin(), ids.end());
  const auto twice = std::adjacent_find(ids.begin(), ids.end());
  vitrine::check(twice == ids.end(), ErrorKind::bad_argument, name, ": expected each token once, got token ",
                 twice == ids.end() ? 0 : *twice, " twice");
}
VITRINE_INLINE std::string LogitBias::describe() const {
  return sampling_detail::written(name, counted(std::int64_t(biases.size()), "token"));
}
VITRINE_INLINE void LogitBias::apply(LogitEdit& edit) const {
  for (const auto& [id, bias] : biases) {
    if (bias == LogitEdit::banned)
      edit.logit(id) = bias;  // also where the logit is +inf
    else
      edit.set(id, double(edit.logit(id)) + double(bias), *this);
  }
}

VITRINE_INLINE void RepetitionPenalty::check(std::int64_t) const {
  sampling_detail::check_range(name, penalty, sampling_detail::least_float, sampling_detail::most_float);
  sampling_detail::check_count("repetition_window", window);
}
VITRINE_INLINE std::string RepetitionPenalty::describe() const {
  return window > 0 ? sampling_detail::written(name, penalty, concat("last ", window))
                    : sampling_detail::written(name, penalty);
}
VITRINE_INLINE void RepetitionPenalty::apply(LogitEdit& edit) const {
  sampling_detail::TokenCounts(edit, edit.last(window)).for_each([&](Token token, std::int32_t) {
    const double z = edit.logit(token);
    edit.set(token, z > 0 ? z / penalty : z * penalty, *this);
  });
}

VITRINE_INLINE void PresenceFrequency::check(std::int64_t) const {
  sampling_detail::check_range("presence_penalty", presence, -2.0, 2.0);
  sampling_detail::check_range("frequency_penalty", frequency, -2.0, 2.0);
}
VITRINE_INLINE std::string PresenceFrequency::describe() const {
  return sampling_detail::written(name, presence, frequency);
}
VITRINE_INLINE void PresenceFrequency::apply(LogitEdit& edit) const {
  sampling_detail::TokenCounts(edit, edit.generated()).for_each([&](Token token, std::int32_t count) {
    edit.set(token, double(edit.logit(token)) - (presence + frequency * count), *this);
  });
}

VITRINE_INLINE void NoRepeatNgram::check(std::int64_t) const { sampling_detail::check_count(name, n); }
VITRINE_INLINE std::string NoRepeatNgram::describe() const { return sampling_detail::written(name, n); }
VITRINE_INLINE void NoRepeatNgram::apply(LogitEdit& edit) const {
  if (n == 0 || edit.history.size() < std::size_t(n)) return;
  const auto begin = edit.history.begin(), end = edit.history.end();
  for (auto next = begin + (n - 1); next != end; ++next)
    if (std::equal(next - (n - 1), next, end - (n - 1))) edit.logit(*next) = LogitEdit::banned;
}

VITRINE_INLINE void BannedTokens::check(std::int64_t n_vocab) const {
  sampling_detail::check_sequences(name, sequences, n_vocab);
}
VITRINE_INLINE std::string BannedTokens::describe() const {
  return sampling_detail::written(name, counted(std::int64_t(sequences.size()), "sequence"));
}
VITRINE_INLINE void BannedTokens::apply(LogitEdit& edit) const {
  for (const auto& sequence : sequences) {
    const auto before = std::span(sequence).first(sequence.size() - 1);
    if (before.size() > edit.history.size()) continue;
    const auto recent = edit.history.last(before.size());
    if (std::equal(before.begin(), before.end(), recent.begin())) edit.logit(sequence.back()) = LogitEdit::banned;
  }
}

VITRINE_INLINE void MinTokens::check(std::int64_t n_vocab) const {
  sampling_detail::check_count(name, n);
  sampling_detail::check_tokens("end_tokens", end_tokens, n_vocab);
}
VITRINE_INLINE std::string MinTokens::describe() const { return sampling_detail::written(name, n); }
VITRINE_INLINE void MinTokens::apply(LogitEdit& edit) const {
  if (std::int64_t(edit.generated().size()) < n) sampling_detail::ban_all(edit, end_tokens);
}

VITRINE_INLINE void NoEndTokens::check(std::int64_t n_vocab) const {
  sampling_detail::check_tokens("end_tokens", end_tokens, n_vocab);
}
VITRINE_INLINE std::string NoEndTokens::describe() const {
  return sampling_detail::written(name, counted(std::int64_t(end_tokens.size()), "token"));
}
VITRINE_INLINE void NoEndTokens::apply(LogitEdit& edit) const { sampling_detail::ban_all(edit, end_tokens); }

VITRINE_INLINE void ForcedTokens::check(std::int64_t n_vocab) const {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    sampling_detail::check_tokens(name, {tokens[i].id}, n_vocab);
    sampling_detail::check_count("forced: index", tokens[i].index);
    for (std::size_t k = 0; k < i; ++k)
      vitrine::check(tokens[k].index != tokens[i].index, ErrorKind::bad_argument, name,
                     ": expected one token for each index, got two for ", tokens[i].index);
  }
}
VITRINE_INLINE std::string ForcedTokens::describe() const {
  return sampling_detail::written(name, counted(std::int64_t(tokens.size()), "token"), "over any ban");
}
VITRINE_INLINE void ForcedTokens::apply(LogitEdit& edit) const {
  const auto index = std::int64_t(edit.generated().size());
  for (const auto& forced : tokens) {
    if (forced.index != index) continue;
    std::fill(edit.logits.begin(), edit.logits.end(), LogitEdit::banned);
    std::fill(edit.changed.begin(), edit.changed.end(), std::uint8_t(1));
    edit.logit(forced.id) = 0;  // also if another step had banned it
  }
}

VITRINE_NAMESPACE_END
