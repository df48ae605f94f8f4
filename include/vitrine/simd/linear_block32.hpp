// Linear layers with weights in blocks of 32: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0. The arithmetic is in linear_kernels.hpp.
#pragma once

#include "vitrine/simd/linear_common.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

namespace linear_detail {

// What the offset of the weights takes back from a block's dot: -sum(x) * 2^shift, or nothing.
template <class Format>
VITRINE_FORCE_INLINE i32x16 offset_term(const std::int32_t* minus_sum) {
  if constexpr (Format::offset_shift < 0)
    return broadcast_i32(0);
  else
    return shift_left<Format::offset_shift>(broadcast_i32(*minus_sum));
}

template <class Format>
inline void one_token_32(const LinearJob& job, std::int64_t first, std::int64_t last) {
  const QuantisedRows& x = job.quantised;
  for (std::int64_t panel = first; panel < last; ++panel) {
    const std::uint8_t* start = panel_start(job, panel);
    f32x16 acc = zero();
    for (std::int64_t b = 0; b < x.n_blocks; ++b) {
      const Block32 block = Format::at(start, b);
      const std::int8_t* q = x.q + 32 * b;
      prefetch_ahead<Format::bytes_per_block>(start + std::size_t(b) * Format::bytes_per_block);
      i32x16 dot = offset_term<Format>(x.minus_sum + b);
      Partial partial;
      Format::visit(
          block, [&](auto group, auto step, bytes64 w) __attribute__((always_inline)) {
            constexpr int bits = Format::bits;
            add_group<bits, decltype(step)::value, 8>(
                partial, dot_weights<bits>(to_scratch<bits>(w)),
                x_group(q + 4 * decltype(group)::value), [&](Partial full) __attribute__((always_inline)) {
                  dot = dot + widen(full);
                });
          });
      acc = fma(to_f32(dot), load_f16(block.d) * broadcast(x.scale[b]), acc);
      if constexpr (Format::has_min) acc = fma(load_f16(block.m), broadcast(x.scaled_sum[b]), acc);
    }
    finish(job, panel, 0, acc);
  }
}

template <class Format>
struct Tiles32 {
  static constexpr std::int64_t block_len = 32;
  struct alignas(64) Unpacked {
    std::uint8_t q[8][64];  // k-groups in order
    float d[16], m[16];
  };

  VITRINE_FORCE_INLINE void unpack(const std::uint8_t* panel, std::int64_t b, Unpacked& out) {
    const Block32 block = Format::at(panel, b);
    Format::visit(
        block, [&](auto group, auto, bytes64 w) __attribute__((always_inline)) {
          store_bytes(out.q[decltype(group)::value], to_scratch<Format::bits>(w));
        });
    store(out.d, load_f16(block.d));
    if constexpr (Format::has_min) store(out.m, load_f16(block.m));
  }

  // T tokens from `token` on, blocks [first, first + n) of which w holds the unpacked ones; adds to acc [T][16].
  template <int T>
  VITRINE_FORCE_INLINE void tile(const Unpacked* w, const QuantisedRows& x, std::int64_t token, std::int64_t first,
                                 std::int64_t n, float* acc) {
    constexpr int bits = Format::bits;
    const std::int8_t* q[T];
    const float *scale[T], *scaled_sum[T];
    const std::int32_t* minus_sum[T];
    f32x16 sums[T];
    for (int t = 0; t < T; ++t) {
      const std::int64_t at = (token + t) * x.n_blocks + first;
      q[t] = x.q + (token + t) * x.n_cols + 32 * first;
      scale[t] = x.scale + at;
      scaled_sum[t] = x.scaled_sum + at;
      minus_sum[t] = x.minus_sum + at;
      sums[t] = load(acc + 16 * t);
    }
    for (std::int64_t step = 0; step < n; ++step) {
      const std::int64_t b = reversed_tiles ? n - 1 - step : step;
      const Unpacked& block = w[b];
      Partial partial[T];
      i32x16 dot[T];
      unroll<T>([&](auto j) __attribute__((always_inline)) {
        constexpr int t = decltype(j)::value;
        dot[t] = offset_term<Format>(minus_sum[t] + b);
      });
      unroll<8>([&](auto i) __attribute__((always_inline)) {
        constexpr int s = decltype(i)::value;
        const auto weights = dot_weights<bits>(load_bytes(block.q[s]));
        unroll<T>([&](auto j) __attribute__((always_inline)) {
          constexpr int t = decltype(j)::value;
          add_group<bits, s, 8>(
              partial[t], weights, x_group(q[t] + 32 * b + 4 * s), [&](Partial full) __attribute__((always_inline)) {
                dot[t] = dot[t] + widen(full);
              });
        });
        keep(partial);
      });
      const f32x16 d = load(block.d);
      [[maybe_unused]] f32x16 m;
      if constexpr (Format::has_min) m = load(block.m);
      unroll<T>([&](auto j) __attribute__((always_inline)) {
        constexpr int t = decltype(j)::value;
        f32x16 sum = accumulators_in_registers ? sums[t] : load(acc + 16 * t);
        sum = fma(to_f32(dot[t]), d * broadcast(scale[t][b]), sum);
        if constexpr (Format::has_min) sum = fma(m, broadcast(scaled_sum[t][b]), sum);
        if constexpr (accumulators_in_registers)
          sums[t] = sum;
        else
          store(acc + 16 * t, sum);
      });
    }
    if constexpr (accumulators_in_registers)
      for (int t = 0; t < T; ++t) store(acc + 16 * t, sums[t]);
  }
};

template <class Format>
constexpr LinearForms forms_32() {
  return {one_token_32<Format>, many_tokens<Tiles32<Format>>};
}

}  // namespace linear_detail

VITRINE_ISA_NAMESPACE_END
