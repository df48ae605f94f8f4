// Bodies of engine/stop_rules.hpp.
#pragma once

#include <algorithm>
#include <limits>

#include "vitrine/core/error.hpp"
#include "vitrine/engine/stop_rules.hpp"

VITRINE_NAMESPACE_BEGIN

VITRINE_INLINE StopRules::StopRules(Tokenizer tokenizer, std::int64_t n_vocab, const GenerateOptions& options,
                                    Token last_of_prompt)
    : tokenizer_(std::move(tokenizer)),
      stop_strings_(options.stop_strings),
      matcher_(stop_strings_),
      decoder_(tokenizer_),
      end_tokens_(options.extra_end),
      max_new_tokens_(options.max_new_tokens),
      time_limit_(options.time_limit) {
  check(max_new_tokens_ >= 1, ErrorKind::bad_argument, "max_new_tokens: expected at least 1, got ", max_new_tokens_);
  check(options.sampling.min_new_tokens <= max_new_tokens_, ErrorKind::bad_argument,
        "min_new_tokens: expected at most max_new_tokens, ", max_new_tokens_, ", got ",
        options.sampling.min_new_tokens);
  check(time_limit_ >= 0 && time_limit_ <= (std::numeric_limits<double>::max)(), ErrorKind::bad_argument,
        "time_limit: expected a number of seconds, or 0 for none, got ", time_limit_);
  check_end_tokens(options, n_vocab);
  for (std::size_t i = 0; i < stop_strings_.size(); ++i)
    if (const auto token = tokenizer_.find(stop_strings_[i]); token && tokenizer_.is_special(*token))
      stop_tokens_.emplace_back(*token, i);
  decoder_.continue_after(last_of_prompt);
  piece_.reserve(1024);
}

VITRINE_INLINE StopRules::Verdict StopRules::push(Token token, double seconds, bool has_room, std::string& text) {
  if (ends(token)) return {flush(text) ? FinishReason::stop_string : FinishReason::end_token, false};
  for (const auto& [stop_token, index] : stop_tokens_) {
    if (stop_token != token) continue;
    if (!flush(text)) found_ = stop_strings_[index];
    return {FinishReason::stop_string, false};
  }
  ++n_tokens_;
  piece_.clear();
  decoder_.push(token, piece_);
  if (matcher_.push(piece_, text)) {
    found_ = stop_strings_[*matcher_.found()];
    return {FinishReason::stop_string, true};
  }
  const auto reason = n_tokens_ == max_new_tokens_ ? FinishReason::length
                      : !has_room                  ? FinishReason::context_full
                      : is_time_over(seconds)      ? FinishReason::time_limit
                                                   : FinishReason::none;
  const bool found = reason != FinishReason::none && flush(text);
  return {found ? FinishReason::stop_string : reason, true};
}

VITRINE_INLINE void StopRules::finish(std::string& text) { flush(text); }

// Bytes of an unfinished character become U+FFFD. True if the end of the text decides for a stop string in it.
VITRINE_INLINE bool StopRules::flush(std::string& text) {
  const bool found = matcher_.push(decoder_.finish(), text) || matcher_.finish(text);
  if (found) found_ = stop_strings_[*matcher_.found()];
  return found;
}

VITRINE_INLINE bool StopRules::ends(Token token) const {
  return tokenizer_.is_end(token) || std::find(end_tokens_.begin(), end_tokens_.end(), token) != end_tokens_.end();
}

VITRINE_INLINE void check_end_tokens(const GenerateOptions& options, std::int64_t n_vocab) {
  for (std::size_t i = 0; i < options.extra_end.size(); ++i)
    check(options.extra_end[i] >= 0 && options.extra_end[i] < n_vocab, ErrorKind::bad_argument, "extra_end[", i,
          "]: expected ids from 0 to ", n_vocab - 1, ", got ", options.extra_end[i]);
}

VITRINE_INLINE SamplingOptions sampling_with_end_tokens(const GenerateOptions& options, const Tokenizer& tokenizer) {
  auto sampling = options.sampling;
  sampling.ignore_end |= options.ignore_end;
  auto& all = sampling.end_tokens;
  for (const auto* tokens : {&tokenizer.end_tokens(), &options.extra_end})
    all.insert(all.end(), tokens->begin(), tokens->end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return sampling;
}

VITRINE_NAMESPACE_END
