// Integer dots with 256-bit registers: vpdpbusd into 32-bit sums where the CPU has AVX-VNNI, else vpmaddubsw into
// 16-bit pairs, as many as fit, then vpmaddwd. See lanes_bytes.hpp.
//
// vpdpbusd wants unsigned weights: signed ones are offset by 128 (one exclusive-or), and the caller takes 128 * sum(x)
// back. vpmaddubsw also saturates, so there signed 8-bit weights go through their absolute value (128 included) with
// the sign moved to the activation, which lies in [-127, 127]: a pair is at most 2 * 128 * 127 = 32512.
#pragma once

#include <cstdint>

#include "vitrine/simd/lanes_avx2.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

struct bytes64 {
  __m256i lo, hi;
};
struct XGroup {
  __m256i v;
};
struct Partial {
  __m256i lo, hi;
};

inline constexpr int tile_tokens = 4, tile_panels = 1, float_tile_tokens = 6, float_panels = 4;
inline constexpr bool accumulators_in_registers = false;
// There is room for six accumulators beside a group's one panel, but six as 3 x 2 would leave one register too few.
inline constexpr int max_accumulators = 5, group_rows = 6, integer_rows = 3, registers_of_lanes = 2;

namespace lanes_detail {
VITRINE_FORCE_INLINE __m256 widen_i8(__m128i low_eight) { return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(low_eight)); }
}  // namespace lanes_detail
VITRINE_FORCE_INLINE f32x16 load_i8(const std::uint8_t* p) {
  return {lanes_detail::widen_i8(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))),
          lanes_detail::widen_i8(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + 8)))};
}
template <int half>
VITRINE_FORCE_INLINE f32x16 load_i4(const std::uint8_t* p) {
  __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  if constexpr (half == 1) bytes = _mm_srli_epi16(bytes, 4);
  const __m128i v = _mm_sub_epi8(_mm_and_si128(bytes, _mm_set1_epi8(15)), _mm_set1_epi8(8));
  return {lanes_detail::widen_i8(v), lanes_detail::widen_i8(_mm_unpackhi_epi64(v, v))};
}
VITRINE_FORCE_INLINE bytes64 load_bytes(const std::uint8_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32))};
}
VITRINE_FORCE_INLINE void store_bytes(std::uint8_t* p, bytes64 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.lo);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 32), a.hi);
}
VITRINE_FORCE_INLINE bytes64 operator|(bytes64 a, bytes64 b) {
  return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)};
}

namespace lanes_detail {
// Shifts 16-bit units; what crosses from one byte into its neighbour is masked away.
template <int from, int width, int to>
VITRINE_FORCE_INLINE __m256i move_bits_32(__m256i a) {
  const __m256i mask = _mm256_set1_epi8(char(((1 << width) - 1) << to));
  if constexpr (from > to) return _mm256_and_si256(_mm256_srli_epi16(a, from - to), mask);
  if constexpr (from < to) return _mm256_and_si256(_mm256_slli_epi16(a, to - from), mask);
  return _mm256_and_si256(a, mask);
}
}  // namespace lanes_detail

template <int from, int width, int to>
VITRINE_FORCE_INLINE bytes64 move_bits(bytes64 a) {
  return {lanes_detail::move_bits_32<from, width, to>(a.lo), lanes_detail::move_bits_32<from, width, to>(a.hi)};
}
VITRINE_FORCE_INLINE bytes64 low_nibbles(bytes64 a) { return move_bits<0, 4, 0>(a); }
VITRINE_FORCE_INLINE bytes64 high_nibbles(bytes64 a) { return move_bits<4, 4, 0>(a); }

template <int width>
VITRINE_FORCE_INLINE i32x16 row_bits(const std::uint8_t* p, int from) {
  const bytes64 rows = load_bytes(p);
  const __m128i n = _mm_cvtsi32_si128(from);
  const __m256i mask = _mm256_set1_epi32((1 << width) - 1);
  return {_mm256_and_si256(_mm256_srl_epi32(rows.lo, n), mask), _mm256_and_si256(_mm256_srl_epi32(rows.hi, n), mask)};
}

VITRINE_FORCE_INLINE XGroup x_group(const std::int8_t* x) {
  std::int32_t four;
  __builtin_memcpy(&four, x, 4);
  return {_mm256_set1_epi32(four)};
}

#if VITRINE_ISA_DOTS >= 1

inline constexpr bool partials_are_wide = true;  // 32-bit sums, so that as_partial exists
template <int bits>
inline constexpr int partial_groups = 1 << 20;
template <int bits>
inline constexpr int scratch_offset = bits == 8 ? 128 : 0;

