// Elementary functions made of a fixed sequence of IEEE operations: the same bits on every machine, compiler and C
// library, which libm does not promise. For code that is not a kernel: RoPE tables, sampling, tests.
//
// The work is done in double. Error bounds (tested in tests/core/test_exact_math.cpp):
//   double   exp, log 2 ulp; tanh 3 ulp; sin, cos 1 ulp for |x| <= 2^20; pow relative error 2^-52 * (2 + 2 |y ln x|)
//   float    the double result rounded once: correctly rounded but for about one argument in a million
// Domains: sin and cos answer NaN beyond |x| = 2^45 (no position times frequency comes near). NaN in, NaN out;
// infinities and zeros as in C's Annex F. Kernels use simd/vmath.hpp instead.
#pragma once

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

namespace exact {

double exp(double x);
double log(double x);
double pow(double x, double y);
double sin(double x);
double cos(double x);
double tanh(double x);

struct SinCos {
  double sin, cos;
};
SinCos sin_cos(double x);  // both for the price of one; same bits as sin and cos

inline float exp(float x) { return float(exp(double(x))); }
inline float log(float x) { return float(log(double(x))); }
inline float pow(float x, float y) { return float(pow(double(x), double(y))); }
inline float sin(float x) { return float(sin(double(x))); }
inline float cos(float x) { return float(cos(double(x))); }
inline float tanh(float x) { return float(tanh(double(x))); }

}  // namespace exact

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/core/exact_math.inl.hpp"
#endif
