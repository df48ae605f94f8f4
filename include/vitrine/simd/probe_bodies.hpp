// The arithmetic probe of a table of kernels, written over the lanes: a, b, c [16] in, eight results [8][16] out.
//
//   a * b + c rounded twice, fma, a / b, sqrt|a|, a * b, max, float(int(a)), sum of a
//
// Part of every table (kernel_table.hpp). simd/dispatch runs it before a table is used for the first time and compares
// with its own results: a compiler that was told to contract or to reorder gives others, and is named in an Error.
#pragma once

#include "vitrine/simd/lanes.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

namespace probe_detail {

inline void probe(const float* pa, const float* pb, const float* pc, float* out) {
  const f32x16 a = load(pa), b = load(pb), c = load(pc);
  store(out, a * b + c);
  store(out + 16, fma(a, b, c));
  store(out + 32, a / b);
  store(out + 48, sqrt(max(a, zero() - a)));
  store(out + 64, a * b);
  store(out + 80, max(a, b));
  store(out + 96, to_f32(to_i32(a)));
  store(out + 112, broadcast(hsum(a)));
}

}  // namespace probe_detail

VITRINE_ISA_NAMESPACE_END
