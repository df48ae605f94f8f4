// What the forms of a linear layer share: sums of k-groups, what is fetched ahead, the sweep of an unpacked panel.
//
//   y[t][r] = sum over blocks, then peaks, of W[r][k] x[t][k]  (+ bias[r])  (+ y[t][r])
//
// One token or a few: weights are read once, so nothing is unpacked to memory. One token goes through two panels side
// by side. Many tokens: sweep_panels unpacks a stretch of a panel and goes over all tokens with it, several at a time.
// Either way a row's accumulator meets its blocks in ascending k, and the bits are the same.
#pragma once

#include "vitrine/core/rounding.hpp"
#include "vitrine/simd/linear_formats.hpp"
#include "vitrine/simd/linear_kernels.hpp"
#include "vitrine/simd/linear_results.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

namespace linear_detail {

// About how far ahead of the reading kernels for one token or a few fetch into the second-level cache, which has more
// misses under way than the first, and from there into the first.
inline constexpr std::int64_t far_bytes = 4096, near_bytes = 1024;
inline constexpr std::int64_t stretch = 768;      // most k-values of a panel unpacked at a time
inline constexpr std::int64_t token_block = 256;  // tokens between two unpackings of a stretch

// Adds group number `step` of a sum of `n_steps` groups; hands the Partial to `flush` whenever it is full or complete.
template <int bits, int step, int n_steps, class Weights, class Flush>
VITRINE_FORCE_INLINE void add_group(Partial& partial, Weights w, XGroup x, Flush flush) {
  constexpr int capacity = partial_groups<bits>;
  if constexpr (step % capacity == 0)
    partial = dot_first<bits>(w, x);
  else
    partial = dot_next<bits>(partial, w, x);
  if constexpr (step % capacity == capacity - 1 || step == n_steps - 1) flush(partial);
}

// The same, for a plain sum that is kept in `dot` and may have begun with an offset in it.
template <int bits, int step, int n_steps, class Weights>
VITRINE_FORCE_INLINE void add_group_to(i32x16& dot, Partial& partial, Weights w, XGroup x) {
  if constexpr (partial_groups<bits> >= n_steps && partials_are_wide) {
    partial = dot_next<bits>(step == 0 ? as_partial(dot) : partial, w, x);
    if constexpr (step == n_steps - 1) dot = widen(partial);
  } else {
    add_group<bits, step, n_steps>(
        partial, w, x, [&](Partial full) __attribute__((always_inline)) { dot = dot + widen(full); });
  }
}

// n float sums that live at `memory` [n][16]: in registers until finish() where there are enough of them.
template <int n>
struct FloatSums {
  float* memory;
  f32x16 registers[accumulators_in_registers ? n : 1];

  __attribute__((always_inline)) explicit FloatSums(float* at) : memory(at) {
    if constexpr (accumulators_in_registers)
      for (int i = 0; i < n; ++i) registers[i] = load(memory + 16 * i);
  }
  template <int i>
  __attribute__((always_inline)) f32x16 get() const {
    if constexpr (accumulators_in_registers)
      return registers[i];
    else
      return load(memory + 16 * i);
  }
  template <int i>
  __attribute__((always_inline)) void set(f32x16 value) {
    if constexpr (accumulators_in_registers)
      registers[i] = value;
    else
      store(memory + 16 * i, value);
  }
  __attribute__((always_inline)) void finish() const {
    if constexpr (accumulators_in_registers)
      for (int i = 0; i < n; ++i) store(memory + 16 * i, registers[i]);
  }
};

// n integer sums, in registers where there are enough of them, else in memory.
template <int n>
struct IntegerSums {
  alignas(64) std::int32_t memory[accumulators_in_registers ? 1 : n][16];
  i32x16 registers[accumulators_in_registers ? n : 1];

  __attribute__((always_inline)) void clear() {
    for (int t = 0; t < n; ++t) {
      if constexpr (accumulators_in_registers)
        registers[t] = broadcast_i32(0);
      else
        store_i32(memory[t], broadcast_i32(0));
    }
  }
  template <int t>
  __attribute__((always_inline)) void add(i32x16 more) {
    if constexpr (accumulators_in_registers)
      registers[t] = registers[t] + more;
    else
      store_i32(memory[t], load_i32(memory[t]) + more);
  }
  template <int t>
  __attribute__((always_inline)) i32x16 get() const {
    if constexpr (accumulators_in_registers)
      return registers[t];
    else
      return load_i32(memory[t]);
  }
};

VITRINE_FORCE_INLINE PanelStart panel_start(const LinearJob& job, std::int64_t panel) {
  return {reinterpret_cast<const std::uint8_t*>(job.weights + std::size_t(panel) * job.panel_bytes),
          reinterpret_cast<const std::uint8_t*>(job.low + std::size_t(panel) * job.low_bytes)};
}

// Asks for what lies far_by and near_by bytes further on than n_bytes at p.
template <std::size_t n_bytes>
VITRINE_FORCE_INLINE void fetch_from(const std::uint8_t* p, std::int64_t far_by, std::int64_t near_by) {
  unroll<int(divide_up(n_bytes, 64))>([&](auto i) __attribute__((always_inline)) {
    prefetch_far(p + far_by + 64 * decltype(i)::value);
    prefetch(p + near_by + 64 * decltype(i)::value);
  });
}

// Asks for the memory that is read next where P panels are gone through side by side, unit by unit: some units on in
// the same panel and, after its end, in the one P panels on; for nothing new where that is another thread's.
template <std::size_t unit_bytes, int P>
class FetchAhead {
 public:
  // `start` of the first panel; n_units of each are read, of its panel_bytes.
  __attribute__((always_inline))
  FetchAhead(const std::uint8_t* start, std::size_t panel_bytes, std::int64_t n_units, const std::byte* end)
      : n_units_(n_units) {
    const std::int64_t all = P * std::int64_t(panel_bytes), skipped = all - n_units * unit;
    const bool is_last = reinterpret_cast<const std::uint8_t*>(end) - start <= all;
    far_beyond_ = is_last ? 0 : far_distance + skipped;
    near_beyond_ = is_last ? 0 : near_distance + skipped;
  }
  // While unit number i is read, which begins at p.
  __attribute__((always_inline)) void operator()(const std::uint8_t* p, std::int64_t i) const {
    fetch_from<unit_bytes>(p, i + far_units < n_units_ ? far_distance : far_beyond_,
                           i + near_units < n_units_ ? near_distance : near_beyond_);
  }

