// Bodies of elementwise_kernels.hpp, written over the lanes: sixteen values at a time, and the rest as a partial vector
// whose missing lanes are +0.
//
//   rms_norm    y = x / sqrt(mean(x^2) + eps) * weight        (Zhang and Sennrich 2019, arXiv 1910.07467)
//   rope        (a, b) -> (a cos - b sin, b cos + a sin)       (Su et al. 2021, arXiv 2104.09864)
//   silu, gelu  g / (1 + e^-g);  g/2 (1 + tanh(sqrt(2/pi) (g + 0.044715 g^3)));  times up (Shazeer 2020, arXiv
//               2002.05202)
#pragma once

#include "vitrine/simd/elementwise_kernels.hpp"
#include "vitrine/simd/lanes.hpp"
#include "vitrine/simd/vmath.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

namespace elementwise_detail {

// whole(i) for each sixteen, part(i, n) for what is left.
template <class Whole, class Part>
VITRINE_FORCE_INLINE void sweep(std::int64_t n, Whole whole, Part part) {
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) whole(i);
  if (i < n) part(i, int(n - i));
}

inline void rms_norm(const float* x, const float* weight, float eps, float* y, std::int64_t width) {
  f32x16 squares = zero();
  sweep(
      width,
      [&](std::int64_t i) {
        const f32x16 a = load(x + i);
        squares = fma(a, a, squares);
      },
      [&](std::int64_t i, int rest) {
        const f32x16 a = load_part(x + i, rest);
        squares = fma(a, a, squares);
      });
  const f32x16 mean = broadcast(hsum(squares)) / broadcast(float(width));
  const f32x16 factor = broadcast(1.0f) / sqrt(mean + broadcast(eps));
  if (weight) {
    sweep(
        width, [&](std::int64_t i) { store(y + i, load(x + i) * factor * load(weight + i)); },
        [&](std::int64_t i, int rest) {
          store_part(y + i, load_part(x + i, rest) * factor * load_part(weight + i, rest), rest);
        });
  } else {
    sweep(
        width, [&](std::int64_t i) { store(y + i, load(x + i) * factor); },
        [&](std::int64_t i, int rest) { store_part(y + i, load_part(x + i, rest) * factor, rest); });
  }
}

inline void rope(float* x, std::int64_t n_head, std::int64_t head_dim, const float* cos, const float* sin) {
  const std::int64_t half = head_dim / 2;
  for (std::int64_t h = 0; h < n_head; ++h, x += head_dim) {
    float *first = x, *second = x + half;
    sweep(
        half,
        [&](std::int64_t i) {
          const f32x16 a = load(first + i), b = load(second + i), c = load(cos + i), s = load(sin + i);
          store(first + i, a * c - b * s);
          store(second + i, b * c + a * s);
        },
        [&](std::int64_t i, int rest) {
          const f32x16 a = load_part(first + i, rest), b = load_part(second + i, rest);
          const f32x16 c = load_part(cos + i, rest), s = load_part(sin + i, rest);
          store_part(first + i, a * c - b * s, rest);
          store_part(second + i, b * c + a * s, rest);
        });
  }
}

inline void add(float* x, const float* y, std::int64_t n) {
  sweep(
      n, [&](std::int64_t i) { store(x + i, load(x + i) + load(y + i)); },
      [&](std::int64_t i, int rest) { store_part(x + i, load_part(x + i, rest) + load_part(y + i, rest), rest); });
}

// y = f(x), element by element.
template <class F>
VITRINE_FORCE_INLINE void map(const float* x, float* y, std::int64_t n, F f) {
  sweep(
      n, [&](std::int64_t i) { store(y + i, f(load(x + i))); },
      [&](std::int64_t i, int rest) { store_part(y + i, f(load_part(x + i, rest)), rest); });
}

inline void scale(float* x, float factor, std::int64_t n) {
  map(x, x, n, [&](f32x16 a) { return a * broadcast(factor); });
}

template <class Activation>
VITRINE_FORCE_INLINE void gated(const float* gate, const float* up, float* out, std::int64_t n, Activation act) {
  sweep(
      n, [&](std::int64_t i) { store(out + i, act(load(gate + i)) * load(up + i)); },
      [&](std::int64_t i, int rest) {
        store_part(out + i, act(load_part(gate + i, rest)) * load_part(up + i, rest), rest);
      });
}

VITRINE_FORCE_INLINE f32x16 silu(f32x16 x) { return x / (broadcast(1.0f) + exp(zero() - x)); }

// x/2 (1 + tanh(u)) = x / (1 + e^(-2u)) exactly; the second form costs one exp and keeps its digits where tanh nears
// -1.
VITRINE_FORCE_INLINE f32x16 gelu(f32x16 x) {
  const f32x16 u = fma(broadcast(0.044715f), x * x * x, x);
  return x / (broadcast(1.0f) + exp(broadcast(-1.5957691f) * u));  // 2 sqrt(2 / pi)
}

inline void silu_times(const float* gate, const float* up, float* out, std::int64_t n) {
  gated(gate, up, out, n, [](f32x16 x) { return silu(x); });
}
inline void gelu_times(const float* gate, const float* up, float* out, std::int64_t n) {
  gated(gate, up, out, n, [](f32x16 x) { return gelu(x); });
}

inline bool find_peak(const float* x, std::int64_t n, std::int64_t* id, float* value) {
  const f32x16 none = from_bits(broadcast_i32(std::int32_t(0xff800000)));
  f32x16 best = none, finite_so_far = zero();
  i32x16 where = broadcast_i32(-1);
  const std::int32_t count_up[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const i32x16 lane = load_i32(count_up);
  const auto look = [&](f32x16 a, std::int64_t i) {
    const mask16 better = greater(a, best);  // strictly: the first of equals stays
    best = select(better, a, best);
    where = bits(select(better, from_bits(lane + broadcast_i32(std::int32_t(i))), from_bits(where)));
  };
  // a * 0 is 0, or NaN if a is infinite or NaN, and NaN is never lost in a sum.
  sweep(
      n,
      [&](std::int64_t i) {
        const f32x16 a = load(x + i);
        finite_so_far = fma(a, zero(), finite_so_far);
        look(a, i);
      },
      [&](std::int64_t i, int rest) {
        const f32x16 a = load_part(x + i, rest);
        finite_so_far = fma(a, zero(), finite_so_far);
        look(select(first_lanes(rest), a, none), i);
      });
  float values[16];
  std::int32_t places[16];
  store(values, best);
  store_i32(places, where);
  *id = places[0];
  *value = values[0];
  for (int i = 1; i < 16; ++i) {
    if (values[i] > *value || (values[i] == *value && places[i] >= 0 && (places[i] < *id || *id < 0))) {
      *value = values[i];
      *id = places[i];
    }
  }
  return mask_bits(equal(finite_so_far, zero())) == 0xffff;
}

inline void exp_many(const float* x, float* y, std::int64_t n) {
  map(x, y, n, [](f32x16 a) { return exp(a); });
}

}  // namespace elementwise_detail

constexpr ElementwiseKernels elementwise_kernels() {
  return {.rms_norm = elementwise_detail::rms_norm,
          .rope = elementwise_detail::rope,
          .add = elementwise_detail::add,
          .scale = elementwise_detail::scale,
          .silu_times = elementwise_detail::silu_times,
          .gelu_times = elementwise_detail::gelu_times,
          .find_peak = elementwise_detail::find_peak,
          .exp = elementwise_detail::exp_many};
}

VITRINE_ISA_NAMESPACE_END
