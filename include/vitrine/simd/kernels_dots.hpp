// The kernels of a set that adds products of bytes in 32 bits (VNNI) to one that is otherwise the same: the table of
// that set, VITRINE_ISA_BELOW, with other kernels where bytes are multiplied. The rest would be the same instructions,
// compiled twice. Included by src/kernels_avxvnni.cpp and src/kernels_avx512vnni.cpp only.
#pragma once

#include "vitrine/simd/attention_quantised.hpp"
#include "vitrine/simd/isa.hpp"
#include "vitrine/simd/kernel_table.hpp"
#include "vitrine/simd/linear_bodies.hpp"
#include "vitrine/simd/probe_bodies.hpp"

VITRINE_NAMESPACE_BEGIN

namespace VITRINE_ISA_BELOW {
const KernelTable& kernel_table();
}

namespace VITRINE_ISA {

// The one function that the unit exports.
const KernelTable& kernel_table() {
  static const KernelTable table = [] {
    KernelTable with_dots = VITRINE_ISA_BELOW::kernel_table();
    with_dots.name = VITRINE_STRINGIZE(VITRINE_ISA);
    with_dots.isa = Isa::VITRINE_ISA;
    set_quantised_forms(with_dots.linear);
    with_dots.attention.integer_scores = attention_detail::integer_scores;
    with_dots.probe = probe_detail::probe;
    return with_dots;
  }();
  return table;
}

}  // namespace VITRINE_ISA

VITRINE_NAMESPACE_END
