// Linear layers with float weights: acc = fma(w, x, acc), k ascending, one lane per row.
//
//   panel of 16 rows, k-major    w [n_cols][16] in F32, F16 or BF16;  x [n_tokens][n_cols] in F32
//
// The chain of one accumulator is as long as k, so several panels (one token) or several tokens (tiles) run side by
// side to fill the multiply-add units. 16-bit weights are widened as they are read, which is exact.
#pragma once

#include "vitrine/simd/linear_common.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

namespace linear_detail {

struct WeightsF32 {
  using Element = float;
  VITRINE_FORCE_INLINE f32x16 row_of_16(const float* p) { return load(p); }
};
struct WeightsF16 {
  using Element = std::uint16_t;
  VITRINE_FORCE_INLINE f32x16 row_of_16(const std::uint16_t* p) { return load_f16(p); }
};
struct WeightsBF16 {
  using Element = std::uint16_t;
  VITRINE_FORCE_INLINE f32x16 row_of_16(const std::uint16_t* p) { return load_bf16(p); }
};

// P panels times T tokens, the whole of k.
template <class Weights, int P, int T>
VITRINE_FORCE_INLINE void float_tile(const LinearJob& job, std::int64_t panel, std::int64_t token) {
  using Element = typename Weights::Element;
  const Element* w[P];
  const float* x[T];
  for (int p = 0; p < P; ++p)
    w[p] = reinterpret_cast<const Element*>(job.weights + std::size_t(panel + p) * job.panel_bytes);
  for (int t = 0; t < T; ++t) x[t] = job.x + (token + t) * job.x_stride;
  f32x16 acc[P][T];
  unroll<P * T>([&](auto i) { acc[decltype(i)::value / T][decltype(i)::value % T] = zero(); });
  constexpr std::int64_t ahead = 1024 / std::int64_t(sizeof(Element));  // elements, from each panel's stream
  for (std::int64_t k = 0; k < job.n_cols; ++k) {
    f32x16 weights[P];
    unroll<P>([&](auto i) __attribute__((always_inline)) {
      constexpr int p = decltype(i)::value;
      if constexpr (T == 1) prefetch(w[p] + 16 * k + ahead);
      weights[p] = Weights::row_of_16(w[p] + 16 * k);
    });
    unroll<T>([&](auto j) __attribute__((always_inline)) {
      constexpr int t = decltype(j)::value;
      const f32x16 value = broadcast(x[t][k]);
      unroll<P>([&](auto i) __attribute__((always_inline)) {
        constexpr int p = decltype(i)::value;
        acc[p][t] = fma(weights[p], value, acc[p][t]);
      });
    });
  }
  unroll<P * T>([&](auto i) __attribute__((always_inline)) {
    constexpr int p = decltype(i)::value / T, t = decltype(i)::value % T;
    finish(job, panel + p, token + t, acc[p][t]);
  });
}

template <class Weights>
inline void float_one_token(const LinearJob& job, std::int64_t first, std::int64_t last) {
  go_through_panels<float_panels>(
      first, last, [&](auto n, std::int64_t panel) __attribute__((always_inline)) {
        float_tile<Weights, decltype(n)::value, 1>(job, panel, 0);
      });
}

template <class Weights>
inline void float_many_tokens(const LinearJob& job, std::int64_t first, std::int64_t last) {
  for (std::int64_t panel = first; panel < last; ++panel) {
    std::int64_t token = 0;
    for (; token + float_tile_tokens <= job.n_tokens; token += float_tile_tokens)
      float_tile<Weights, 1, float_tile_tokens>(job, panel, token);
    if constexpr (float_tile_tokens > 4)
      for (; token + 4 <= job.n_tokens; token += 4) float_tile<Weights, 1, 4>(job, panel, token);
    for (; token < job.n_tokens; ++token) float_tile<Weights, 1, 1>(job, panel, token);
  }
}

template <class Weights>
constexpr LinearForms float_forms() {
  return {float_one_token<Weights>, float_many_tokens<Weights>};
}

}  // namespace linear_detail

VITRINE_ISA_NAMESPACE_END
