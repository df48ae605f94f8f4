// The table of a set that does some things better than a narrower one, VITRINE_ISA_BELOW: that set's, with what the
// unit's extend() puts in. The rest would be the same instructions, compiled twice.
//
//   avx2 <- avxvnni        avx512 <- avx512vnni <- avx512amx
//
// For kernels_dots.hpp and kernels_tiles.hpp, which define extend().
#pragma once

#include "vitrine/simd/isa.hpp"
#include "vitrine/simd/kernel_table.hpp"
#include "vitrine/simd/lanes.hpp"  // of one set, as all kernels: not for programs to include

VITRINE_NAMESPACE_BEGIN

namespace VITRINE_ISA_BELOW {
const KernelTable& kernel_table();
}

namespace VITRINE_ISA {

void extend(KernelTable& table);

// The one function that the unit exports.
const KernelTable& kernel_table() {
  static const KernelTable table = [] {
    KernelTable extended = VITRINE_ISA_BELOW::kernel_table();
    extended.name = VITRINE_STRINGIZE(VITRINE_ISA);
    extended.isa = Isa::VITRINE_ISA;
    extend(extended);
    return extended;
  }();
  return table;
}

}  // namespace VITRINE_ISA

VITRINE_NAMESPACE_END
