// All kernels, compiled for avx512vnni.
#define VITRINE_ISA avx512vnni
#define xsimd xsimd_avx512vnni  // its inline functions must not merge with those of other units
#include "vitrine/simd/kernels.hpp"
