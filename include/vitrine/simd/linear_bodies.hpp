// Bodies of linear_kernels.hpp, written over the lanes.
#pragma once

#include "vitrine/simd/lanes.hpp"
#include "vitrine/simd/linear_kernels.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

constexpr LinearKernels linear_kernels() { return {}; }

VITRINE_ISA_NAMESPACE_END
