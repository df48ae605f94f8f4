// The kernels that multiply tiles, compiled for avx512amx; the others are those of avx512vnni.
#define VITRINE_ISA avx512amx
#define VITRINE_ISA_BELOW avx512vnni
#define xsimd xsimd_avx512amx  // its inline functions must not merge with those of other units
#include "vitrine/simd/kernels_tiles.hpp"
