#pragma once

#include <algorithm>

#include "vitrine/core/rounding.hpp"
#include "vitrine/ops/attention.hpp"

VITRINE_NAMESPACE_BEGIN

namespace attention_op {

inline constexpr std::int64_t max_split_tokens = 8;  // more tokens than this make enough tiles of their own

inline AttentionCache cache_of(const KvView& cache, std::int64_t kv_head) {
  const std::size_t k_offset = cache.k_offset + std::size_t(kv_head) * cache.k_head_bytes();
  return {.k_type = cache.types.k,
          .v_type = cache.types.v,
          .blocks = cache.blocks,
          .k_offset = k_offset,
          .v_offset = cache.v_offset + std::size_t(kv_head) * cache.v_head_bytes(),
          .next_k_offset = kv_head + 1 < cache.n_kv_head ? k_offset + cache.k_head_bytes() : k_offset};
}

// How the rows of one K/V head are cut into tiles of attention_max_rows or fewer.
struct Tiles {
  std::int64_t n_rows, n_tiles;
  std::int64_t begin(std::int64_t i) const { return n_rows * i / n_tiles; }
};

}  // namespace attention_op

VITRINE_INLINE void AttentionScratch::reserve(const AttentionShape& shape, std::int64_t max_tokens,
                                              std::int64_t max_context, int n_threads) {
  using namespace attention_op;
  const std::int64_t thread_floats = round_up(attention_scratch_floats(shape.head_dim), 16);
  if (thread_floats > thread_floats_ || n_threads > n_threads_) {
    thread_floats_ = (std::max)(thread_floats_, thread_floats);
    n_threads_ = (std::max)(n_threads_, n_threads);
    threads_ = AlignedBytes(std::size_t(thread_floats_ * n_threads_) * sizeof(float));
  }
  // One span more than the context has: a window may begin and end in the middle of one.
  const std::int64_t keys = shape.window > 0 ? (std::min)(max_context, shape.window + max_split_tokens) : max_context;
  const std::int64_t n_spans = divide_up(keys, attention_span) + 1 + (shape.sinks > 0 ? 1 : 0);
  const std::int64_t n_rows = shape.n_head * (std::min)(max_tokens, max_split_tokens);
  const std::int64_t partial_floats = n_rows * n_spans * attention_partial_floats(shape.head_dim);
  if (partial_floats > partial_floats_) {
    partial_floats_ = partial_floats;
    partials_ = AlignedBytes(std::size_t(2 * partial_floats_) * sizeof(float));
  }
}

VITRINE_INLINE void store_kv(Worker& worker, const KernelTable& kernels, const KvView& cache, std::int64_t pos0,
                             TensorView<const float, 2> k, TensorView<const float, 2> v) {
  using namespace attention_op;
  const std::int64_t head_dim = cache.head_dim, n_tokens = k.size(0);
  check(k.size(1) == cache.n_kv_head * head_dim && v.shape() == k.shape(), ErrorKind::bad_argument, "store_kv: k is [",
        k.size(0), ", ", k.size(1), "], v [", v.size(0), ", ", v.size(1), "], expected [", n_tokens, ", ",
        cache.n_kv_head * head_dim, "]");
  // Sixteen tokens at a time, so that no two threads write into the same cache line of K.
  const std::int64_t first_panel = pos0 / 16, n_panels = divide_up(pos0 + n_tokens, 16) - first_panel;
  const Worker::Range own = worker.share(n_panels * cache.n_kv_head);
  for (std::int64_t task = own.begin; task < own.end; ++task) {
    const std::int64_t head = task / n_panels, panel = first_panel + task % n_panels;
    const std::int64_t begin_at = (std::max)(16 * panel, pos0), t = begin_at - pos0;
    const std::int64_t n = (std::min)(16 * (panel + 1), pos0 + n_tokens) - begin_at;
    kernels.attention.store(cache_of(cache, head), begin_at, n, head_dim, &k(t, head * head_dim), k.strides()[0],
                            &v(t, head * head_dim), v.strides()[0]);
  }
}

