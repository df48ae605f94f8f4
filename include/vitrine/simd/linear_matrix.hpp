// A form of the quantised types for processors that multiply whole tiles of bytes (AMX-INT8): sixteen tokens at a
// time, times a panel of sixteen rows. The same integers as the other forms, hence the same bits.
//
//   MatrixTiles32    a block's dots are one product of tiles
//   MatrixTiles256   the runs' integer scales are cut into digits, scale = sum of 8^i digit_i, small enough that a
//                    weight times a digit is a byte; then dot = sum of 8^i (digit_i w) . x, each one product
//
// The offsets of weights are taken off their bytes, so that no sum of x is needed for them. The product of the next
// block runs while the sums of this one are scaled and added; those of sixteen tokens stay in registers.
#pragma once

#include "vitrine/core/rounding.hpp"
#include "vitrine/simd/lanes_tiles.hpp"
#include "vitrine/simd/linear_common.hpp"
#include "vitrine/simd/quantise.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

namespace linear_detail {

// Sums of sixteen tokens, acc [16][16], in registers while they go through a stretch: start(b) sets off the products of
// block b, and add(b, t, sum) returns token t's sum with block b, by which time the next block has been started.
template <class Start, class Add>
VITRINE_FORCE_INLINE void accumulate_tile(std::int64_t n_blocks, bool is_first, float* acc, Start start, Add add) {
  f32x16 sums[matrix_tokens];
  unroll<matrix_tokens>([&](auto t) __attribute__((always_inline)) {
    sums[decltype(t)::value] = is_first ? zero() : load(acc + 16 * decltype(t)::value);
  });
  start(0);
  for (std::int64_t b = 0; b < n_blocks; ++b) {
    if (b + 1 < n_blocks) start(b + 1);
    unroll<matrix_tokens>([&](auto t) __attribute__((always_inline)) {
      sums[decltype(t)::value] = add(b, decltype(t)::value, sums[decltype(t)::value]);
    });
  }
  unroll<matrix_tokens>([&](auto t) __attribute__((always_inline)) {
    store(acc + 16 * decltype(t)::value, sums[decltype(t)::value]);
  });
}

template <class Format>
struct MatrixTiles32 {
  using Weights = Format;
  static constexpr std::int64_t block_len = Format::block_len;
  static constexpr int panels = 2, product_len = 32;  // k-values of one product
  static constexpr bool is_signed = !Format::has_min;
  struct alignas(64) Unpacked {
    std::uint8_t q[8][64];  // k-groups in order
    float d[16], m[16];
  };

  VITRINE_FORCE_INLINE const XTile32* input(const LinearJob& job) { return job.tiles_32; }

  VITRINE_FORCE_INLINE void unpack(PanelStart panel, std::int64_t b, Unpacked& out) {
    const Block32 block = Format::at(panel, b);
    Format::visit(
        block, [&](auto group, auto, bytes64 w) __attribute__((always_inline)) {
          if constexpr (is_signed && (Format::bits < 8 || is_in_planes<Format>))
            w = subtract_bytes(w, 1 << Format::offset_shift);
          store_bytes(out.q[decltype(group)::value], w);
        });
    store(out.d, load_f16(block.d));
    if constexpr (Format::has_min) store(out.m, load_f16(block.m));
  }

  VITRINE_FORCE_INLINE void tile(const Unpacked* w, const XTile32* x, std::int64_t n, bool is_first, float* acc) {
    alignas(64) std::int32_t dots[2][matrix_tokens][16];
    const auto start = [&](std::int64_t b) __attribute__((always_inline)) {
      tile_zero<0>();
      tile_load<4>(x[b].q, 32);
      tile_load<5>(w[b].q, 64);
      tile_dot<0, 4, 5, !is_signed>();
      tile_store<0>(dots[b % 2], 64);
    };
    accumulate_tile(
        n, is_first, acc, start, [&](std::int64_t b, int t, f32x16 sum) __attribute__((always_inline)) {
          sum = fma(to_f32(load_i32(dots[b % 2][t])), load(w[b].d) * broadcast(x[b].scale[t]), sum);
          if constexpr (Format::has_min) sum = fma(load(w[b].m), broadcast(x[b].scaled_sum[t]), sum);
          return sum;
        });
  }
};

template <class Format>
struct MatrixTiles256 {
  using Weights = Format;
  static constexpr std::int64_t block_len = Format::block_len;
  static constexpr int panels = 1, product_len = 64;
  // Scales of 6 bits, 0 to 63, have two digits from 0 to 7: 31 * 7 is a byte without sign. Signed ones of 8 bits have
  // three from -3 to 4: with the offset taken off, -32 * 4 is a byte with sign.
  static constexpr bool is_signed = !Format::has_min;
  static constexpr int n_digits = is_signed ? 3 : 2;
  struct alignas(64) Unpacked {
    std::uint8_t q[n_digits][64][64];                      // k-groups in order, times the digit of their run's scale
    std::int32_t pair_factor[Format::n_pair_vectors][16];  // two 16-bit values each
    float d[16], m[16];
  };

