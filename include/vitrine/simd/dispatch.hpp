// Chooses the kernels: the widest instruction set that the CPU and the operating system both support.
//
// The environment variable VITRINE_ISA (scalar, avx2, avxvnni, avx512, avx512vnni, avx512amx) forces one. Results do
// not depend on the choice, not by one bit. In header-only mode there is one table, for the including unit's own flags,
// and never that of AMX.
#pragma once

#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/simd/kernel_table.hpp"

VITRINE_NAMESPACE_BEGIN

// The best table, or the one that VITRINE_ISA names; decided once per process. Throws Error::unsupported if VITRINE_ISA
// is unknown or the CPU lacks it, or if the library was compiled with options that change its arithmetic.
const KernelTable& kernels();

// The table of one instruction set. Throws Error::unsupported if this machine or this build has none.
const KernelTable& kernels(Isa isa);

// What this machine and this build can run, narrowest first; never empty.
std::vector<Isa> available_isas();

const char* isa_name(Isa isa);

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/simd/dispatch.inl.hpp"
#endif
