// Kernel entries: the small ops between the matrix products. The formulas and papers: elementwise_bodies.hpp.
//
// Each call works on one row of F32 values, of any length and alignment; ops/elementwise.hpp shares rows out. Sums run
// in sixteen lanes (index mod 16, the tail padded with +0) and then lanes i + 8, + 4, + 2, + 1, so that every table
// gives the same bits. Nothing is checked or thrown here.
#pragma once

#include <cstdint>

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

struct ElementwiseKernels {
  // y[i] = x[i] * (1 / sqrt(sum(x^2) / width + eps)) * weight[i]; weight may be null. x [width], y may be x.
  void (*rms_norm)(const float* x, const float* weight, float eps, float* y, std::int64_t width);

  // One token: x [n_head][head_dim] in place, half-split; cos, sin [head_dim / 2]. Products rounded before they meet.
  void (*rope)(float* x, std::int64_t n_head, std::int64_t head_dim, const float* cos, const float* sin);

  void (*add)(float* x, const float* y, std::int64_t n);                               // x += y
  void (*scale)(float* x, float factor, std::int64_t n);                               // x *= factor
  void (*silu_times)(const float* gate, const float* up, float* out, std::int64_t n);  // silu(gate) * up
  void (*gelu_times)(const float* gate, const float* up, float* out, std::int64_t n);  // tanh form of gelu

  // The greatest value and its lowest index (-1 and -infinity if nothing exceeds -infinity); false if any x is infinite
  // or NaN. NaN is never the greatest.
  bool (*find_peak)(const float* x, std::int64_t n, std::int64_t* id, float* value);

  void (*exp)(const float* x, float* y, std::int64_t n);
};

VITRINE_NAMESPACE_END
