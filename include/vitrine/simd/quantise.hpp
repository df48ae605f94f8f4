// Activations to 8 bits, per block of 32 or 256 values:
//
//   xd = amax / 127      q = x * (127 / amax), rounded to nearest, ties to even      x is about q * xd
//
// and the sums of q that the weight types with an offset or a minimum need. The peaks of an input, the largest of each
// of up to four sections, count as 0 here (linear_results.hpp). The length of a block depends on the type of the
// weights only, never on the instruction set or on the number of tokens. A block whose amax is too small for 127 / amax
// to be finite becomes zeros; NaN and infinity reach the peak or the scale, and so every row of that token.
#pragma once

#include "vitrine/simd/lanes_bytes.hpp"
#include "vitrine/simd/linear_kernels.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

namespace quantise_detail {

struct BlockScale {
  float scale, inverse;
};

// Of the block's largest magnitude, given as its bits: as integers these order like the values, with NaN above all, so
// that a NaN anywhere reaches the scale.
VITRINE_FORCE_INLINE BlockScale block_scale(std::int32_t amax_bits) {
  const float amax = bits_to_float(std::uint32_t(amax_bits));
  const float inverse = 127.0f / amax;
  constexpr float largest = 3.402823466e38f;
  if (inverse > largest) return {0.0f, 0.0f};
  return {amax / 127.0f, inverse};
}

VITRINE_FORCE_INLINE i32x16 magnitude_bits(f32x16 x) { return bits(x) & broadcast_i32(0x7fffffff); }

// The sum of a block's q in two parts, which the first and the second pair of each group of four belong to. Of a block
// with NaN, any number.
struct PairSums {
  std::int32_t of[2];
  std::int32_t total() const { return std::int32_t(std::uint32_t(of[0]) + std::uint32_t(of[1])); }
};

// x [32] to q [32]; the scale, and sums of q.
VITRINE_FORCE_INLINE float quantise_block_32(const float* x, std::int8_t* q, PairSums& sums) {
  const f32x16 x0 = load(x), x1 = load(x + 16);
  const BlockScale scale = block_scale(hmax_i32(max_i32(magnitude_bits(x0), magnitude_bits(x1))));
  const f32x16 inverse = broadcast(scale.inverse);
  const i32x16 q0 = to_i32(x0 * inverse), q1 = to_i32(x1 * inverse);
  to_bytes(q, q0);
  to_bytes(q + 16, q1);
  hsum_pairs(q0 + q1, sums.of);
  return scale.scale;
}

// x [256] to q, of which sixteen values lie together at at(0), at(1) .. at(15); the scale, and pair_sums [24].
template <class At>
VITRINE_FORCE_INLINE float quantise_block_256(const float* x, At at, std::int16_t* pair_sums) {
  i32x16 amax = broadcast_i32(0);
  for (int i = 0; i < 16; ++i) amax = max_i32(amax, magnitude_bits(load(x + 16 * i)));
  const BlockScale scale = block_scale(hmax_i32(amax));
  const f32x16 inverse = broadcast(scale.inverse);
  std::int32_t sums[16];
  for (int i = 0; i < 16; ++i) {
    const i32x16 values = to_i32(load(x + 16 * i) * inverse);
    to_bytes(at(i), values);
    sums[i] = hsum_i32(values);
  }
  for (int i = 0; i < 16; ++i) {
    const int from = (i & ~3) | (i & 1) << 1 | (i & 2) >> 1;  // 0, 2, 1, 3 within every four
    if (i < 8) pair_sums[i] = std::int16_t(std::uint32_t(sums[2 * from]) + std::uint32_t(sums[2 * from + 1]));
    pair_sums[8 + i] = std::int16_t(0u - std::uint32_t(sums[from]));
  }
  return scale.scale;
}

// The peak of x [first .. last), whole vectors of it.
VITRINE_FORCE_INLINE XPeak peak_of_section(const float* x, std::int64_t first, std::int64_t last) {
  i32x16 most = broadcast_i32(0);
  for (std::int64_t k = first; k < last; k += 16) most = max_i32(most, magnitude_bits(load(x + k)));
  const i32x16 largest = broadcast_i32(hmax_i32(most));
  for (std::int64_t k = first;; k += 16) {
    // Differences are not positive, and 0 as floats only if they are 0.
    const std::uint32_t found = mask_bits(equal(to_f32(magnitude_bits(load(x + k)) - largest), zero()));
    if (found == 0) continue;
    const std::int64_t at = k + __builtin_ctz(found);
    return {x[at], std::uint32_t(at)};
  }
}

// x [n], in a copy if value `at` of it, which counts as 0, is in it.
template <int n>
class WithoutPeak {
 public:
  __attribute__((always_inline)) WithoutPeak(const float* x, std::int64_t at) : x_(x) {
    if (at < 0 || at >= n) return;
    for (int i = 0; i < n; i += 16) store(copy_ + i, load(x + i));
    copy_[at] = 0;
    x_ = copy_;
  }
  WithoutPeak(const WithoutPeak&) = delete;
  __attribute__((always_inline)) operator const float*() const { return x_; }

