// What the rows of a Q8_0 matrix give at most for one token, from its high plane alone: 65 % of the bytes.
//
// A weight is q = 8 h + l - 128, and 0 <= l <= 7 whatever it is. So per block, with P the sum of the positive q_x,
//
//   i = sum q q_x  <=  8 (sum h q_x - 16 sum q_x) + 7 P  =  8 (sum h q_x + offset),   8 offset >= 7 P - 128 sum q_x
//
// and, with scales d xd that are not negative, the sum over blocks is a bound of the row's result. The offset is an
// integer that bound_input() writes where the kernels of Q5_0 look for theirs; it has in it what the rounding of both
// sums can amount to. (A bound by norms, |x| |d l| for each row, was measured to be looser, and costs a norm per row.)
#pragma once

#include "vitrine/simd/linear_block32.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

namespace linear_detail {

inline void upper_bounds(const LinearJob& job, std::int64_t first, std::int64_t last) {
  using Format = Q8_0High;
  constexpr std::size_t block_bytes = Format::bytes_per_block;
  const std::int64_t n_blocks = job.n_cols / 32;
  for (std::int64_t panel = first; panel < last; ++panel) {
    const PanelStart start = panel_start(job, panel);
    const FetchAhead<block_bytes, 1> fetch(start, job.panel_bytes, n_blocks, job.fetch_end);
    f32x16 acc = zero(), most_negative = zero();
    for (std::int64_t b = 0; b < n_blocks; ++b) {
      const Block32 block = Format::at(start, b);
      const XBlock32& x = job.x_32[b];
      if (b % 2 == 0) fetch.operator()<0, 2 * block_bytes>(start.high + std::size_t(b) * block_bytes, b);
      i32x16 dot = broadcast_i32(x.minus_sum);
      Partial partial;
      Format::visit(
          block, [&](auto group, auto step, bytes64 w) __attribute__((always_inline)) {
            add_group_to<5, decltype(step)::value, 8>(dot, partial, dot_weights<5>(to_scratch<5>(w)),
                                                      x_group(x.q + 4 * decltype(group)::value));
          });
      const f32x16 d = load_f16(block.d);
      most_negative = max(negate(d), most_negative);
      acc = fma(to_f32(dot), d * broadcast(x.scale), acc);
    }
    // A sum that is not finite never becomes so again, and shows a scale that is not.
    const bool is_bound =
        mask_bits(equal(acc - acc, zero())) == 0xffff && mask_bits(greater(most_negative, zero())) == 0;
    const std::int64_t n_rows = job.n_rows - panel * panel_rows;
    if (n_rows < panel_rows) acc = select(first_lanes(int(n_rows)), acc, lowest());
    job.y[panel] = is_bound ? 8 * hmax(acc) : __builtin_inff();
  }
}

}  // namespace linear_detail

VITRINE_ISA_NAMESPACE_END
