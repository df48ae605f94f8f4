// Integer dots with AVX-512: vpdpbusd into 32-bit sums where the CPU has VNNI, else as on AVX2 with wider registers.
// See lanes_bytes.hpp.
//
// vpdpbusd wants unsigned weights: signed ones are offset by 128 (one exclusive-or), and the caller takes 128 * sum(x)
// back. Without VNNI signed weights go through their absolute value, as on AVX2.
#pragma once

#include <cstdint>

#include "vitrine/simd/lanes_avx512.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

struct bytes64 {
  __m512i v;
};
struct XGroup {
  __m512i v;
};
struct Partial {
  __m512i v;
};

inline constexpr int tile_tokens = 4, tile_panels = 2, float_tile_tokens = 12, float_panels = 4;
inline constexpr bool accumulators_in_registers = true;
inline constexpr int max_accumulators = 24, group_rows = 12, integer_rows = 12, registers_of_lanes = 1;

VITRINE_FORCE_INLINE f32x16 load_i8(const std::uint8_t* p) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}
// A table of floats saves the conversion; it looks at the low four bits of each lane only.
template <int half>
VITRINE_FORCE_INLINE f32x16 load_i4(const std::uint8_t* p) {
  const __m512 values = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
  const __m512i bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  if constexpr (half == 0) return {_mm512_permutexvar_ps(bytes, values)};
  return {_mm512_permutexvar_ps(_mm512_srli_epi32(bytes, 4), values)};
}
VITRINE_FORCE_INLINE bytes64 load_bytes(const std::uint8_t* p) { return {_mm512_loadu_si512(p)}; }
VITRINE_FORCE_INLINE void store_bytes(std::uint8_t* p, bytes64 a) { _mm512_storeu_si512(p, a.v); }
VITRINE_FORCE_INLINE bytes64 operator|(bytes64 a, bytes64 b) { return {_mm512_or_si512(a.v, b.v)}; }
// Shifts 16-bit units; what crosses from one byte into its neighbour is masked away.
template <int from, int width, int to>
VITRINE_FORCE_INLINE bytes64 move_bits(bytes64 a) {
  const __m512i mask = _mm512_set1_epi8(char(((1 << width) - 1) << to));
  if constexpr (from > to) return {_mm512_and_si512(_mm512_srli_epi16(a.v, from - to), mask)};
  if constexpr (from < to) return {_mm512_and_si512(_mm512_slli_epi16(a.v, to - from), mask)};
  return {_mm512_and_si512(a.v, mask)};
}
VITRINE_FORCE_INLINE bytes64 low_nibbles(bytes64 a) { return move_bits<0, 4, 0>(a); }
VITRINE_FORCE_INLINE bytes64 high_nibbles(bytes64 a) { return move_bits<4, 4, 0>(a); }

template <int width>
VITRINE_FORCE_INLINE i32x16 row_bits(const std::uint8_t* p, int from) {
  const __m512i rows = _mm512_srl_epi32(load_bytes(p).v, _mm_cvtsi32_si128(from));
  return {_mm512_and_si512(rows, _mm512_set1_epi32((1 << width) - 1))};
}

VITRINE_FORCE_INLINE XGroup x_group(const std::int8_t* x) {
  std::int32_t four;
  __builtin_memcpy(&four, x, 4);
  return {_mm512_set1_epi32(four)};
}

#if VITRINE_ISA_DOTS >= 1

inline constexpr bool partials_are_wide = true;  // 32-bit sums, so that as_partial exists
template <int bits>
inline constexpr int partial_groups = 1 << 20;
template <int bits>
inline constexpr int scratch_offset = bits == 8 ? 128 : 0;

