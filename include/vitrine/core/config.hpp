// Version, namespaces and the switches that hold for every file of the library.
//
// Everything lives in `vitrine::<inline namespace>`. The inline namespace carries the version, and in header-only mode
// the instruction set as well, because two translation units built with different -m flags must never share an inline
// function.
//
//   VITRINE_HEADER_ONLY  every body is compiled into the including unit, for the instruction set of that unit's own
//   flags (otherwise)          bodies are compiled once into the library; kernels exist once per instruction set (see
//   simd/)
#pragma once

#define VITRINE_VERSION_MAJOR 0
#define VITRINE_VERSION_MINOR 1
#define VITRINE_VERSION_PATCH 0
#define VITRINE_VERSION (VITRINE_VERSION_MAJOR * 10000 + VITRINE_VERSION_MINOR * 100 + VITRINE_VERSION_PATCH)
#define VITRINE_VERSION_STRING "0.1.0"

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "Vitrine's results are defined bit by bit: do not compile it with -ffast-math, -Ofast or -ffinite-math-only"
#endif

#ifdef VITRINE_HEADER_ONLY
#define VITRINE_INLINE inline
// Units of one program should all be compiled with the same -m flags and the same choice of threads. Those that are not
// get namespaces of their own as far as the names below tell them apart.
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__) && \
    defined(__AVX512VNNI__)
#define VITRINE_ABI_ISA avx512vnni
#elif defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define VITRINE_ABI_ISA avx512
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define VITRINE_ABI_ISA avx2
#else
#define VITRINE_ABI_ISA scalar
#endif
#ifdef __AVX__
#define VITRINE_ABI_ENCODING vex
#else
#define VITRINE_ABI_ENCODING sse
#endif
#if defined(_OPENMP) && !defined(VITRINE_STD_THREADS)
#define VITRINE_ABI_THREADS openmp
#else
#define VITRINE_ABI_THREADS threads
#endif
#define VITRINE_ABI_JOIN_(isa, encoding, threads) v0_1_header_only_##isa##_##encoding##_##threads
#define VITRINE_ABI_JOIN(isa, encoding, threads) VITRINE_ABI_JOIN_(isa, encoding, threads)
#define VITRINE_ABI VITRINE_ABI_JOIN(VITRINE_ABI_ISA, VITRINE_ABI_ENCODING, VITRINE_ABI_THREADS)
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
