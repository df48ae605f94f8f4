// Kernels of processors that multiply tiles of bytes (AMX): the matrix forms of the quantised types besides, with the
// input that they read. Included by src/kernels_avx512amx.cpp only.
#pragma once

#include "vitrine/simd/kernel_table.hpp"
#include "vitrine/simd/kernels_extended.hpp"
#include "vitrine/simd/linear_matrix.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

void extend(KernelTable& table) { add_matrix_forms(table.linear); }

VITRINE_ISA_NAMESPACE_END
