// What the rows of a Q8_0 matrix give at most for one token, from its high plane alone: 65 % of the bytes.
//
// A weight is q = 8 h + l - 128, and 0 <= l <= 7 whatever it is. So per block, with P the sum of the positive q_x,
//
//   i = sum q q_x  <=  8 (sum h q_x - 16 sum q_x) + 7 P  =  8 (sum h q_x + offset),   8 offset >= 7 P - 128 sum q_x
//
// and, with scales d xd that are not negative, the sum over blocks is a bound of the row's result. The offset is an
// integer that bound_input() writes where the kernels of Q5_0 look for theirs; it has in it what the rounding of both
// sums can amount to. A peak x of the input adds d q x, at most 8 d (h - 15 1/8) x if x > 0 and 8 d (h - 16) x else;
// for rounding it gets another d |x|. (A bound by norms, |x| |d l| for each row, was measured to be looser, and costs a
// norm per row.)
#pragma once

#include "vitrine/simd/linear_block32.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

namespace linear_detail {

// An eighth of the most that a peak x adds to the sums of a panel's rows.
VITRINE_FORCE_INLINE f32x16 add_peak_bound(PanelStart panel, XPeak peak, f32x16 acc) {
  const Block32 block = Q8_0High::at(panel, peak.k / 32);
  const int k = int(peak.k % 32);
  const f32x16 h = to_f32(five_bits_at(block, k));
  const f32x16 most = h - broadcast(peak.x > 0 ? 15.0f : 16.125f);  // exact, and times d still
  return fma(most * load_f16(block.d), broadcast(peak.x), acc);
}

// P panels from `panel` on.
template <int P>
VITRINE_FORCE_INLINE void upper_bounds_of_panels(const LinearJob& job, std::int64_t panel) {
  using Format = Q8_0High;
  const std::int64_t n_blocks = job.n_cols / 32;
  const std::uint8_t* start[P];
  f32x16 acc[P], most_negative[P];
  for (int p = 0; p < P; ++p) {
    start[p] = panel_start(job, panel + p);
    acc[p] = most_negative[p] = zero();
  }
  const FetchAhead<2 * Format::bytes_per_block, P> fetch(start[0], job.panel_bytes, divide_up(n_blocks, 2),
                                                         job.fetch_end);
  for (std::int64_t b = 0; b < n_blocks; ++b) {
    const XBlock32& x = job.x_32[b];
    unroll<P>([&](auto i) __attribute__((always_inline)) {
      constexpr int p = decltype(i)::value;
      const Block32 block = Format::at(start[p], b);
      if (b % 2 == 0) fetch(start[p] + std::size_t(b) * Format::bytes_per_block, b / 2);
      i32x16 dot = broadcast_i32(x.minus_sum);
      Partial partial;
      Format::visit(
          block, [&](auto group, auto step, bytes64 w) __attribute__((always_inline)) {
            add_group_to<5, decltype(step)::value, 8>(dot, partial, dot_weights<5>(to_scratch<5>(w)),
                                                      x_group(x.q + 4 * decltype(group)::value));
          });
      const f32x16 d = load_f16(block.d);
      most_negative[p] = max(negate(d), most_negative[p]);
      acc[p] = fma(to_f32(dot), d * broadcast(x.scale), acc[p]);
    });
  }
  for (std::int64_t i = 0; i < n_peaks(job.n_cols); ++i)
    for (int p = 0; p < P; ++p) acc[p] = add_peak_bound({start[p], nullptr}, job.peaks[i], acc[p]);
  for (int p = 0; p < P; ++p) {
    // A sum that is not finite never becomes so again, and shows a scale that is not.
    const bool is_bound =
        mask_bits(equal(acc[p] - acc[p], zero())) == 0xffff && mask_bits(greater(most_negative[p], zero())) == 0;
    const std::int64_t n_rows = job.n_rows - (panel + p) * panel_rows;
    if (n_rows < panel_rows) acc[p] = select(first_lanes(int(n_rows)), acc[p], lowest());
    job.y[panel + p] = is_bound ? 8 * hmax(acc[p]) : __builtin_inff();
  }
}

inline void upper_bounds(const LinearJob& job, std::int64_t first, std::int64_t last) {
  go_through_panels<one_token_panels>(
      first, last, [&](auto n, std::int64_t panel) __attribute__((always_inline)) {
        upper_bounds_of_panels<decltype(n)::value>(job, panel);
      });
}

}  // namespace linear_detail

VITRINE_ISA_NAMESPACE_END
