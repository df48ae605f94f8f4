// Every kernel body, compiled for the instruction set of this unit (see isa.hpp), and the table that names them.
//
//   avx2::kernel_table().linear, .elementwise, .attention, .sampling       function pointers (kernel_table.hpp)
//
// Included by src/kernels_<isa>.cpp, and in header-only mode by simd/dispatch. All bodies live in a namespace named
// after the instruction set; what they share with other units is types, constants and always-inlined functions only.
#pragma once

// The lanes have a max, which Windows headers may have defined as a macro.
#pragma push_macro("max")
#undef max

#include "vitrine/simd/attention_bodies.hpp"
#include "vitrine/simd/elementwise_bodies.hpp"
#include "vitrine/simd/isa.hpp"
#include "vitrine/simd/kernel_table.hpp"
#include "vitrine/simd/linear_bodies.hpp"
#include "vitrine/simd/probe_bodies.hpp"
#include "vitrine/simd/sampling_bodies.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

inline constexpr KernelTable table = {.name = VITRINE_STRINGIZE(VITRINE_ISA),
                                      .isa = Isa::VITRINE_ISA,
                                      .linear = linear_kernels(),
                                      .elementwise = elementwise_kernels(),
                                      .attention = attention_kernels(),
                                      .sampling = sampling_kernels(),
                                      .probe = probe_detail::probe};

// The one function that a unit exports.
VITRINE_INLINE const KernelTable& kernel_table() { return table; }

VITRINE_ISA_NAMESPACE_END

#pragma pop_macro("max")
