// Scores against quantised keys, sixteen keys to a vector, without a float of K in memory.
//
//   q about q8 * sq      sq = amax / 127 over the head, q8 to nearest even: once for each query row of a call
//   s = (sum over groups g ascending of float(i_g) * sk_g, by fused multiply-adds from 0) * (sq * scale)
//
// i_g is the exact 32-bit dot of q8 and the keys' integers in group g (simd/kv_format.hpp); the offset of INT4's
// nibbles, and of INT8 where the instruction wants unsigned bytes, is taken back in integers. Tiles as in
// attention_tiles.hpp: R rows against P panels, so that a panel that is loaded is used R times.
#pragma once

#include "vitrine/core/rounding.hpp"
#include "vitrine/simd/attention_kernels.hpp"
#include "vitrine/simd/attention_tiles.hpp"
#include "vitrine/simd/kv_format.hpp"
#include "vitrine/simd/quantise.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

namespace attention_detail {

// Element types of K. A row of 64 bytes holds `parts` times four values of each of sixteen keys.
struct KeysInt8 {
  static constexpr DType type = DType::int8;
  static constexpr int bits = 8, parts = 1;
  static constexpr std::int64_t group_rows(std::int64_t all) { return all; }  // the whole head
};
struct KeysInt4 {
  static constexpr DType type = DType::int4;
  static constexpr int bits = 4, parts = 2;
  static constexpr std::int32_t offset = 8;
  static constexpr std::int64_t group_rows(std::int64_t) { return kv_int4_group / 8; }
};

// The queries of a call, packed; they take the place that float queries have in the scratch.
struct IntegerQueries {
  std::int64_t bytes, n_groups;  // of a row
  std::int8_t* q;                // per group of rows [bytes / 4][rows of the group][4]
  float* factors;                // [rows] sq * scale
  std::int32_t* starts;          // per group of rows [n_groups][rows of the group]: the offset taken back

  IntegerQueries(float* memory, DType type, std::int64_t head_dim)
      : bytes(round_up(head_dim, 8)), n_groups(kv_n_groups(type, head_dim)) {
    q = reinterpret_cast<std::int8_t*>(memory);
    factors = memory + attention_max_rows * bytes / 4;
    starts = reinterpret_cast<std::int32_t*>(factors + attention_max_rows);
  }
};

// Row r of n rows that begin with row `first` of the call.
inline void pack_integer_query(std::int32_t key_offset, const float* x, std::int64_t head_dim, float scale,
                               const IntegerQueries& out, std::int64_t first, std::int64_t n, std::int64_t r) {
  const auto read = [&](std::int64_t d) { return load_part(x + d, int(least(head_dim - d, 16))); };
  i32x16 amax = broadcast_i32(0);
  for (std::int64_t d = 0; d < head_dim; d += 16) amax = max_i32(amax, quantise_detail::magnitude_bits(read(d)));
  const auto block = quantise_detail::block_scale(hmax_i32(amax));
  out.factors[first + r] = block.scale * scale;
  const f32x16 inverse = broadcast(block.inverse);
  std::int8_t* const q = out.q + first * out.bytes;
  std::int32_t* const starts = out.starts + first * out.n_groups;
  for (std::int64_t g = 0; g < out.n_groups; ++g) starts[g * n + r] = 0;
  for (std::int64_t d = 0; d < head_dim; d += 16) {
    const i32x16 values = to_i32(read(d) * inverse);
    std::int8_t sixteen[16];
    to_bytes(sixteen, values);
    for (std::int64_t four = 0; four < 4 && d + 4 * four < out.bytes; ++four) {
      __builtin_memcpy(q + ((d / 4 + four) * n + r) * 4, sixteen + 4 * four, 4);
    }
    const std::int64_t group = out.n_groups == 1 ? 0 : d / kv_int4_group;
    starts[group * n + r] -= key_offset * hsum_i32(values);
  }
}

// The sums of one tile: 32 bits where the instructions add into those, else 16-bit pairs as far as they hold.
template <class KeyType, int n>
struct IntegerDots {
  static constexpr int bits = KeyType::bits;
  static constexpr bool in_partials = partials_are_wide || partial_groups<bits> >= 8;
  i32x16 dot[n];
  Partial partial[n];

