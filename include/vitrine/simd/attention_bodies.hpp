// Bodies of attention_kernels.hpp, written over the lanes.
#pragma once

#include "vitrine/simd/attention_kernels.hpp"
#include "vitrine/simd/lanes.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

constexpr AttentionKernels attention_kernels() { return {}; }

VITRINE_ISA_NAMESPACE_END
