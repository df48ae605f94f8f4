// Sixteen lanes in two AVX2 registers: lanes 0 to 7 in `lo`, 8 to 15 in `hi`. See lanes.hpp.
//
// Sums across lanes first add `lo` and `hi`, which is the tree's step of +8; then +4, +2, +1 within a register. Masks
// are registers of all-ones lanes, as blend and maskload want them. Besides AVX2 it takes FMA and F16C, which
// every CPU with AVX2 that the probe accepts has (cpu_probe.hpp).
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <xsimd/xsimd.hpp>

#include "vitrine/core/float16.hpp"
#include "vitrine/simd/isa.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

struct f32x16 {
  xsimd::batch<float, xsimd::avx2> lo, hi;
};
struct i32x16 {
  xsimd::batch<std::int32_t, xsimd::avx2> lo, hi;
};
struct mask16 {
  __m256 lo, hi;
};

namespace lanes_detail {

// All-ones lanes i < n, for lanes base .. base + 7.
VITRINE_FORCE_INLINE __m256i first(int n, int base) {
  const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n - base), index);
}

VITRINE_FORCE_INLINE __m256 widen_bf16(__m128i a) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(a), 16));
}

// Rounds to nearest even in integer code; a NaN stays a NaN and turns quiet.
VITRINE_FORCE_INLINE __m128i round_to_bf16(__m256 a) {
  const __m256i raw = _mm256_castps_si256(a), high = _mm256_srli_epi32(raw, 16);
  const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
  const __m256i rounded =
      _mm256_srli_epi32(_mm256_add_epi32(raw, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
  const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));
  const __m256i chosen = _mm256_blendv_epi8(rounded, quiet, nan);
  return _mm_packus_epi32(_mm256_castsi256_si128(chosen), _mm256_extracti128_si256(chosen, 1));
}

VITRINE_FORCE_INLINE __m128i round_to_f16(__m256 a) {
  return _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

VITRINE_FORCE_INLINE __m128i load_8_words(const std::uint16_t* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
VITRINE_FORCE_INLINE void store_8_words(std::uint16_t* p, __m128i a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), a);
}

}  // namespace lanes_detail

VITRINE_FORCE_INLINE f32x16 broadcast(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
VITRINE_FORCE_INLINE f32x16 zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
VITRINE_FORCE_INLINE f32x16 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
VITRINE_FORCE_INLINE f32x16 load_part(const float* p, int n) {
  return {_mm256_maskload_ps(p, lanes_detail::first(n, 0)), _mm256_maskload_ps(p + 8, lanes_detail::first(n, 8))};
}
VITRINE_FORCE_INLINE void store(float* p, f32x16 a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
VITRINE_FORCE_INLINE void store_part(float* p, f32x16 a, int n) {
  _mm256_maskstore_ps(p, lanes_detail::first(n, 0), a.lo);
  _mm256_maskstore_ps(p + 8, lanes_detail::first(n, 8), a.hi);
}

VITRINE_FORCE_INLINE f32x16 load_f16(const std::uint16_t* p) {
  return {_mm256_cvtph_ps(lanes_detail::load_8_words(p)), _mm256_cvtph_ps(lanes_detail::load_8_words(p + 8))};
}
VITRINE_FORCE_INLINE f32x16 load_bf16(const std::uint16_t* p) {
  return {lanes_detail::widen_bf16(lanes_detail::load_8_words(p)),
          lanes_detail::widen_bf16(lanes_detail::load_8_words(p + 8))};
}
VITRINE_FORCE_INLINE void store_f16(std::uint16_t* p, f32x16 a) {
  lanes_detail::store_8_words(p, lanes_detail::round_to_f16(a.lo));
  lanes_detail::store_8_words(p + 8, lanes_detail::round_to_f16(a.hi));
}
VITRINE_FORCE_INLINE void store_bf16(std::uint16_t* p, f32x16 a) {
  lanes_detail::store_8_words(p, lanes_detail::round_to_bf16(a.lo));
  lanes_detail::store_8_words(p + 8, lanes_detail::round_to_bf16(a.hi));
}
// AVX2 has no masked access to 16-bit elements: the tails go through a small array.
VITRINE_FORCE_INLINE f32x16 load_f16_part(const std::uint16_t* p, int n) {
  std::uint16_t part[16] = {};
  for (int i = 0; i < n; ++i) part[i] = p[i];
  return load_f16(part);
}
VITRINE_FORCE_INLINE f32x16 load_bf16_part(const std::uint16_t* p, int n) {
  std::uint16_t part[16] = {};
  for (int i = 0; i < n; ++i) part[i] = p[i];
  return load_bf16(part);
}
VITRINE_FORCE_INLINE void store_f16_part(std::uint16_t* p, f32x16 a, int n) {
  std::uint16_t part[16];
  store_f16(part, a);
  for (int i = 0; i < n; ++i) p[i] = part[i];
}
VITRINE_FORCE_INLINE void store_bf16_part(std::uint16_t* p, f32x16 a, int n) {
  std::uint16_t part[16];
  store_bf16(part, a);
  for (int i = 0; i < n; ++i) p[i] = part[i];
}

VITRINE_FORCE_INLINE f32x16 operator+(f32x16 a, f32x16 b) { return {a.lo + b.lo, a.hi + b.hi}; }
VITRINE_FORCE_INLINE f32x16 operator-(f32x16 a, f32x16 b) { return {a.lo - b.lo, a.hi - b.hi}; }
VITRINE_FORCE_INLINE f32x16 operator*(f32x16 a, f32x16 b) { return {a.lo * b.lo, a.hi * b.hi}; }
VITRINE_FORCE_INLINE f32x16 operator/(f32x16 a, f32x16 b) { return {a.lo / b.lo, a.hi / b.hi}; }
VITRINE_FORCE_INLINE f32x16 fma(f32x16 a, f32x16 b, f32x16 c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
VITRINE_FORCE_INLINE f32x16 negate(f32x16 a) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_xor_ps(a.lo, sign), _mm256_xor_ps(a.hi, sign)};
}
VITRINE_FORCE_INLINE f32x16 max(f32x16 a, f32x16 b) { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }
VITRINE_FORCE_INLINE f32x16 sqrt(f32x16 a) { return {_mm256_sqrt_ps(a.lo), _mm256_sqrt_ps(a.hi)}; }

VITRINE_FORCE_INLINE mask16 less(f32x16 a, f32x16 b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ)};
}
VITRINE_FORCE_INLINE mask16 equal(f32x16 a, f32x16 b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_EQ_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_EQ_OQ)};
}
VITRINE_FORCE_INLINE mask16 greater(f32x16 a, f32x16 b) { return less(b, a); }
VITRINE_FORCE_INLINE mask16 first_lanes(int n) {
  return {_mm256_castsi256_ps(lanes_detail::first(n, 0)), _mm256_castsi256_ps(lanes_detail::first(n, 8))};
}
VITRINE_FORCE_INLINE f32x16 select(mask16 mask, f32x16 a, f32x16 b) {
  return {_mm256_blendv_ps(b.lo, a.lo, mask.lo), _mm256_blendv_ps(b.hi, a.hi, mask.hi)};
}
VITRINE_FORCE_INLINE std::uint32_t mask_bits(mask16 mask) {
  return std::uint32_t(_mm256_movemask_ps(mask.lo)) | std::uint32_t(_mm256_movemask_ps(mask.hi)) << 8;
}