 private:
  const float* x_;
  alignas(64) float copy_[n];
};

// Finds the peaks of sections [first, last), and calls quantise(b, x [n]) for each block of n values in them.
template <int n, class Quantise>
VITRINE_FORCE_INLINE void go_through_sections(const XRow& row, std::int64_t first, std::int64_t last,
                                              Quantise quantise) {
  for (std::int64_t section = first; section < last; ++section) {
    const std::int64_t begin = section_begin(row.n_cols, section), end = section_begin(row.n_cols, section + 1);
    const XPeak peak = row.peaks[section] = peak_of_section(row.x, begin, end);
    for (std::int64_t k = begin; k < end; k += n) quantise(k / n, WithoutPeak<n>(row.x + k, std::int64_t(peak.k) - k));
  }
}

inline void quantise_32(const XRow& row, XBlock32* out, std::int64_t first, std::int64_t last) {
  go_through_sections<32>(
      row, first, last, [&](std::int64_t b, const float* x) __attribute__((always_inline)) {
        PairSums sums;
        out[b].scale = quantise_block_32(x, out[b].q, sums);
        out[b].scaled_sum = out[b].scale * float(sums.total());
        out[b].minus_sum = std::int32_t(0u - std::uint32_t(sums.total()));
        for (int i = 0; i < 2; ++i) out[b].minus_pair_sums[i] = std::int16_t(0u - std::uint32_t(sums.of[i]));
      });
}

inline void quantise_256(const XRow& row, XBlock256* out, std::int64_t first, std::int64_t last) {
  go_through_sections<256>(
      row, first, last, [&](std::int64_t b, const float* x) __attribute__((always_inline)) {
        out[b].scale = quantise_block_256(
            x, [&](int i) __attribute__((always_inline)) { return out[b].q + 16 * i; }, out[b].pair_sums);
      });
}

inline void quantise_tile_32(const XRow& row, XTile32* out, int token, std::int64_t first, std::int64_t last) {
  go_through_sections<32>(
      row, first, last, [&](std::int64_t b, const float* x) __attribute__((always_inline)) {
        PairSums sums;
        out[b].scale[token] = quantise_block_32(x, out[b].q[token], sums);
        out[b].scaled_sum[token] = out[b].scale[token] * float(sums.total());
      });
}

inline void quantise_tile_256(const XRow& row, XTile256* out, int token, std::int64_t first, std::int64_t last) {
  go_through_sections<256>(
      row, first, last, [&](std::int64_t b, const float* x) __attribute__((always_inline)) {
        out[b].scale[token] = quantise_block_256(
            x, [&](int i) __attribute__((always_inline)) { return out[b].q[i / 4][token] + 16 * (i % 4); },
            out[b].pair_sums[token]);
      });
}

}  // namespace quantise_detail

VITRINE_ISA_NAMESPACE_END
