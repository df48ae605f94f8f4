// All kernels, compiled for scalar.
#define VITRINE_ISA scalar
#include "vitrine/simd/kernels.hpp"
