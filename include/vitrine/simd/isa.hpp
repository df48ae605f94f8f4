// Which instruction set this translation unit's kernels are for.
//
// A kernel unit (src/kernels_<isa>.cpp) defines VITRINE_ISA before its first include; a header-only unit does not, and
// gets the one that its own flags allow (core/config.hpp). The name becomes a namespace around every kernel body, so
// that two units never share a function. Levels: 0 scalar (baseline x86-64), 1 avx2 (+ FMA, F16C), 2 avx512 (F, BW, DQ,
// VL), 3 avx512vnni.
#pragma once

#include "vitrine/core/config.hpp"

#ifndef VITRINE_ISA
#define VITRINE_ISA VITRINE_FLAGS_ISA
#endif

#define VITRINE_ISA_LEVEL_scalar 0
#define VITRINE_ISA_LEVEL_avx2 1
#define VITRINE_ISA_LEVEL_avx512 2
#define VITRINE_ISA_LEVEL_avx512vnni 3
#define VITRINE_ISA_LEVEL_OF(name) VITRINE_ISA_LEVEL_OF_EXPANDED(name)
#define VITRINE_ISA_LEVEL_OF_EXPANDED(name) VITRINE_ISA_LEVEL_##name
#define VITRINE_ISA_LEVEL VITRINE_ISA_LEVEL_OF(VITRINE_ISA)

#define VITRINE_ISA_NAMESPACE_BEGIN \
  VITRINE_NAMESPACE_BEGIN           \
  namespace VITRINE_ISA {
#define VITRINE_ISA_NAMESPACE_END \
  }                               \
  VITRINE_NAMESPACE_END
