// The kernels that multiply bytes, compiled for avxvnni; the others are those of avx2.
#define VITRINE_ISA avxvnni
#define VITRINE_ISA_BELOW avx2
#define xsimd xsimd_avxvnni  // its inline functions must not merge with those of other units
#include "vitrine/simd/kernels_dots.hpp"
