// Bodies of sampling_kernels.hpp, written over the lanes.
//
// Four passes over the logits: scan (largest, NaN, admissible ones), mass (sum of exp), moment (sum of d exp(d)) and
// spread (sum and sum of squares). The first has no rounding at all: it compares, and counts in floats below 2^24. The
// sums are in the library's order, 16 lanes by i mod 16 and then the tree, but go on in double every 64 terms: a
// vocabulary has so many that float alone would lose the last digits of a probability.
#pragma once

#include "vitrine/core/rounding.hpp"
#include "vitrine/simd/lanes.hpp"
#include "vitrine/simd/sampling_kernels.hpp"
#include "vitrine/simd/vmath.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

namespace sampling_detail {

inline SamplingKernels::Facts scan(const float* x, std::int64_t n, float* block_max) {
  const f32x16 none = from_bits(broadcast_i32(std::int32_t(0xff800000))), one = broadcast(1.0f);
  f32x16 largest = none, n_number = zero(), n_admissible = zero();
  for (std::int64_t begin = 0; begin < n; begin += SamplingKernels::block) {
    f32x16 largest_here = none;
    const auto look = [&](f32x16 a) {
      n_number = n_number + select(equal(a, a), one, zero());
      n_admissible = n_admissible + select(greater(a, none), one, zero());
      largest_here = max(a, largest_here);
    };
    const std::int64_t end = begin + SamplingKernels::block < n ? begin + SamplingKernels::block : n;
    std::int64_t i = begin;
    for (; i + 16 <= end; i += 16) look(load(x + i));
    if (i < end) {
      // Lanes beyond the end count as numbers, which is put right below, and are not admissible.
      look(select(first_lanes(int(end - i)), load_part(x + i, int(end - i)), none));
    }
    block_max[begin / SamplingKernels::block] = hmax(largest_here);
    largest = max(largest_here, largest);
  }
  const std::int64_t counted = round_up(n, 16);
  float numbers[16], admissible[16];  // each below 2^24, hence exact
  store(numbers, n_number);
  store(admissible, n_admissible);
  SamplingKernels::Facts facts{hmax(largest), counted, 0};
  for (int lane = 0; lane < 16; ++lane) {
    facts.n_nan -= std::int64_t(numbers[lane]);
    facts.n_admissible += std::int64_t(admissible[lane]);
  }
  return facts;
}

// Sums term(x[i]) in the library's order: 16 lanes by i mod 16, 64 terms in float before a lane goes on in double, then
// the tree +8, +4, +2, +1.
template <class Term>
VITRINE_FORCE_INLINE double sum(const float* x, std::int64_t n, Term term) {
  constexpr std::int64_t stretch = 16 * 64;
  double total[16] = {};
  for (std::int64_t begin = 0; begin < n; begin += stretch) {
    const std::int64_t end = begin + stretch < n ? begin + stretch : n;
    f32x16 part = zero();
    std::int64_t i = begin;
    for (; i + 16 <= end; i += 16) part = part + term(load(x + i));
    if (i < end) {
      const auto rest = int(end - i);
      part = part + select(first_lanes(rest), term(load_part(x + i, rest)), zero());
    }
    float lanes[16];
    store(lanes, part);
    for (int lane = 0; lane < 16; ++lane) total[lane] += double(lanes[lane]);
  }
  for (int width = 8; width >= 1; width /= 2)
    for (int lane = 0; lane < width; ++lane) total[lane] += total[lane + width];
  return total[0];
}

inline double mass(const float* x, std::int64_t n, float largest, float temperature) {
  const f32x16 offset = broadcast(largest), divisor = broadcast(temperature);
  return sum(
      x, n, [&](f32x16 a) __attribute__((always_inline)) { return exp_not_positive((a - offset) / divisor); });
}

inline double moment(const float* x, std::int64_t n, float largest, float temperature) {
  const f32x16 offset = broadcast(largest), divisor = broadcast(temperature);
  return sum(
      x, n, [&](f32x16 a) __attribute__((always_inline)) {
        const f32x16 d = (a - offset) / divisor, weight = exp_not_positive(d);
        return select(greater(weight, zero()), weight * d, zero());  // 0 * -infinity would be NaN
      });
}

inline SamplingKernels::Spread spread(const float* x, std::int64_t n, float centre) {
  const f32x16 none = from_bits(broadcast_i32(std::int32_t(0xff800000))), offset = broadcast(centre);
  const auto distance = [&](f32x16 a) __attribute__((always_inline)) {
    return select(greater(a, none), a - offset, zero());
  };
  const auto square = [&](f32x16 a) __attribute__((always_inline)) {
    const f32x16 d = distance(a);
    return d * d;
  };
  return {sum(x, n, distance), sum(x, n, square)};
}

}  // namespace sampling_detail

constexpr SamplingKernels sampling_kernels() {
  return {.scan = sampling_detail::scan,
          .mass = sampling_detail::mass,
          .moment = sampling_detail::moment,
          .spread = sampling_detail::spread};
}

VITRINE_ISA_NAMESPACE_END