template <int bits>
VITRINE_FORCE_INLINE bytes64 to_scratch(bytes64 w) {
  if constexpr (bits == 8)
    return {_mm512_xor_si512(w.v, _mm512_set1_epi8(char(0x80)))};
  else
    return w;
}
VITRINE_FORCE_INLINE bytes64 offset_to_scratch(bytes64 w) { return w; }
template <int bits>
VITRINE_FORCE_INLINE bytes64 dot_weights(bytes64 w) {
  return w;
}
template <int bits>
VITRINE_FORCE_INLINE Partial dot_next(Partial sum, bytes64 w, XGroup x) {
  return {_mm512_dpbusd_epi32(sum.v, w.v, x.v)};
}
template <int bits>
VITRINE_FORCE_INLINE Partial dot_first(bytes64 w, XGroup x) {
  return {_mm512_dpbusd_epi32(_mm512_setzero_si512(), w.v, x.v)};
}
VITRINE_FORCE_INLINE Partial as_partial(i32x16 sum) { return {sum.v}; }
template <int shift>
VITRINE_FORCE_INLINE Partial partial_of(std::int32_t sum, const std::int16_t*) {
  return as_partial(shift_left<shift>(broadcast_i32(sum)));
}
VITRINE_FORCE_INLINE i32x16 widen(Partial sum) { return {sum.v}; }
VITRINE_FORCE_INLINE i32x16 widen_scaled(Partial sum, i32x16 scale) { return {_mm512_mullo_epi32(sum.v, scale.v)}; }
template <int i>
VITRINE_FORCE_INLINE i32x16 scale_at(bytes64 a) {
  if constexpr (i == 3) return {_mm512_srli_epi32(a.v, 24)};
  return {_mm512_and_si512(_mm512_srli_epi32(a.v, 8 * i), _mm512_set1_epi32(0xff))};
}
template <int i>
VITRINE_FORCE_INLINE i32x16 signed_scale_at(bytes64 a) {
  return {_mm512_srai_epi32(_mm512_slli_epi32(a.v, 24 - 8 * i), 24)};
}
VITRINE_FORCE_INLINE i32x16 dot_pairs(i32x16 sum, i32x16 words, const std::int16_t* pair) {
  std::int32_t two;
  __builtin_memcpy(&two, pair, 4);
  return {_mm512_dpwssd_epi32(sum.v, words.v, _mm512_set1_epi32(two))};
}

#else

inline constexpr bool partials_are_wide = false;
Partial as_partial(i32x16);  // no such thing: a Partial has 16-bit halves
template <int bits>
inline constexpr int partial_groups = bits == 4   ? 8
                                      : bits == 5 ? 4
                                      : bits == 6 ? 2
                                                  : 1;
template <int bits>
inline constexpr int scratch_offset = 0;

template <int bits>
VITRINE_FORCE_INLINE bytes64 to_scratch(bytes64 w) {
  return w;
}
VITRINE_FORCE_INLINE bytes64 offset_to_scratch(bytes64 w) {
  return {_mm512_xor_si512(w.v, _mm512_set1_epi8(char(0x80)))};
}
struct SignedWeights {
  __m512i magnitude;
  __mmask64 negative;
};
template <int bits>
VITRINE_FORCE_INLINE auto dot_weights(bytes64 w) {
  if constexpr (bits == 8)
    return SignedWeights{_mm512_abs_epi8(w.v), _mm512_movepi8_mask(w.v)};
  else
    return w;
}
template <int bits>
VITRINE_FORCE_INLINE Partial dot_first(bytes64 w, XGroup x) {
  return {_mm512_maddubs_epi16(w.v, x.v)};
}
template <int bits>
VITRINE_FORCE_INLINE Partial dot_first(SignedWeights w, XGroup x) {
  return {_mm512_maddubs_epi16(w.magnitude, _mm512_mask_sub_epi8(x.v, w.negative, _mm512_setzero_si512(), x.v))};
}
template <int bits, class Weights>
VITRINE_FORCE_INLINE Partial dot_next(Partial sum, Weights w, XGroup x) {
  return {_mm512_add_epi16(sum.v, dot_first<bits>(w, x).v)};
}
template <int shift>
VITRINE_FORCE_INLINE Partial partial_of(std::int32_t, const std::int16_t* parts) {
  std::int32_t two;
  __builtin_memcpy(&two, parts, 4);
  return {_mm512_slli_epi16(_mm512_set1_epi32(two), shift)};
}
VITRINE_FORCE_INLINE i32x16 widen(Partial sum) { return {_mm512_madd_epi16(sum.v, _mm512_set1_epi16(1))}; }
// `scale` has the row's scale in both 16-bit halves of its lane.
VITRINE_FORCE_INLINE i32x16 widen_scaled(Partial sum, i32x16 scale) { return {_mm512_madd_epi16(sum.v, scale.v)}; }
namespace lanes_detail {
// Byte i of each 32-bit lane into its bytes 0 and 2 (shift = 0) or 1 and 3 (shift = 8), zeros elsewhere.
template <int i, int shift>
VITRINE_FORCE_INLINE __m512i twice(__m512i a) {
  constexpr int lane = shift == 0 ? (0x80008000 | i << 16 | i) : (i << 24 | 0x800080 | i << 8);
  const __m512i base = _mm512_set4_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0);
  return _mm512_shuffle_epi8(a, _mm512_or_si512(base, _mm512_set1_epi32(lane)));
}
}  // namespace lanes_detail
template <int i>
VITRINE_FORCE_INLINE i32x16 scale_at(bytes64 a) {
  return {lanes_detail::twice<i, 0>(a.v)};
}
template <int i>
VITRINE_FORCE_INLINE i32x16 signed_scale_at(bytes64 a) {
  const __m512i words = lanes_detail::twice<i, 8>(a.v);  // a name: without optimisation, the next one is a macro
  return {_mm512_srai_epi16(words, 8)};
}
VITRINE_FORCE_INLINE i32x16 dot_pairs(i32x16 sum, i32x16 words, const std::int16_t* pair) {
  std::int32_t two;
  __builtin_memcpy(&two, pair, 4);
  return {_mm512_add_epi32(sum.v, _mm512_madd_epi16(words.v, _mm512_set1_epi32(two)))};
}

