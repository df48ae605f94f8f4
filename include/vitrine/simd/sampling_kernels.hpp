// Kernel entries: passes over the logits of a whole vocabulary, for the choice of a token.
//
//   p[i] = exp((x[i] - largest) / temperature) / mass        entropy = log(mass) - moment / mass
//
// x [n_vocab] in F32; -infinity is a token that was ruled out. Sums are in one order for every instruction set, so
// what is drawn is the same from each. Serial; nothing is checked or thrown here. Used by sample/candidates.hpp, which
// says when each of them is needed.
#pragma once

#include <cstdint>

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

struct SamplingKernels {
  static constexpr std::int64_t block = 64;

  struct Facts {
    float largest;                     // -infinity if there is nothing above; NaN is never the largest
    std::int64_t n_nan, n_admissible;  // admissible: above -infinity
  };
  // x [n]; block_max [ceil(n / 64)] takes the largest of each 64. n < 2^28.
  Facts (*scan)(const float* x, std::int64_t n, float* block_max);

  // Sum of exp((x[i] - largest) / temperature), in 16 lanes by i mod 16; each lane adds 64 terms in float before it
  // goes on in double. Elements at -infinity add 0. largest must be finite, temperature positive.
  double (*mass)(const float* x, std::int64_t n, float largest, float temperature);

  // Sum of d exp(d), d = (x[i] - largest) / temperature, in the same order: what the entropy needs besides.
  double (*moment)(const float* x, std::int64_t n, float largest, float temperature);

  // Sums of x[i] - centre and of its square over the elements above -infinity, in the same order.
  struct Spread {
    double sum, sum_of_squares;
  };
  Spread (*spread)(const float* x, std::int64_t n, float centre);
};

VITRINE_NAMESPACE_END
