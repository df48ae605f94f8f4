// Bodies of convert_kernels.hpp, written over the lanes.
#pragma once

#include "vitrine/simd/convert_kernels.hpp"
#include "vitrine/simd/lanes.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

namespace convert_detail {

template <class Whole, class Part>
VITRINE_FORCE_INLINE void sweep(std::int64_t n, Whole whole, Part part) {
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) whole(i);
  if (i < n) part(i, int(n - i));
}

inline void f16_to_f32_many(const std::uint16_t* in, float* out, std::int64_t n) {
  sweep(
      n, [&](std::int64_t i) { store(out + i, load_f16(in + i)); },
      [&](std::int64_t i, int rest) { store_part(out + i, load_f16_part(in + i, rest), rest); });
}
inline void bf16_to_f32_many(const std::uint16_t* in, float* out, std::int64_t n) {
  sweep(
      n, [&](std::int64_t i) { store(out + i, load_bf16(in + i)); },
      [&](std::int64_t i, int rest) { store_part(out + i, load_bf16_part(in + i, rest), rest); });
}
inline void f32_to_f16_many(const float* in, std::uint16_t* out, std::int64_t n) {
  sweep(
      n, [&](std::int64_t i) { store_f16(out + i, load(in + i)); },
      [&](std::int64_t i, int rest) { store_f16_part(out + i, load_part(in + i, rest), rest); });
}
inline void f32_to_bf16_many(const float* in, std::uint16_t* out, std::int64_t n) {
  sweep(
      n, [&](std::int64_t i) { store_bf16(out + i, load(in + i)); },
      [&](std::int64_t i, int rest) { store_bf16_part(out + i, load_part(in + i, rest), rest); });
}

inline float sum(const float* in, std::int64_t n) {
  f32x16 total = zero();
  sweep(
      n, [&](std::int64_t i) { total = total + load(in + i); },
      [&](std::int64_t i, int rest) { total = total + load_part(in + i, rest); });
  return hsum(total);
}

inline void probe(const float* pa, const float* pb, const float* pc, float* out) {
  const f32x16 a = load(pa), b = load(pb), c = load(pc);
  store(out, a * b + c);
  store(out + 16, fma(a, b, c));
  store(out + 32, a / b);
  store(out + 48, sqrt(max(a, zero() - a)));
  store(out + 64, a * b);
  store(out + 80, max(a, b));
  store(out + 96, to_f32(to_i32(a)));
  store(out + 112, broadcast(hsum(a)));
}

}  // namespace convert_detail

constexpr ConvertKernels convert_kernels() {
  return {.f16_to_f32 = convert_detail::f16_to_f32_many,
          .bf16_to_f32 = convert_detail::bf16_to_f32_many,
          .f32_to_f16 = convert_detail::f32_to_f16_many,
          .f32_to_bf16 = convert_detail::f32_to_bf16_many,
          .sum = convert_detail::sum,
          .probe = convert_detail::probe};
}

VITRINE_ISA_NAMESPACE_END
