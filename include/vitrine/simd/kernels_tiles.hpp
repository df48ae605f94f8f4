// The kernels of processors that multiply tiles of bytes (AMX): the table of avx512vnni, and the matrix forms of the
// quantised types besides, with the input that they read. Included by src/kernels_avx512amx.cpp only.
#pragma once

#include "vitrine/simd/kernel_table.hpp"
#include "vitrine/simd/linear_matrix.hpp"

VITRINE_NAMESPACE_BEGIN

namespace avx512vnni {
const KernelTable& kernel_table();
}

namespace avx512amx {

// The one function that the unit exports.
const KernelTable& kernel_table() {
  static const KernelTable table = [] {
    KernelTable with_tiles = avx512vnni::kernel_table();
    with_tiles.name = "avx512amx";
    with_tiles.isa = Isa::avx512amx;
    add_matrix_forms(with_tiles.linear);
    return with_tiles;
  }();
  return table;
}

}  // namespace avx512amx

VITRINE_NAMESPACE_END