  __attribute__((always_inline)) void start(int i, std::int32_t value) {
    dot[i] = broadcast_i32(value);
    if constexpr (partials_are_wide) {
      partial[i] = as_partial(dot[i]);
    } else if constexpr (in_partials) {
      partial[i] = Partial{};
    }
  }
  template <class Weights>
  __attribute__((always_inline)) void add(int i, Weights w, XGroup x) {
    if constexpr (in_partials) {
      partial[i] = dot_next<bits>(partial[i], w, x);
    } else {
      dot[i] = dot[i] + widen(dot_first<bits>(w, x));
    }
  }
  __attribute__((always_inline)) i32x16 result(int i) const {
    if constexpr (partials_are_wide) return widen(partial[i]);
    if constexpr (in_partials) return dot[i] + widen(partial[i]);
    return dot[i];
  }
};

template <class KeyType, int part>
VITRINE_FORCE_INLINE bytes64 part_of(bytes64 row) {
  if constexpr (KeyType::bits == 8) return to_scratch<8>(row);
  if constexpr (part == 0) return low_nibbles(row);
  return high_nibbles(row);
}

// scores[r][16 p + lane] of P panels and R of the rows.
template <class KeyType, int R, int P>
VITRINE_FORCE_INLINE void score_tile(const IntegerTile& t, float* scores) {
  f32x16 sum[R * P];
  unroll<R * P>([&](auto i) { sum[i] = zero(); });
  const std::int64_t panel_bytes = 64 * t.n_rows;
  const std::int8_t* q = t.q;
  std::int64_t row = 0;
  for (std::int64_t g = 0; g < t.n_groups; ++g) {
    IntegerDots<KeyType, R * P> dots;
    unroll<R>([&](auto r) {
      const std::int32_t start = t.starts[g * t.n + r];
      unroll<P>([&](auto p) { dots.start(r * P + p, start); });
    });
    for (const std::int64_t end = least(row + KeyType::group_rows(t.n_rows), t.n_rows); row < end; ++row) {
      bytes64 keys[P];
      unroll<P>([&](auto p) __attribute__((always_inline)) {
        prefetch_far(t.ahead + 64 * (row * P + p));
        keys[p] = load_bytes(t.k + p * panel_bytes + 64 * row);
      });
      unroll<KeyType::parts>([&](auto part) {
        decltype(dot_weights<KeyType::bits>(bytes64{})) weights[P];
        unroll<P>(
            [&](auto p) { weights[p] = dot_weights<KeyType::bits>(part_of<KeyType, decltype(part)::value>(keys[p])); });
        unroll<R>([&](auto r) {
          const XGroup four = x_group(q + 4 * r);
          unroll<P>([&](auto p) { dots.add(r * P + p, weights[p], four); });
        });
        q += 4 * t.n;
      });
    }
    unroll<P>([&](auto p) {
      const f32x16 scale = load_bf16(t.scales + (p * t.n_groups + g) * 16);
      unroll<R>([&](auto r) {
        const int i = r * P + p;
        sum[i] = fma(to_f32(dots.result(i)), scale, sum[i]);
      });
    });
  }
  unroll<R>([&](auto r) {
    const f32x16 factor = broadcast(t.factors[r]);
    unroll<P>([&](auto p) { store(scores + r * score_stride + 16 * p, sum[r * P + p] * factor); });
  });
}

template <class KeyType>
inline void score_panels(const IntegerTile& tile, std::int64_t n_panels, float* scores) {
  const std::int64_t panel_bytes = 64 * tile.n_rows;
  for (std::int64_t done = 0, some = 0; done < tile.n; done += some) {
    some = group_size(least(tile.n - done, integer_rows));
    with_rows<integer_rows>(some, [&]<int R>() {
      // INT4 needs room for the float sums beside the integer ones.
      constexpr int P = beside(R * KeyType::parts, 4);
      float* const out = scores + done * score_stride;
      const auto at = [&](std::int64_t panel) {
        IntegerTile here = tile;
        here.q += 4 * done;
        here.starts += done;
        here.factors += done;
        here.k += panel * panel_bytes;
        here.ahead += panel * panel_bytes;
        here.scales += panel * tile.n_groups * panel_keys;
        return here;
      };
      std::int64_t p = 0;
      for (; p + P <= n_panels; p += P) score_tile<KeyType, R, P>(at(p), out + p * panel_keys);
      for (; P > 1 && p < n_panels; ++p) score_tile<KeyType, R, 1>(at(p), out + p * panel_keys);
    });
  }
}

inline constexpr IntegerScores integer_scores = {score_panels<KeysInt8>, score_panels<KeysInt4>, scratch_offset<8>};

}  // namespace attention_detail

VITRINE_ISA_NAMESPACE_END
