// Which instruction set this translation unit's kernels are for.
//
// A kernel unit (src/kernels_<isa>.cpp) defines VITRINE_ISA before its first include; a header-only unit does not, and
// gets the one that its own flags allow (core/config.hpp). The name becomes a namespace around every kernel body, so
// that the linker never takes one unit's function for another's.
//
//   name         LEVEL: registers                DOTS: products of bytes
//   scalar       0  baseline x86-64              0  in pairs of 16 bits
//   avx2         1  256 bits, FMA, F16C          0
//   avxvnni      1                               1  AVX-VNNI: sums of 32 bits
//   avx512       2  512 bits: F, BW, DQ, VL      0
//   avx512vnni   2                               1  AVX512-VNNI
//   avx512amx    2                               2  and AMX-INT8: products of whole tiles
#pragma once

#include "vitrine/core/config.hpp"

#define VITRINE_STRINGIZE(name) VITRINE_STRINGIZE_EXPANDED(name)
#define VITRINE_STRINGIZE_EXPANDED(name) #name

#ifndef VITRINE_ISA
#define VITRINE_ISA VITRINE_FLAGS_ISA
#endif

#define VITRINE_ISA_LEVEL_scalar 0
#define VITRINE_ISA_LEVEL_avx2 1
#define VITRINE_ISA_LEVEL_avxvnni 1
#define VITRINE_ISA_LEVEL_avx512 2
#define VITRINE_ISA_LEVEL_avx512vnni 2
#define VITRINE_ISA_LEVEL_avx512amx 2
#define VITRINE_ISA_DOTS_scalar 0
#define VITRINE_ISA_DOTS_avx2 0
#define VITRINE_ISA_DOTS_avxvnni 1
#define VITRINE_ISA_DOTS_avx512 0
#define VITRINE_ISA_DOTS_avx512vnni 1
#define VITRINE_ISA_DOTS_avx512amx 2
#define VITRINE_ISA_JOIN(prefix, name) VITRINE_ISA_JOIN_EXPANDED(prefix, name)
#define VITRINE_ISA_JOIN_EXPANDED(prefix, name) prefix##name
#define VITRINE_ISA_LEVEL VITRINE_ISA_JOIN(VITRINE_ISA_LEVEL_, VITRINE_ISA)
#define VITRINE_ISA_DOTS VITRINE_ISA_JOIN(VITRINE_ISA_DOTS_, VITRINE_ISA)

#define VITRINE_ISA_NAMESPACE_BEGIN \
  VITRINE_NAMESPACE_BEGIN           \
  namespace VITRINE_ISA {
#define VITRINE_ISA_NAMESPACE_END \
  }                               \
  VITRINE_NAMESPACE_END
