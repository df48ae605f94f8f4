// A third form of Q4_K, Q5_K and Q6_K, for processors that multiply whole tiles of bytes (AMX-INT8): sixteen tokens or
// more, times a panel of sixteen rows. The same integers as the other forms, hence the same bits.
//
// The runs' integer scales are cut into digits, scale = sum of 8^i digit_i, small enough that a weight times a digit is
// a byte; then dot = sum of 8^i (digit_i w) . x, each a product of tiles over the whole block of 256. The products of
// the next block run while the sums of this one are scaled and added. A last tile that would be ragged begins earlier,
// and adds only the tokens that are new.
//
// Blocks of 32 have no such form: a product of tiles that is half as long takes as long, its sums must be written and
// read back for every block, and together this was measured to be no faster than vpdpbusd.
#pragma once

#include "vitrine/simd/lanes_tiles.hpp"
#include "vitrine/simd/linear_common.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

namespace linear_detail {

// Sums of sixteen tokens in registers while they go through a stretch: start(b) sets off the products of block b, and
// add(b, t, sum) returns token t's sum with block b, by which time the next block has been started. The first `skip`
// tokens of acc [16][16] are left as they are.
template <class Start, class Add>
VITRINE_FORCE_INLINE void accumulate_tile(std::int64_t n_blocks, int skip, float* acc, Start start, Add add) {
  f32x16 sums[matrix_tokens];
  unroll<matrix_tokens>([&](auto t) __attribute__((always_inline)) {
    sums[decltype(t)::value] = load(acc + 16 * decltype(t)::value);
  });
  start(0);
  for (std::int64_t b = 0; b < n_blocks; ++b) {
    if (b + 1 < n_blocks) start(b + 1);
    unroll<matrix_tokens>([&](auto t) __attribute__((always_inline)) {
      sums[decltype(t)::value] = add(b, decltype(t)::value, sums[decltype(t)::value]);
    });
  }
  unroll<matrix_tokens>([&](auto t) __attribute__((always_inline)) {
    if (decltype(t)::value >= skip) store(acc + 16 * decltype(t)::value, sums[decltype(t)::value]);
  });
}

template <class Format>
struct MatrixTiles {
  static constexpr std::int64_t block_len = 256;
  // Scales of 6 bits, 0 to 63, have two digits from 0 to 7: 31 * 7 is a byte without sign. Signed ones of 8 bits have
  // three from -3 to 4: with the offset taken off, -32 * 4 is a byte with sign.
  static constexpr bool is_signed = !Format::has_min;
  static constexpr int n_digits = is_signed ? 3 : 2;
  struct alignas(64) Unpacked {
    std::uint8_t q[n_digits][64][64];                      // k-groups in order, times the digit of their run's scale
    std::int32_t pair_factor[Format::n_pair_vectors][16];  // two 16-bit values each
    float d[16], m[16];
  };

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

  VITRINE_FORCE_INLINE void tile(const Unpacked* w, const LinearJob& job, std::int64_t token, std::int64_t first,
                                 std::int64_t n, int skip, float* acc) {
    alignas(64) std::int32_t dots[2][n_digits][matrix_tokens][16];
    const std::int64_t n_blocks = job.n_cols / 256;
    const XBlock256* x = job.x_256 + token * n_blocks + first;
    const auto start = [&](std::int64_t b) __attribute__((always_inline)) {
      unroll<n_digits>([&](auto i) __attribute__((always_inline)) { tile_zero<decltype(i)::value>(); });
      for (int part = 0; part < 4; ++part) {
        tile_load<4>(x[b].q + 64 * part, n_blocks * std::int64_t(sizeof(XBlock256)));
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
        n, skip, acc, start, [&](std::int64_t b, int t, f32x16 sum) __attribute__((always_inline)) {
          const XBlock256& block = x[t * n_blocks + b];
          i32x16 dot = load_i32(dots[b % 2][0][t]) + shift_left<3>(load_i32(dots[b % 2][1][t]));
          if constexpr (n_digits == 3) dot = dot + shift_left<6>(load_i32(dots[b % 2][2][t]));
          sum = fma(to_f32(dot), load(w[b].d) * broadcast(block.scale), sum);
          if constexpr (Format::has_min) {
            i32x16 pairs = broadcast_i32(0);
            unroll<Format::n_pair_vectors>([&](auto k) __attribute__((always_inline)) {
              constexpr int v = decltype(k)::value;
              pairs = dot_pairs(pairs, load_i32(w[b].pair_factor[v]), block.pair_sums + Format::first_pair + 2 * v);
            });
            sum = fma(load(w[b].m), broadcast(block.scale) * to_f32(pairs), sum);
          }
          return sum;
        });
  }
};

// Sweeps one panel as sweep_panels does.
template <class Format>
inline void sweep_matrix(const LinearJob& job, std::int64_t panel) {
  using Family = MatrixTiles<Format>;
  constexpr std::int64_t most_blocks = stretch / Family::block_len;
  alignas(64) typename Family::Unpacked unpacked[most_blocks];
  alignas(64) float acc[token_block * panel_rows];  // [token][16 rows]
  const std::int64_t n_blocks = job.n_cols / Family::block_len;
  const std::int64_t n_stretches = (n_blocks + most_blocks - 1) / most_blocks;
  const std::int64_t n_token_blocks = (job.n_tokens + token_block - 1) / token_block;
  for (std::int64_t i = 0; i < n_token_blocks; ++i) {  // of equal lengths, so that none has fewer than 16 tokens
    const std::int64_t token_0 = job.n_tokens * i / n_token_blocks;
    const std::int64_t n_tokens = job.n_tokens * (i + 1) / n_token_blocks - token_0;
    for (std::int64_t t = 0; t < n_tokens; ++t) store(acc + panel_rows * t, zero());
    for (std::int64_t at = 0; at < n_stretches; ++at) {
      const std::int64_t first = n_blocks * at / n_stretches, n = n_blocks * (at + 1) / n_stretches - first;
      for (std::int64_t b = 0; b < n; ++b) Family::unpack(panel_start(job, panel), first + b, unpacked[b]);
      for (std::int64_t t = 0; t < n_tokens; t += matrix_tokens) {
        const std::int64_t begin = t + matrix_tokens <= n_tokens ? t : n_tokens - matrix_tokens;
        Family::tile(unpacked, job, token_0 + begin, first, n, int(t - begin), acc + panel_rows * begin);
      }
    }
    for (std::int64_t t = 0; t < n_tokens; ++t) finish(job, panel, token_0 + t, load(acc + panel_rows * t));
  }
}

// At least matrix_tokens tokens.
template <class Format>
inline void matrix_form(const LinearJob& job, std::int64_t first, std::int64_t last) {
  const TileUse tiles;
  for (std::int64_t panel = first; panel < last; ++panel) sweep_matrix<Format>(job, panel);
}

}  // namespace linear_detail

// Gives the K types of a table their matrix form.
inline void add_matrix_forms(LinearKernels& kernels) {
  using namespace linear_detail;
  kernels.q4_k.matrix = matrix_form<Q4_K>;
  kernels.q5_k.matrix = matrix_form<Q5_K>;
  kernels.q6_k.matrix = matrix_form<Q6_K>;
}

VITRINE_ISA_NAMESPACE_END
