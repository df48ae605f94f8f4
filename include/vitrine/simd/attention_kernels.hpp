// Kernel entries: attention over a KV cache in blocks of 64 tokens (laid out as simd/kv_format.hpp describes).
//
// One call works on rows of ONE K/V head: row i is query head i mod group of token i / group, so that every row of the
// call shares the same K and V. The numeric unit is the span of 256 keys [256 j, 256 j + 256); ops/attention.hpp gives
// the formula. How rows are grouped into calls changes no bit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vitrine/core/config.hpp"
#include "vitrine/core/dtype.hpp"
#include "vitrine/core/rounding.hpp"

VITRINE_NAMESPACE_BEGIN

// K and V of one head.
struct AttentionCache {
  DType k_type, v_type;       // f32, f16, bf16, int8 or int4
  std::byte* const* blocks;   // blocks of 64 tokens; only those that hold a visible key are touched
  std::size_t k_offset;       // bytes from a block's start to this head's K
  std::size_t v_offset;       // ... and V
  std::size_t next_k_offset;  // ... and to the K that the caller is likely to want next; k_offset if to none
};

struct AttentionRows {
  const float* q;         // q + token * q_stride + head * head_dim; head 0 is the first of the group
  std::int64_t q_stride;  // floats from a token to the next
  float* out;             // likewise
  std::int64_t out_stride;
  std::int64_t first_row, n_rows;  // rows [first_row, first_row + n_rows), at most attention_max_rows of them
  std::int64_t group, head_dim;
  std::int64_t pos0;    // position of token 0: its rows see keys (pos0 - window, pos0]
  std::int64_t window;  // 0: no limit
  float scale;
  std::int64_t sinks;   // with a window: keys [0, sinks) are seen, too, by the queries q_sink
  const float* q_sink;  // as q, but rotated for the sinks; not read unless sinks > 0
};

// The sinks are a span of their own, the first one; the others leave these keys out.
inline constexpr std::int64_t sink_span = -1;

inline constexpr std::int64_t attention_max_rows = 96;

VITRINE_FORCE_INLINE constexpr std::int64_t attention_padded(std::int64_t head_dim) { return round_up(head_dim, 16); }
// Floats of one row's result of one span: the mix [attention_padded(head_dim)], the maximum, the sum, padding.
VITRINE_FORCE_INLINE constexpr std::int64_t attention_partial_floats(std::int64_t head_dim) {
  return attention_padded(head_dim) + 16;
}
// Floats that a call needs as scratch, 64-byte aligned: packed queries and running results of all rows; scores, weights
// and mix of one group of rows (16 at most); a span of V for widths that are no whole vectors.
VITRINE_FORCE_INLINE constexpr std::int64_t attention_scratch_floats(std::int64_t head_dim) {
  const std::int64_t padded = attention_padded(head_dim);
  return attention_max_rows * 2 * padded + 16 + 16 * (2 * 272 + padded) + (head_dim % 16 == 0 ? 0 : 256 * padded);
}

// Panels of quantised keys that lie side by side, and the quantised rows that they are multiplied with.
struct IntegerTile {
  const std::uint8_t *k, *ahead;
  const std::uint16_t* scales;  // [panels][n_groups][16]
  const std::int8_t* q;         // [d / 4][n][4]
  const std::int32_t* starts;   // [n_groups][n]: the offset of the keys taken back
  const float* factors;         // [n]
  std::int64_t n;               // rows of queries
  std::int64_t n_rows, n_groups;
};

// The scores of such panels, scores[row][16 panel + lane]: all that depends on how the CPU multiplies bytes. So it is
// given to the entries below, which sets that differ in nothing else have in common.
struct IntegerScores {
  void (*int8)(const IntegerTile& tile, std::int64_t n_panels, float* scores);
  void (*int4)(const IntegerTile& tile, std::int64_t n_panels, float* scores);
  std::int32_t int8_offset;  // what is added to an INT8 key before it is multiplied
};

struct AttentionKernels {
  IntegerScores integer_scores;  // the first argument of attend and attend_span

  // All spans, folded: writes out.
  void (*attend)(const IntegerScores& integer_scores, const AttentionRows& rows, const AttentionCache& cache,
                 float* scratch);

  // One span, or sink_span: writes partials [n_rows][attention_partial_floats]. Rows that see no key of it are left
  // alone.
  void (*attend_span)(const IntegerScores& integer_scores, const AttentionRows& rows, const AttentionCache& cache,
                      std::int64_t span, float* partials, float* scratch);

  // Folds the sinks, if there are any, and n_spans spans from first_span on, left to right, and writes out. Row i of
  // the j-th of these is at partials + j * span_stride + i * attention_partial_floats.
  void (*fold)(const AttentionRows& rows, std::int64_t first_span, std::int64_t n_spans, const float* partials,
               std::int64_t span_stride, float* scratch);

  // Rounds (to nearest even) or quantises and stores K and V of tokens at position, position + 1, ...; k + i * k_stride
  // and v + i * v_stride are token i's [head_dim].
  void (*store)(const AttentionCache& cache, std::int64_t position, std::int64_t n_tokens, std::int64_t head_dim,
                const float* k, std::int64_t k_stride, const float* v, std::int64_t v_stride);
};

VITRINE_NAMESPACE_END