template <int bits>
VITRINE_FORCE_INLINE bytes64 to_scratch(bytes64 w) {
  if constexpr (bits == 8) {
    const __m256i sign = _mm256_set1_epi8(char(0x80));
    return {_mm256_xor_si256(w.lo, sign), _mm256_xor_si256(w.hi, sign)};
  } else {
    return w;
  }
}
VITRINE_FORCE_INLINE bytes64 offset_to_scratch(bytes64 w) { return w; }
template <int bits>
VITRINE_FORCE_INLINE bytes64 dot_weights(bytes64 w) {
  return w;
}
template <int bits>
VITRINE_FORCE_INLINE Partial dot_next(Partial sum, bytes64 w, XGroup x) {
  return {_mm256_dpbusd_avx_epi32(sum.lo, w.lo, x.v), _mm256_dpbusd_avx_epi32(sum.hi, w.hi, x.v)};
}
template <int bits>
VITRINE_FORCE_INLINE Partial dot_first(bytes64 w, XGroup x) {
  return dot_next<bits>({_mm256_setzero_si256(), _mm256_setzero_si256()}, w, x);
}
VITRINE_FORCE_INLINE Partial as_partial(i32x16 sum) { return {sum.lo, sum.hi}; }
template <int shift>
VITRINE_FORCE_INLINE Partial partial_of(std::int32_t sum, const std::int16_t*) {
  return as_partial(shift_left<shift>(broadcast_i32(sum)));
}
VITRINE_FORCE_INLINE i32x16 widen(Partial sum) { return {sum.lo, sum.hi}; }
VITRINE_FORCE_INLINE i32x16 widen_scaled(Partial sum, i32x16 scale) {
  return {_mm256_mullo_epi32(sum.lo, scale.lo), _mm256_mullo_epi32(sum.hi, scale.hi)};
}
template <int i>
VITRINE_FORCE_INLINE i32x16 scale_at(bytes64 a) {
  const __m256i mask = _mm256_set1_epi32(0xff);
  return {_mm256_and_si256(_mm256_srli_epi32(a.lo, 8 * i), mask),
          _mm256_and_si256(_mm256_srli_epi32(a.hi, 8 * i), mask)};
}
template <int i>
VITRINE_FORCE_INLINE i32x16 signed_scale_at(bytes64 a) {
  return {_mm256_srai_epi32(_mm256_slli_epi32(a.lo, 24 - 8 * i), 24),
          _mm256_srai_epi32(_mm256_slli_epi32(a.hi, 24 - 8 * i), 24)};
}
VITRINE_FORCE_INLINE i32x16 dot_pairs(i32x16 sum, i32x16 words, const std::int16_t* pair) {
  std::int32_t two;
  __builtin_memcpy(&two, pair, 4);
  const __m256i x = _mm256_set1_epi32(two);
  return {_mm256_dpwssd_avx_epi32(sum.lo, words.lo, x), _mm256_dpwssd_avx_epi32(sum.hi, words.hi, x)};
}

#else

inline constexpr bool partials_are_wide = false;
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
  const __m256i sign = _mm256_set1_epi8(char(0x80));
  return {_mm256_xor_si256(w.lo, sign), _mm256_xor_si256(w.hi, sign)};
}
struct SignedWeights {
  bytes64 magnitude, w;
};
template <int bits>
VITRINE_FORCE_INLINE auto dot_weights(bytes64 w) {
  if constexpr (bits == 8)
    return SignedWeights{{_mm256_abs_epi8(w.lo), _mm256_abs_epi8(w.hi)}, w};
  else
    return w;
}
template <int bits>
VITRINE_FORCE_INLINE Partial dot_first(bytes64 w, XGroup x) {
  return {_mm256_maddubs_epi16(w.lo, x.v), _mm256_maddubs_epi16(w.hi, x.v)};
}
template <int bits>
VITRINE_FORCE_INLINE Partial dot_first(SignedWeights w, XGroup x) {
  return {_mm256_maddubs_epi16(w.magnitude.lo, _mm256_sign_epi8(x.v, w.w.lo)),
          _mm256_maddubs_epi16(w.magnitude.hi, _mm256_sign_epi8(x.v, w.w.hi))};
}
template <int bits, class Weights>
VITRINE_FORCE_INLINE Partial dot_next(Partial sum, Weights w, XGroup x) {
  const Partial more = dot_first<bits>(w, x);
  return {_mm256_add_epi16(sum.lo, more.lo), _mm256_add_epi16(sum.hi, more.hi)};
}

