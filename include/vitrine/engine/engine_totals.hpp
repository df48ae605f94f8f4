// The counters of an engine, for any thread. Internal to the engine.
//
//   engine's thread    requests, step, started, first_token, further_token, ended: says what happened
//   whoever asks       metrics(): an EngineMetrics of it (engine/metrics.hpp)
//
// Times are in seconds. Counts are since the engine was made, but for the numbers of running and waiting requests and
// of blocks, which are those of now. One lock guards all; it is held for a few additions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "vitrine/cache/block_pool.hpp"
#include "vitrine/core/config.hpp"
#include "vitrine/engine/pool_room.hpp"
#include "vitrine/engine/request.hpp"
#include "vitrine/engine/scheduler.hpp"

VITRINE_NAMESPACE_BEGIN

namespace engine_detail {

class EngineTotals {
 public:
  void requests(const Scheduler& scheduler) {
    const std::lock_guard lock(mutex_);
    counts_.num_requests_running = std::int64_t(scheduler.running().size());
    counts_.num_requests_waiting = std::int64_t(scheduler.n_waiting());
    counts_.num_preemptions_total = scheduler.n_preemptions();
  }
  void refused(std::int64_t n_requests) {
    const std::lock_guard lock(mutex_);
    counts_.request_refused_total += n_requests;
  }
  void step(std::int64_t n_tokens) {
    const std::lock_guard lock(mutex_);
    ++counts_.n_steps;
    counts_.n_step_tokens += n_tokens;
  }
  void guessed(std::int64_t n_guesses, std::int64_t n_accepted) {
    const std::lock_guard lock(mutex_);
    counts_.spec_decode_num_draft_tokens_total += n_guesses;
    counts_.spec_decode_num_accepted_tokens_total += n_accepted;
  }
  void started(std::int64_t n_prompt, std::int64_t n_cached, double queue_seconds) {
    const std::lock_guard lock(mutex_);
    counts_.prompt_tokens_total += n_prompt;
    counts_.prefix_cache_queries_total += n_prompt;
    counts_.prefix_cache_hits_total += n_cached;
    queue_.add(queue_seconds);
  }
  void first_token(double since_request, double since_start) {
    const std::lock_guard lock(mutex_);
    ++counts_.generation_tokens_total;
    first_token_.add(since_request);
    prefill_.add(since_start);
  }
  void further_token(double since_last) {
    const std::lock_guard lock(mutex_);
    ++counts_.generation_tokens_total;
    inter_token_.add(since_last);
  }
  void ended(FinishReason reason, double since_request, double decode_seconds) {
    const std::lock_guard lock(mutex_);
    ++(reason == FinishReason::cancelled ? counts_.request_cancelled_total
       : reason == FinishReason::failed  ? counts_.request_failed_total
                                         : counts_.request_success_total);
    e2e_.add(since_request);
    if (decode_seconds >= 0) decode_.add(decode_seconds);
  }

  EngineMetrics metrics(const BlockPool& pool, const PoolRoom& room) const {
    const auto blocks = pool.counts();
    const auto n_cached = (std::min)(room.n_idle(), blocks.n_used);  // may have changed in between
    const auto prefixes = room.prefix_counts();
    auto prefix_failure = room.prefix_failure();
    const std::lock_guard lock(mutex_);
    auto result = counts_;
    result.kv_blocks_used = blocks.n_used - n_cached;
    result.kv_blocks_cached = n_cached;
    result.kv_blocks_free = blocks.n_free + n_cached;
    result.kv_cache_usage_perc = double(result.kv_blocks_used) / double(blocks.max_blocks);
    result.n_blocks_copied = blocks.n_copied;
    result.n_blocks_evicted = prefixes.n_evicted;
    result.prefix_files_refused_total = prefixes.n_refused;
    result.prefix_files_not_written_total = prefixes.n_writes_failed;
    result.prefix_last_failure = std::move(prefix_failure);
    result.time_to_first_token_seconds = first_token_.summary();
    result.inter_token_latency_seconds = inter_token_.summary();
    result.e2e_request_latency_seconds = e2e_.summary();
    result.request_queue_time_seconds = queue_.summary();
    result.request_prefill_time_seconds = prefill_.summary();
    result.request_decode_time_seconds = decode_.summary();
    return result;
  }

 private:
  mutable std::mutex mutex_;
  EngineMetrics counts_;
  LatencyHistogram first_token_, inter_token_, e2e_, queue_, prefill_, decode_;
};

}  // namespace engine_detail

VITRINE_NAMESPACE_END
