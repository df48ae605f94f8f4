// Kernels of processors that multiply tiles of bytes (AMX): the matrix forms of the quantised types besides, with the
// input that they read.
//
// A tile instruction multiplies 16 rows by 16 columns over 64 bytes of k, so these forms are for many tokens at once,
// as in prefill; for one token or a few the forms of avx512vnni stay. Sums are exact 32-bit integers, hence the same.
// Included by src/kernels_avx512amx.cpp only.
#pragma once

#include "vitrine/simd/kernel_table.hpp"
#include "vitrine/simd/kernels_extended.hpp"
#include "vitrine/simd/linear_matrix.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

void extend(KernelTable& table) { add_matrix_forms(table.linear); }

VITRINE_ISA_NAMESPACE_END
