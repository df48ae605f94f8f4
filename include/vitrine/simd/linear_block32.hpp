// Linear layers with weights in blocks of 32: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0. One lane is one row.
//
// Per block and row: i = sum over k of q_w * q_x in integers, the weights' offset (8, 16) taken back by -sum(q_x) times
// it; then acc = fma(float(i), d * xd, acc), and for Q4_1 and Q5_1, whose weights are d q + m, acc = fma(m, xd *
// sum(q_x), acc). Blocks in ascending k; the input's peaks come last (linear_results.hpp).
//
//   one_token_32   decode: straight from the panel to the dots, bound by the reading of memory
//   few_tokens_32  decode of several sequences: the same for up to eight tokens at a time, as registers allow
//   Tiles32        prefill: a panel's stretch unpacked once, then swept over the tokens (linear_common.hpp)
#pragma once

#include "vitrine/simd/linear_common.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

namespace linear_detail {

// What the offset of the weights takes back from a block's dot: -sum(x) * 2^shift, or nothing.
template <class Format>
VITRINE_FORCE_INLINE i32x16 offset_term(const XBlock32& x) {
  if constexpr (Format::offset_shift < 0)
    return broadcast_i32(0);
  else
    return shift_left<Format::offset_shift>(broadcast_i32(x.minus_sum));
}

// Whether one Partial holds the dot of a whole block. Where it has 16 bits, weights from -16 to 15 just fit, once their
// offset is in it: 16 * 127 for each of sixteen products.
template <class Format>
inline constexpr bool in_one_partial = partials_are_wide || partial_groups<Format::bits> >= 8 ||
                                       (Format::bits == 5 && Format::offset_shift == 4);

template <class Format>
VITRINE_FORCE_INLINE void begin_dot(i32x16& dot, Partial& partial, const XBlock32& x) {
  if constexpr (!in_one_partial<Format>)
    dot = offset_term<Format>(x);
  else if constexpr (Format::offset_shift >= 0)
    partial = partial_of<Format::offset_shift>(x.minus_sum, x.minus_pair_sums);
}
// Adds group number `step` of eight; with the last one, `dot` is complete.
template <class Format, int step, class Weights>
VITRINE_FORCE_INLINE void add_to_dot(i32x16& dot, Partial& partial, Weights w, XGroup x) {
  constexpr int bits = Format::bits;
  if constexpr (!in_one_partial<Format>) {
    add_group_to<bits, step, 8>(dot, partial, w, x);
  } else {
    partial = step == 0 && Format::offset_shift < 0 ? dot_first<bits>(w, x) : dot_next<bits>(partial, w, x);
    if constexpr (step == 7) dot = widen(partial);
  }
}

// Asks for the memory that is read after block b of P panels side by side.
template <class Format, int P>
class FetchBlocks {
 public:
  __attribute__((always_inline)) FetchBlocks(const LinearJob& job, PanelStart start)
      : fetch_(start, job.panel_bytes, job.n_cols / 32, job.fetch_end) {}
  // Called for each of the panels.
  __attribute__((always_inline)) void operator()(PanelStart start, std::int64_t b) const {
    fetch_(start + std::size_t(b) * Format::bytes_per_block, b);
  }

 private:
  FetchAhead<Format::bytes_per_block, P> fetch_;
};
// Two blocks of each plane at a time.
template <class Format, int P>
requires is_in_planes<Format>
class FetchBlocks<Format, P> {
 public:
  __attribute__((always_inline)) FetchBlocks(const LinearJob& job, PanelStart start)
      : high_(start.high, job.panel_bytes, divide_up(job.n_cols, 64), job.fetch_end),
        low_(start.low, job.low_bytes, divide_up(job.n_cols, 64), job.fetch_end_of_low) {}
  __attribute__((always_inline)) void operator()(PanelStart start, std::int64_t b) const {
    if (b % 2 != 0) return;
    high_(start.high + std::size_t(b) * Format::bytes_per_block, b / 2);
    low_(start.low + std::size_t(b) * Format::low_bytes_per_block, b / 2);
  }