Partial as_partial(i32x16);  // no such thing: a Partial has 16-bit halves
template <int shift>
VITRINE_FORCE_INLINE Partial partial_of(std::int32_t, const std::int16_t* parts) {
  std::int32_t two;
  __builtin_memcpy(&two, parts, 4);
  const __m256i both = _mm256_slli_epi16(_mm256_set1_epi32(two), shift);
  return {both, both};
}
VITRINE_FORCE_INLINE i32x16 widen(Partial sum) {
  const __m256i one = _mm256_set1_epi16(1);
  return {_mm256_madd_epi16(sum.lo, one), _mm256_madd_epi16(sum.hi, one)};
}
// `scale` has the row's scale in both 16-bit halves of its lane.
VITRINE_FORCE_INLINE i32x16 widen_scaled(Partial sum, i32x16 scale) {
  return {_mm256_madd_epi16(sum.lo, scale.lo), _mm256_madd_epi16(sum.hi, scale.hi)};
}
namespace lanes_detail {
// Byte i of each 32-bit lane into its bytes 0 and 2 (shift = 0) or 1 and 3 (shift = 8), zeros elsewhere.
template <int i, int shift>
VITRINE_FORCE_INLINE __m256i twice(__m256i a) {
  constexpr int lane = shift == 0 ? (0x80008000 | i << 16 | i) : (i << 24 | 0x800080 | i << 8);
  const __m256i base = _mm256_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c, 0, 0x04040404, 0x08080808, 0x0c0c0c0c);
  return _mm256_shuffle_epi8(a, _mm256_or_si256(base, _mm256_set1_epi32(lane)));
}
}  // namespace lanes_detail
template <int i>
VITRINE_FORCE_INLINE i32x16 scale_at(bytes64 a) {
  return {lanes_detail::twice<i, 0>(a.lo), lanes_detail::twice<i, 0>(a.hi)};
}
template <int i>
VITRINE_FORCE_INLINE i32x16 signed_scale_at(bytes64 a) {
  return {_mm256_srai_epi16(lanes_detail::twice<i, 8>(a.lo), 8), _mm256_srai_epi16(lanes_detail::twice<i, 8>(a.hi), 8)};
}
VITRINE_FORCE_INLINE i32x16 dot_pairs(i32x16 sum, i32x16 words, const std::int16_t* pair) {
  std::int32_t two;
  __builtin_memcpy(&two, pair, 4);
  const __m256i x = _mm256_set1_epi32(two);
  return {_mm256_add_epi32(sum.lo, _mm256_madd_epi16(words.lo, x)),
          _mm256_add_epi32(sum.hi, _mm256_madd_epi16(words.hi, x))};
}

#endif

VITRINE_FORCE_INLINE i32x16 even_bytes(bytes64 a) {
  const __m256i mask = _mm256_set1_epi16(0xff);
  return {_mm256_and_si256(a.lo, mask), _mm256_and_si256(a.hi, mask)};
}
VITRINE_FORCE_INLINE i32x16 odd_bytes(bytes64 a) { return {_mm256_srli_epi16(a.lo, 8), _mm256_srli_epi16(a.hi, 8)}; }
VITRINE_FORCE_INLINE i32x16 signed_even_bytes(bytes64 a) {
  return {_mm256_srai_epi16(_mm256_slli_epi16(a.lo, 8), 8), _mm256_srai_epi16(_mm256_slli_epi16(a.hi, 8), 8)};
}
VITRINE_FORCE_INLINE i32x16 signed_odd_bytes(bytes64 a) {
  return {_mm256_srai_epi16(a.lo, 8), _mm256_srai_epi16(a.hi, 8)};
}

VITRINE_FORCE_INLINE void to_bytes(std::int8_t* p, i32x16 a) {
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(a.lo, a.hi), 0xd8);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
}
VITRINE_FORCE_INLINE i32x16 max_i32(i32x16 a, i32x16 b) {
  return {_mm256_max_epi32(a.lo, b.lo), _mm256_max_epi32(a.hi, b.hi)};
}
VITRINE_FORCE_INLINE std::int32_t hmax_i32(i32x16 a) {
  const __m256i eight = _mm256_max_epi32(a.lo, a.hi);
  const __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  const __m128i two = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  return _mm_cvtsi128_si32(_mm_max_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}
VITRINE_FORCE_INLINE std::int32_t hsum_i32(i32x16 a) {
  const __m256i eight = _mm256_add_epi32(a.lo, a.hi);
  const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}
VITRINE_FORCE_INLINE void hsum_pairs(i32x16 a, std::int32_t* two) {
  const __m256i eight = _mm256_add_epi32(a.lo, a.hi);
  const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  const __m128i sums = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1));
  two[0] = _mm_cvtsi128_si32(sums);
  two[1] = _mm_extract_epi32(sums, 2);
}
// g++ 12 otherwise loads ahead, runs out of registers and spills the sums.
template <int n>
VITRINE_FORCE_INLINE void keep(Partial (&sums)[n]) {
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) __asm__ volatile("" : "+x"(sums[i].lo), "+x"(sums[i].hi));
}
VITRINE_FORCE_INLINE void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }
VITRINE_FORCE_INLINE void prefetch_far(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1); }

VITRINE_ISA_NAMESPACE_END
