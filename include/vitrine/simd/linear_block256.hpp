// Linear layers with weights in blocks of 256: Q4_K, Q5_K, Q6_K. The arithmetic is in linear_kernels.hpp.
//
//   dot = sum over runs of scale[run] * (dot of the run)                    in 32-bit integers
//
// A block is made of runs (8 of 32 k-values, or 16 of 16) with an integer scale each. What comes before the sum, how
// a block's bytes become k-groups, is in linear_formats.hpp.
#pragma once

#include "vitrine/simd/linear_common.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

namespace linear_detail {

// Ends a block: `pairs` is the dot of the pair factors, that is sum_x, or what takes the offset of Q6_K back over 32.
template <class Format>
VITRINE_FORCE_INLINE f32x16 block_result_256(i32x16 dot, i32x16 pairs, f32x16 d, f32x16 m, f32x16 xd, f32x16 acc) {
  if constexpr (!Format::has_min) dot = dot + shift_left<5>(pairs);
  acc = fma(to_f32(dot), d * xd, acc);
  if constexpr (Format::has_min) acc = fma(m, xd * to_f32(pairs), acc);
  return acc;
}

// P panels from `panel` on, a quarter of a block of each in turn, so that none of their streams waits for long.
template <class Format, int P>
VITRINE_FORCE_INLINE void one_token_of_panels_256(const LinearJob& job, std::int64_t panel) {
  const std::int64_t n_blocks = job.n_cols / 256;
  const std::uint8_t* start[P];
  f32x16 acc[P];
  for (int p = 0; p < P; ++p) start[p] = panel_start(job, panel + p), acc[p] = zero();
  constexpr std::size_t quarter = Format::bytes_per_block / 4;
  const FetchAhead<quarter, P> fetch(start[0], job.panel_bytes, 4 * n_blocks, job.fetch_end);
  for (std::int64_t b = 0; b < n_blocks; ++b) {
    const XBlock256& x = job.x_256[b];
    const std::int8_t* q = x.q;
    Block256 block[P];
    decltype(Format::load_scales(block[0])) scales[P];
    i32x16 dot[P];
    for (int p = 0; p < P; ++p) {
      block[p] = Format::at(start[p], b);
      scales[p] = Format::load_scales(block[p]);
      dot[p] = broadcast_i32(0);
    }
    unroll<4 * P>([&](auto part) __attribute__((always_inline)) {
      constexpr int chunk = decltype(part)::value / P, p = decltype(part)::value % P;
      constexpr int bits = Format::bits, n = Format::run_groups;
      fetch(start[p] + std::size_t(4 * b + chunk) * quarter, 4 * b + chunk);
      Partial low, high;
      Format::template visit<chunk>(
          block[p], [&](auto index, bytes64 w_low, bytes64 w_high) __attribute__((always_inline)) {
            constexpr int s = decltype(index)::value;
            constexpr int low_run = Format::low_run(chunk, s), high_run = Format::high_run(chunk, s);
            add_group<bits, s % n, n>(
                low, dot_weights<bits>(w_low),
                x_group(q + 4 * (low_run * n + s % n)), [&](Partial full) __attribute__((always_inline)) {
                  dot[p] = dot[p] + widen_scaled(full, Format::template scale<low_run>(scales[p]));
                });
            add_group<bits, s % n, n>(
                high, dot_weights<bits>(w_high),
                x_group(q + 4 * (high_run * n + s % n)), [&](Partial full) __attribute__((always_inline)) {
                  dot[p] = dot[p] + widen_scaled(full, Format::template scale<high_run>(scales[p]));
                });
          });
    });
    unroll<P>([&](auto i) __attribute__((always_inline)) {
      constexpr int p = decltype(i)::value;
      i32x16 pairs = broadcast_i32(0);
      unroll<Format::n_pair_vectors>([&](auto k) __attribute__((always_inline)) {
        constexpr int v = decltype(k)::value;
        pairs = dot_pairs(pairs, Format::template pair_factor<v>(scales[p]), x.pair_sums + Format::first_pair + 2 * v);
      });
      f32x16 m = zero();
      if constexpr (Format::has_min) m = negate(load_f16(block[p].dmin));
      acc[p] = block_result_256<Format>(dot[p], pairs, load_f16(block[p].d), m, broadcast(x.scale), acc[p]);
    });
  }
  for (int p = 0; p < P; ++p) finish(job, panel + p, 0, with_peaks<Format>(job, {start[p], nullptr}, 0, acc[p]));
}

template <class Format>
inline void one_token_256(const LinearJob& job, std::int64_t first, std::int64_t last) {
  go_through_panels<one_token_panels>(
      first, last, [&](auto n, std::int64_t panel) __attribute__((always_inline)) {
        one_token_of_panels_256<Format, decltype(n)::value>(job, panel);
      });
}

template <class Format>
struct Tiles256 {
  using Weights = Format;
  static constexpr std::int64_t block_len = Format::block_len;
  struct alignas(64) Unpacked {
    std::uint8_t q[64][64];                                // k-groups in order
    std::int32_t scale[Format::n_runs][16];                // in the form that widen_scaled wants
    std::int32_t pair_factor[Format::n_pair_vectors][16];  // two 16-bit values each
    float d[16], m[16];
  };

