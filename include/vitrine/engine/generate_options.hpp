// What may be asked of a generation, and why one ended.
//
//   generate(session, prompt, {.sampling = {.temperature = 0.8}, .max_new_tokens = 64, .stop_strings = {"\n"}})
//
// The same options serve generate() (engine/generate.hpp) and a request to an engine (engine/request.hpp). Lengths are
// in tokens, times in seconds. What is out of range is refused with Error::bad_argument naming the option, before
// anything is computed. Which of several reasons to end comes first: engine/stop_rules.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/core/progress.hpp"
#include "vitrine/core/token.hpp"
#include "vitrine/engine/speculation_options.hpp"
#include "vitrine/sample/sampling_options.hpp"

VITRINE_NAMESPACE_BEGIN

struct GenerateOptions {
  SamplingOptions sampling{};
  std::int64_t max_new_tokens = 256;
  bool ignore_end = false;                          // no end token is ever chosen: all are banned, extra_end, too
  std::vector<Token> extra_end{};                   // end this generation like the model's own end tokens
  std::vector<std::string> stop_strings{};          // end it where they appear in its text, which goes up to them
  double time_limit = 0;                            // seconds from the request on; 0: none
  SpeculationOptions speculation{};                 // guesses, several tokens per pass
  std::stop_token stop{};                           // asked once per layer
  Progress progress{};                              // of the prompt's prefill
  std::optional<std::int64_t> log_probabilities{};  // of each token, with so many of the most probable ones
  std::optional<std::int64_t> prompt_log_probabilities{};  // of the prompt's tokens from the second on, likewise
};

enum class FinishReason {
  none,          // not finished
  end_token,     // the model ended it
  stop_string,   // one of stop_strings came
  length,        // max_new_tokens
  context_full,  // the session holds no more tokens
  time_limit,    // the time is over
  cancelled,     // by the stop token, or the caller's callback
  failed,        // by the exception that next() threw
};

inline const char* finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::none: return "none";
    case FinishReason::end_token: return "end_token";
    case FinishReason::stop_string: return "stop_string";
    case FinishReason::length: return "length";
    case FinishReason::context_full: return "context_full";
    case FinishReason::time_limit: return "time_limit";
    case FinishReason::cancelled: return "cancelled";
    case FinishReason::failed: return "failed";
  }
  return "unknown";
}

VITRINE_NAMESPACE_END
