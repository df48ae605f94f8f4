// The table of kernels of one instruction set: plain function pointers. One unit per instruction set fills
// it; a set that extends another takes over what it does no differently (kernels_extended.hpp).
//
// Kernels are serial and chunky (a range of panels, heads or rows, never one dot product), know no public types, and
// give the same bits from every table. Each group of entries has its header: what the functions do is written there,
// their bodies are in the `_bodies.hpp` beside it. Types only; every unit includes this file.
#pragma once

#include "vitrine/core/config.hpp"
#include "vitrine/simd/attention_kernels.hpp"
#include "vitrine/simd/elementwise_kernels.hpp"
#include "vitrine/simd/linear_kernels.hpp"
#include "vitrine/simd/sampling_kernels.hpp"

VITRINE_NAMESPACE_BEGIN

enum class Isa { scalar, avx2, avxvnni, avx512, avx512vnni, avx512amx };

struct KernelTable {
  const char* name;  // as in VITRINE_ISA: "scalar", "avx2", ...
  Isa isa;
  LinearKernels linear;
  ElementwiseKernels elementwise;
  AttentionKernels attention;
  SamplingKernels sampling;

  // Runs each floating-point operation of the lanes on a, b, c [16] and writes 8 results [8][16]: a*b+c in two
  // roundings, fma, division, square root of |a|, a*b, max, to-integer-and-back, sum. The dispatcher compares them with
  // its own, to notice a compiler that was told to contract or reorder.
  void (*probe)(const float* a, const float* b, const float* c, float* out);
};

VITRINE_NAMESPACE_END
