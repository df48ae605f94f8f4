// A loop whose index is a constant at every step, so that arrays that it indexes stay in registers.
//
//   f32x16 sum[4];   unroll<4>([&](auto i) { sum[i] = zero(); });
//
// The body gets Index<0>, Index<1>, ... Index<n - 1>: an int where one is wanted, a constant as decltype(i)::value.
#pragma once

#include <utility>

#include "vitrine/simd/isa.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

template <int n>
struct Index {
  static constexpr int value = n;
  __attribute__((always_inline)) constexpr operator int() const { return n; }
};

namespace unroll_detail {
template <class Body, int... i>
VITRINE_FORCE_INLINE void unroll_each(Body& body, std::integer_sequence<int, i...>) {
  (body(Index<i>{}), ...);
}
}  // namespace unroll_detail

template <int n, class Body>
VITRINE_FORCE_INLINE void unroll(Body body) {
  unroll_detail::unroll_each(body, std::make_integer_sequence<int, n>{});
}

VITRINE_ISA_NAMESPACE_END