  VITRINE_FORCE_INLINE const XTile256* input(const LinearJob& job) { return job.tiles_256; }

  VITRINE_FORCE_INLINE void unpack(const std::uint8_t* panel, std::int64_t b, Unpacked& out) {
    const Block256 block = Format::at(panel, b);
    const auto scales = Format::load_scales(block);
    i32x16 digits[Format::n_runs][n_digits];
    unroll<Format::n_runs>([&](auto r) __attribute__((always_inline)) {
      constexpr int run = decltype(r)::value;
      const i32x16 seven = broadcast_i32(7), three = broadcast_i32(is_signed ? 3 : 0);
      i32x16 rest = Format::template scale<run>(scales);
      for (int i = 0; i < n_digits; ++i) {
        const i32x16 digit = ((rest + three) & seven) - three;
        digits[run][i] = digit & broadcast_i32(0xffff);
        rest = shift_right<3>(rest - digit);
      }
    });
    unroll<4>([&](auto c) __attribute__((always_inline)) {
      constexpr int chunk = decltype(c)::value, n = Format::run_groups;
      Format::template visit<chunk>(
          block, [&](auto index, bytes64 low, bytes64 high) __attribute__((always_inline)) {
            constexpr int s = decltype(index)::value;
            constexpr int low_run = Format::low_run(chunk, s), high_run = Format::high_run(chunk, s);
            if constexpr (is_signed) low = subtract_bytes(low, 32), high = subtract_bytes(high, 32);
            for (int i = 0; i < n_digits; ++i) {
              store_bytes(out.q[i][low_run * n + s % n], scale_bytes(low, digits[low_run][i]));
              store_bytes(out.q[i][high_run * n + s % n], scale_bytes(high, digits[high_run][i]));
            }
          });
    });
    store(out.d, load_f16(block.d));
    if constexpr (Format::has_min) {
      unroll<Format::n_pair_vectors>([&](auto i) __attribute__((always_inline)) {
        store_i32(out.pair_factor[decltype(i)::value], Format::template pair_factor<decltype(i)::value>(scales));
      });
      store(out.m, negate(load_f16(block.dmin)));
    }
  }