 private:
  static constexpr std::int64_t unit = unit_bytes, far_units = far_bytes / unit, near_units = near_bytes / unit;
  static constexpr std::int64_t far_distance = far_units * unit, near_distance = near_units * unit;
  static_assert(0 < near_distance && near_distance < far_distance);
  std::int64_t n_units_, far_beyond_, near_beyond_;
};
// One panel after the other: the distances are constants, as eight tokens side by side leave no register for them.
template <std::size_t unit_bytes>
class FetchAhead<unit_bytes, 1> {
 public:
  __attribute__((always_inline)) FetchAhead(const std::uint8_t*, std::size_t, std::int64_t, const std::byte* end)
      : end_(reinterpret_cast<const std::uint8_t*>(end)) {}
  __attribute__((always_inline)) void operator()(const std::uint8_t* p, std::int64_t) const {
    if (end_ - p > far_bytes) fetch_from<unit_bytes>(p, far_bytes, near_bytes);
  }

 private:
  const std::uint8_t* end_;
};

// go(Index<P>, panel) for P panels side by side as long as there are as many, then with one at a time.
template <int P, class Go>
VITRINE_FORCE_INLINE void go_through_panels(std::int64_t first, std::int64_t last, Go go) {
  std::int64_t panel = first;
  for (; panel + P <= last; panel += P) go(Index<P>{}, panel);
  if constexpr (P > 1)
    for (; panel < last; ++panel) go(Index<1>{}, panel);
}

VITRINE_FORCE_INLINE void clear(float* sums, std::int64_t n) {  // [n][16]
  for (std::int64_t i = 0; i < n; ++i) store(sums + 16 * i, zero());
}

// The tile form. A stretch of P panels is unpacked once to bytes and F32 scales in a buffer that stays in the
// first-level cache, then swept over the tokens, a few at a time. Stretches, token blocks and tile shape are free
// choices: a row's accumulator goes through the same blocks in the same order whatever they are. Results are written as
// soon as they are there, between two tiles, where the misses of their stores hold nothing up; where one stretch is all
// there is, sums need not be kept for each token, which leaves the first-level cache to the weights.
template <class Family, int P>
VITRINE_FORCE_INLINE void sweep_panels(const LinearJob& job, std::int64_t panel) {
  constexpr std::int64_t most_blocks = stretch / Family::block_len, width = P * panel_rows;
  alignas(64) typename Family::Unpacked unpacked[P][most_blocks];
  alignas(64) float acc[token_block * width];  // [token][P][16 rows], or those of one tile alone
  PeakColumns<typename Family::Weights> columns[P];
  for (int p = 0; p < P; ++p) columns[p].start(panel_start(job, panel + p));
  const std::int64_t n_blocks = job.n_cols / Family::block_len;
  const std::int64_t n_stretches = divide_up(n_blocks, most_blocks);
  for (std::int64_t token_0 = 0; token_0 < job.n_tokens; token_0 += token_block) {
    const std::int64_t n_tokens = job.n_tokens - token_0 < token_block ? job.n_tokens - token_0 : token_block;
    for (std::int64_t at = 0; at < n_stretches; ++at) {
      const std::int64_t first = n_blocks * at / n_stretches, n = n_blocks * (at + 1) / n_stretches - first;
      for (int p = 0; p < P; ++p)
        for (std::int64_t b = 0; b < n; ++b) Family::unpack(panel_start(job, panel + p), first + b, unpacked[p][b]);
      std::int64_t t = 0;
      const auto sweep = [&](auto index) __attribute__((always_inline)) {
        constexpr int T = decltype(index)::value;
        if constexpr (T <= tile_tokens)
          for (; t + T <= n_tokens; t += T) {
            float* sums = n_stretches == 1 ? acc : acc + width * t;
            if (at == 0) clear(sums, T * P);
            Family::template tile<P, T>(unpacked, job, token_0 + t, first, n, sums);
            if (at + 1 < n_stretches) continue;
            for (int p = 0; p < P; ++p) columns[p].finish(job, panel + p, token_0 + t, T, sums + panel_rows * p, width);
          }
      };
      sweep(Index<8>{});
      sweep(Index<4>{});
      sweep(Index<2>{});
      sweep(Index<1>{});
    }
  }
}

template <class Family>
inline void many_tokens(const LinearJob& job, std::int64_t first, std::int64_t last) {
  go_through_panels<tile_panels>(
      first, last, [&](auto n, std::int64_t panel) __attribute__((always_inline)) {
        sweep_panels<Family, decltype(n)::value>(job, panel);
      });
}

}  // namespace linear_detail

VITRINE_ISA_NAMESPACE_END
