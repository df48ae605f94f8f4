// Bodies of simd/dispatch.hpp.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string_view>

#include "vitrine/core/error.hpp"
#include "vitrine/core/float16.hpp"
#include "vitrine/core/parallel.hpp"
#include "vitrine/simd/cpu_probe.hpp"
#include "vitrine/simd/dispatch.hpp"

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/simd/kernels.hpp"
#endif

VITRINE_NAMESPACE_BEGIN

#ifndef VITRINE_HEADER_ONLY
namespace scalar {
const KernelTable& kernel_table();
}
namespace avx2 {
const KernelTable& kernel_table();
}
namespace avxvnni {
const KernelTable& kernel_table();
}
namespace avx512 {
const KernelTable& kernel_table();
}
namespace avx512vnni {
const KernelTable& kernel_table();
}
namespace avx512amx {
const KernelTable& kernel_table();
}
#endif

namespace dispatch_detail {

inline constexpr Isa all_isas[] = {Isa::scalar, Isa::avx2, Isa::avxvnni, Isa::avx512, Isa::avx512vnni, Isa::avx512amx};
inline constexpr const char* isa_names = "scalar, avx2, avxvnni, avx512, avx512vnni or avx512amx";

VITRINE_INLINE bool cpu_has(Isa isa) {
  static const cpu_detail::CpuFeatures features = cpu_detail::probe_cpu();
  switch (isa) {
    case Isa::scalar: return true;
    case Isa::avx2: return features.avx2;
    case Isa::avxvnni: return features.avxvnni;
    case Isa::avx512: return features.avx512;
    case Isa::avx512vnni: return features.avx512vnni;
    case Isa::avx512amx: return features.avx512amx;
  }
  return false;
}

// The table of an instruction set, or nullptr if this build has none.
VITRINE_INLINE const KernelTable* built_table(Isa isa) {
#ifdef VITRINE_HEADER_ONLY
  return isa == Isa::VITRINE_ISA ? &VITRINE_ISA::kernel_table() : nullptr;
#else
  switch (isa) {
    case Isa::scalar: return &scalar::kernel_table();
    case Isa::avx2: return &avx2::kernel_table();
    case Isa::avxvnni: return &avxvnni::kernel_table();
    case Isa::avx512: return &avx512::kernel_table();
    case Isa::avx512vnni: return &avx512vnni::kernel_table();
    case Isa::avx512amx: return &avx512amx::kernel_table();
  }
  return nullptr;
#endif
}

// Does the table compute what IEEE 754 says of each operation? A contracted a*b+c, a flushed subnormal or a reordered
// sum shows here. Both the operands and the expected bits are fixed by integer code, none by the compiler.
VITRINE_INLINE bool computes_exactly(const KernelTable& kernel_table) {
  const parallel_detail::DefaultFloatEnvironment environment;
  float a[16], b[16], c[16], out[8][16];
  std::uint32_t state = 12345;
  const auto next = [&state] {  // a float of magnitude 0.5 to 8
    state = state * 1664525u + 1013904223u;
    return bits_to_float((state & 0x80000000u) | (0x3f000000u + ((state >> 3) & 0x1ffffffu)));
  };
  for (int i = 0; i < 16; ++i) a[i] = next(), b[i] = next(), c[i] = next();
  a[3] = 2.5f;                       // a tie in the conversion to integer
  a[5] = bits_to_float(0x00800000);  // times b is subnormal
  b[5] = 0.25f;
  kernel_table.probe(a, b, c, &out[0][0]);
  float lanes[16];
  std::memcpy(lanes, a, sizeof lanes);
  for (int step = 8; step > 0; step /= 2)
    for (int i = 0; i < step; ++i) {
      const volatile float sum = lanes[i] + lanes[i + step];
      lanes[i] = sum;
    }
  bool same = true;
  const auto expect = [&same](float got, float wanted) { same = same && float_to_bits(got) == float_to_bits(wanted); };
  for (int i = 0; i < 16; ++i) {
    const volatile float product = a[i] * b[i];  // volatile: this one must be rounded whatever the compiler was told
    const volatile float in_two_roundings = product + c[i];
    const volatile float quotient = a[i] / b[i];
    expect(out[0][i], in_two_roundings);
    expect(out[1][i], std::fma(a[i], b[i], c[i]));
    expect(out[2][i], quotient);
    expect(out[3][i], std::sqrt(std::fabs(a[i])));
    expect(out[4][i], product);
    expect(out[5][i], a[i] > b[i] ? a[i] : b[i]);
    expect(out[6][i], std::nearbyint(a[i]) + 0.0f);
    expect(out[7][i], lanes[0]);
  }
  return same && out[4][5] != 0.0f && out[6][3] == 2.0f;
}

}  // namespace dispatch_detail

VITRINE_INLINE const char* isa_name(Isa isa) {
  switch (isa) {
    case Isa::scalar: return "scalar";
    case Isa::avx2: return "avx2";
    case Isa::avxvnni: return "avxvnni";
    case Isa::avx512: return "avx512";
    case Isa::avx512vnni: return "avx512vnni";
    case Isa::avx512amx: return "avx512amx";
  }
  return "unknown";
}

VITRINE_INLINE std::vector<Isa> available_isas() {
  std::vector<Isa> out;
  for (const Isa isa : dispatch_detail::all_isas)
    if (dispatch_detail::cpu_has(isa) && dispatch_detail::built_table(isa)) out.push_back(isa);
  check(!out.empty(), ErrorKind::unsupported,
        "this program was compiled for an instruction set that the CPU does not have");
  return out;
}

VITRINE_INLINE const KernelTable& kernels(Isa isa) {
  check(std::find(std::begin(dispatch_detail::all_isas), std::end(dispatch_detail::all_isas), isa) !=
            std::end(dispatch_detail::all_isas),
        ErrorKind::bad_argument, "isa: expected ", dispatch_detail::isa_names, ", got Isa(", int(isa), ")");
  static std::atomic<unsigned> proven{0};  // bit i: table i has passed the probe
  const unsigned bit = 1u << int(isa);
  check(dispatch_detail::cpu_has(isa), ErrorKind::unsupported, "instruction set ", isa_name(isa),
        ": the CPU or the operating system does not support it");
  const KernelTable* found = dispatch_detail::built_table(isa);
  check(found != nullptr, ErrorKind::unsupported, "instruction set ", isa_name(isa),
        ": this header-only build was compiled for another one");
  if (!(proven.load(std::memory_order_relaxed) & bit)) {
    check(dispatch_detail::computes_exactly(*found), ErrorKind::unsupported, "the ", isa_name(isa),
          " kernels do not round as written: compile with -ffp-contract=off and without -ffast-math, "
          "-funsafe-math-optimizations or -fassociative-math");
    proven.fetch_or(bit, std::memory_order_relaxed);
  }
  return *found;
}

VITRINE_INLINE const KernelTable& kernels() {
  static const KernelTable& chosen = []() -> const KernelTable& {
    const char* wanted = std::getenv("VITRINE_ISA");
    if (!wanted || !*wanted) return kernels(available_isas().back());
    for (const Isa isa : dispatch_detail::all_isas)
      if (std::string_view(wanted) == isa_name(isa)) return kernels(isa);
    throw Error(ErrorKind::unsupported,
                concat("VITRINE_ISA: expected ", dispatch_detail::isa_names, ", got '", wanted, "'"));
  }();
  return chosen;
}

VITRINE_NAMESPACE_END
