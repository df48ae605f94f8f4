#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "vitrine/core/exact_math.hpp"

VITRINE_NAMESPACE_BEGIN

namespace exact_detail {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
// ln 2 in two parts; the first has 32 bits, so that its product with an exponent is exact.
inline constexpr double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
inline constexpr double log2_of_e = 0x1.71547652b82fep+0;

inline std::uint64_t to_bits(double x) {
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
inline double from_bits(std::uint64_t bits) {
  double x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
// 2^n for a normal result, -1022 <= n <= 1023.
inline double power_of_two(std::int64_t n) { return from_bits(std::uint64_t(n + 1023) << 52); }

// x * 2^n; two factors, so that results down to the subnormals are rounded once.
inline double scale(double x, std::int64_t n) {
  if (n > 1023) return x * power_of_two(1023) * power_of_two(n - 1023);
  if (n < -1022) return x * power_of_two(n + 969) * power_of_two(-969);
  return x * power_of_two(n);
}

// Nearest integer, ties to even, for |x| < 2^51: adding 1.5 * 2^52 leaves no bit for a fraction.
inline double nearest(double x) {
  constexpr double magic = 0x1.8p52;
  return (x + magic) - magic;
}

// exp(r) - 1 for |r| <= 0.36: Taylor's series to r^13, remainder below 2^-57.
inline double exp_minus_one_of_small(double r) {
  double sum = 1.0 / 6227020800.0;
  sum = sum * r + 1.0 / 479001600.0;
  sum = sum * r + 1.0 / 39916800.0;
  sum = sum * r + 1.0 / 3628800.0;
  sum = sum * r + 1.0 / 362880.0;
  sum = sum * r + 1.0 / 40320.0;
  sum = sum * r + 1.0 / 5040.0;
  sum = sum * r + 1.0 / 720.0;
  sum = sum * r + 1.0 / 120.0;
  sum = sum * r + 1.0 / 24.0;
  sum = sum * r + 1.0 / 6.0;
  sum = sum * r + 0.5;
  return r + r * r * sum;
}

// sin and cos of r + rest for |r| <= pi/4 + a little; `rest` is the part of the reduced angle below r's last bit.
inline exact::SinCos sin_cos_of_small(double r, double rest) {
  const double z = r * r;
  double s = 1.0 / 355687428096000.0;  // 1/17!
  s = s * z - 1.0 / 1307674368000.0;
  s = s * z + 1.0 / 6227020800.0;
  s = s * z - 1.0 / 39916800.0;
  s = s * z + 1.0 / 362880.0;
  s = s * z - 1.0 / 5040.0;
  s = s * z + 1.0 / 120.0;
  s = s * z - 1.0 / 6.0;
  double c = 1.0 / 20922789888000.0;  // 1/16!
  c = c * z - 1.0 / 87178291200.0;
  c = c * z + 1.0 / 479001600.0;
  c = c * z - 1.0 / 3628800.0;
  c = c * z + 1.0 / 40320.0;
  c = c * z - 1.0 / 720.0;
  c = c * z + 1.0 / 24.0;
  const double half = 0.5 * z, one_minus_half = 1.0 - half;
  // 1 - z/2 loses bits that matter once z is not tiny; ((1 - w) - half) is exactly what was lost.
  const double lost = (1.0 - one_minus_half) - half;
  return {r + (r * z * s + rest), one_minus_half + (lost + (z * z * c - r * rest))};
}

inline bool is_integer(double y) { return std::fabs(y) >= 0x1p53 || y == double(std::int64_t(y)); }
inline bool is_odd_integer(double y) {
  return std::fabs(y) < 0x1p53 && y == double(std::int64_t(y)) && (std::int64_t(y) & 1) != 0;
}

}  // namespace exact_detail

namespace exact {

// exp(x) = 2^k exp(r), k the integer nearest to x / ln 2.
VITRINE_INLINE double exp(double x) {
  using namespace exact_detail;
  if (!(x <= 710.0)) return x > 710.0 ? infinity : x;  // the second case is NaN
  if (x < -746.0) return 0.0;
  const double k = nearest(x * log2_of_e);
  const double r_high = x - k * ln2_high, r_low = k * ln2_low, r = r_high - r_low;
  const double rest = (r_high - r) - r_low;
  const double minus_one = exp_minus_one_of_small(r);
  return scale(1.0 + (minus_one + (rest + rest * r)), std::int64_t(k));
}

// log(2^e m) = e ln 2 + 2 atanh(s), s = (m - 1) / (m + 1), with m in [sqrt(1/2), sqrt(2)).
VITRINE_INLINE double log(double x) {
  using namespace exact_detail;
  if (!(x > 0.0)) return x == 0.0 ? -infinity : not_a_number;
  if (x == infinity) return x;
  std::int64_t e = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    e = -54;
  }
  const std::uint64_t bits = to_bits(x);
  e += std::int64_t(bits >> 52) - 1023;
  double m = from_bits((bits & 0xfffffffffffffu) | 0x3ff0000000000000u);
  if (m >= 0x1.6a09e667f3bcdp+0) {
    m *= 0.5;
    ++e;
  }
  const double f = m - 1.0, s = f / (m + 1.0), z = s * s;
  double sum = 2.0 / 25.0;
  for (int n = 23; n >= 3; n -= 2) sum = sum * z + 2.0 / n;
  // 2 s = f - s f, and s f is small beside f: this way the leading term f enters without a rounding.
  const double tail = s * (z * sum) - s * f, k = double(e);
  return k * ln2_high + (f + (tail + k * ln2_low));
}

VITRINE_INLINE double pow(double x, double y) {
  using namespace exact_detail;
  if (y == 0.0 || x == 1.0) return 1.0;
  if (x != x || y != y) return not_a_number;
  const double magnitude = std::fabs(x), sign = x < 0.0 && is_odd_integer(y) ? -1.0 : 1.0;
  if (magnitude == 1.0 && !(y < infinity && y > -infinity)) return 1.0;
  if (x == 0.0) {
    const double zero = is_odd_integer(y) ? x : 0.0;
    return y > 0.0 ? zero : 1.0 / zero;
  }
  if (x < 0.0 && magnitude < infinity && !is_integer(y)) return not_a_number;
  if (magnitude == 1.0) return sign;
  return sign * exp(y * log(magnitude));
}

// x = k pi/2 + r; the quadrant k mod 4 picks one of +-sin r, +-cos r.
VITRINE_INLINE SinCos sin_cos(double x) {
  using namespace exact_detail;
  const double magnitude = std::fabs(x);
  if (!(magnitude <= 0x1p45)) return {not_a_number, not_a_number};
  if (magnitude < 0x1p-27) return {x, 1.0};
  const double k = nearest(x * 0x1.45f306dc9c883p-1);
  double high, low;  // high - low is the reduced angle
  if (magnitude <= 0x1p20) {
    // pi/2 in parts of 33 bits: their products with k (at most 20 bits) are exact.
    const double first = x - k * 0x1.921fb544p+0, second = k * 0x1.0b4611a6p-34;
    high = first - second;
    low = k * 0x1.3198a2e037073p-69 - ((first - high) - second);
  } else {
    // pi/2 in three doubles. x - k P1 is a multiple of 2^-52 below 1 and so exact with one rounding.
    constexpr double part2 = 0x1.1a62633145c07p-54, part3 = -0x1.f1976b7ed8fbcp-110;
    const double first = std::fma(-k, 0x1.921fb54442d18p+0, x), second = k * part2;
    const double second_rest = std::fma(k, part2, -second);
    high = first - second;
    low = (k * part3 + second_rest) - ((first - high) - second);
  }
  const double r = high - low;
  const SinCos small_angle = sin_cos_of_small(r, (high - r) - low);
  switch (std::int64_t(k) & 3) {
    case 0: return small_angle;
    case 1: return {small_angle.cos, -small_angle.sin};
    case 2: return {-small_angle.sin, -small_angle.cos};
    default: return {-small_angle.cos, small_angle.sin};
  }
}

VITRINE_INLINE double sin(double x) { return sin_cos(x).sin; }
VITRINE_INLINE double cos(double x) { return sin_cos(x).cos; }

// tanh(x) = e / (e + 2) with e = exp(2 x) - 1.
VITRINE_INLINE double tanh(double x) {
  using namespace exact_detail;
  if (x != x) return x;
  const double magnitude = std::fabs(x);
  if (magnitude < 0x1p-28) return x;
  double t = 1.0;
  if (magnitude < 22.0) {
    const double e = magnitude <= 0.17 ? exp_minus_one_of_small(2.0 * magnitude) : exp(2.0 * magnitude) - 1.0;
    t = e / (e + 2.0);
  }
  return x < 0.0 ? -t : t;
}

}  // namespace exact

VITRINE_NAMESPACE_END