  VITRINE_FORCE_INLINE void unpack(const std::uint8_t* panel, std::int64_t b, Unpacked& out) {
    const Block256 block = Format::at(panel, b);
    unroll<4>([&](auto c) __attribute__((always_inline)) {
      constexpr int chunk = decltype(c)::value, n = Format::run_groups;
      Format::template visit<chunk>(
          block, [&](auto index, bytes64 low, bytes64 high) __attribute__((always_inline)) {
            constexpr int s = decltype(index)::value;
            store_bytes(out.q[Format::low_run(chunk, s) * n + s % n], to_scratch<Format::bits>(low));
            store_bytes(out.q[Format::high_run(chunk, s) * n + s % n], to_scratch<Format::bits>(high));
          });
    });
    const auto scales = Format::load_scales(block);
    unroll<Format::n_runs>([&](auto i) __attribute__((always_inline)) {
      store_i32(out.scale[decltype(i)::value], Format::template scale<decltype(i)::value>(scales));
    });
    unroll<Format::n_pair_vectors>([&](auto i) __attribute__((always_inline)) {
      store_i32(out.pair_factor[decltype(i)::value], Format::template pair_factor<decltype(i)::value>(scales));
    });
    store(out.d, load_f16(block.d));
    if constexpr (Format::has_min) store(out.m, negate(load_f16(block.dmin)));
  }

  // P panels times T tokens from `token` on, n blocks from `first` on, of which w holds the unpacked ones; adds to acc
  // [T][P][16].
  template <int P, int T, class Buffer>
  VITRINE_FORCE_INLINE void tile(const Buffer& w, const LinearJob& job, std::int64_t token, std::int64_t first,
                                 std::int64_t n, float* acc) {
    constexpr int bits = Format::bits, run_groups = Format::run_groups;
    const std::int64_t n_blocks = job.n_cols / 256;
    const XBlock256* x[T];
    for (int t = 0; t < T; ++t) x[t] = job.x_256 + (token + t) * n_blocks + first;
    for (std::int64_t b = 0; b < n; ++b) {
      IntegerSums<T * P> dots;
      dots.clear();
      for (int run = 0; run < Format::n_runs; ++run) {
        Partial partial[T * P];
        i32x16 run_scale[P];
        unroll<P>([&](auto i) __attribute__((always_inline)) {
          run_scale[decltype(i)::value] = load_i32(w[decltype(i)::value][b].scale[run]);
        });
        unroll<run_groups>([&](auto group) __attribute__((always_inline)) {
          constexpr int s = decltype(group)::value;
          decltype(dot_weights<bits>(bytes64{})) weights[P];
          unroll<P>([&](auto i) __attribute__((always_inline)) {
            constexpr int p = decltype(i)::value;
            weights[p] = dot_weights<bits>(load_bytes(w[p][b].q[run_groups * run + s]));
          });
          unroll<T>([&](auto j) __attribute__((always_inline)) {
            constexpr int t = decltype(j)::value;
            const XGroup four = x_group(x[t][b].q + 4 * (run_groups * run + s));
            unroll<P>([&](auto i) __attribute__((always_inline)) {
              constexpr int p = decltype(i)::value, at = t * P + p;
              add_group<bits, s, run_groups>(
                  partial[at], weights[p], four, [&](Partial full) __attribute__((always_inline)) {
                    dots.template add<at>(widen_scaled(full, run_scale[p]));
                  });
            });
          });
          if constexpr (s < run_groups - 1) keep(partial);
        });
      }
      unroll<P>([&](auto i) __attribute__((always_inline)) {
        constexpr int p = decltype(i)::value;
        const Unpacked& block = w[p][b];
        const f32x16 d = load(block.d);
        f32x16 m = zero();
        if constexpr (Format::has_min) m = load(block.m);
        unroll<T>([&](auto j) __attribute__((always_inline)) {
          constexpr int t = decltype(j)::value, at = t * P + p;
          i32x16 pairs = broadcast_i32(0);
          unroll<Format::n_pair_vectors>([&](auto k) __attribute__((always_inline)) {
            constexpr int v = decltype(k)::value;
            pairs = dot_pairs(pairs, load_i32(block.pair_factor[v]), x[t][b].pair_sums + Format::first_pair + 2 * v);
          });
          store(acc + 16 * at, block_result_256<Format>(dots.template get<at>(), pairs, d, m, broadcast(x[t][b].scale),
                                                        load(acc + 16 * at)));
        });
      });
    }
  }
};

template <class Format>
constexpr LinearForms forms_256() {
  return {one_token_256<Format>, many_tokens<Tiles256<Format>>};
}

}  // namespace linear_detail

VITRINE_ISA_NAMESPACE_END
