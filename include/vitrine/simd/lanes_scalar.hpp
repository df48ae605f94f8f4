// Sixteen lanes as arrays, in portable code: the back end for any x86-64 CPU, and the plain statement of what each
// operation means. See lanes.hpp.
//
//   fma(a, b, c)    out[i] = std::fma(a[i], b[i], c[i])        hsum(a)    a[i] += a[i + 8], then + 4, + 2, + 1
//
// Slow, and it may be: every other back end is held to its bits by the tests.
#pragma once

#include <cstdint>

#include "vitrine/core/float16.hpp"
#include "vitrine/simd/isa.hpp"

// Kernels unroll over lanes as if each operation were one instruction. Here the longer ones are calls, or the code
// would grow to megabytes.
#define VITRINE_OUT_OF_LINE inline __attribute__((noinline))

VITRINE_ISA_NAMESPACE_BEGIN

struct f32x16 {
  float v[16];
};
struct i32x16 {
  std::int32_t v[16];
};
struct mask16 {
  bool v[16];
};

namespace lanes_detail {

// out.v[i] = f(i) in every lane.
template <class Out, class F>
VITRINE_FORCE_INLINE Out each(F f) {
  Out out;
  for (int i = 0; i < 16; ++i) out.v[i] = f(i);
  return out;
}

// Nearest integer, ties to even, without a library call: adding and subtracting 2^23 leaves no fraction bits.
VITRINE_FORCE_INLINE std::int32_t round_to_i32(float x) {
  if (!(x >= -2147483648.0f && x < 2147483648.0f)) return INT32_MIN;
  if (x >= 8388608.0f || x <= -8388608.0f) return std::int32_t(x);
  return x < 0 ? std::int32_t((x - 8388608.0f) + 8388608.0f) : std::int32_t((x + 8388608.0f) - 8388608.0f);
}

}  // namespace lanes_detail

VITRINE_FORCE_INLINE f32x16 broadcast(float x) {
  return lanes_detail::each<f32x16>([&](int) { return x; });
}
VITRINE_FORCE_INLINE f32x16 zero() { return broadcast(0.0f); }
VITRINE_FORCE_INLINE f32x16 load(const float* p) {
  return lanes_detail::each<f32x16>([&](int i) { return p[i]; });
}
VITRINE_FORCE_INLINE f32x16 load_part(const float* p, int n) {
  return lanes_detail::each<f32x16>([&](int i) { return i < n ? p[i] : 0.0f; });
}
VITRINE_FORCE_INLINE void store(float* p, f32x16 a) {
  for (int i = 0; i < 16; ++i) p[i] = a.v[i];
}
VITRINE_FORCE_INLINE void store_part(float* p, f32x16 a, int n) {
  for (int i = 0; i < n; ++i) p[i] = a.v[i];
}

VITRINE_OUT_OF_LINE f32x16 load_f16(const std::uint16_t* p) {
  return lanes_detail::each<f32x16>([&](int i) { return f16_to_f32(p[i]); });
}
VITRINE_OUT_OF_LINE f32x16 load_f16_part(const std::uint16_t* p, int n) {
  return lanes_detail::each<f32x16>([&](int i) { return i < n ? f16_to_f32(p[i]) : 0.0f; });
}
VITRINE_FORCE_INLINE f32x16 load_bf16(const std::uint16_t* p) {
  return lanes_detail::each<f32x16>([&](int i) { return bf16_to_f32(p[i]); });
}
VITRINE_FORCE_INLINE f32x16 load_bf16_part(const std::uint16_t* p, int n) {
  return lanes_detail::each<f32x16>([&](int i) { return i < n ? bf16_to_f32(p[i]) : 0.0f; });
}
VITRINE_OUT_OF_LINE void store_f16_part(std::uint16_t* p, f32x16 a, int n) {
  for (int i = 0; i < n; ++i) p[i] = f32_to_f16(a.v[i]);
}
VITRINE_OUT_OF_LINE void store_bf16_part(std::uint16_t* p, f32x16 a, int n) {
  for (int i = 0; i < n; ++i) p[i] = f32_to_bf16(a.v[i]);
}
VITRINE_FORCE_INLINE void store_f16(std::uint16_t* p, f32x16 a) { store_f16_part(p, a, 16); }
VITRINE_FORCE_INLINE void store_bf16(std::uint16_t* p, f32x16 a) { store_bf16_part(p, a, 16); }

