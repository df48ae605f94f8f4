// Whole numbers, rounded up: how many pieces of n hold them all, and how much these pieces hold together.
//
//   divide_up(65, 16) = 5      round_up(65, 16) = 80
//
// Not negative; the sum with the divisor must fit the type. Kernels use them, too, hence always inlined.
#pragma once

#include <type_traits>

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

template <class Number>
VITRINE_FORCE_INLINE constexpr Number divide_up(Number n, std::type_identity_t<Number> piece) {
  return (n + piece - 1) / piece;
}
template <class Number>
VITRINE_FORCE_INLINE constexpr Number round_up(Number n, std::type_identity_t<Number> unit) {
  return divide_up(n, unit) * unit;
}

VITRINE_NAMESPACE_END
