// Bodies of engine/memory_plan.hpp.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "vitrine/cache/ring.hpp"
#include "vitrine/engine/memory_plan.hpp"
#include "vitrine/model/transformer.hpp"

VITRINE_NAMESPACE_BEGIN

VITRINE_INLINE SessionOptions with_defaults(SessionOptions options, const ModelConfig& config) {
  constexpr std::int64_t default_context = 4096, largest_context = std::int64_t(1) << 31;
  check(options.n_context >= 0 && options.n_context <= largest_context, ErrorKind::bad_argument,
        "n_context: expected 1 to ", largest_context, ", or 0 for the default, got ", options.n_context);
  check(options.chunk >= 0, ErrorKind::bad_argument, "chunk: expected at least 1 token, or 0 for the default, got ",
        options.chunk);
  check(options.n_threads >= 0 && options.n_threads <= max_threads, ErrorKind::bad_argument,
        "n_threads: expected 1 to ", max_threads, ", or 0 for all, got ", options.n_threads);
  check(options.window >= 0 && options.window <= largest_context, ErrorKind::bad_argument, "window: expected 1 to ",
        largest_context, " tokens, or 0 for none, got ", options.window);
  check(options.sinks >= 0 && options.sinks <= attention_span && (options.sinks == 0 || options.window > 0),
        ErrorKind::bad_argument, "sinks: expected 0 to ", attention_span, " tokens beside a window, got ",
        options.sinks, " and a window of ", options.window);
  check(options.cache >= CacheKind::contiguous && options.cache <= CacheKind::ring, ErrorKind::bad_argument,
        "cache: expected contiguous, paged or ring, got CacheKind(", int(options.cache), ")");
  Transformer::kv_layout(config, options.kv_type).check_type();
  if (options.n_context == 0) options.n_context = (std::min)(config.n_context, default_context);
  if (options.n_threads == 0) options.n_threads = available_threads();
  // What one thread works on is to stay in its second-level cache; two meet half as often with twice as much.
  if (options.chunk == 0) options.chunk = options.n_threads == 1 ? 256 : 512;
  options.chunk = (std::min)(options.chunk, options.n_context);
  return options;
}

namespace plan_detail {

// K and V of one sequence, and the table of their blocks.
VITRINE_INLINE std::pair<std::size_t, std::size_t> cache_bytes(const ModelConfig& config,
                                                               const SessionOptions& options) {
  const auto layout = Transformer::kv_layout(config, options.kv_type);
  const auto all = std::size_t(KvLayout::blocks_for(options.n_context));
  if (options.cache == CacheKind::contiguous) return {all * layout.block_bytes(), all * sizeof(std::byte*)};
  if (options.cache == CacheKind::paged)
    return {all * layout.block_bytes(), (all + 1) * (sizeof(PoolBlock) + sizeof(std::byte*))};
  std::pair<std::size_t, std::size_t> sum{0, 0};
  std::vector<KvReach> seen;
  auto of_layer = layout;
  of_layer.n_layer = 1;
  for (const auto& reach : Transformer::kv_reach(config, options.limit())) {
    sum.first += std::size_t(RingCache::n_blocks(reach, options.n_context, options.chunk)) * of_layer.block_bytes();
    if (std::find(seen.begin(), seen.end(), reach) != seen.end()) continue;
    seen.push_back(reach);
    sum.second += all * sizeof(std::byte*);
  }
  return sum;
}

}  // namespace plan_detail

VITRINE_INLINE MemoryPlan plan(const ModelConfig& config, const SessionOptions& wanted, std::int64_t n_sequences) {
  check(n_sequences >= 1, ErrorKind::bad_argument, "n_sequences: expected at least 1, got ", n_sequences);
  const auto options = with_defaults(wanted, config);
  const auto n = std::size_t(n_sequences);
  const auto [kv, tables] = plan_detail::cache_bytes(config, options);
  MemoryPlan result;
  result.kv = n * kv;
  result.tables = n * tables;
  result.tokens = n * std::size_t(options.n_context) * sizeof(Token);
  result.logits = n * LogitRows::row_bytes(config.n_vocab);
  const CountedBytes count;
  const auto scratch =
      Transformer::make_scratch(config, options.chunk, options.n_context, options.n_threads, options.limit());
  result.scratch =
      count.bytes() + (scratch.positions.size() + scratch.sink_positions.size()) * sizeof(scratch.positions[0]);
  return result;
}

VITRINE_INLINE std::int64_t longest_context(const ModelConfig& config, const SessionOptions& options,
                                            std::size_t budget, std::int64_t n_sequences) {
  const auto fits = [&](std::int64_t n_blocks) {
    auto of_length = options;
    of_length.n_context = n_blocks * kv_block_tokens;
    return plan(config, of_length, n_sequences).total() <= budget;
  };
  std::int64_t most = 0, too_many = (std::int64_t(1) << 31) / kv_block_tokens;
  if (fits(too_many)) return too_many * kv_block_tokens;
  while (too_many - most > 1) {
    const auto middle = most + (too_many - most) / 2;
    (fits(middle) ? most : too_many) = middle;
  }
  return most * kv_block_tokens;
}

VITRINE_NAMESPACE_END
