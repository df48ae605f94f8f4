// All kernels, compiled for avxvnni.
#define VITRINE_ISA avxvnni
#define xsimd xsimd_avxvnni  // its inline functions must not merge with those of other units
#include "vitrine/simd/kernels.hpp"