  VITRINE_FORCE_INLINE void tile(const Unpacked* w, const XTile256* x, std::int64_t n, bool is_first, float* acc) {
    alignas(64) std::int32_t dots[2][n_digits][matrix_tokens][16];
    const auto start = [&](std::int64_t b) __attribute__((always_inline)) {
      unroll<n_digits>([&](auto i) __attribute__((always_inline)) { tile_zero<decltype(i)::value>(); });
      for (int part = 0; part < 4; ++part) {
        tile_load<4>(x[b].q[part], 64);
        unroll<n_digits>([&](auto i) __attribute__((always_inline)) {
          constexpr int digit = decltype(i)::value;
          tile_load<5 + digit>(w[b].q[digit][16 * part], 64);
          tile_dot<digit, 4, 5 + digit, !is_signed>();
        });
      }
      unroll<n_digits>([&](auto i) __attribute__((always_inline)) {
        tile_store<decltype(i)::value>(dots[b % 2][decltype(i)::value], 64);
      });
    };
    accumulate_tile(
        n, is_first, acc, start, [&](std::int64_t b, int t, f32x16 sum) __attribute__((always_inline)) {
          const f32x16 scale = broadcast(x[b].scale[t]);
          i32x16 dot = load_i32(dots[b % 2][0][t]) + shift_left<3>(load_i32(dots[b % 2][1][t]));
          if constexpr (n_digits == 3) dot = dot + shift_left<6>(load_i32(dots[b % 2][2][t]));
          sum = fma(to_f32(dot), load(w[b].d) * scale, sum);
          if constexpr (Format::has_min) {
            i32x16 pairs = broadcast_i32(0);
            unroll<Format::n_pair_vectors>([&](auto k) __attribute__((always_inline)) {
              constexpr int v = decltype(k)::value;
              pairs = dot_pairs(pairs, load_i32(w[b].pair_factor[v]), x[b].pair_sums[t] + Format::first_pair + 2 * v);
            });
            sum = fma(load(w[b].m), scale * to_f32(pairs), sum);
          }
          return sum;
        });
  }
};

// Sweeps P panels as sweep_panels does, sixteen tokens at a time.
template <class Family, int P>
VITRINE_FORCE_INLINE void sweep_matrix(const LinearJob& job, std::int64_t panel) {
  constexpr std::int64_t most_blocks = stretch / Family::block_len, sums_of_tile = matrix_tokens * panel_rows;
  alignas(64) typename Family::Unpacked unpacked[P][most_blocks];
  alignas(64) float acc[token_block / matrix_tokens][P][sums_of_tile];  // [tile][P][16 tokens][16 rows]
  PeakColumns<typename Family::Weights> columns[P];
  for (int p = 0; p < P; ++p) columns[p].start(panel_start(job, panel + p));
  const std::int64_t n_blocks = job.n_cols / Family::block_len;
  const std::int64_t n_stretches = divide_up(n_blocks, most_blocks);
  const auto* x = Family::input(job);  // [tile][n_blocks]
  for (std::int64_t token_0 = 0; token_0 < job.n_tokens; token_0 += token_block) {
    const std::int64_t n_tokens = job.n_tokens - token_0 < token_block ? job.n_tokens - token_0 : token_block;
    for (std::int64_t at = 0; at < n_stretches; ++at) {
      const std::int64_t first = n_blocks * at / n_stretches, n = n_blocks * (at + 1) / n_stretches - first;
      for (int p = 0; p < P; ++p)
        for (std::int64_t b = 0; b < n; ++b) Family::unpack(panel_start(job, panel + p), first + b, unpacked[p][b]);
      for (std::int64_t token = 0; token < n_tokens; token += matrix_tokens) {
        const std::int64_t tile = token / matrix_tokens;
        const std::int64_t n_here = n_tokens - token < matrix_tokens ? n_tokens - token : matrix_tokens;
        for (int p = 0; p < P; ++p) {
          float* sums = acc[n_stretches == 1 ? 0 : tile][p];
          Family::tile(unpacked[p], x + (token_0 / matrix_tokens + tile) * n_blocks + first, n, at == 0, sums);
          if (at + 1 < n_stretches) continue;
          columns[p].finish(job, panel + p, token_0 + token, n_here, sums, panel_rows);
        }
      }
    }
  }
}

// At least least_matrix_tokens tokens.
template <class Family>
inline void matrix_form(const LinearJob& job, std::int64_t first, std::int64_t last) {
  const TileUse tiles(Family::product_len);
  go_through_panels<Family::panels>(
      first, last, [&](auto n, std::int64_t panel) __attribute__((always_inline)) {
        sweep_matrix<Family, decltype(n)::value>(job, panel);
      });
}

}  // namespace linear_detail

// Gives the quantised types of a table their matrix form, and the input that it reads.
inline void add_matrix_forms(LinearKernels& kernels) {
  using namespace linear_detail;
  kernels.q4_0.matrix = matrix_form<MatrixTiles32<Q4_0>>;
  kernels.q4_1.matrix = matrix_form<MatrixTiles32<Q4_1>>;
  kernels.q5_0.matrix = matrix_form<MatrixTiles32<Q5_0>>;
  kernels.q5_1.matrix = matrix_form<MatrixTiles32<Q5_1>>;
  kernels.q8_0.matrix = matrix_form<MatrixTiles32<Q8_0>>;
  kernels.q8_0_planes.matrix = matrix_form<MatrixTiles32<Q8_0Planes>>;
  kernels.q4_k.matrix = matrix_form<MatrixTiles256<Q4_K>>;
  kernels.q5_k.matrix = matrix_form<MatrixTiles256<Q5_K>>;
  kernels.q6_k.matrix = matrix_form<MatrixTiles256<Q6_K>>;
  kernels.quantise_tile_32 = quantise_detail::quantise_tile_32;
  kernels.quantise_tile_256 = quantise_detail::quantise_tile_256;
}

VITRINE_ISA_NAMESPACE_END
