// What is counted while requests run, under the names that vLLM gives them (there with the prefix "vllm:").
//
// Latencies are told as mean and percentiles: half of all are below p50, 95 % below p95, 99 % below p99. Those of one
// request are exact; those of an engine come from a histogram whose buckets grow by 5 %, so that they cost the same
// memory after a million requests as after one.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/core/rounding.hpp"

VITRINE_NAMESPACE_BEGIN

struct LatencySummary {  // in seconds
  std::int64_t count = 0;
  double sum = 0, mean = 0, p50 = 0, p95 = 0, p99 = 0, largest = 0;
};

// Percentile p is the smallest value that at least p % of all do not exceed (nearest rank).
inline LatencySummary summarise(std::span<const double> seconds) {
  LatencySummary result;
  if (seconds.empty()) return result;
  std::vector<double> sorted(seconds.begin(), seconds.end());
  std::sort(sorted.begin(), sorted.end());
  const auto percentile = [&](std::size_t p) { return sorted[divide_up(sorted.size() * p, 100) - 1]; };
  result.count = std::int64_t(sorted.size());
  for (const double value : sorted) result.sum += value;
  result.mean = result.sum / double(sorted.size());
  result.p50 = percentile(50);
  result.p95 = percentile(95);
  result.p99 = percentile(99);
  result.largest = sorted.back();
  return result;
}

// Latencies from a microsecond to hours, in buckets that grow by 5 %.
class LatencyHistogram {
 public:
  void add(double seconds) {
    const auto& limits = upper_limits();
    const auto bucket = std::lower_bound(limits.begin(), limits.end() - 1, seconds) - limits.begin();
    ++counts_[std::size_t(bucket)];
    ++count_;
    sum_ += seconds;
    largest_ = (std::max)(largest_, seconds);
  }
  // Percentiles are upper limits of buckets, hence up to 5 % too large.
  LatencySummary summary() const {
    const auto percentile = [&](std::int64_t p) {
      std::int64_t left = divide_up(count_ * p, 100);
      for (std::size_t i = 0; i < n_buckets; ++i)
        if ((left -= counts_[i]) <= 0) return (std::min)(upper_limits()[i], largest_);
      return largest_;
    };
    if (count_ == 0) return {};
    return {count_, sum_, sum_ / double(count_), percentile(50), percentile(95), percentile(99), largest_};
  }

 private:
  static constexpr std::size_t n_buckets = 480;
  static const std::array<double, n_buckets>& upper_limits() {
    static const auto limits = [] {
      std::array<double, n_buckets> values{};
      double limit = 1e-6;
      for (auto& value : values) {
        value = limit;
        limit *= 1.05;
      }
      return values;
    }();
    return limits;
  }
  std::array<std::int64_t, n_buckets> counts_{};
  std::int64_t count_ = 0;
  double sum_ = 0, largest_ = 0;
};

// Of one request; its other times are in Timings.
struct RequestMetrics {
  double queue_seconds = 0;                                // until it first ran
  std::int64_t cached_tokens = 0;                          // of the prompt, whose K and V were there already
  std::int64_t n_preemptions = 0;                          // how often it had to start over
  std::int64_t n_draft_tokens = 0, n_accepted_tokens = 0;  // speculation: guesses computed, guesses that were right
  LatencySummary inter_token;
};

// Of an engine since it began, or (the first group) at this moment.
struct EngineMetrics {
  std::int64_t num_requests_running = 0, num_requests_waiting = 0;
  std::int64_t kv_blocks_used = 0, kv_blocks_free = 0;  // of 64 tokens each: in use by requests, to be had
  std::int64_t kv_blocks_cached = 0;                    // of the free ones, with prefixes that requests may begin with
  double kv_cache_usage_perc = 0;                       // used share, 0 to 1

  std::int64_t prompt_tokens_total = 0;      // of requests that were started
  std::int64_t generation_tokens_total = 0;  // drawn, end tokens among them
  std::int64_t request_success_total = 0;    // ended by themselves: end token, stop string, length, full context
  std::int64_t request_cancelled_total = 0, request_failed_total = 0;
  std::int64_t request_refused_total = 0;  // at submit
  std::int64_t num_preemptions_total = 0;
  std::int64_t prefix_cache_queries_total = 0, prefix_cache_hits_total = 0;  // tokens asked for, tokens found
  std::int64_t spec_decode_num_draft_tokens_total = 0, spec_decode_num_accepted_tokens_total = 0;
  std::int64_t n_steps = 0;           // passes: each reads the weights once, for all requests in it
  std::int64_t n_step_tokens = 0;     // computed in them
  std::int64_t n_blocks_copied = 0;   // copy on write
  std::int64_t n_blocks_evicted = 0;  // of prefixes, that made room
  std::int64_t prefix_files_refused_total = 0, prefix_files_not_written_total = 0;  // of PrefixOptions::folder
  std::string prefix_last_failure;  // the file that was refused or not written last, and why
  LatencySummary time_to_first_token_seconds, inter_token_latency_seconds, e2e_request_latency_seconds;
  LatencySummary request_queue_time_seconds, request_prefill_time_seconds, request_decode_time_seconds;
};

VITRINE_NAMESPACE_END