VITRINE_INLINE void attention(Worker& worker, const KernelTable& kernels, const AttentionShape& shape,
                              TensorView<const float, 2> q, const KvView& cache, std::int64_t pos0,
                              TensorView<float, 2> out, AttentionScratch& scratch, TensorView<const float, 2> q_sink) {
  using namespace attention_op;
  const std::int64_t n_tokens = q.size(0), head_dim = shape.head_dim, group = shape.group();
  check(shape.n_head == group * shape.n_kv_head && head_dim % 2 == 0, ErrorKind::bad_argument,
        "attention: ", shape.n_head, " heads, ", shape.n_kv_head, " K/V heads, width ", head_dim);
  check(q.size(1) == shape.n_head * head_dim && out.shape() == q.shape(), ErrorKind::bad_argument, "attention: q is [",
        q.size(0), ", ", q.size(1), "], out [", out.size(0), ", ", out.size(1), "], expected rows of ",
        shape.n_head * head_dim);
  check(cache.n_kv_head == shape.n_kv_head && cache.head_dim == head_dim, ErrorKind::bad_argument,
        "attention: the cache has ", cache.n_kv_head, " heads of ", cache.head_dim, ", expected ", shape.n_kv_head,
        " of ", head_dim);
  check(scratch.thread_floats() >= attention_scratch_floats(head_dim) && scratch.n_threads() >= worker.n_threads(),
        ErrorKind::bad_argument, "attention: scratch was not reserved for heads of ", head_dim, " and ",
        worker.n_threads(), " threads");
  check(shape.sinks >= 0 && shape.sinks <= attention_span && (shape.sinks == 0 || shape.window > 0),
        ErrorKind::bad_argument, "attention: expected sinks of 0 to ", attention_span,
        " tokens, and a window beside them, got ", shape.sinks, " and a window of ", shape.window);
  check(shape.sinks == 0 || (q_sink.shape() == q.shape() && q_sink.strides() == q.strides()), ErrorKind::bad_argument,
        "attention: expected a second query for the sinks, shaped as q");
  if (n_tokens == 0) return;

  const auto rows_of = [&](std::int64_t kv_head, std::int64_t first, std::int64_t last) {
    const std::int64_t column = kv_head * group * head_dim;
    return AttentionRows{.q = q.data() + column,
                         .q_stride = q.strides()[0],
                         .out = out.data() + column,
                         .out_stride = out.strides()[0],
                         .first_row = first,
                         .n_rows = last - first,
                         .group = group,
                         .head_dim = head_dim,
                         .pos0 = pos0,
                         .window = shape.window,
                         .scale = shape.scale,
                         .sinks = shape.sinks,
                         .q_sink = shape.sinks > 0 ? q_sink.data() + column : nullptr};
  };
  float* own = scratch.thread(worker.thread());
  Tiles tiles{n_tokens * group, divide_up(n_tokens * group, attention_max_rows)};
  const std::int64_t n_kv_head = shape.n_kv_head, n_threads = worker.n_threads();
  const std::int64_t first_span = shape.first_key(pos0) / attention_span;
  const std::int64_t n_sink_spans = shape.sinks > 0 ? 1 : 0;
  const std::int64_t n_window_spans = divide_up(pos0 + n_tokens, attention_span) - first_span;
  const std::int64_t n_spans = n_sink_spans + n_window_spans;
  const std::int64_t partial = attention_partial_floats(head_dim);

  // Too few tiles to share out, but several spans: one task per span.
  const bool few_tiles = n_kv_head * tiles.n_tiles < 3 * n_threads;
  if (n_threads > 1 && few_tiles && n_spans > 1 &&
      shape.n_head * n_tokens * n_spans * partial <= scratch.partial_floats()) {
    float* partials = scratch.partials(worker.next_turn());
    const std::int64_t span_stride = tiles.n_rows * partial;  // [kv_head][span][row][partial]
    // Neighbouring spans stay with one thread, which asks for the next one's keys while it mixes this one's values.
    const std::int64_t n_tasks = n_kv_head * n_spans * tiles.n_tiles;
    worker.for_chunks(n_tasks, divide_up(n_tasks, 6 * n_threads), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t task = begin; task < end; ++task) {
        const std::int64_t tile = task % tiles.n_tiles, place = task / tiles.n_tiles;
        const std::int64_t kv_head = place / n_spans, first = tiles.begin(tile), index = place % n_spans;
        const std::int64_t span = index < n_sink_spans ? sink_span : first_span + index - n_sink_spans;
        kernels.attention.attend_span(kernels.attention.integer_scores, rows_of(kv_head, first, tiles.begin(tile + 1)),
                                      cache_of(cache, kv_head), span, partials + place * span_stride + first * partial,
                                      own);
      }
    });
    worker.sync();
    const std::int64_t chunk = divide_up(tiles.n_rows, n_threads);
    const std::int64_t n_parts = divide_up(tiles.n_rows, chunk);
    worker.for_chunks(n_kv_head * n_parts, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t task = begin; task < end; ++task) {
        const std::int64_t kv_head = task / n_parts, first = task % n_parts * chunk;
        kernels.attention.fold(rows_of(kv_head, first, (std::min)(first + chunk, tiles.n_rows)), first_span,
                               n_window_spans, partials + kv_head * n_spans * span_stride + first * partial,
                               span_stride, own);
      }
    });
    return;
  }

  if (few_tiles) {  // smaller tiles, so that every thread gets some; of fewer than 8 rows only if a thread had none
    const std::int64_t enough = divide_up(3 * n_threads, n_kv_head), one_each = divide_up(n_threads, n_kv_head);
    const std::int64_t worthwhile = (std::max)(divide_up(tiles.n_rows, 8), (std::min)(one_each, tiles.n_rows));
    tiles.n_tiles = (std::max)(tiles.n_tiles, (std::min)(enough, worthwhile));
  }
  const auto attend = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) {
      // Later rows see more keys: the longest tasks first, so that threads end together.
      const std::int64_t kv_head = task % n_kv_head, tile = tiles.n_tiles - 1 - task / n_kv_head;
      kernels.attention.attend(kernels.attention.integer_scores,
                               rows_of(kv_head, tiles.begin(tile), tiles.begin(tile + 1)), cache_of(cache, kv_head),
                               own);
    }
  };
  const std::int64_t n_tasks = n_kv_head * tiles.n_tiles;
  if (n_tokens > 1) return worker.for_chunks(n_tasks, 1, attend);
  const Worker::Range share = worker.share(n_tasks);  // short and alike: not worth asking how far the others are
  attend(share.begin, share.end);
}

VITRINE_NAMESPACE_END
