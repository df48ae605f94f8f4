// All kernels, compiled for avx512.
#define VITRINE_ISA avx512
#define xsimd xsimd_avx512  // its inline functions must not merge with those of other units
#include "vitrine/simd/kernels.hpp"
