// The arithmetic probe of a table of kernels (see kernel_table.hpp), written over the lanes.
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
