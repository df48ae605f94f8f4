// Conversions between float and the two 16-bit float formats, in integer code.
//
//   f16   1 sign, 5 exponent, 10 mantissa bits (IEEE 754 binary16)
//   bf16  1 sign, 8 exponent,  7 mantissa bits: the upper half of a float
//
// To float is exact; from float rounds to nearest with ties to even. Subnormals are kept, NaN stays NaN. The vector
// back ends must agree with these bit for bit (tested over all 65,536 patterns).
#pragma once

#include <cstdint>

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

VITRINE_FORCE_INLINE float bits_to_float(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }
VITRINE_FORCE_INLINE std::uint32_t float_to_bits(float value) { return __builtin_bit_cast(std::uint32_t, value); }

VITRINE_FORCE_INLINE float f16_to_f32(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 31u;
  std::uint32_t mantissa = half & 0x3ffu;
  if (exponent == 31) {
    // A signalling NaN is made quiet, as the hardware conversion does.
    return bits_to_float(sign | 0x7f800000u | (mantissa << 13) | (mantissa ? 0x400000u : 0u));
  }
  if (exponent == 0) {
    if (mantissa == 0) return bits_to_float(sign);
    std::uint32_t shift = 0;
    while (!(mantissa & 0x400u)) {
      mantissa <<= 1;
      ++shift;
    }
    return bits_to_float(sign | ((113u - shift) << 23) | ((mantissa & 0x3ffu) << 13));
  }
  return bits_to_float(sign | ((exponent + 112u) << 23) | (mantissa << 13));
}

VITRINE_FORCE_INLINE std::uint16_t f32_to_f16(float value) {
  const std::uint32_t bits = float_to_bits(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)  // NaN: keep the upper payload, make it quiet, as the hardware conversion does
    return std::uint16_t(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x477ff000u) return std::uint16_t(sign | 0x7c00u);  // rounds to infinity from 65520 on
  if (magnitude < 0x33000001u) return std::uint16_t(sign);             // at most half of the smallest subnormal
  std::uint32_t mantissa = magnitude & 0x7fffffu;
  const std::int32_t exponent = std::int32_t(magnitude >> 23) - 112;
  std::uint32_t shift = 13, base = std::uint32_t(exponent) << 10;
  if (exponent <= 0) {  // becomes a subnormal: the hidden bit turns visible and more bits are shifted out
    mantissa |= 0x800000u;
    shift = std::uint32_t(14 - exponent);
    base = 0;
  }
  const std::uint32_t kept = mantissa >> shift, rest = mantissa & ((1u << shift) - 1u), half = 1u << (shift - 1u);
  const std::uint32_t round_up = rest > half || (rest == half && (kept & 1u));
  return std::uint16_t(sign | (base + kept + round_up));
}

VITRINE_FORCE_INLINE float bf16_to_f32(std::uint16_t value) { return bits_to_float(std::uint32_t(value) << 16); }

VITRINE_FORCE_INLINE std::uint16_t f32_to_bf16(float value) {
  const std::uint32_t bits = float_to_bits(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return std::uint16_t((bits >> 16) | 0x40u);  // NaN stays NaN, quiet
  return std::uint16_t((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

VITRINE_NAMESPACE_END
