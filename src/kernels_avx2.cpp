// All kernels, compiled for avx2.
#define VITRINE_ISA avx2
#define xsimd xsimd_avx2  // its inline functions must not merge with those of other units
#include "vitrine/simd/kernels.hpp"