 private:
  FetchAhead<2 * Format::bytes_per_block, P> high_;
  FetchAhead<2 * Format::low_bytes_per_block, P> low_;
};

// P panels from `panel` on.
template <class Format, int P>
VITRINE_FORCE_INLINE void one_token_of_panels_32(const LinearJob& job, std::int64_t panel) {
  const std::int64_t n_blocks = job.n_cols / 32;
  PanelStart start[P];
  f32x16 acc[P];
  for (int p = 0; p < P; ++p) start[p] = panel_start(job, panel + p), acc[p] = zero();
  const FetchBlocks<Format, P> fetch(job, start[0]);
  for (std::int64_t b = 0; b < n_blocks; ++b) {
    const XBlock32& x = job.x_32[b];
    unroll<P>([&](auto i) __attribute__((always_inline)) {
      constexpr int p = decltype(i)::value;
      const Block32 block = Format::at(start[p], b);
      fetch(start[p], b);
      i32x16 dot;
      Partial partial;
      begin_dot<Format>(dot, partial, x);
      Format::visit(
          block, [&](auto group, auto step, bytes64 w) __attribute__((always_inline)) {
            constexpr int bits = Format::bits;
            add_to_dot<Format, decltype(step)::value>(dot, partial, dot_weights<bits>(scratch_form<Format>(w)),
                                                      x_group(x.q + 4 * decltype(group)::value));
          });
      acc[p] = fma(to_f32(dot), load_f16(block.d) * broadcast(x.scale), acc[p]);
      if constexpr (Format::has_min) acc[p] = fma(load_f16(block.m), broadcast(x.scaled_sum), acc[p]);
    });
  }
  for (int p = 0; p < P; ++p) finish(job, panel + p, 0, with_peaks<Format>(job, start[p], 0, acc[p]));
}

template <class Format>
inline void one_token_32(const LinearJob& job, std::int64_t first, std::int64_t last) {
  go_through_panels<one_token_panels>(
      first, last, [&](auto n, std::int64_t panel) __attribute__((always_inline)) {
        one_token_of_panels_32<Format, decltype(n)::value>(job, panel);
      });
}

// T tokens from `token` on.
template <class Format, int T>
VITRINE_FORCE_INLINE void few_of_panel_32(const LinearJob& job, std::int64_t panel, std::int64_t token) {
  constexpr int bits = Format::bits;
  const std::int64_t n_blocks = job.n_cols / 32;
  const PanelStart start = panel_start(job, panel);
  const FetchBlocks<Format, 1> fetch(job, start);
  const XBlock32* x = job.x_32 + token * n_blocks;
  f32x16 acc[T];
  unroll<T>([&](auto t) __attribute__((always_inline)) { acc[decltype(t)::value] = zero(); });
  for (std::int64_t b = 0; b < n_blocks; ++b, ++x) {
    const Block32 block = Format::at(start, b);
    fetch(start, b);
    i32x16 dot[T];
    Partial partial[T];
    unroll<T>([&](auto t) __attribute__((always_inline)) {
      constexpr int at = decltype(t)::value;
      begin_dot<Format>(dot[at], partial[at], x[at * n_blocks]);
    });
    Format::visit(
        block, [&](auto group, auto step, bytes64 w) __attribute__((always_inline)) {
          const auto weights = dot_weights<bits>(scratch_form<Format>(w));
          unroll<T>([&](auto t) __attribute__((always_inline)) {
            constexpr int at = decltype(t)::value;
            add_to_dot<Format, decltype(step)::value>(dot[at], partial[at], weights,
                                                      x_group(x[at * n_blocks].q + 4 * decltype(group)::value));
          });
        });
    const f32x16 d = load_f16(block.d);
    [[maybe_unused]] f32x16 m;
    if constexpr (Format::has_min) m = load_f16(block.m);
    unroll<T>([&](auto t) __attribute__((always_inline)) {
      constexpr int at = decltype(t)::value;
      const XBlock32& mine = x[at * n_blocks];
      acc[at] = fma(to_f32(dot[at]), d * broadcast(mine.scale), acc[at]);
      if constexpr (Format::has_min) acc[at] = fma(m, broadcast(mine.scaled_sum), acc[at]);
    });
  }
  unroll<T>([&](auto t) __attribute__((always_inline)) {
    constexpr int at = decltype(t)::value;
    finish(job, panel, token + at, with_peaks<Format>(job, start, token + at, acc[at]));
  });
}

// A panel comes from memory for the first tokens, and from the first-level cache for the rest.
template <class Format>
inline void few_tokens_32(const LinearJob& job, std::int64_t first, std::int64_t last) {
  for (std::int64_t panel = first; panel < last; ++panel) {
    std::int64_t token = 0;
    const auto go = [&](auto index) __attribute__((always_inline)) {
      constexpr int T = decltype(index)::value;
      for (; token + T <= job.n_tokens; token += T) few_of_panel_32<Format, T>(job, panel, token);
    };
    go(Index<8>{});
    go(Index<4>{});
    go(Index<2>{});
    go(Index<1>{});
  }
}

template <class Format>
struct Tiles32 {
  using Weights = Format;
  static constexpr std::int64_t block_len = Format::block_len;
  struct alignas(64) Unpacked {
    std::uint8_t q[8][64];  // k-groups in order
    float d[16], m[16];
  };