VITRINE_FORCE_INLINE f32x16 operator+(f32x16 a, f32x16 b) {
  return lanes_detail::each<f32x16>([&](int i) { return a.v[i] + b.v[i]; });
}
VITRINE_FORCE_INLINE f32x16 operator-(f32x16 a, f32x16 b) {
  return lanes_detail::each<f32x16>([&](int i) { return a.v[i] - b.v[i]; });
}
VITRINE_FORCE_INLINE f32x16 operator*(f32x16 a, f32x16 b) {
  return lanes_detail::each<f32x16>([&](int i) { return a.v[i] * b.v[i]; });
}
VITRINE_FORCE_INLINE f32x16 operator/(f32x16 a, f32x16 b) {
  return lanes_detail::each<f32x16>([&](int i) { return a.v[i] / b.v[i]; });
}
VITRINE_OUT_OF_LINE f32x16 fma(f32x16 a, f32x16 b, f32x16 c) {
  return lanes_detail::each<f32x16>([&](int i) { return __builtin_fmaf(a.v[i], b.v[i], c.v[i]); });
}
VITRINE_FORCE_INLINE f32x16 negate(f32x16 a) {
  return lanes_detail::each<f32x16>([&](int i) { return -a.v[i]; });
}
VITRINE_FORCE_INLINE f32x16 max(f32x16 a, f32x16 b) {
  return lanes_detail::each<f32x16>([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
VITRINE_OUT_OF_LINE f32x16 sqrt(f32x16 a) {
  return lanes_detail::each<f32x16>([&](int i) { return __builtin_sqrtf(a.v[i]); });
}

VITRINE_FORCE_INLINE mask16 less(f32x16 a, f32x16 b) {
  return lanes_detail::each<mask16>([&](int i) { return a.v[i] < b.v[i]; });
}
VITRINE_FORCE_INLINE mask16 equal(f32x16 a, f32x16 b) {
  return lanes_detail::each<mask16>([&](int i) { return a.v[i] == b.v[i]; });
}
VITRINE_FORCE_INLINE mask16 greater(f32x16 a, f32x16 b) { return less(b, a); }
VITRINE_FORCE_INLINE mask16 first_lanes(int n) {
  return lanes_detail::each<mask16>([&](int i) { return i < n; });
}
VITRINE_FORCE_INLINE f32x16 select(mask16 mask, f32x16 a, f32x16 b) {
  return lanes_detail::each<f32x16>([&](int i) { return mask.v[i] ? a.v[i] : b.v[i]; });
}
// Bit i is lane i's truth value.
VITRINE_FORCE_INLINE std::uint32_t mask_bits(mask16 mask) {
  std::uint32_t out = 0;
  for (int i = 0; i < 16; ++i) out |= std::uint32_t(mask.v[i]) << i;
  return out;
}

VITRINE_OUT_OF_LINE float hsum(f32x16 a) {
  for (int step = 8; step > 0; step /= 2)
    for (int i = 0; i < step; ++i) a.v[i] = a.v[i] + a.v[i + step];
  return a.v[0];
}
VITRINE_OUT_OF_LINE float hmax(f32x16 a) {
  for (int step = 8; step > 0; step /= 2)
    for (int i = 0; i < step; ++i) a.v[i] = a.v[i] > a.v[i + step] ? a.v[i] : a.v[i + step];
  return a.v[0];
}

VITRINE_FORCE_INLINE i32x16 load_i32(const std::int32_t* p) {
  return lanes_detail::each<i32x16>([&](int i) { return p[i]; });
}
VITRINE_FORCE_INLINE void store_i32(std::int32_t* p, i32x16 a) {
  for (int i = 0; i < 16; ++i) p[i] = a.v[i];
}
VITRINE_FORCE_INLINE i32x16 broadcast_i32(std::int32_t x) {
  return lanes_detail::each<i32x16>([&](int) { return x; });
}
// Wraps around as the vector instructions do.
VITRINE_FORCE_INLINE i32x16 operator+(i32x16 a, i32x16 b) {
  return lanes_detail::each<i32x16>([&](int i) { return std::int32_t(std::uint32_t(a.v[i]) + std::uint32_t(b.v[i])); });
}
VITRINE_FORCE_INLINE i32x16 operator-(i32x16 a, i32x16 b) {
  return lanes_detail::each<i32x16>([&](int i) { return std::int32_t(std::uint32_t(a.v[i]) - std::uint32_t(b.v[i])); });
}
VITRINE_FORCE_INLINE i32x16 operator&(i32x16 a, i32x16 b) {
  return lanes_detail::each<i32x16>([&](int i) { return a.v[i] & b.v[i]; });
}
template <int n>
VITRINE_FORCE_INLINE i32x16 shift_left(i32x16 a) {
  return lanes_detail::each<i32x16>([&](int i) { return std::int32_t(std::uint32_t(a.v[i]) << n); });
}

VITRINE_OUT_OF_LINE i32x16 to_i32(f32x16 a) {
  return lanes_detail::each<i32x16>([&](int i) { return lanes_detail::round_to_i32(a.v[i]); });
}
VITRINE_FORCE_INLINE f32x16 to_f32(i32x16 a) {
  return lanes_detail::each<f32x16>([&](int i) { return float(a.v[i]); });
}
VITRINE_FORCE_INLINE i32x16 bits(f32x16 a) {
  return lanes_detail::each<i32x16>([&](int i) { return std::int32_t(float_to_bits(a.v[i])); });
}
VITRINE_FORCE_INLINE f32x16 from_bits(i32x16 a) {
  return lanes_detail::each<f32x16>([&](int i) { return bits_to_float(std::uint32_t(a.v[i])); });
}

VITRINE_FORCE_INLINE void transpose(f32x16 (&rows)[16]) {
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < i; ++j) {
      const float swapped = rows[i].v[j];
      rows[i].v[j] = rows[j].v[i];
      rows[j].v[i] = swapped;
    }
}

VITRINE_ISA_NAMESPACE_END
