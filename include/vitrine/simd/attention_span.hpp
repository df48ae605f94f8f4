// One span of 256 keys for one group of query rows: scores, softmax, mix. Everything numeric about attention is here
// and in the fold of attention_bodies.hpp; the register tiles are in attention_tiles.hpp.
//
// K and V are widened on their way into the tiles; to convert them once for many rows was slower, as 16-bit data takes
// half of the caches. INT8 and INT4 keys are multiplied as integers (attention_quantised.hpp); of V the scales go to
// the weights: o = fma(float(v), p * s, o).
//
// While keys are multiplied the values of the same span are asked for, into the second-level cache, and while values
// are mixed, the keys of the next span, or of the next head's first one: likely this thread's next task. The hardware
// guesses no further than a head's piece of a block.
#pragma once

#include "vitrine/core/rounding.hpp"
#include "vitrine/simd/attention_kernels.hpp"
#include "vitrine/simd/attention_quantised.hpp"
#include "vitrine/simd/attention_tiles.hpp"
#include "vitrine/simd/lanes.hpp"
#include "vitrine/simd/vmath.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

namespace attention_detail {

// Keys of a span that a row sees, counted from the span's first key.
struct Keys {
  std::int64_t begin, end;
  bool none() const { return begin >= end; }
};

inline std::int64_t position_of(const AttentionRows& rows, std::int64_t row) {
  return rows.pos0 + (rows.first_row + row) / rows.group;
}

inline Keys visible_keys(const AttentionRows& rows, std::int64_t row, std::int64_t span) {
  const std::int64_t position = position_of(rows, row), first = span * span_keys;
  if (span == sink_span) return {0, least(position + 1, rows.sinks)};
  const std::int64_t begin = rows.window > 0 ? most(position - rows.window + 1, rows.sinks) - first : 0;
  return {most(begin, 0), least(position + 1 - first, span_keys)};
}

// Block b of a span.
template <class Element>
inline const typename Element::Type* at(const AttentionCache& cache, std::int64_t span, std::int64_t b,
                                        std::size_t offset) {
  const std::int64_t first = span == sink_span ? 0 : span * (span_keys / block_keys);
  return reinterpret_cast<const typename Element::Type*>(cache.blocks[first + b] + offset);
}

// Asks for the scales behind the keys or values of a head in a block; none unless these are quantised.
inline void ask_for_scales(const std::uint8_t* behind_values, DType type, std::int64_t head_dim) {
  for (std::size_t i = 0; i < kv_scale_bytes(type, head_dim); i += 64) prefetch_far(behind_values + i);
}

// Scratch of one call, in floats; sizes as in attention_scratch_floats.
struct Scratch {
  IntegerScores integer_scores;
  std::int64_t padded;
  float *queries, *total, *scores, *weights, *mix, *values;
  float maximum[group_rows] = {}, sum[group_rows] = {};  // in the span, as is mix [group_rows][padded]

