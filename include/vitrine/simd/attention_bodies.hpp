// Bodies of attention_kernels.hpp, written over the lanes.
//
// For one span: scores of all rows, panel by panel; softmax of each row; mix of all rows, block by block. With many
// rows each panel of K and each block of V is first converted to floats in scratch, once for all of them; with few rows
// (one token's heads) conversion happens on the way into the register tile, and K and V are read once, as they are.
#pragma once

#include "vitrine/simd/attention_kernels.hpp"
#include "vitrine/simd/attention_tiles.hpp"
#include "vitrine/simd/lanes.hpp"
#include "vitrine/simd/vmath.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

namespace attention_detail {

constexpr std::int64_t span_keys = 256, block_keys = 64, panel_keys = 16;
// Rows of scores are not 256 floats apart: at 1 KB distance a column of them would fall into few cache sets.
constexpr std::int64_t score_stride = 272;

constexpr std::int64_t least(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
constexpr std::int64_t most(std::int64_t a, std::int64_t b) { return a > b ? a : b; }

// Keys of a span that a row sees, counted from the span's first key.
struct Keys {
  std::int64_t begin, end;
  bool none() const { return begin >= end; }
};

inline Keys visible_keys(const AttentionRows& rows, std::int64_t row, std::int64_t span) {
  const std::int64_t position = rows.pos0 + (rows.first_row + row) / rows.group, first = span * span_keys;
  const std::int64_t begin = rows.window > 0 ? position - rows.window + 1 - first : 0;
  return {most(begin, 0), least(position + 1 - first, span_keys)};
}

// Scratch of one call, in floats; sizes as in attention_scratch_floats.
struct Scratch {
  std::int64_t padded;
  float *scores, *queries, *mix, *total, *maximum, *sum, *total_maximum, *total_sum, *values, *keys;

  Scratch(float* base, std::int64_t head_dim) : padded(attention_padded(head_dim)) {
    const auto take = [&base](std::int64_t n) {
      float* part = base;
      base += n;
      return part;
    };
    scores = take(attention_max_rows * score_stride);
    queries = take(attention_max_rows * padded + 16);
    mix = take(attention_max_rows * padded);
    total = take(attention_max_rows * padded);
    maximum = take(attention_max_rows);
    sum = take(attention_max_rows);
    total_maximum = take(attention_max_rows);
    total_sum = take(attention_max_rows);
    values = take(block_keys * padded);
    keys = take(2 * panel_keys * padded);
  }
};

// Rows are cut evenly into groups that fit the register tiles.
struct Groups {
  std::int64_t n_rows, n_groups;
  std::int64_t begin(std::int64_t i) const { return n_rows * i / n_groups; }
  std::int64_t size(std::int64_t i) const { return begin(i + 1) - begin(i); }
};
inline Groups group_rows_of(const AttentionRows& rows, bool direct) {
  const std::int64_t size = direct ? direct_group_rows : group_rows;
  return {rows.n_rows, (rows.n_rows + size - 1) / size};
}

inline const float* query_of(const AttentionRows& rows, std::int64_t row) {
  const std::int64_t index = rows.first_row + row;
  return rows.q + index / rows.group * rows.q_stride + index % rows.group * rows.head_dim;
}
inline float* out_of(const AttentionRows& rows, std::int64_t row) {
  const std::int64_t index = rows.first_row + row;
  return rows.out + index / rows.group * rows.out_stride + index % rows.group * rows.head_dim;
}

// Each group's queries as [head_dim][rows of the group], which the score tile reads in one stream. Sixteen lanes are
// stored where a group has fewer rows; what is too much is overwritten by the next store, or falls into slack.
inline void pack_queries(const AttentionRows& rows, const Groups& groups, float* queries) {
  for (std::int64_t g = 0; g < groups.n_groups; ++g) {
    const std::int64_t first = groups.begin(g), n = groups.size(g);
    float* packed = queries + first * rows.head_dim;
    for (std::int64_t d = 0; d < rows.head_dim; d += 16) {
      const int n_columns = int(least(rows.head_dim - d, 16));
      f32x16 square[16];
      for (int r = 0; r < 16; ++r) {
        if (r >= n) {
          square[r] = zero();
        } else if (n_columns == 16) {
          square[r] = load(query_of(rows, first + r) + d);
        } else {
          square[r] = load_part(query_of(rows, first + r) + d, n_columns);
        }
      }
      transpose(square);
      float columns[16][16];
      for (int c = 0; c < 16; ++c) store(columns[c], square[c]);
      for (int c = 0; c < n_columns; ++c) store(packed + (d + c) * n, load(columns[c]));
    }
  }
}

template <class Element, int rows_at_most, int panels_at_most>
inline void score_group(const typename Element::Type* k, const typename Element::Type* ahead, std::int64_t n_panels,
                        std::int64_t n_rows, std::int64_t head_dim, const float* q, float scale, float* scores,
                        bool reversed) {
  with_rows<rows_at_most>(n_rows, [&]<int R>() {
    constexpr int P = beside(R, panels_at_most);
    std::int64_t p = 0;
    for (; p + P <= n_panels; p += P) {
      score_tile<Element, R, P>(k + p * panel_keys * head_dim, ahead + p * panel_keys * head_dim, head_dim, q, scale,
                                scores + p * panel_keys, score_stride, reversed);
    }
    for (; P > 1 && p < n_panels; ++p) {
      score_tile<Element, R, 1>(k + p * panel_keys * head_dim, ahead + p * panel_keys * head_dim, head_dim, q, scale,
                                scores + p * panel_keys, score_stride, reversed);
    }
  });
}

template <class Element>
inline const typename Element::Type* at(const AttentionCache& cache, std::int64_t block, std::size_t offset) {
  return reinterpret_cast<const typename Element::Type*>(cache.blocks[block] + offset);
}

// scores[row][key - first key of the span] for every key that some row of the group sees, and perhaps others beside.
template <class Element>
inline void score_span(const AttentionRows& rows, const AttentionCache& cache, std::int64_t span, bool direct,
                       const Groups& groups, Keys all, const Scratch& scratch) {
  const std::int64_t head_dim = rows.head_dim;
  const bool reversed = rows.n_rows > max_direct_rows;
  const std::int64_t first_block = span * 4 + all.begin / block_keys;
  std::int64_t n_panels = 0;
  for (std::int64_t panel = all.begin / panel_keys; panel * panel_keys < all.end; panel += n_panels) {
    const std::int64_t block_end = (panel / 4 + 1) * 4, panels_end = (all.end + panel_keys - 1) / panel_keys;
    n_panels = least(least(panels_end, block_end) - panel, direct ? 4 : 2);
    const std::int64_t block = span * 4 + panel / 4, within = panel % 4 * panel_keys * head_dim;
    const typename Element::Type* k = at<Element>(cache, block, cache.k_offset) + within;
    // While these scores are computed: the next block's keys, or after the last one the first values.
    const typename Element::Type* ahead = block_end * panel_keys < all.end
                                              ? at<Element>(cache, block + 1, cache.k_offset) + within
                                              : at<Element>(cache, first_block, cache.v_offset) + within;
    if (!direct) {
      for (std::int64_t i = 0; i < n_panels * head_dim; ++i) store(scratch.keys + 16 * i, Element::read(k + 16 * i));
    }
    for (std::int64_t g = 0; g < groups.n_groups; ++g) {
      const std::int64_t first = groups.begin(g), n = groups.size(g);
      // Of these panels, those with a key that a row of the group sees.
      const Keys lowest = visible_keys(rows, first, span), highest = visible_keys(rows, first + n - 1, span);
      const std::int64_t begin = most(panel, lowest.begin / panel_keys);
      const std::int64_t end = least(panel + n_panels, (highest.end + panel_keys - 1) / panel_keys);
      if (begin >= end) continue;
      const std::int64_t skipped = (begin - panel) * panel_keys * head_dim;
      const float* q = scratch.queries + first * head_dim;
      float* scores = scratch.scores + first * score_stride + begin * panel_keys;
      if (direct) {
        score_group<Element, direct_group_rows, 4>(k + skipped, (g == 0 ? ahead : k) + skipped, end - begin, n,
                                                   head_dim, q, rows.scale, scores, reversed);
      } else {
        const float* keys = scratch.keys + skipped;
        score_group<ElementConverted, group_rows, 2>(keys, keys, end - begin, n, head_dim, q, rows.scale, scores,
                                                     reversed);
      }
    }
  }
}

// Scores to weights exp(s - maximum); lanes of masked keys become +0.
inline void softmax_row(float* scores, Keys keys, float* maximum, float* sum) {
  const f32x16 none = from_bits(broadcast_i32(std::int32_t(0xff800000)));
  const std::int64_t first = keys.begin / panel_keys, last = (keys.end - 1) / panel_keys;
  const mask16 below_end = first_lanes(int(keys.end - last * panel_keys));
  const int skipped = int(keys.begin - first * panel_keys);
  const auto masked = [&](std::int64_t panel, f32x16 a, f32x16 otherwise) {
    if (panel == last) a = select(below_end, a, otherwise);
    if (panel == first) a = select(first_lanes(skipped), otherwise, a);
    return a;
  };
  f32x16 high = none;
  for (std::int64_t panel = first; panel <= last; ++panel) {
    high = max(high, masked(panel, load(scores + panel * panel_keys), none));
  }
  *maximum = hmax(high);
  const f32x16 top = broadcast(*maximum);
  f32x16 total = zero();
  for (std::int64_t panel = first; panel <= last; ++panel) {
    const f32x16 weight = masked(panel, exp(load(scores + panel * panel_keys) - top), zero());
    store(scores + panel * panel_keys, weight);
    total = total + weight;
  }
  *sum = hsum(total);
}

// Mix of the rows of one group over the keys of one block. Keys that all rows see go through the tile; those that only
// some see (the causal and the window edge) token by token, before and after, so that each row's keys stay in order.
template <class Element, int rows_at_most>
inline void mix_group(const AttentionRows& rows, std::int64_t span, std::int64_t first, std::int64_t n,
                      std::int64_t block, const typename Element::Type* v, const typename Element::Type* ahead,
                      std::int64_t v_stride, const Scratch& scratch) {
  const std::int64_t block_begin = block * block_keys, block_end = block_begin + block_keys;
  const auto inside = [&](std::int64_t key) { return most(block_begin, least(key, block_end)); };
  const auto mix = [&](std::int64_t row, std::int64_t n_rows, std::int64_t begin, std::int64_t end) {
    if (begin >= end) return;
    with_rows<rows_at_most>(n_rows, [&]<int R>() {
      const std::int64_t skipped = (begin - block_begin) * v_stride;
      mix_columns<Element, R, beside(R, 8)>(scratch.scores + row * score_stride + begin, score_stride, v + skipped,
                                            ahead + skipped, v_stride, end - begin, scratch.mix + row * scratch.padded,
                                            scratch.padded, scratch.padded);
    });
  };
  // edge(row, n_rows, keys) for the rows of each token.
  const auto for_tokens = [&](auto edge) {
    for (std::int64_t row = first, n_rows = 0; row < first + n; row += n_rows) {
      n_rows = least(rows.group - (rows.first_row + row) % rows.group, first + n - row);
      const Keys keys = visible_keys(rows, row, span);
      edge(row, n_rows, Keys{inside(keys.begin), inside(keys.end)});
    }
  };
  const Keys lowest = visible_keys(rows, first, span), highest = visible_keys(rows, first + n - 1, span);
  const std::int64_t shared_begin = inside(highest.begin), shared_end = most(shared_begin, inside(lowest.end));
  if (inside(lowest.begin) < shared_begin) {
    for_tokens([&](std::int64_t row, std::int64_t n_rows, Keys keys) {
      mix(row, n_rows, keys.begin, least(shared_begin, keys.end));
    });
  }
  mix(first, n, shared_begin, shared_end);
  if (shared_end < inside(highest.end)) {
    for_tokens([&](std::int64_t row, std::int64_t n_rows, Keys keys) {
      mix(row, n_rows, most(shared_end, keys.begin), keys.end);
    });
  }
}

template <class Element>
inline void mix_span(const AttentionRows& rows, const AttentionCache& cache, std::int64_t span, bool direct,
                     const Groups& groups, Keys all, const Scratch& scratch) {
  const std::int64_t head_dim = rows.head_dim, padded = scratch.padded;
  const std::int64_t last_position = rows.pos0 + (rows.first_row + rows.n_rows - 1) / rows.group;
  for (std::int64_t i = 0; i < rows.n_rows * padded; i += 16) store(scratch.mix + i, zero());
  for (std::int64_t block = all.begin / block_keys; block * block_keys < all.end; ++block) {
    const typename Element::Type* v = at<Element>(cache, span * 4 + block, cache.v_offset);
    const std::int64_t next_key = (span * 4 + block + 1) * block_keys;
    const typename Element::Type* ahead = v;
    if ((block + 1) * block_keys < all.end) {
      ahead = at<Element>(cache, span * 4 + block + 1, cache.v_offset);
    } else if (next_key <= last_position) {  // the next span's keys: likely this thread's next task
      ahead = at<Element>(cache, next_key / block_keys, cache.k_offset);
    }
    if (!direct) {
      const std::int64_t begin = most(all.begin - block * block_keys, 0);
      const std::int64_t end = least(all.end - block * block_keys, block_keys);
      for (std::int64_t key = begin; key < end; ++key) {
        std::int64_t d = 0;
        for (; d + 16 <= head_dim; d += 16) {
          store(scratch.values + key * padded + d, Element::read(v + key * head_dim + d));
        }
        if (d < head_dim) {
          store(scratch.values + key * padded + d, Element::read_part(v + key * head_dim + d, int(head_dim - d)));
        }
      }
    }
    for (std::int64_t g = 0; g < groups.n_groups; ++g) {
      if (direct) {
        mix_group<Element, direct_group_rows>(rows, span, groups.begin(g), groups.size(g), block, v, g == 0 ? ahead : v,
                                              head_dim, scratch);
      } else {
        mix_group<ElementConverted, group_rows>(rows, span, groups.begin(g), groups.size(g), block, scratch.values,
                                                scratch.values, padded, scratch);
      }
    }
  }
}

inline bool goes_direct(const AttentionRows& rows) { return rows.n_rows <= max_direct_rows && rows.head_dim % 16 == 0; }

// One span of all rows: leaves mix, maximum and sum of each row in scratch.
template <class Element>
inline void span_of(const AttentionRows& rows, const AttentionCache& cache, std::int64_t span, const Scratch& scratch) {
  const bool direct = goes_direct(rows);
  const Groups groups = group_rows_of(rows, direct);
  const Keys all = {visible_keys(rows, 0, span).begin, visible_keys(rows, rows.n_rows - 1, span).end};
  if (all.none()) return;
  score_span<Element>(rows, cache, span, direct, groups, all, scratch);
  for (std::int64_t row = 0; row < rows.n_rows; ++row) {
    const Keys keys = visible_keys(rows, row, span);
    if (keys.none()) continue;
    softmax_row(scratch.scores + row * score_stride, keys, scratch.maximum + row, scratch.sum + row);
  }
  mix_span<Element>(rows, cache, span, direct, groups, all, scratch);
}

inline void span_of(const AttentionRows& rows, const AttentionCache& cache, std::int64_t span, const Scratch& scratch) {
  switch (cache.type) {
    case DType::f32: return span_of<ElementF32>(rows, cache, span, scratch);
    case DType::f16: return span_of<ElementF16>(rows, cache, span, scratch);
    default: return span_of<ElementBF16>(rows, cache, span, scratch);
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
  const f32x16 a = exp(before - top), b = exp(here - top);
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

inline void attend(const AttentionRows& rows, const AttentionCache& cache, float* scratch_base) {
  const Scratch scratch(scratch_base, rows.head_dim);
  Running running[attention_max_rows];
  pack_queries(rows, group_rows_of(rows, goes_direct(rows)), scratch.queries);
  const std::int64_t first_position = rows.pos0 + rows.first_row / rows.group;
  const std::int64_t last_position = rows.pos0 + (rows.first_row + rows.n_rows - 1) / rows.group;
  const std::int64_t first_key = rows.window > 0 ? most(first_position - rows.window + 1, 0) : 0;
  for (std::int64_t span = first_key / span_keys; span * span_keys <= last_position; ++span) {
    span_of(rows, cache, span, scratch);
    for (std::int64_t row = 0; row < rows.n_rows; ++row) {
      if (visible_keys(rows, row, span).none()) continue;
      fold_row(running[row], scratch.total + row * scratch.padded, scratch.maximum[row], scratch.sum[row],
               scratch.mix + row * scratch.padded, scratch.padded);
    }
  }
  for (std::int64_t row = 0; row < rows.n_rows; ++row) {
    write_row(rows, row, running[row], scratch.total + row * scratch.padded);
  }
}

inline void attend_span(const AttentionRows& rows, const AttentionCache& cache, std::int64_t span, float* partials,
                        float* scratch_base) {
  Scratch scratch(scratch_base, rows.head_dim);
  pack_queries(rows, group_rows_of(rows, goes_direct(rows)), scratch.queries);
  span_of(rows, cache, span, scratch);
  for (std::int64_t row = 0; row < rows.n_rows; ++row) {
    if (visible_keys(rows, row, span).none()) continue;
    float* partial = partials + row * attention_partial_floats(rows.head_dim);
    for (std::int64_t d = 0; d < scratch.padded; d += 16) {
      store(partial + d, load(scratch.mix + row * scratch.padded + d));
    }
    partial[scratch.padded] = scratch.maximum[row];
    partial[scratch.padded + 1] = scratch.sum[row];
  }
}

inline void fold(const AttentionRows& rows, std::int64_t first_span, std::int64_t n_spans, const float* partials,
                 std::int64_t span_stride, float* scratch_base) {
  const Scratch scratch(scratch_base, rows.head_dim);
  for (std::int64_t row = 0; row < rows.n_rows; ++row) {
    Running running;
    for (std::int64_t i = 0; i < n_spans; ++i) {
      if (visible_keys(rows, row, first_span + i).none()) continue;
      const float* partial = partials + i * span_stride + row * attention_partial_floats(rows.head_dim);
      fold_row(running, scratch.total, partial[scratch.padded], partial[scratch.padded + 1], partial, scratch.padded);
    }
    write_row(rows, row, running, scratch.total);
  }
}

// One panel's worth: [first, first + n) of its sixteen slots.
template <class Element>
inline void store_panel(const AttentionCache& cache, std::int64_t position, std::int64_t n, std::int64_t head_dim,
                        const float* k, std::int64_t k_stride, const float* v, std::int64_t v_stride) {
  using Type = typename Element::Type;
  std::byte* block = cache.blocks[position / block_keys];
  const std::int64_t slot = position % block_keys, lane = slot % panel_keys;
  Type* panel = reinterpret_cast<Type*>(block + cache.k_offset) + (slot - lane) * head_dim;
  Type* values = reinterpret_cast<Type*>(block + cache.v_offset) + slot * head_dim;
  for (std::int64_t d = 0; d < head_dim; d += 16) {
    const int n_columns = int(least(head_dim - d, 16));
    const auto read = [&](const float* p) { return n_columns == 16 ? load(p) : load_part(p, n_columns); };
    for (std::int64_t i = 0; i < n; ++i) {
      const f32x16 value = read(v + i * v_stride + d);
      if (n_columns == 16) {
        Element::write(values + i * head_dim + d, value);
      } else {
        Element::write_part(values + i * head_dim + d, value, n_columns);
      }
    }
    if (n == panel_keys) {
      f32x16 square[16];
      for (int i = 0; i < 16; ++i) square[i] = read(k + i * k_stride + d);
      transpose(square);
      Type columns[16][16];
      for (int c = 0; c < 16; ++c) Element::write(columns[c], square[c]);
      __builtin_memcpy(panel + d * panel_keys, columns, std::size_t(n_columns) * sizeof columns[0]);
    } else {
      for (std::int64_t i = 0; i < n; ++i) {
        Type rounded[16];
        Element::write(rounded, read(k + i * k_stride + d));
        for (int c = 0; c < n_columns; ++c) panel[(d + c) * panel_keys + lane + i] = rounded[c];
      }
    }
  }
}

template <class Element>
inline void store_tokens(const AttentionCache& cache, std::int64_t position, std::int64_t n_tokens,
                         std::int64_t head_dim, const float* k, std::int64_t k_stride, const float* v,
                         std::int64_t v_stride) {
  for (std::int64_t done = 0, n = 0; done < n_tokens; done += n) {
    n = least(n_tokens - done, panel_keys - (position + done) % panel_keys);
    store_panel<Element>(cache, position + done, n, head_dim, k + done * k_stride, k_stride, v + done * v_stride,
                         v_stride);
  }
}

inline void store_keys_and_values(const AttentionCache& cache, std::int64_t position, std::int64_t n_tokens,
                                  std::int64_t head_dim, const float* k, std::int64_t k_stride, const float* v,
                                  std::int64_t v_stride) {
  switch (cache.type) {
    case DType::f32: return store_tokens<ElementF32>(cache, position, n_tokens, head_dim, k, k_stride, v, v_stride);
    case DType::f16: return store_tokens<ElementF16>(cache, position, n_tokens, head_dim, k, k_stride, v, v_stride);
    default: return store_tokens<ElementBF16>(cache, position, n_tokens, head_dim, k, k_stride, v, v_stride);
  }
}

}  // namespace attention_detail

constexpr AttentionKernels attention_kernels() {
  return {.attend = attention_detail::attend,
          .attend_span = attention_detail::attend_span,
          .fold = attention_detail::fold,
          .store = attention_detail::store_keys_and_values};
}

VITRINE_ISA_NAMESPACE_END
