// Integer dots in portable code: the plain statement of what each operation of lanes_bytes.hpp means.
//
//   dot_next<bits>(sum, w, x)    sum[r] += w[4 r] x[0] + w[4 r + 1] x[1] + w[4 r + 2] x[2] + w[4 r + 3] x[3]
//
// w is 64 bytes, [16 rows][4], signed for bits = 8 and unsigned otherwise; x four signed bytes. Partial sums are 32-bit
// from the start, so nothing has to be widened and the scratch form of weights is the weights.
#pragma once

#include <cstdint>

#include "vitrine/simd/lanes_scalar.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

struct bytes64 {
  std::uint8_t v[64];
};
struct XGroup {
  std::int32_t v[4];
};
using Partial = i32x16;

template <int bits>
inline constexpr int partial_groups = 1 << 20;
inline constexpr bool partials_are_wide = true;  // 32-bit sums, so that as_partial exists
template <int bits>
inline constexpr int scratch_offset = 0;
inline constexpr int tile_tokens = 1, tile_panels = 1, float_tile_tokens = 1, float_panels = 1;
inline constexpr bool accumulators_in_registers = false;
inline constexpr int max_accumulators = 4, group_rows = 4, integer_rows = 4, registers_of_lanes = 4;

VITRINE_FORCE_INLINE f32x16 load_i8(const std::uint8_t* p) {
  return lanes_detail::each<f32x16>([&](int i) { return float(std::int8_t(p[i])); });
}
template <int half>
VITRINE_FORCE_INLINE f32x16 load_i4(const std::uint8_t* p) {
  return lanes_detail::each<f32x16>([&](int i) { return float((p[i] >> 4 * half & 15) - 8); });
}
VITRINE_FORCE_INLINE bytes64 load_bytes(const std::uint8_t* p) {
  bytes64 out;
  __builtin_memcpy(out.v, p, 64);
  return out;
}
VITRINE_FORCE_INLINE void store_bytes(std::uint8_t* p, bytes64 a) { __builtin_memcpy(p, a.v, 64); }
VITRINE_OUT_OF_LINE bytes64 operator|(bytes64 a, bytes64 b) {
  for (int i = 0; i < 64; ++i) a.v[i] |= b.v[i];
  return a;
}
template <int from, int width, int to>
VITRINE_OUT_OF_LINE bytes64 move_bits(bytes64 a) {
  for (int i = 0; i < 64; ++i) a.v[i] = std::uint8_t((a.v[i] >> from & ((1 << width) - 1)) << to);
  return a;
}
VITRINE_OUT_OF_LINE bytes64 low_nibbles(bytes64 a) { return move_bits<0, 4, 0>(a); }
VITRINE_OUT_OF_LINE bytes64 high_nibbles(bytes64 a) { return move_bits<4, 4, 0>(a); }

template <int width>
VITRINE_OUT_OF_LINE i32x16 row_bits(const std::uint8_t* p, int from) {
  return lanes_detail::each<i32x16>([&](int r) {
    std::uint32_t row;
    __builtin_memcpy(&row, p + 4 * r, 4);
    return std::int32_t(row >> from & ((1u << width) - 1));
  });
}

VITRINE_FORCE_INLINE XGroup x_group(const std::int8_t* x) { return {{x[0], x[1], x[2], x[3]}}; }
template <int bits>
VITRINE_FORCE_INLINE bytes64 to_scratch(bytes64 w) {
  return w;
}
VITRINE_OUT_OF_LINE bytes64 offset_to_scratch(bytes64 w) {
  for (int i = 0; i < 64; ++i) w.v[i] ^= 0x80;
  return w;
}
template <int bits>
VITRINE_FORCE_INLINE bytes64 dot_weights(bytes64 w) {
  return w;
}
template <int bits>
VITRINE_OUT_OF_LINE Partial dot_next(Partial sum, const bytes64& w, const XGroup& x) {
  for (int r = 0; r < 16; ++r) {
    std::int32_t dot = 0;
    for (int i = 0; i < 4; ++i) {
      const std::uint8_t byte = w.v[4 * r + i];
      dot += (bits == 8 ? std::int32_t(std::int8_t(byte)) : std::int32_t(byte)) * x.v[i];
    }
    sum.v[r] += dot;
  }
  return sum;
}
template <int bits>
VITRINE_OUT_OF_LINE Partial dot_first(const bytes64& w, const XGroup& x) {
  return dot_next<bits>(broadcast_i32(0), w, x);
}

