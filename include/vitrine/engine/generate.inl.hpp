// Bodies of engine/generate.hpp.
#pragma once

#include <algorithm>
#include <utility>

#include "vitrine/engine/generate.hpp"

VITRINE_NAMESPACE_BEGIN

namespace generate_detail {

struct TimeIsOver {};  // thrown out of a prefill by its progress

}  // namespace generate_detail

VITRINE_INLINE Generation::Generation(Session& session, std::vector<Token> prompt, GenerateOptions options)
    : session_(&session),
      prompt_(std::move(prompt)),
      options_(std::move(options)),
      rules_(session.model().tokenizer(), session.model().config().n_vocab, options_,
             prompt_.empty() ? 0 : prompt_.back()),
      sampler_(sampling_with_end_tokens(options_, session.model().tokenizer()), session.model().config().n_vocab),
      length_(session.length()) {
  check(!prompt_.empty(), ErrorKind::bad_argument, "prompt: expected at least 1 token, got none");
  for (const auto& n : {options_.log_probabilities, options_.prompt_log_probabilities})
    check(n.value_or(0) >= 0, ErrorKind::bad_argument, "log_probabilities: expected at least 0, got ", n.value_or(0));
  const auto room = session.context() - session.length();
  check(std::int64_t(prompt_.size()) < room, ErrorKind::context_full, "the prompt of ",
        counted(std::int64_t(prompt_.size()), "token"), " does not fit: the context holds ",
        counted(session.context(), "token"), ", ", session.length(), session.length() == 1 ? " is" : " are",
        " in use, and max_new_tokens is ", options_.max_new_tokens,
        "; a prompt is never cut, and at least 1 place must be left to answer");
  const auto n_before = session.length() + std::int64_t(prompt_.size());
  sampler_.begin(n_before);
  if (options_.speculation.drafter)
    speculation_.emplace(options_.speculation, session.model(), sampler_,
                         sampling_with_end_tokens(options_, session.model().tokenizer()), n_before);
  // So that nothing is allocated while tokens come; a very long generation grows a few times instead.
  constexpr std::int64_t most_reserved = 1 << 16;
  const auto expected = std::size_t((std::min)({options_.max_new_tokens, room, most_reserved}));
  const auto reserve = [&] {
    result_.tokens.reserve(expected);
    result_.text.reserve(32 * expected);
    result_.timings.inter_token_seconds.reserve(expected);
    text_.reserve(1024);
  };
  naming_memory(reserve, "a generation of ", expected, " tokens");
  result_.timings.load_seconds = session.model().load_seconds();
  result_.timings.prompt_tokens = std::int64_t(prompt_.size());
  result_.seed = sampler_.seed();
  result_.sampling = describe(sampler_.chain());
}

// The logits that the next token is drawn from.
VITRINE_INLINE Logits Generation::advance() {
  if (const auto n = std::int64_t(result_.tokens.size()); n > 0) {
    const Token last = result_.tokens.back();
    const auto n_top = options_.log_probabilities ? 0 : sampler_.n_top();
    if (!speculation_ && n_top > 0) return session_->decode_top(last, n_top, options_.stop);
    if (!speculation_) return session_->decode(last, options_.stop);
    return speculation_->decode(*session_, last, options_.max_new_tokens - n, options_.stop);
  }
  const Stopwatch prefill;
  const auto logits = this->prefill();
  result_.timings.prefill_seconds = prefill.seconds();
  result_.timings.cached_tokens = session_->n_cached_tokens();
  return logits;
}

VITRINE_INLINE Logits Generation::prefill() {
  const Progress progress = [this](const ProgressEvent& event) {
    if (options_.progress) options_.progress(event);
    if (event.done < event.total && rules_.is_time_over(watch_.seconds())) throw generate_detail::TimeIsOver();
  };
  if (!options_.prompt_log_probabilities) return session_->prefill(prompt_, options_.stop, progress);
  const auto n_before = session_->length();
  Candidates candidates(session_->model().config().n_vocab);
  auto& all = result_.prompt_log_probabilities;
  const auto see = [&](std::int64_t position, const Logits& logits) {
    const auto next = std::size_t(position - n_before + 1);
    if (next == prompt_.size()) {
      last_of_prompt_.assign(logits.begin(), logits.end());
    } else {
      candidates.reset(logits);
      all.push_back(log_probabilities(candidates, prompt_[next], *options_.prompt_log_probabilities));
    }
  };
  session_->prefill_logits(prompt_, see, options_.stop, progress);
  return last_of_prompt_;
}

VITRINE_INLINE const GeneratedToken* Generation::next() {
  if (result_.reason != FinishReason::none) return nullptr;
  const auto length = session_->length();
  try {
    check(length == length_, ErrorKind::bad_argument,
          "generation: expected the session as the last step left it, with ", counted(length_, "token"), ", got ",
          length);
    const GeneratedToken* const token = step();
    length_ = session_->length();
    return token;
  } catch (const generate_detail::TimeIsOver&) {
    return finish(FinishReason::time_limit);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::cancelled) return finish(FinishReason::cancelled);
    fail(length);
    throw;
  } catch (...) {
    fail(length);
    throw;
  }
}

// Without this a second call would read the prompt, or the last token, once more.
VITRINE_INLINE void Generation::fail(std::int64_t length) {
  finish(FinishReason::failed);
  if (session_->length() > length) session_->truncate(length);  // the logits came, but no token could be drawn
}

VITRINE_INLINE const GeneratedToken* Generation::step() {
  const auto logits = advance();
  const Token id = speculation_ ? speculation_->sample(*session_, sampler_, logits)
                                : sampler_.sample(logits, session_->tokens(), session_->length());
  if (speculation_) result_.speculation = speculation_->result();
  const double now = watch_.seconds();
  auto& timings = result_.timings;
  timings.total_seconds = now;
  if (result_.tokens.empty())
    timings.ttft_seconds = now;
  else
    timings.inter_token_seconds.push_back(now - last_seconds_);
  last_seconds_ = now;

  text_.clear();
  const bool has_room = session_->length() < session_->context();
  const auto [reason, in_answer] = rules_.push(id, now, has_room, text_);
  result_.reason = reason;
  result_.text += text_;
  if (reason == FinishReason::stop_string) result_.stop_string = rules_.stop_string();
  token_ = {id, text_, std::int64_t(result_.tokens.size()), now};
  if (!in_answer) return text_.empty() ? nullptr : &token_;
  result_.tokens.push_back(id);
  if (options_.log_probabilities) {
    result_.log_probabilities.push_back(sampler_.log_probabilities(logits, id, *options_.log_probabilities));
    token_.log_probabilities = &result_.log_probabilities.back();
  }
  return &token_;
}

VITRINE_INLINE void Generation::cancel() {
  if (result_.reason == FinishReason::none) finish(FinishReason::cancelled);
}

VITRINE_INLINE const GeneratedToken* Generation::finish(FinishReason reason) {
  result_.reason = reason;
  rules_.finish(result_.text);
  return nullptr;
}

VITRINE_INLINE GenerateResult generate(Session& session, std::vector<Token> prompt, GenerateOptions options,
                                       const std::function<bool(const GeneratedToken&)>& on_token) {
  check(bool(on_token), ErrorKind::bad_argument, "on_token: expected a function, got an empty one");
  Generation generation(session, std::move(prompt), std::move(options));
  while (const GeneratedToken* token = generation.next())
    if (!on_token(*token)) generation.cancel();
  return generation.result();
}

VITRINE_NAMESPACE_END
