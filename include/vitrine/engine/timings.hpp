// Where the time of a request goes.
//
//   total = TTFT + n * TPOT     TTFT: time to first token, mostly prefill (compute-bound)
//                               TPOT: time per output token, the mean inter-token latency of decode (memory-bound)
// All times in seconds.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

struct Timings {
  double load_seconds = 0;     // of the model, once
  double prefill_seconds = 0;  // the prompt's pass
  double ttft_seconds = 0;     // from the request to its first token
  double total_seconds = 0;    // from the request to the last token drawn
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;           // of these, that were found among the prefixes and not computed
  std::vector<double> inter_token_seconds;  // from each token drawn to the next; the end token counts as drawn

  double tpot_seconds() const {
    double sum = 0;
    for (const double seconds : inter_token_seconds) sum += seconds;
    return inter_token_seconds.empty() ? 0 : sum / double(inter_token_seconds.size());
  }
  double prefill_tokens_per_second() const {
    return prefill_seconds > 0 ? double(prompt_tokens - cached_tokens) / prefill_seconds : 0;
  }
  double decode_tokens_per_second() const { return tpot_seconds() > 0 ? 1 / tpot_seconds() : 0; }
};

VITRINE_NAMESPACE_END
