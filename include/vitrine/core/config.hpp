// Version, namespaces and the switches that hold for every file of the library.
//
// Everything lives in `vitrine::<inline namespace>`, which carries the version. There are two ways of use:
//
//   VITRINE_HEADER_ONLY  every body is compiled into the including unit, for the instruction set of that unit's flags
//   (otherwise)          bodies are compiled once into the library; kernels exist once per instruction set (see simd/)
//
// Compile all header-only units of one program with the same -m flags, and all or none with -fopenmp: the linker keeps
// one copy of an inline function, whichever unit it comes from. As a net, the inline namespace also names the kernels'
// instruction set, whether AVX and BMI2 are used in between, and who runs the threads. Units that differ in these share
// nothing (and cannot hand each other objects); other -m flags are not told apart.
#pragma once

#define VITRINE_VERSION_MAJOR 0
#define VITRINE_VERSION_MINOR 1
#define VITRINE_VERSION_PATCH 0
#define VITRINE_VERSION (VITRINE_VERSION_MAJOR * 10000 + VITRINE_VERSION_MINOR * 100 + VITRINE_VERSION_PATCH)
#define VITRINE_VERSION_STRING "0.1.0"

#if __cplusplus < 202002L
#error "Vitrine needs C++20: compile with -std=c++20"
// A header that nobody has ends the compilation here, before a thousand errors that follow from the first.
#include <Vitrine needs C++20: compile with -std=c++20>
#endif

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "Vitrine's results are defined bit by bit: do not compile it with -ffast-math, -Ofast or -ffinite-math-only"
#endif

// The widest kernels that this unit's own flags allow; see simd/isa.hpp.
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__) && \
    defined(__AVX512VNNI__)
#define VITRINE_FLAGS_ISA avx512vnni
#elif defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define VITRINE_FLAGS_ISA avx512
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__) && defined(__AVXVNNI__)
#define VITRINE_FLAGS_ISA avxvnni
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define VITRINE_FLAGS_ISA avx2
#else
#define VITRINE_FLAGS_ISA scalar
#endif

#ifdef VITRINE_HEADER_ONLY
#define VITRINE_INLINE inline
#ifdef __AVX__
#define VITRINE_ABI_VECTOR avx
#else
#define VITRINE_ABI_VECTOR sse
#endif
#ifdef __BMI2__
#define VITRINE_ABI_SCALAR bmi2
#else
#define VITRINE_ABI_SCALAR plain
#endif
#if defined(_OPENMP) && !defined(VITRINE_STD_THREADS)
#define VITRINE_ABI_THREADS openmp
#else
#define VITRINE_ABI_THREADS threads
#endif
#define VITRINE_ABI_PASTE(isa, vector, scalar, threads) v0_1_header_only_##isa##_##vector##_##scalar##_##threads
#define VITRINE_ABI_JOIN(isa, vector, scalar, threads) VITRINE_ABI_PASTE(isa, vector, scalar, threads)
#define VITRINE_ABI VITRINE_ABI_JOIN(VITRINE_FLAGS_ISA, VITRINE_ABI_VECTOR, VITRINE_ABI_SCALAR, VITRINE_ABI_THREADS)
#else
#define VITRINE_INLINE
#define VITRINE_ABI v0_1
#endif

#define VITRINE_NAMESPACE_BEGIN \
  namespace vitrine {           \
  inline namespace VITRINE_ABI {
#define VITRINE_NAMESPACE_END \
  }                           \
  }

// For the few small functions that ISA units share with baseline units: internal linkage, always inlined, so that no
// copy compiled with wide flags can be picked by the linker for a unit that must run on any CPU.
#define VITRINE_FORCE_INLINE static inline __attribute__((always_inline))
