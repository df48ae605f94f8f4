// The kernels that multiply bytes, compiled for avx512vnni; the others are those of avx512.
#define VITRINE_ISA avx512vnni
#define VITRINE_ISA_BELOW avx512
#define xsimd xsimd_avx512vnni  // its inline functions must not merge with those of other units
#include "vitrine/simd/kernels_dots.hpp"