VITRINE_FORCE_INLINE Partial as_partial(i32x16 sum) { return sum; }
template <int shift>
VITRINE_FORCE_INLINE Partial partial_of(std::int32_t sum, const std::int16_t*) {
  return shift_left<shift>(broadcast_i32(sum));
}
VITRINE_FORCE_INLINE i32x16 widen(Partial sum) { return sum; }
VITRINE_OUT_OF_LINE i32x16 widen_scaled(Partial sum, i32x16 scale) {
  return lanes_detail::each<i32x16>([&](int r) { return sum.v[r] * scale.v[r]; });
}
template <int i>
VITRINE_OUT_OF_LINE i32x16 scale_at(bytes64 a) {
  return lanes_detail::each<i32x16>([&](int r) { return std::int32_t(a.v[4 * r + i]); });
}
template <int i>
VITRINE_OUT_OF_LINE i32x16 signed_scale_at(bytes64 a) {
  return lanes_detail::each<i32x16>([&](int r) { return std::int32_t(std::int8_t(a.v[4 * r + i])); });
}

namespace lanes_detail {
VITRINE_FORCE_INLINE std::int32_t two_words(std::int32_t low, std::int32_t high) {
  return std::int32_t((std::uint32_t(low) & 0xffffu) | std::uint32_t(high) << 16);
}
}  // namespace lanes_detail

VITRINE_OUT_OF_LINE i32x16 even_bytes(bytes64 a) {
  return lanes_detail::each<i32x16>([&](int r) { return lanes_detail::two_words(a.v[4 * r], a.v[4 * r + 2]); });
}
VITRINE_OUT_OF_LINE i32x16 odd_bytes(bytes64 a) {
  return lanes_detail::each<i32x16>([&](int r) { return lanes_detail::two_words(a.v[4 * r + 1], a.v[4 * r + 3]); });
}
VITRINE_OUT_OF_LINE i32x16 signed_even_bytes(bytes64 a) {
  return lanes_detail::each<i32x16>(
      [&](int r) { return lanes_detail::two_words(std::int8_t(a.v[4 * r]), std::int8_t(a.v[4 * r + 2])); });
}
VITRINE_OUT_OF_LINE i32x16 signed_odd_bytes(bytes64 a) {
  return lanes_detail::each<i32x16>(
      [&](int r) { return lanes_detail::two_words(std::int8_t(a.v[4 * r + 1]), std::int8_t(a.v[4 * r + 3])); });
}
VITRINE_OUT_OF_LINE i32x16 dot_pairs(i32x16 sum, i32x16 words, const std::int16_t* pair) {
  return lanes_detail::each<i32x16>([&](int r) {
    return sum.v[r] + std::int32_t(std::int16_t(words.v[r])) * pair[0] + (words.v[r] >> 16) * pair[1];
  });
}

VITRINE_OUT_OF_LINE void to_bytes(std::int8_t* p, i32x16 a) {
  for (int i = 0; i < 16; ++i) p[i] = std::int8_t(a.v[i] < -128 ? -128 : a.v[i] > 127 ? 127 : a.v[i]);
}
VITRINE_FORCE_INLINE i32x16 max_i32(i32x16 a, i32x16 b) {
  return lanes_detail::each<i32x16>([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
VITRINE_OUT_OF_LINE std::int32_t hmax_i32(i32x16 a) {
  std::int32_t out = a.v[0];
  for (int i = 1; i < 16; ++i) out = a.v[i] > out ? a.v[i] : out;
  return out;
}
VITRINE_OUT_OF_LINE std::int32_t hsum_i32(i32x16 a) {
  std::uint32_t out = 0;
  for (int i = 0; i < 16; ++i) out += std::uint32_t(a.v[i]);
  return std::int32_t(out);
}
VITRINE_OUT_OF_LINE void hsum_pairs(i32x16 a, std::int32_t* two) {
  std::uint32_t sums[2] = {};
  for (int i = 0; i < 16; ++i) sums[i / 2 % 2] += std::uint32_t(a.v[i]);
  for (int i = 0; i < 2; ++i) two[i] = std::int32_t(sums[i]);
}
template <int n>
VITRINE_FORCE_INLINE void keep(Partial (&)[n]) {}
VITRINE_FORCE_INLINE void prefetch(const void*) {}
VITRINE_FORCE_INLINE void prefetch_far(const void*) {}

VITRINE_ISA_NAMESPACE_END