  Scratch(const IntegerScores& integer, float* base, std::int64_t head_dim)
      : integer_scores(integer), padded(attention_padded(head_dim)) {
    const auto take = [&base](std::int64_t n) {
      float* part = base;
      base += n;
      return part;
    };
    queries = take(attention_max_rows * padded + 16);
    total = take(attention_max_rows * padded);
    scores = take(group_rows * score_stride);
    weights = take(group_rows * score_stride);  // scores times the scales of V, if V is quantised
    mix = take(group_rows * padded);
    values = base;  // [256][padded], used only if rows of V are no whole vectors
  }
};

// A few consecutive rows of the call, as many as fit the register tiles.
struct Group {
  std::int64_t first, n;
};
// f(group) for the groups of the call, in order.
template <class F>
inline void for_groups(const AttentionRows& rows, F f) {
  for (std::int64_t first = 0, n = 0; first < rows.n_rows; first += n) {
    n = group_size(rows.n_rows - first);
    f(Group{first, n});
  }
}

// Whether rows of V are no whole vectors: then a span of them is first widened. Quantised rows are padded as they are.
inline bool widens_values(const AttentionRows& rows, const AttentionCache& cache) {
  return rows.head_dim % 16 != 0 && !is_quantised_kv(cache.v_type);
}

// What is asked for at the pace of a block's keys, as an offset in it: the values, unless there are fewer bytes of
// these or they were read already. Their scales are asked for at once.
inline std::size_t asked_with_keys(const AttentionRows& rows, const AttentionCache& cache, std::int64_t span,
                                   std::int64_t block) {
  const std::size_t n_bytes = kv_value_bytes_without_scales(cache.v_type, rows.head_dim);
  if (n_bytes < kv_key_bytes_without_scales(cache.k_type, rows.head_dim) || widens_values(rows, cache))
    return cache.k_offset;
  ask_for_scales(at<ElementInt8>(cache, span, block, cache.v_offset) + n_bytes, cache.v_type, rows.head_dim);
  return cache.v_offset;
}

// Scores of n panels that lie side by side.
template <class Element>
inline void score_panels(const typename Element::Type* k, const typename Element::Type* ahead, std::int64_t n_panels,
                         std::int64_t n_rows, std::int64_t head_dim, const float* q, float scale, float* scores) {
  with_rows<group_rows>(n_rows, [&]<int R>() {
    constexpr int P = beside(R, 4);
    std::int64_t p = 0;
    for (; p + P <= n_panels; p += P) {
      const std::int64_t skipped = p * panel_keys * head_dim;
      score_tile<Element, R, P>(k + skipped, ahead + skipped, head_dim, q, scale, scores + p * panel_keys,
                                score_stride);
    }
    for (; P > 1 && p < n_panels; ++p) {
      const std::int64_t skipped = p * panel_keys * head_dim;
      score_tile<Element, R, 1>(k + skipped, ahead + skipped, head_dim, q, scale, scores + p * panel_keys,
                                score_stride);
    }
  });
}

// scratch.scores[row][key] for the keys that some row of the group sees, and for others in the same panels.
template <class Element>
inline void score_span(const AttentionRows& rows, const AttentionCache& cache, std::int64_t span, Group group,
                       Keys some, const Scratch& scratch) {
  const std::int64_t head_dim = rows.head_dim;
  for (std::int64_t block = some.begin / block_keys; block * block_keys < some.end; ++block) {
    const std::int64_t first = most(some.begin - block * block_keys, 0) / panel_keys;
    const std::int64_t end = divide_up(least(some.end - block * block_keys, block_keys), panel_keys);
    const auto* ahead = at<Element>(cache, span, block, asked_with_keys(rows, cache, span, block));
    const std::int64_t skipped = first * panel_keys * head_dim;
    score_panels<Element>(at<Element>(cache, span, block, cache.k_offset) + skipped, ahead + skipped, end - first,
                          group.n, head_dim, scratch.queries + group.first * head_dim, rows.scale,
                          scratch.scores + block * block_keys + first * panel_keys);
  }
}

template <class KeyType>
inline void score_span_integer(const AttentionRows& rows, const AttentionCache& cache, std::int64_t span, Group group,
                               Keys some, const Scratch& scratch) {
  const std::int64_t head_dim = rows.head_dim;
  const IntegerQueries queries(scratch.queries, KeyType::type, head_dim);
  const std::int64_t n_rows = kv_key_rows(KeyType::type, head_dim), n_groups = queries.n_groups;
  const std::size_t to_scales = kv_key_bytes_without_scales(KeyType::type, head_dim);
  for (std::int64_t block = some.begin / block_keys; block * block_keys < some.end; ++block) {
    const std::int64_t first = most(some.begin - block * block_keys, 0) / panel_keys;
    const std::int64_t end = divide_up(least(some.end - block * block_keys, block_keys), panel_keys);
    const auto* k = at<ElementInt8>(cache, span, block, cache.k_offset);
    const auto* ahead = at<ElementInt8>(cache, span, block, asked_with_keys(rows, cache, span, block));
    const auto* scales = reinterpret_cast<const std::uint16_t*>(k + to_scales) + first * n_groups * panel_keys;
    const IntegerTile tile = {.k = k + 64 * n_rows * first,
                              .ahead = ahead + 64 * n_rows * first,
                              .scales = scales,
                              .q = queries.q + group.first * queries.bytes,
                              .starts = queries.starts + group.first * n_groups,
                              .factors = queries.factors + group.first,
                              .n = group.n,
                              .n_rows = n_rows,
                              .n_groups = n_groups};
    const auto& scores = scratch.integer_scores;
    (KeyType::bits == 8 ? scores.int8 : scores.int4)(tile, end - first,
                                                     scratch.scores + block * block_keys + first * panel_keys);
  }
}

// Scores to weights exp(s - maximum) for the rows of a group, and their sums. Masked keys beside the visible ones first
// become -infinity, and so weigh +0. Three walks over the rows, not one: rows do not wait for each other's last step.
inline void softmax_rows(const AttentionRows& rows, std::int64_t span, Group group, Scratch& scratch) {
  const f32x16 none = from_bits(broadcast_i32(std::int32_t(0xff800000)));
  float *first[group_rows], *end[group_rows];  // of the panels with visible keys
  for (std::int64_t row = 0; row < group.n; ++row) {
    const Keys keys = visible_keys(rows, group.first + row, span);
    float* const scores = scratch.scores + row * score_stride;
    first[row] = end[row] = scores;
    if (keys.none()) continue;
    first[row] += keys.begin / panel_keys * panel_keys;
    float* const last = scores + (keys.end - 1) / panel_keys * panel_keys;
    end[row] = last + panel_keys;
    store(last, select(first_lanes(int(scores + keys.end - last)), load(last), none));
    store(first[row], select(first_lanes(int(scores + keys.begin - first[row])), none, load(first[row])));
    f32x16 high = none;
    for (const float* p = first[row]; p < end[row]; p += panel_keys) high = max(high, load(p));
    scratch.maximum[row] = hmax(high);
  }
  float totals[group_rows][16];
  for (std::int64_t row = 0; row < group.n; ++row) {
    const f32x16 top = broadcast(scratch.maximum[row]);
    f32x16 total = zero();
    for (float* p = first[row]; p < end[row]; p += panel_keys) {
      const f32x16 weight = exp_not_positive(load(p) - top);
      store(p, weight);
      total = total + weight;
    }
    store(totals[row], total);
  }
  for (std::int64_t row = 0; row < group.n; ++row) scratch.sum[row] = hsum(load(totals[row]));
}

// Columns [begin, end) of V and the weights [group_rows][score_stride] that they are mixed with.
struct Columns {
  const float* weights;
  std::int64_t begin, end;
};

template <class Element>
constexpr std::int64_t value_stride(std::int64_t head_dim) {
  if constexpr (requires { Element::type; }) return kv_value_stride(Element::type, head_dim);
  return head_dim;
}

// The keys that are asked for at the pace of a span's values: the next span's, or the next head's first ones; none if
// there are fewer bytes of them.
struct NextKeys {
  bool any;
  std::int64_t span;
  std::size_t offset, n_bytes;  // in a block; of a block without scales

