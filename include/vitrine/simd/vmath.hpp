// exp of sixteen lanes: fixed operations, so the same bits from every instruction set. At most 2 units in the last
// place from the true value (tests/ops/test_elementwise.cpp tries every thousandth float).
//
//   x = k ln 2 + r, |r| <= ln 2 / 2:  e^x = 2^k e^r, e^r by a polynomial of degree 6 (minimax fit of
//   (e^r - 1 - r) / r^2, relative error 3e-9).  exp(0) = 1; below -87 +0, so that no result is subnormal; above 88.72
//   infinity; NaN in, NaN out
#pragma once

#include "vitrine/simd/lanes.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

namespace vmath_detail {

// e^r for |r| <= ln 2 / 2, where x = k ln 2 + r and k is the integer nearest to x / ln 2.
VITRINE_FORCE_INLINE f32x16 exp_of_rest(f32x16 x, f32x16 k) {
  const f32x16 r = fma(k, broadcast(0x1.05c61p-29f), fma(k, broadcast(-0x1.62e43p-1f), x));
  f32x16 sum = broadcast(0x1.6a1a6cp-10f);
  sum = fma(sum, r, broadcast(0x1.123fc6p-7f));
  sum = fma(sum, r, broadcast(0x1.555916p-5f));
  sum = fma(sum, r, broadcast(0x1.55548ap-3f));
  sum = fma(sum, r, broadcast(0x1.fffffcp-2f));
  sum = fma(sum, r, broadcast(1.0f));
  return fma(sum, r, broadcast(1.0f));
}

}  // namespace vmath_detail

VITRINE_FORCE_INLINE f32x16 exp(f32x16 x) {
  // Adding 1.5 * 2^23 rounds to an integer and leaves that integer in the low bits of the sum.
  const f32x16 magic = broadcast(0x1.8p23f);
  const f32x16 shifted = fma(x, broadcast(0x1.715476p+0f), magic);
  const f32x16 sum = vmath_detail::exp_of_rest(x, shifted - magic);
  f32x16 result = from_bits(bits(sum) + shift_left<23>(bits(shifted)));  // times 2^k
  result = select(less(x, broadcast(-87.0f)), zero(), result);
  result = select(less(x, broadcast(0x1.62e42ep+6f)), result, from_bits(broadcast_i32(0x7f800000)));
  return select(equal(x, x), result, x);
}

// The same bits for x <= 0 (or NaN) with fewer operations, for softmax.
VITRINE_FORCE_INLINE f32x16 exp_not_positive(f32x16 x) {
  const f32x16 magic = broadcast(0x1.8p23f + 127.0f);  // so that the low bits hold k + 127, the exponent field of 2^k
  const f32x16 shifted = fma(x, broadcast(0x1.715476p+0f), magic);
  const f32x16 sum = vmath_detail::exp_of_rest(x, shifted - magic);
  return select(less(x, broadcast(-87.0f)), zero(), sum * from_bits(shift_left<23>(bits(shifted))));
}

VITRINE_ISA_NAMESPACE_END
