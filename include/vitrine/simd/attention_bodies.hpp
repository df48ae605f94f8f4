// Bodies of attention_kernels.hpp, written over the lanes: spans in order, folded left to right. What happens inside a
// span is in attention_span.hpp, the register tiles below that in attention_tiles.hpp.
//
//   attend       all spans of the rows, folded as they come (prefill, and decode by one thread)
//   attend_span  one span, its result kept: maximum, sum, undivided mix [head_dim] (decode by several threads)
//   fold         the kept results of all spans in order: the same steps as attend takes, hence the same bits
//
// The fold is the online softmax (Milakov and Gimelshein 2018, arXiv 1805.02867); ops/attention.hpp has the formulas.
#pragma once

#include "vitrine/simd/attention_kernels.hpp"
#include "vitrine/simd/attention_span.hpp"
#include "vitrine/simd/attention_store.hpp"
#include "vitrine/simd/lanes.hpp"
#include "vitrine/simd/vmath.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

namespace attention_detail {

inline const float* query_of(const AttentionRows& rows, std::int64_t row) {
  const std::int64_t index = rows.first_row + row;
  return rows.q + index / rows.group * rows.q_stride + index % rows.group * rows.head_dim;
}
inline float* out_of(const AttentionRows& rows, std::int64_t row) {
  const std::int64_t index = rows.first_row + row;
  return rows.out + index / rows.group * rows.out_stride + index % rows.group * rows.head_dim;
}

// For quantised keys the queries are quantised, too.
inline void pack_integer_queries(DType key_type, std::int32_t key_offset, const AttentionRows& rows, float* memory) {
  const IntegerQueries queries(memory, key_type, rows.head_dim);
  for_groups(rows, [&](Group group) {
    for (std::int64_t r = 0; r < group.n; ++r) {
      pack_integer_query(key_offset, query_of(rows, group.first + r), rows.head_dim, rows.scale, queries, group.first,
                         group.n, r);
    }
  });
}

// Each group's queries as [head_dim][rows of the group], which the score tile reads in one stream. Sixteen lanes are
// stored where a group has fewer rows; what is too much is overwritten by the next store, or falls into slack.
inline void pack_float_queries(const AttentionRows& rows, float* queries) {
  for_groups(rows, [&](Group group) {
    const std::int64_t first = group.first, n = group.n;
    float* packed = queries + first * rows.head_dim;
    for (std::int64_t d = 0; d < rows.head_dim; d += 16) {
      const int n_columns = int(least(rows.head_dim - d, 16));
      f32x16 square[16];
      for (int r = 0; r < 16; ++r) {
        if (r >= n) {
          square[r] = zero();
        } else if (n_columns == 16) {
          square[r] = load(query_of(rows, first + r) + d);
          if (first + n + r < rows.n_rows) __builtin_prefetch(query_of(rows, first + n + r) + d);  // the next group's
        } else {
          square[r] = load_part(query_of(rows, first + r) + d, n_columns);
        }
      }
      transpose(square);
      float columns[16][16];
      for (int c = 0; c < 16; ++c) store(columns[c], square[c]);
      for (int c = 0; c < n_columns; ++c) store(packed + (d + c) * n, load(columns[c]));
    }
  });
}

// Those that look at this span.
inline void pack_queries(AttentionRows rows, const AttentionCache& cache, std::int64_t span, const Scratch& scratch) {
  if (span == sink_span) rows.q = rows.q_sink;
  switch (cache.k_type) {
    case DType::int8:
      return pack_integer_queries(DType::int8, scratch.integer_scores.int8_offset, rows, scratch.queries);
    case DType::int4: return pack_integer_queries(DType::int4, KeysInt4::offset, rows, scratch.queries);
    default: return pack_float_queries(rows, scratch.queries);
  }
}

// One row's running result.
struct Running {
  float maximum = 0, sum = 0;
  bool empty = true;
};

// M' = max(M, m), a = exp(M - M'), b = exp(m - M'), l = fma(l, a, l_j b), o likewise; the first span is copied.
inline void fold_row(Running& running, float* total, float maximum, float sum, const float* mix, std::int64_t padded) {
  if (running.empty) {
    running = {maximum, sum, false};
    for (std::int64_t d = 0; d < padded; d += 16) store(total + d, load(mix + d));
    return;
  }
  const f32x16 before = broadcast(running.maximum), here = broadcast(maximum), top = max(before, here);
  const f32x16 a = exp_not_positive(before - top), b = exp_not_positive(here - top);
  for (std::int64_t d = 0; d < padded; d += 16) store(total + d, fma(load(total + d), a, load(mix + d) * b));
  float lanes[16];
  store(lanes, top);
  running.maximum = lanes[0];
  store(lanes, fma(broadcast(running.sum), a, broadcast(sum) * b));
  running.sum = lanes[0];
}

inline void write_row(const AttentionRows& rows, std::int64_t row, const Running& running, const float* total) {
  float* out = out_of(rows, row);
  const f32x16 sum = broadcast(running.sum);
  for (std::int64_t d = 0; d < rows.head_dim; d += 16) {
    const f32x16 value = running.empty ? zero() : load(total + d) / sum;  // a row that saw no key: zeros
    store_part(out + d, value, int(least(rows.head_dim - d, 16)));
  }
}

inline void attend(const IntegerScores& integer, const AttentionRows& rows, const AttentionCache& cache,
                   float* scratch_base) {
  Scratch scratch(integer, scratch_base, rows.head_dim);
  Running running[attention_max_rows];
  const auto fold_span = [&](std::int64_t span) {
    span_of(rows, cache, span, scratch, [&](std::int64_t row, std::int64_t in_group) {
      fold_row(running[row], scratch.total + row * scratch.padded, scratch.maximum[in_group], scratch.sum[in_group],
               scratch.mix + in_group * scratch.padded, scratch.padded);
    });
  };
  if (rows.sinks > 0) {
    pack_queries(rows, cache, sink_span, scratch);
    fold_span(sink_span);
  }
  const std::int64_t first_key = rows.window > 0 ? most(position_of(rows, 0) - rows.window + 1, 0) : 0;
  const std::int64_t last_key = position_of(rows, rows.n_rows - 1);
  pack_queries(rows, cache, first_key / span_keys, scratch);
  for (std::int64_t span = first_key / span_keys; span * span_keys <= last_key; ++span) fold_span(span);
  for (std::int64_t row = 0; row < rows.n_rows; ++row) {
    write_row(rows, row, running[row], scratch.total + row * scratch.padded);
  }
}

inline void attend_span(const IntegerScores& integer, const AttentionRows& rows, const AttentionCache& cache,
                        std::int64_t span, float* partials, float* scratch_base) {
  Scratch scratch(integer, scratch_base, rows.head_dim);
  pack_queries(rows, cache, span, scratch);
  span_of(rows, cache, span, scratch, [&](std::int64_t row, std::int64_t in_group) {
    float* partial = partials + row * attention_partial_floats(rows.head_dim);
    for (std::int64_t d = 0; d < scratch.padded; d += 16) {
      store(partial + d, load(scratch.mix + in_group * scratch.padded + d));
    }
    partial[scratch.padded] = scratch.maximum[in_group];
    partial[scratch.padded + 1] = scratch.sum[in_group];
  });
}

inline void fold(const AttentionRows& rows, std::int64_t first_span, std::int64_t n_spans, const float* partials,
                 std::int64_t span_stride, float* scratch_base) {
  const Scratch scratch({}, scratch_base, rows.head_dim);
  for (std::int64_t row = 0; row < rows.n_rows; ++row) {
    Running running;
    const std::int64_t n_sink_spans = rows.sinks > 0 ? 1 : 0;
    for (std::int64_t i = 0; i < n_sink_spans + n_spans; ++i) {
      if (visible_keys(rows, row, i < n_sink_spans ? sink_span : first_span + i - n_sink_spans).none()) continue;
      const float* partial = partials + i * span_stride + row * attention_partial_floats(rows.head_dim);
      fold_row(running, scratch.total, partial[scratch.padded], partial[scratch.padded + 1], partial, scratch.padded);
    }
    write_row(rows, row, running, scratch.total);
  }
}

}  // namespace attention_detail

constexpr AttentionKernels attention_kernels() {
  return {.integer_scores = attention_detail::integer_scores,
          .attend = attention_detail::attend,
          .attend_span = attention_detail::attend_span,
          .fold = attention_detail::fold,
          .store = attention_detail::store_keys_and_values};
}

VITRINE_ISA_NAMESPACE_END