VITRINE_FORCE_INLINE float hsum(f32x16 a) {
  const __m256 eight = _mm256_add_ps(a.lo, a.hi);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
VITRINE_FORCE_INLINE float hmax(f32x16 a) {
  const __m256 eight = _mm256_max_ps(a.lo, a.hi);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

VITRINE_FORCE_INLINE i32x16 load_i32(const std::int32_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 8))};
}
VITRINE_FORCE_INLINE void store_i32(std::int32_t* p, i32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.lo);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 8), a.hi);
}
VITRINE_FORCE_INLINE i32x16 broadcast_i32(std::int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
VITRINE_FORCE_INLINE i32x16 operator+(i32x16 a, i32x16 b) { return {a.lo + b.lo, a.hi + b.hi}; }
VITRINE_FORCE_INLINE i32x16 operator-(i32x16 a, i32x16 b) { return {a.lo - b.lo, a.hi - b.hi}; }
VITRINE_FORCE_INLINE i32x16 operator&(i32x16 a, i32x16 b) { return {a.lo & b.lo, a.hi & b.hi}; }
template <int n>
VITRINE_FORCE_INLINE i32x16 shift_left(i32x16 a) {
  return {_mm256_slli_epi32(a.lo, n), _mm256_slli_epi32(a.hi, n)};
}

VITRINE_FORCE_INLINE i32x16 to_i32(f32x16 a) { return {_mm256_cvtps_epi32(a.lo), _mm256_cvtps_epi32(a.hi)}; }
VITRINE_FORCE_INLINE f32x16 to_f32(i32x16 a) { return {_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)}; }
VITRINE_FORCE_INLINE i32x16 bits(f32x16 a) { return {_mm256_castps_si256(a.lo), _mm256_castps_si256(a.hi)}; }
VITRINE_FORCE_INLINE f32x16 from_bits(i32x16 a) { return {_mm256_castsi256_ps(a.lo), _mm256_castsi256_ps(a.hi)}; }

namespace lanes_detail {

// Eight rows of eight: pairs of values, then of pairs, then of register halves.
VITRINE_FORCE_INLINE void transpose_8(__m256 (&r)[8]) {
  __m256 pairs[8], fours[8];
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4)
    for (int j = 0; j < 2; ++j) {
      fours[i + 2 * j] = _mm256_shuffle_ps(pairs[i + j], pairs[i + j + 2], 0x44);
      fours[i + 2 * j + 1] = _mm256_shuffle_ps(pairs[i + j], pairs[i + j + 2], 0xee);
    }
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x20);
    r[i + 4] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x31);
  }
}

}  // namespace lanes_detail

VITRINE_FORCE_INLINE void transpose(f32x16 (&rows)[16]) {
  __m256 top_left[8], top_right[8], low_left[8], low_right[8];
  for (int i = 0; i < 8; ++i) {
    top_left[i] = rows[i].lo;
    top_right[i] = rows[i].hi;
    low_left[i] = rows[i + 8].lo;
    low_right[i] = rows[i + 8].hi;
  }
  lanes_detail::transpose_8(top_left);
  lanes_detail::transpose_8(top_right);
  lanes_detail::transpose_8(low_left);
  lanes_detail::transpose_8(low_right);
  for (int i = 0; i < 8; ++i) {
    rows[i] = {top_left[i], low_left[i]};
    rows[i + 8] = {top_right[i], low_right[i]};
  }
}

VITRINE_ISA_NAMESPACE_END