  NextKeys(const AttentionRows& rows, const AttentionCache& cache, std::int64_t here)
      : n_bytes(kv_key_bytes_without_scales(cache.k_type, rows.head_dim)) {
    const bool same_head = here != sink_span && (here + 1) * span_keys <= position_of(rows, rows.n_rows - 1);
    const bool next_head = !same_head && rows.window == 0 && cache.next_k_offset != cache.k_offset;
    any = (same_head || next_head) && n_bytes >= kv_value_bytes_without_scales(cache.v_type, rows.head_dim);
    span = same_head ? here + 1 : 0;
    offset = same_head ? cache.k_offset : cache.next_k_offset;
  }
};

// scratch.mix[row] += weights times V for rows [row, row + n_rows) of the group and keys [begin, end) of the span.
template <class Element>
inline void mix_keys(const AttentionRows& rows, const AttentionCache& cache, std::int64_t span, std::int64_t row,
                     std::int64_t n_rows, Keys keys, Columns columns, const Scratch& scratch) {
  if (keys.none()) return;
  const std::int64_t stride = value_stride<Element>(rows.head_dim);
  Piece<typename Element::Type> pieces[span_keys / block_keys];
  int n_pieces = 0;
  const NextKeys next(rows, cache, span);
  for (std::int64_t key = keys.begin; key < keys.end;) {
    const std::int64_t block = key / block_keys, end = least((block + 1) * block_keys, keys.end);
    const std::int64_t skipped = key % block_keys * stride;
    const auto* v = at<Element>(cache, span, block, cache.v_offset) + skipped;
    const auto* ahead = v;
    if (next.any && next.span * span_keys + key <= position_of(rows, rows.n_rows - 1)) {
      ahead = at<Element>(cache, next.span, block, next.offset) + skipped;
      ask_for_scales(at<ElementInt8>(cache, next.span, block, next.offset) + next.n_bytes, cache.k_type, rows.head_dim);
    }
    pieces[n_pieces++] = {v, ahead, end - key};
    key = end;
  }
  const float* const weights = columns.weights + row * score_stride + keys.begin;
  float* const mix = scratch.mix + row * scratch.padded;
  with_rows<group_rows>(n_rows, [&]<int R>() {
    if constexpr (std::is_same_v<Element, ElementInt4<0>>) {
      const auto tile = [&]<int first, int C>(std::int64_t column) {
        mix_tile<ElementInt4<first>, R, C>(weights, score_stride, pieces, n_pieces, stride, column, mix + column,
                                           scratch.padded);
      };
      const bool two = columns.end - columns.begin > 16;
      if (beside(R, 2) == 2 && two) return tile.template operator()<0, beside(R, 2)>(columns.begin);
      tile.template operator()<0, 1>(columns.begin);
      if (two) tile.template operator()<1, 1>(columns.begin + 16);
    } else {
      mix_columns<Element, R, beside(R, 8)>(weights, score_stride, pieces, n_pieces, stride, mix, scratch.padded,
                                            columns.end, columns.begin);
    }
  });
}

// The same from scratch.values, where rows of V that are no whole vectors were widened and padded.
template <>
inline void mix_keys<ElementConverted>(const AttentionRows&, const AttentionCache&, std::int64_t, std::int64_t row,
                                       std::int64_t n_rows, Keys keys, Columns columns, const Scratch& scratch) {
  if (keys.none()) return;
  const float* v = scratch.values + keys.begin * scratch.padded;
  const Piece<float> piece = {v, v, keys.end - keys.begin};
  with_rows<group_rows>(n_rows, [&]<int R>() {
    mix_columns<ElementConverted, R, beside(R, 8)>(columns.weights + row * score_stride + keys.begin, score_stride,
                                                   &piece, 1, scratch.padded, scratch.mix + row * scratch.padded,
                                                   scratch.padded, columns.end, columns.begin);
  });
}

// Keys that all rows of the group see go through the tile together; those that only some see (the causal and the window
// edge) token by token, before and after, so that each row meets its keys in order.
template <class Element>
inline void mix_span(const AttentionRows& rows, const AttentionCache& cache, std::int64_t span, Group group,
                     Keys lowest, Keys highest, Columns columns, const Scratch& scratch) {
  const Keys shared = {highest.begin, most(highest.begin, lowest.end)};
  const auto for_tokens = [&](auto limited) {
    for (std::int64_t row = 0, n_rows = 0; row < group.n; row += n_rows) {
      const std::int64_t index = rows.first_row + group.first + row;
      n_rows = group_size(least(rows.group - index % rows.group, group.n - row));
      const Keys keys = limited(visible_keys(rows, group.first + row, span));
      mix_keys<Element>(rows, cache, span, row, n_rows, keys, columns, scratch);
    }
  };
  if (lowest.begin < shared.begin) {
    for_tokens([&](Keys keys) { return Keys{keys.begin, least(shared.begin, keys.end)}; });
  }
  mix_keys<Element>(rows, cache, span, 0, group.n, shared, columns, scratch);
  if (shared.end < highest.end) {
    for_tokens([&](Keys keys) { return Keys{most(shared.end, keys.begin), keys.end}; });
  }
}

// scratch.weights[row][key] = scores times the scales of group g of V, for the keys that some row of the group sees.
template <class Element>
inline void weigh_scales(const AttentionRows& rows, const AttentionCache& cache, std::int64_t span, Group group,
                         Keys some, std::int64_t g, const Scratch& scratch) {
  const std::size_t to_scales = cache.v_offset + kv_value_bytes_without_scales(Element::type, rows.head_dim);
  for (std::int64_t key = some.begin / panel_keys * panel_keys; key < some.end; key += panel_keys) {
    const auto* scales = at<ElementBF16>(cache, span, key / block_keys, to_scales) + g * block_keys;
    const f32x16 scale = load_bf16(scales + key % block_keys);
    for (std::int64_t row = 0; row < group.n; ++row) {
      const std::int64_t place = row * score_stride + key;
      store(scratch.weights + place, load(scratch.scores + place) * scale);
    }
  }
}

template <class Element>
inline void mix_groups(const AttentionRows& rows, const AttentionCache& cache, std::int64_t span, Group group,
                       Keys lowest, Keys highest, const Scratch& scratch) {
  const std::int64_t n_groups = kv_n_groups(Element::type, rows.head_dim);
  const std::int64_t width = n_groups == 1 ? scratch.padded : kv_int4_group;
  for (std::int64_t g = 0; g < n_groups; ++g) {
    weigh_scales<Element>(rows, cache, span, group, {lowest.begin, highest.end}, g, scratch);
    const Columns columns = {scratch.weights, g * width, least((g + 1) * width, scratch.padded)};
    mix_span<Element>(rows, cache, span, group, lowest, highest, columns, scratch);
  }
}

// Leaves mix, maximum and sum of each of the group's rows in scratch. Rows that see no key of the span have none.
inline void group_span(const AttentionRows& rows, const AttentionCache& cache, std::int64_t span, Group group,
                       Scratch& scratch) {
  const Keys lowest = visible_keys(rows, group.first, span);
  const Keys highest = visible_keys(rows, group.first + group.n - 1, span);
  const Keys some = {lowest.begin, highest.end};
  if (some.none()) return;
  switch (cache.k_type) {
    case DType::f32: score_span<ElementF32>(rows, cache, span, group, some, scratch); break;
    case DType::f16: score_span<ElementF16>(rows, cache, span, group, some, scratch); break;
    case DType::int8: score_span_integer<KeysInt8>(rows, cache, span, group, some, scratch); break;
    case DType::int4: score_span_integer<KeysInt4>(rows, cache, span, group, some, scratch); break;
    default: score_span<ElementBF16>(rows, cache, span, group, some, scratch);
  }
  softmax_rows(rows, span, group, scratch);
  for (std::int64_t i = 0; i < group.n * scratch.padded; i += 16) store(scratch.mix + i, zero());
  const Columns all = {scratch.scores, 0, scratch.padded};
  if (widens_values(rows, cache)) {
    return mix_span<ElementConverted>(rows, cache, span, group, lowest, highest, all, scratch);
  }
  switch (cache.v_type) {
    case DType::f32: return mix_span<ElementF32>(rows, cache, span, group, lowest, highest, all, scratch);
    case DType::f16: return mix_span<ElementF16>(rows, cache, span, group, lowest, highest, all, scratch);
    case DType::int8: return mix_groups<ElementInt8>(rows, cache, span, group, lowest, highest, scratch);
    case DType::int4: return mix_groups<ElementInt4<0>>(rows, cache, span, group, lowest, highest, scratch);
    default: return mix_span<ElementBF16>(rows, cache, span, group, lowest, highest, all, scratch);
  }
}

// For odd widths: the span's visible values as floats, padded with zeros to whole vectors.
template <class Element>
inline void widen_values(const AttentionRows& rows, const AttentionCache& cache, std::int64_t span,
                         const Scratch& scratch) {
  const Keys keys = {visible_keys(rows, 0, span).begin, visible_keys(rows, rows.n_rows - 1, span).end};
  for (std::int64_t key = keys.begin; key < keys.end; ++key) {
    const auto* v = at<Element>(cache, span, key / block_keys, cache.v_offset) + key % block_keys * rows.head_dim;
    for (std::int64_t d = 0; d < rows.head_dim; d += 16) {
      store(scratch.values + key * scratch.padded + d, Element::read_part(v + d, int(least(rows.head_dim - d, 16))));
    }
  }
}

// One span for all rows of the call. finish(row of the call, its row in the group) takes each row's results out of
// scratch, before the next group comes; it is not called for rows that see no key of the span.
template <class Finish>
inline void span_of(const AttentionRows& rows, const AttentionCache& cache, std::int64_t span, Scratch& scratch,
                    Finish finish) {
  if (widens_values(rows, cache)) {
    switch (cache.v_type) {
      case DType::f32: widen_values<ElementF32>(rows, cache, span, scratch); break;
      case DType::f16: widen_values<ElementF16>(rows, cache, span, scratch); break;
      default: widen_values<ElementBF16>(rows, cache, span, scratch);
    }
  }
  for_groups(rows, [&](Group group) {
    group_span(rows, cache, span, group, scratch);
    for (std::int64_t row = 0; row < group.n; ++row) {
      if (!visible_keys(rows, group.first + row, span).none()) finish(group.first + row, row);
    }
  });
}

}  // namespace attention_detail

VITRINE_ISA_NAMESPACE_END