  VITRINE_FORCE_INLINE void unpack(PanelStart panel, std::int64_t b, Unpacked& out) {
    const Block32 block = Format::at(panel, b);
    Format::visit(
        block, [&](auto group, auto, bytes64 w) __attribute__((always_inline)) {
          store_bytes(out.q[decltype(group)::value], scratch_form<Format>(w));
        });
    store(out.d, load_f16(block.d));
    if constexpr (Format::has_min) store(out.m, load_f16(block.m));
  }

  // P panels times T tokens from `token` on, n blocks from `first` on, of which w holds the unpacked ones; adds to acc
  // [T][P][16].
  template <int P, int T, class Buffer>
  VITRINE_FORCE_INLINE void tile(const Buffer& w, const LinearJob& job, std::int64_t token, std::int64_t first,
                                 std::int64_t n, float* acc) {
    constexpr int bits = Format::bits;
    const std::int64_t n_blocks = job.n_cols / 32;
    const XBlock32* x[T];
    for (int t = 0; t < T; ++t) x[t] = job.x_32 + (token + t) * n_blocks + first;
    FloatSums<T * P> sums(acc);
    for (std::int64_t b = 0; b < n; ++b) {
      Partial partial[T * P];
      i32x16 dot[T * P];
      unroll<T>([&](auto j) __attribute__((always_inline)) {
        constexpr int t = decltype(j)::value;
        unroll<P>([&](auto i) __attribute__((always_inline)) {
          constexpr int at = t * P + decltype(i)::value;
          begin_dot<Format>(dot[at], partial[at], x[t][b]);
        });
      });
      unroll<8>([&](auto group) __attribute__((always_inline)) {
        constexpr int s = decltype(group)::value;
        decltype(dot_weights<bits>(bytes64{})) weights[P];
        unroll<P>([&](auto i) __attribute__((always_inline)) {
          constexpr int p = decltype(i)::value;
          weights[p] = dot_weights<bits>(load_bytes(w[p][b].q[s]));
        });
        unroll<T>([&](auto j) __attribute__((always_inline)) {
          constexpr int t = decltype(j)::value;
          const XGroup four = x_group(x[t][b].q + 4 * s);
          unroll<P>([&](auto i) __attribute__((always_inline)) {
            constexpr int p = decltype(i)::value, at = t * P + p;
            add_to_dot<Format, s>(dot[at], partial[at], weights[p], four);
          });
        });
        if constexpr (s < 7) keep(partial);
      });
      unroll<P>([&](auto i) __attribute__((always_inline)) {
        constexpr int p = decltype(i)::value;
        const f32x16 d = load(w[p][b].d);
        [[maybe_unused]] f32x16 m;
        if constexpr (Format::has_min) m = load(w[p][b].m);
        unroll<T>([&](auto j) __attribute__((always_inline)) {
          constexpr int t = decltype(j)::value, at = t * P + p;
          f32x16 sum = fma(to_f32(dot[at]), d * broadcast(x[t][b].scale), sums.template get<at>());
          if constexpr (Format::has_min) sum = fma(m, broadcast(x[t][b].scaled_sum), sum);
          sums.template set<at>(sum);
        });
      });
    }
    sums.finish();
  }
};

template <class Format>
constexpr LinearForms forms_32() {
  LinearForms forms{one_token_32<Format>, many_tokens<Tiles32<Format>>};
  if constexpr (accumulators_in_registers) forms.few_tokens = few_tokens_32<Format>;
  return forms;
}

}  // namespace linear_detail

VITRINE_ISA_NAMESPACE_END
