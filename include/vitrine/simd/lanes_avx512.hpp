// Sixteen lanes in one AVX-512 register. See lanes.hpp.
//
// Arithmetic goes through xsimd; what xsimd 8.1 lacks, or does otherwise, is written with intrinsics. Its fma() for
// AVX-512 in particular is a multiplication and an addition, rounded twice. Masks are mask registers, one bit per lane;
// a part of a vector is read and written under such a mask, so nothing beyond its end is touched.
#pragma once

// g++ 12 warns of its own _mm512_undefined_ps() wherever an intrinsic that uses it is inlined.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#include <cstdint>
#include <xsimd/xsimd.hpp>

#include "vitrine/core/float16.hpp"
#include "vitrine/simd/isa.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

struct f32x16 {
  xsimd::batch<float, xsimd::avx512f> v;
};
struct i32x16 {
  xsimd::batch<std::int32_t, xsimd::avx512f> v;
};
struct mask16 {
  __mmask16 bits;
};

namespace lanes_detail {

VITRINE_FORCE_INLINE __mmask16 first(int n) { return __mmask16((1u << n) - 1u); }

// Rounds to nearest even in integer code; a NaN stays a NaN and turns quiet.
VITRINE_FORCE_INLINE __m256i round_to_bf16(__m512 a) {
  const __m512i raw = _mm512_castps_si512(a);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(raw, 16), _mm512_set1_epi32(1));
  const __m512i rounded =
      _mm512_srli_epi32(_mm512_add_epi32(raw, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
  const __m512i quiet = _mm512_or_si512(_mm512_srli_epi32(raw, 16), _mm512_set1_epi32(0x40));
  return _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(rounded, _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), quiet));
}

VITRINE_FORCE_INLINE __m512 widen_bf16(__m256i a) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(a), 16));
}

}  // namespace lanes_detail

VITRINE_FORCE_INLINE f32x16 broadcast(float x) { return {_mm512_set1_ps(x)}; }
VITRINE_FORCE_INLINE f32x16 zero() { return {_mm512_setzero_ps()}; }
VITRINE_FORCE_INLINE f32x16 load(const float* p) { return {_mm512_loadu_ps(p)}; }
VITRINE_FORCE_INLINE f32x16 load_part(const float* p, int n) {
  return {_mm512_maskz_loadu_ps(lanes_detail::first(n), p)};
}
VITRINE_FORCE_INLINE void store(float* p, f32x16 a) { _mm512_storeu_ps(p, a.v); }
VITRINE_FORCE_INLINE void store_part(float* p, f32x16 a, int n) {
  _mm512_mask_storeu_ps(p, lanes_detail::first(n), a.v);
}

