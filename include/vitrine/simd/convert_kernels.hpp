// Kernel entries: conversions between float and 16-bit storage, and the arithmetic probe.
#pragma once

#include <cstdint>

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

struct ConvertKernels {
  // n values, any alignment; rounding is to nearest even, widening is exact.
  void (*f16_to_f32)(const std::uint16_t* in, float* out, std::int64_t n);
  void (*bf16_to_f32)(const std::uint16_t* in, float* out, std::int64_t n);
  void (*f32_to_f16)(const float* in, std::uint16_t* out, std::int64_t n);
  void (*f32_to_bf16)(const float* in, std::uint16_t* out, std::int64_t n);
  float (*sum)(const float* in, std::int64_t n);  // 16 lanes by index mod 16, tail padded with +0, then the tree

  // Runs each floating-point operation of the lanes on a, b, c [16] and writes 8 results [8][16]: a*b+c in two
  // roundings, fma, division, square root of |a|, a*b, max, to-integer-and-back, sum. The dispatcher compares them with
  // its own, to notice a compiler that was told to contract or reorder.
  void (*probe)(const float* a, const float* b, const float* c, float* out);
};

VITRINE_NAMESPACE_END
