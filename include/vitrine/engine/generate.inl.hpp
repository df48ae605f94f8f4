// Bodies of engine/generate.hpp.
#pragma once

#include <algorithm>
#include <utility>

#include "vitrine/engine/generate.hpp"

VITRINE_NAMESPACE_BEGIN

VITRINE_INLINE const char* finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::none: return "none";
    case FinishReason::end_token: return "end_token";
    case FinishReason::length: return "length";
    case FinishReason::context_full: return "context_full";
    case FinishReason::cancelled: return "cancelled";
    case FinishReason::failed: return "failed";
  }
  return "unknown";
}

VITRINE_INLINE Generation::Generation(Session& session, std::vector<Token> prompt, GenerateOptions options)
    : session_(&session),
      prompt_(std::move(prompt)),
      options_(std::move(options)),
      sampler_(options_.sampling, session.model().config().n_vocab),
      decoder_(session.model().tokenizer()) {
  check(options_.max_new_tokens >= 1, ErrorKind::bad_argument, "max_new_tokens: expected at least 1, got ",
        options_.max_new_tokens);
  check(!prompt_.empty(), ErrorKind::bad_argument, "prompt: expected at least 1 token, got none");
  for (const Token token : options_.extra_end)
    check(token >= 0 && token < session.model().config().n_vocab, ErrorKind::bad_argument,
          "extra_end: expected ids from 0 to ", session.model().config().n_vocab - 1, ", got ", token);
  const auto room = session.context() - session.length();
  check(std::int64_t(prompt_.size()) < room, ErrorKind::context_full, "the prompt of ",
        counted(std::int64_t(prompt_.size()), "token"), " does not fit: the context holds ",
        counted(session.context(), "token"), ", ", session.length(), session.length() == 1 ? " is" : " are",
        " in use, and max_new_tokens is ", options_.max_new_tokens,
        "; a prompt is never cut, and at least 1 place must be left to answer");
  decoder_.continue_after(prompt_.back());
  // So that nothing is allocated while tokens come; a very long generation grows a few times instead.
  constexpr std::int64_t most_reserved = 1 << 16;
  const auto expected = std::size_t((std::min)({options_.max_new_tokens, room, most_reserved}));
  const auto reserve = [&] {
    result_.tokens.reserve(expected);
    result_.text.reserve(32 * expected);
    result_.timings.inter_token_seconds.reserve(expected);
    text_.reserve(1024);
  };
  naming_memory(reserve, "a generation of ", counted(std::int64_t(expected), "token"));
  result_.timings.load_seconds = session.model().load_seconds();
  result_.timings.prompt_tokens = std::int64_t(prompt_.size());
  result_.seed = sampler_.seed();
  result_.sampling = describe(sampler_.chain());
}

// The logits that the next token is drawn from.
VITRINE_INLINE std::span<const float> Generation::advance() {
  if (!result_.tokens.empty()) return session_->decode(result_.tokens.back(), options_.stop);
  const Stopwatch prefill;
  const auto logits = session_->prefill(prompt_, options_.stop, options_.progress);
  result_.timings.prefill_seconds = prefill.seconds();
  return logits;
}

VITRINE_INLINE const GeneratedToken* Generation::next() {
  if (result_.reason != FinishReason::none) return nullptr;
  if (std::int64_t(result_.tokens.size()) == options_.max_new_tokens) return finish(FinishReason::length);
  if (session_->length() == session_->context()) return finish(FinishReason::context_full);
  const auto length = session_->length();
  try {
    return step();
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
  const Token id = sampler_.sample(logits, session_->tokens(), session_->length());
  const double now = watch_.seconds();
  auto& timings = result_.timings;
  timings.total_seconds = now;
  if (result_.tokens.empty())
    timings.ttft_seconds = now;
  else
    timings.inter_token_seconds.push_back(now - last_seconds_);
  last_seconds_ = now;
  if (ends(id)) return finish(FinishReason::end_token);

  text_.clear();
  decoder_.push(id, text_);
  result_.tokens.push_back(id);
  result_.text += text_;
  token_ = {id, text_, std::int64_t(result_.tokens.size()) - 1, now};
  return &token_;
}

VITRINE_INLINE void Generation::cancel() {
  if (result_.reason == FinishReason::none) finish(FinishReason::cancelled);
}

// Bytes of an unfinished character become U+FFFD in the result's text; they were in no token's text.
VITRINE_INLINE const GeneratedToken* Generation::finish(FinishReason reason) {
  result_.reason = reason;
  result_.text += decoder_.finish();
  return nullptr;
}

VITRINE_INLINE bool Generation::ends(Token token) const {
  if (options_.ignore_end) return false;
  return session_->model().tokenizer().is_end(token) ||
         std::find(options_.extra_end.begin(), options_.extra_end.end(), token) != options_.extra_end.end();
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
