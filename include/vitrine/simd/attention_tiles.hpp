// The two register tiles of attention, for a group of R query rows that share one K/V head:
//
//   score   s[r][key]   = scale * sum over d of q[d][r] * k[d][key]         R rows against P panels of 16 keys
//   mix     o[r][d]    += sum over keys of p[r][key] * v[key][d]            R rows over C vectors of 16 columns
//
// Each accumulator is one chain of fused multiply-adds, over d ascending or over keys ascending, so the shape of the
// tile changes no bit. R and P or C are as large as the registers allow: every key or value that is loaded is used R
// times, every query P times.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vitrine/core/dtype.hpp"
#include "vitrine/core/rounding.hpp"
#include "vitrine/simd/lanes_bytes.hpp"
#include "vitrine/simd/unroll.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

namespace attention_detail {

constexpr std::int64_t span_keys = 256, block_keys = 64, panel_keys = 16;
// Rows of scores are not 256 floats apart: at 1 KB distance a column of them would fall into few cache sets.
constexpr std::int64_t score_stride = 272;

constexpr std::int64_t least(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
constexpr std::int64_t most(std::int64_t a, std::int64_t b) { return a > b ? a : b; }

// How many panels or vectors go with R rows: a power of two, at most 8.
constexpr int beside(int rows, int most) {
  int n = 1;
  while (2 * n <= most && 2 * n * rows <= max_accumulators) n *= 2;
  return n;
}

// Element types of the cache. `streams`: the data comes from memory, so the tile asks for what comes later while it
// works on this piece (attention_span.hpp says for what). INT8 and INT4 here as V: a row's values without their scales,
// which go to the weights (attention_quantised.hpp has K).
struct ElementF32 {
  using Type = float;
  static constexpr bool streams = true;
  VITRINE_FORCE_INLINE f32x16 read(const float* p) { return load(p); }
  VITRINE_FORCE_INLINE f32x16 read_part(const float* p, int n) { return load_part(p, n); }
  VITRINE_FORCE_INLINE void write(float* p, f32x16 a) { store(p, a); }
  VITRINE_FORCE_INLINE void write_part(float* p, f32x16 a, int n) { store_part(p, a, n); }
};
struct ElementConverted : ElementF32 {  // K or V already in scratch
  static constexpr bool streams = false;
};
struct ElementF16 {
  using Type = std::uint16_t;
  static constexpr bool streams = true;
  VITRINE_FORCE_INLINE f32x16 read(const std::uint16_t* p) { return load_f16(p); }
  VITRINE_FORCE_INLINE f32x16 read_part(const std::uint16_t* p, int n) { return load_f16_part(p, n); }
  VITRINE_FORCE_INLINE void write(std::uint16_t* p, f32x16 a) { store_f16(p, a); }
  VITRINE_FORCE_INLINE void write_part(std::uint16_t* p, f32x16 a, int n) { store_f16_part(p, a, n); }
};
struct ElementBF16 {
  using Type = std::uint16_t;
  static constexpr bool streams = true;
  VITRINE_FORCE_INLINE f32x16 read(const std::uint16_t* p) { return load_bf16(p); }
  VITRINE_FORCE_INLINE f32x16 read_part(const std::uint16_t* p, int n) { return load_bf16_part(p, n); }
  VITRINE_FORCE_INLINE void write(std::uint16_t* p, f32x16 a) { store_bf16(p, a); }
  VITRINE_FORCE_INLINE void write_part(std::uint16_t* p, f32x16 a, int n) { store_bf16_part(p, a, n); }
};
struct ElementInt8 {
  using Type = std::uint8_t;
  static constexpr DType type = DType::int8;
  static constexpr bool streams = true;
  VITRINE_FORCE_INLINE f32x16 read(const std::uint8_t* p) { return load_i8(p); }
};
// Sixteen bytes hold 32 values: vector 0 in the low and vector 1 in the high nibbles. `first`: which of them a tile
// begins with.
template <int first>
struct ElementInt4 {
  using Type = std::uint8_t;
  static constexpr DType type = DType::int4;
  static constexpr bool streams = first == 0;
  static constexpr int first_half = first;
};

// Vector c of sixteen columns, counted from a place in a row of V.
template <class Element>
VITRINE_FORCE_INLINE f32x16 vector_at(const typename Element::Type* v, int c) {
  if constexpr (requires { Element::first_half; }) {
    const std::uint8_t* pair = v + c / 2 * 16;
    return (Element::first_half + c) % 2 == 0 ? load_i4<0>(pair) : load_i4<1>(pair);
  } else {
    return Element::read(v + 16 * c);
  }
}
// Elements from a row's start to the first of these columns: a multiple of 16, for INT4 of 32 or the half of that.
template <class Element>
VITRINE_FORCE_INLINE std::int64_t place_of(std::int64_t column) {
  if constexpr (requires { Element::first_half; }) return column / 32 * 16;
  return column;
}

// sum[r][c] = fma(row(r), column(c), sum[r][c]) for all r, c; the smaller side is held in registers while the other one
// streams by. The order of the sums' chains does not depend on it.
template <int R, int C, class Row, class Column>
VITRINE_FORCE_INLINE void multiply_all(f32x16 (&sum)[R][C], Row row, Column column) {
  if constexpr (R < C * registers_of_lanes) {
    f32x16 rows[R];
    unroll<R>([&](auto r) { rows[r] = row(r); });
    unroll<C>([&](auto c) {
      const f32x16 a = column(c);
      unroll<R>([&](auto r) { sum[r][c] = fma(rows[r], a, sum[r][c]); });
    });
  } else {
    f32x16 columns[C];
    unroll<C>([&](auto c) { columns[c] = column(c); });
    unroll<R>([&](auto r) {
      const f32x16 a = row(r);
      unroll<C>([&](auto c) { sum[r][c] = fma(a, columns[c], sum[r][c]); });
    });
  }
}

// Groups of rows come in these sizes only, to keep the number of compiled tiles down.
constexpr bool is_group_size(int n) { return n == 1 || n == 2 || n == 3 || n == 4 || n == 6 || n == 8 || n == 12; }

// The greatest size for at most n rows, n >= 1.
constexpr std::int64_t group_size(std::int64_t n) {
  int size = int(least(n, group_rows));
  while (!is_group_size(size)) --size;
  return size;
}

// f.template operator()<n>() for a run-time group size n.
template <int at_most, class F>
VITRINE_FORCE_INLINE void with_rows(std::int64_t n, F f) {
  if constexpr (!is_group_size(at_most)) {
    return with_rows<at_most - 1>(n, f);
  } else {
    if constexpr (at_most > 1) {
      if (n < at_most) return with_rows<at_most - 1>(n, f);
    }
    f.template operator()<at_most>();
  }
}

// Asks for n elements that will be read later, one request for each cache line. Without always_inline a compiler may
// take calls that only fetch for calls that do nothing.
template <class Element, int n>
VITRINE_FORCE_INLINE void ask_for(const typename Element::Type* ahead) {
  constexpr int bytes = n * int(sizeof(typename Element::Type));
  if constexpr (Element::streams) {
    unroll<divide_up(bytes, 64)>([&](auto line) __attribute__((always_inline)) {
      prefetch_far(reinterpret_cast<const char*>(ahead) + 64 * line);
    });
  }
}

// scores[r][16 p + lane] = scale * sum over d of q[d][r] * k[p][d][lane].
template <class Element, int R, int P>
VITRINE_FORCE_INLINE void score_tile(const typename Element::Type* k, const typename Element::Type* ahead,
                                     std::int64_t head_dim, const float* q, float scale, float* scores,
                                     std::int64_t stride) {
  f32x16 sum[R][P];
  unroll<R>([&](auto r) { unroll<P>([&](auto p) { sum[r][p] = zero(); }); });
  for (std::int64_t d = 0; d < head_dim; ++d) {
    ask_for<Element, 16 * P>(ahead + d * 16 * P);
    multiply_all<R, P>(
        sum, [&](int r) __attribute__((always_inline)) { return broadcast(q[d * R + r]); },
        [&](int p) __attribute__((always_inline)) { return Element::read(k + (p * head_dim + d) * 16); });
  }
  const f32x16 factor = broadcast(scale);
  unroll<R>([&](auto r) { unroll<P>([&](auto p) { store(scores + r * stride + 16 * p, sum[r][p] * factor); }); });
}

// Rows of V for consecutive keys: one stretch of a cache block.
template <class Type>
struct Piece {
  const Type *v, *ahead;  // [n_keys][v_stride]
  std::int64_t n_keys;
};

// mix[r][column] += sum over keys of weights[r][key] * v[key][column], for 16 C columns from `column`.
template <class Element, int R, int C>
VITRINE_FORCE_INLINE void mix_tile(const float* weights, std::int64_t stride,
                                   const Piece<typename Element::Type>* pieces, int n_pieces, std::int64_t v_stride,
                                   std::int64_t column, float* mix, std::int64_t mix_stride) {
  f32x16 sum[R][C];
  unroll<R>([&](auto r) { unroll<C>([&](auto c) { sum[r][c] = load(mix + r * mix_stride + 16 * c); }); });
  for (int i = 0; i < n_pieces; ++i) {
    const std::int64_t place = place_of<Element>(column);
    const typename Element::Type *v = pieces[i].v + place, *ahead = pieces[i].ahead + place;
    for (std::int64_t n = pieces[i].n_keys; n > 0; --n) {
      ask_for<Element, 16 * C>(ahead);
      multiply_all<R, C>(
          sum, [&](int r) __attribute__((always_inline)) { return broadcast(weights[r * stride]); },
          [&](int c) __attribute__((always_inline)) { return vector_at<Element>(v, c); });
      v += v_stride;
      ahead += v_stride;
      ++weights;
    }
  }
  unroll<R>([&](auto r) { unroll<C>([&](auto c) { store(mix + r * mix_stride + 16 * c, sum[r][c]); }); });
}

// Columns [column, n_columns): strips of C vectors, the rest in narrower ones.
template <class Element, int R, int C>
inline void mix_columns(const float* weights, std::int64_t stride, const Piece<typename Element::Type>* pieces,
                        int n_pieces, std::int64_t v_stride, float* mix, std::int64_t mix_stride,
                        std::int64_t n_columns, std::int64_t column = 0) {
  for (; column + 16 * C <= n_columns; column += 16 * C) {
    mix_tile<Element, R, C>(weights, stride, pieces, n_pieces, v_stride, column, mix + column, mix_stride);
  }
  if constexpr (C > 1) {
    if (column < n_columns) {
      mix_columns<Element, R, C / 2>(weights, stride, pieces, n_pieces, v_stride, mix, mix_stride, n_columns, column);
    }
  }
}

}  // namespace attention_detail

VITRINE_ISA_NAMESPACE_END
