// Bodies of elementwise_kernels.hpp, written over the lanes.
#pragma once

#include "vitrine/simd/elementwise_kernels.hpp"
#include "vitrine/simd/lanes.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

constexpr ElementwiseKernels elementwise_kernels() { return {}; }

VITRINE_ISA_NAMESPACE_END
