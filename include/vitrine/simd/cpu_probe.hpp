// What the CPU and the operating system offer, from CPUID and XGETBV. Must be compiled for a baseline CPU.
//
// AVX registers exist for a program only if the system saves them on a task switch: XCR0 bits 1 and 2 (SSE, AVX), 5 to
// 7 for the AVX-512 state, 17 and 18 for the tiles of AMX (Intel SDM vol. 1, section 13.3). Linux also wants to be
// asked for the tiles, whose 8 KB it then adds to the frames of signals of this process
// (Documentation/arch/x86/xstate.rst).
#pragma once

#include <cpuid.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <cstdint>

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

namespace cpu_detail {

struct CpuFeatures {
  bool avx2 = false, avxvnni = false;                          // each implies the ones before it
  bool avx512 = false, avx512vnni = false, avx512amx = false;  // the same, and avx2
};

// Asks the system for the tile registers, for all threads of the process.
VITRINE_FORCE_INLINE bool may_use_tiles() {
#ifdef __linux__
  constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, number of the state
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
  return false;
#endif
}

VITRINE_FORCE_INLINE CpuFeatures probe_cpu() {
  CpuFeatures found;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return found;
  const bool osxsave = c >> 27 & 1, avx = c >> 28 & 1, fma = c >> 12 & 1, f16c = c >> 29 & 1;
  if (!osxsave || !avx || !fma || !f16c) return found;
  std::uint32_t xcr0 = 0, upper = 0;
  __asm__ volatile("xgetbv" : "=a"(xcr0), "=d"(upper) : "c"(0));
  if ((xcr0 & 0x6) != 0x6 || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return found;
  found.avx2 = b >> 5 & 1;
  const bool f = b >> 16 & 1, dq = b >> 17 & 1, bw = b >> 30 & 1, vl = b >> 31 & 1, vnni = c >> 11 & 1;
  const bool tiles = d >> 24 & 1, int8_tiles = d >> 25 & 1, has_more_leaves = a >= 1;
  found.avx512 = found.avx2 && (xcr0 & 0xe6) == 0xe6 && f && dq && bw && vl;
  found.avx512vnni = found.avx512 && vnni;
  found.avx512amx = found.avx512vnni && tiles && int8_tiles && (xcr0 >> 17 & 3) == 3 && may_use_tiles();
  if (has_more_leaves && __get_cpuid_count(7, 1, &a, &b, &c, &d)) found.avxvnni = found.avx2 && (a >> 4 & 1);
  return found;
}

}  // namespace cpu_detail

VITRINE_NAMESPACE_END
