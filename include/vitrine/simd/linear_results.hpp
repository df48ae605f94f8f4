// The end of a linear layer's sums, for one token and sixteen rows: peaks, bias, residual, maxima of blocks.
//
//   acc = fma(w, x, acc)      for each XPeak {x, k} of the token's input, k ascending; w [16 rows] is column k in F32
//   y = acc (+ bias) (+ y)
//
// A few inputs are many times as large as the rest. Within a block they would make the steps of its scale too wide for
// all others, which is where most of the error of 8-bit activations comes from; so up to four are kept out of the
// blocks. (Outliers on their own, in 16 bits and by whole columns: LLM.int8(), Dettmers et al. 2022,
// arXiv 2208.07339.) Columns are read from the packed panel, which has just been gone through.
#pragma once

#include "vitrine/simd/linear_formats.hpp"
#include "vitrine/simd/linear_kernels.hpp"
#include "vitrine/simd/sampling_kernels.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

namespace linear_detail {

// The lowest finite value: what stands for rows that are not there where the largest is wanted.
VITRINE_FORCE_INLINE f32x16 lowest() { return from_bits(broadcast_i32(std::int32_t(0xff7fffff))); }

// The largest of a block's results for one token, which have just been written and are in the first-level cache. Out of
// line: only the head wants it, and finish() stands in every kernel.
__attribute__((noinline)) inline void note_largest(const LinearJob& job, std::int64_t block, std::int64_t token) {
  const std::int64_t row = block * SamplingKernels::block, rest = job.n_rows - row;
  const std::int64_t n = rest < SamplingKernels::block ? rest : SamplingKernels::block;
  const float* y = job.y + token * job.y_stride + row;
  f32x16 largest = lowest(),
         finite = zero();  // a - a is 0, or NaN if a is infinite or NaN, and NaN is never lost in a sum
  for (std::int64_t i = 0; i < n; i += 16) {
    const int here = int(n - i);
    const f32x16 a = here >= 16 ? load(y + i) : select(first_lanes(here), load_part(y + i, here), lowest());
    largest = max(a, largest);
    finite = finite + (a - a);
  }
  const bool all_finite = mask_bits(equal(finite, zero())) == 0xffff;
  job.block_max[token * job.block_max_stride + block] = all_finite ? hmax(largest) : __builtin_nanf("");
}

// Where the results of one panel go: rows 16 panel .. 16 panel + 15 of every token.
class PanelResults {
 public:
  __attribute__((always_inline)) PanelResults(const LinearJob& job, std::int64_t panel)
      : y_(job.y + panel * panel_rows),
        stride_(job.y_stride),
        n_rows_(job.n_rows - panel * panel_rows < panel_rows ? int(job.n_rows - panel * panel_rows) : panel_rows),
        add_(job.add),
        bias_(broadcast(-0.0f)) {  // which changes nothing
    if (job.bias) bias_ = load_rows(job.bias + panel * panel_rows);
  }
  // One token's: bias, then the sum with what y holds.
  __attribute__((always_inline)) void write(std::int64_t token, f32x16 value) const {
    float* const y = y_ + token * stride_;
    value = value + bias_;
    if (add_) value = load_rows(y) + value;
    if (n_rows_ == panel_rows)
      store(y, value);
    else
      store_part(y, value, n_rows_);
  }

 private:
  __attribute__((always_inline)) f32x16 load_rows(const float* p) const {
    return n_rows_ == panel_rows ? load(p) : load_part(p, n_rows_);
  }