#endif

VITRINE_FORCE_INLINE i32x16 even_bytes(bytes64 a) { return {_mm512_and_si512(a.v, _mm512_set1_epi16(0xff))}; }
VITRINE_FORCE_INLINE i32x16 odd_bytes(bytes64 a) { return {_mm512_srli_epi16(a.v, 8)}; }
VITRINE_FORCE_INLINE i32x16 signed_even_bytes(bytes64 a) { return {_mm512_srai_epi16(_mm512_slli_epi16(a.v, 8), 8)}; }
VITRINE_FORCE_INLINE i32x16 signed_odd_bytes(bytes64 a) { return {_mm512_srai_epi16(a.v, 8)}; }

VITRINE_FORCE_INLINE void to_bytes(std::int8_t* p, i32x16 a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtsepi32_epi8(a.v));
}
VITRINE_FORCE_INLINE i32x16 max_i32(i32x16 a, i32x16 b) { return {_mm512_max_epi32(a.v, b.v)}; }
VITRINE_FORCE_INLINE std::int32_t hmax_i32(i32x16 a) {
  const __m512i raw = a.v;
  const __m256i eight = _mm256_max_epi32(_mm512_castsi512_si256(raw), _mm512_extracti64x4_epi64(raw, 1));
  const __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  const __m128i two = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  return _mm_cvtsi128_si32(_mm_max_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}
VITRINE_FORCE_INLINE std::int32_t hsum_i32(i32x16 a) {
  const __m512i raw = a.v;
  const __m256i eight = _mm256_add_epi32(_mm512_castsi512_si256(raw), _mm512_extracti64x4_epi64(raw, 1));
  const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}
VITRINE_FORCE_INLINE void hsum_pairs(i32x16 a, std::int32_t* two) {
  const __m512i raw = a.v;
  const __m256i eight = _mm256_add_epi32(_mm512_castsi512_si256(raw), _mm512_extracti64x4_epi64(raw, 1));
  const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  const __m128i sums = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1));
  two[0] = _mm_cvtsi128_si32(sums);
  two[1] = _mm_extract_epi32(sums, 2);
}
// g++ 12 otherwise loads ahead, runs out of registers and spills the sums.
template <int n>
VITRINE_FORCE_INLINE void keep(Partial (&sums)[n]) {
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) __asm__ volatile("" : "+v"(sums[i].v));
}
VITRINE_FORCE_INLINE void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }
VITRINE_FORCE_INLINE void prefetch_far(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1); }

VITRINE_ISA_NAMESPACE_END