VITRINE_FORCE_INLINE f32x16 load_f16(const std::uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
VITRINE_FORCE_INLINE f32x16 load_f16_part(const std::uint16_t* p, int n) {
  return {_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes_detail::first(n), p))};
}
VITRINE_FORCE_INLINE f32x16 load_bf16(const std::uint16_t* p) {
  return {lanes_detail::widen_bf16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
VITRINE_FORCE_INLINE f32x16 load_bf16_part(const std::uint16_t* p, int n) {
  return {lanes_detail::widen_bf16(_mm256_maskz_loadu_epi16(lanes_detail::first(n), p))};
}
VITRINE_FORCE_INLINE void store_f16(std::uint16_t* p, f32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
VITRINE_FORCE_INLINE void store_f16_part(std::uint16_t* p, f32x16 a, int n) {
  _mm256_mask_storeu_epi16(p, lanes_detail::first(n),
                           _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
VITRINE_FORCE_INLINE void store_bf16(std::uint16_t* p, f32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), lanes_detail::round_to_bf16(a.v));
}
VITRINE_FORCE_INLINE void store_bf16_part(std::uint16_t* p, f32x16 a, int n) {
  _mm256_mask_storeu_epi16(p, lanes_detail::first(n), lanes_detail::round_to_bf16(a.v));
}

VITRINE_FORCE_INLINE f32x16 operator+(f32x16 a, f32x16 b) { return {a.v + b.v}; }
VITRINE_FORCE_INLINE f32x16 operator-(f32x16 a, f32x16 b) { return {a.v - b.v}; }
VITRINE_FORCE_INLINE f32x16 operator*(f32x16 a, f32x16 b) { return {a.v * b.v}; }
VITRINE_FORCE_INLINE f32x16 operator/(f32x16 a, f32x16 b) { return {a.v / b.v}; }
VITRINE_FORCE_INLINE f32x16 fma(f32x16 a, f32x16 b, f32x16 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
VITRINE_FORCE_INLINE f32x16 negate(f32x16 a) { return {_mm512_xor_ps(a.v, _mm512_set1_ps(-0.0f))}; }
VITRINE_FORCE_INLINE f32x16 max(f32x16 a, f32x16 b) { return {_mm512_max_ps(a.v, b.v)}; }
VITRINE_FORCE_INLINE f32x16 sqrt(f32x16 a) { return {_mm512_sqrt_ps(a.v)}; }

VITRINE_FORCE_INLINE mask16 less(f32x16 a, f32x16 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
VITRINE_FORCE_INLINE mask16 equal(f32x16 a, f32x16 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)}; }
VITRINE_FORCE_INLINE mask16 greater(f32x16 a, f32x16 b) { return less(b, a); }
VITRINE_FORCE_INLINE mask16 first_lanes(int n) { return {lanes_detail::first(n)}; }
VITRINE_FORCE_INLINE f32x16 select(mask16 mask, f32x16 a, f32x16 b) {
  return {_mm512_mask_blend_ps(mask.bits, b.v, a.v)};
}
VITRINE_FORCE_INLINE std::uint32_t mask_bits(mask16 mask) { return mask.bits; }

VITRINE_FORCE_INLINE float hsum(f32x16 a) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
VITRINE_FORCE_INLINE float hmax(f32x16 a) {
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

VITRINE_FORCE_INLINE i32x16 load_i32(const std::int32_t* p) { return {_mm512_loadu_si512(p)}; }
VITRINE_FORCE_INLINE void store_i32(std::int32_t* p, i32x16 a) { _mm512_storeu_si512(p, a.v); }
VITRINE_FORCE_INLINE i32x16 broadcast_i32(std::int32_t x) { return {_mm512_set1_epi32(x)}; }
VITRINE_FORCE_INLINE i32x16 operator+(i32x16 a, i32x16 b) { return {a.v + b.v}; }
VITRINE_FORCE_INLINE i32x16 operator-(i32x16 a, i32x16 b) { return {a.v - b.v}; }
VITRINE_FORCE_INLINE i32x16 operator&(i32x16 a, i32x16 b) { return {a.v & b.v}; }
template <int n>
VITRINE_FORCE_INLINE i32x16 shift_left(i32x16 a) {
  return {_mm512_slli_epi32(a.v, n)};
}

VITRINE_FORCE_INLINE i32x16 to_i32(f32x16 a) { return {_mm512_cvtps_epi32(a.v)}; }
VITRINE_FORCE_INLINE f32x16 to_f32(i32x16 a) { return {_mm512_cvtepi32_ps(a.v)}; }
VITRINE_FORCE_INLINE i32x16 bits(f32x16 a) { return {_mm512_castps_si512(a.v)}; }
VITRINE_FORCE_INLINE f32x16 from_bits(i32x16 a) { return {_mm512_castsi512_ps(a.v)}; }

// Pairs of values, pairs of pairs, then the four quarters of four registers.
VITRINE_FORCE_INLINE void transpose(f32x16 (&rows)[16]) {
  __m512 pairs[16], fours[16];
  for (int i = 0; i < 16; i += 2) {
    pairs[i] = _mm512_unpacklo_ps(rows[i].v, rows[i + 1].v);
    pairs[i + 1] = _mm512_unpackhi_ps(rows[i].v, rows[i + 1].v);
  }
  for (int i = 0; i < 16; i += 4)
    for (int j = 0; j < 2; ++j) {
      fours[i + 2 * j] = _mm512_shuffle_ps(pairs[i + j], pairs[i + j + 2], 0x44);
      fours[i + 2 * j + 1] = _mm512_shuffle_ps(pairs[i + j], pairs[i + j + 2], 0xee);
    }
  for (int i = 0; i < 4; ++i) {
    const __m512 even_top = _mm512_shuffle_f32x4(fours[i], fours[i + 4], 0x88);
    const __m512 odd_top = _mm512_shuffle_f32x4(fours[i], fours[i + 4], 0xdd);
    const __m512 even_low = _mm512_shuffle_f32x4(fours[i + 8], fours[i + 12], 0x88);
    const __m512 odd_low = _mm512_shuffle_f32x4(fours[i + 8], fours[i + 12], 0xdd);
    rows[i] = {_mm512_shuffle_f32x4(even_top, even_low, 0x88)};
    rows[i + 4] = {_mm512_shuffle_f32x4(odd_top, odd_low, 0x88)};
    rows[i + 8] = {_mm512_shuffle_f32x4(even_top, even_low, 0xdd)};
    rows[i + 12] = {_mm512_shuffle_f32x4(odd_top, odd_low, 0xdd)};
  }
}

VITRINE_ISA_NAMESPACE_END