  float* y_;
  std::int64_t stride_;
  int n_rows_;
  bool add_;
  f32x16 bias_;
};

// Notes the maxima of n tokens' blocks if the panel is the last of a block. The panels of a token come in order.
VITRINE_FORCE_INLINE void note_maxima(const LinearJob& job, std::int64_t panel, std::int64_t token, std::int64_t n) {
  constexpr std::int64_t panels = SamplingKernels::block / panel_rows;
  const bool ends_block = (panel + 1) % panels == 0 || (panel + 1) * panel_rows >= job.n_rows;
  if (job.block_max && ends_block)
    for (std::int64_t t = 0; t < n; ++t) note_largest(job, panel / panels, token + t);
}

VITRINE_FORCE_INLINE void finish(const LinearJob& job, std::int64_t panel, std::int64_t token, f32x16 value) {
  PanelResults(job, panel).write(token, value);
  note_maxima(job, panel, token, 1);
}

template <class Format>
VITRINE_FORCE_INLINE f32x16 column(PanelStart panel, std::uint32_t k) {
  constexpr std::uint32_t block_len = Format::block_len;
  return Format::column(Format::at(panel, k / block_len), int(k % block_len));
}

VITRINE_FORCE_INLINE const XPeak* peaks_of(const LinearJob& job, std::int64_t token) {
  return job.peaks + token * n_peaks(job.n_cols);
}

// acc with n peaks, of whose columns column_of(k) gives the sixteen weights.
template <class ColumnOf>
VITRINE_FORCE_INLINE f32x16 add_peaks(const XPeak* peaks, std::int64_t n, f32x16 acc, ColumnOf column_of) {
  for (std::int64_t i = 0; i < n; ++i) acc = fma(column_of(peaks[i].k), broadcast(peaks[i].x), acc);
  return acc;
}

// acc with the peaks of one token. Out of line, since the kernels that end with it are long already.
template <class Format>
__attribute__((noinline)) f32x16 with_peaks(const LinearJob& job, PanelStart panel, std::int64_t token, f32x16 acc) {
  return add_peaks(
      peaks_of(job, token), n_peaks(job.n_cols),
      acc, [&](std::uint32_t k) __attribute__((always_inline)) { return column<Format>(panel, k); });
}

// The same for many tokens, which have their peaks in the same few columns again and again: those met last in a panel,
// as floats.
template <class Format>
class PeakColumns {
 public:
  void start(PanelStart panel) {
    panel_ = panel;
    for (auto& k : k_) k = none;
  }
  // Adds their peaks to the sums [n][stride] of n tokens from `token` on, and writes the results.
  __attribute__((noinline)) void finish(const LinearJob& job, std::int64_t panel, std::int64_t token, std::int64_t n,
                                        const float* sums, std::int64_t stride) {
    switch (n_peaks(job.n_cols)) {
      case 1: write<1>(job, panel, token, n, sums, stride); break;
      case 2: write<2>(job, panel, token, n, sums, stride); break;
      case 3: write<3>(job, panel, token, n, sums, stride); break;
      default: write<4>(job, panel, token, n, sums, stride);
    }
    note_maxima(job, panel, token, n);
  }

 private:
  template <int n_of_peaks>
  __attribute__((always_inline)) void write(const LinearJob& job, std::int64_t panel, std::int64_t token,
                                            std::int64_t n, const float* sums, std::int64_t stride) {
    const PanelResults results(job, panel);
    const XPeak* peaks = peaks_of(job, token);
    for (std::int64_t t = 0; t < n; ++t, peaks += n_of_peaks)
      results.write(token + t, add_peaks(
                                   peaks, n_of_peaks,
                                   load(sums + stride * t), [&](std::uint32_t k) __attribute__((always_inline)) {
                                     return kept(k);
                                   }));
  }

  __attribute__((always_inline)) f32x16 kept(std::uint32_t k) {
    const std::uint32_t at = k % n_kept;
    if (k_[at] != k) {
      k_[at] = k;
      store(columns_[at], column<Format>(panel_, k));
    }
    return load(columns_[at]);
  }

  static constexpr std::uint32_t n_kept = 64, none = 0xffffffff;
  PanelStart panel_;
  std::uint32_t k_[n_kept];
  alignas(64) float columns_[n_kept][16];
};

}  // namespace linear_detail

VITRINE_ISA_NAMESPACE_END
