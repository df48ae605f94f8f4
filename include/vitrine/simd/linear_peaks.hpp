// The peaks of a quantised linear layer's input, which are multiplied as they are: after a token's last block,
//
//   acc = fma(w, x, acc)      for each XPeak {x, k} of the token, k ascending; w [16 rows] is column k in F32
//
// A few inputs are many times as large as the rest. Within a block they would make the steps of its scale too wide for
// all others, which is where most of the error of 8-bit activations comes from; so the largest of every peak_run is kept
// out of the blocks. (Outliers on their own, in 16 bits and by whole columns: LLM.int8(), Dettmers et al. 2022,
// arXiv 2208.07339.) Columns are read from the packed panel, which is in the first-level cache by then.
#pragma once

#include "vitrine/simd/linear_formats.hpp"
#include "vitrine/simd/linear_kernels.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

namespace linear_detail {

template <class Format>
VITRINE_FORCE_INLINE f32x16 column(PanelStart panel, std::uint32_t k) {
  constexpr std::uint32_t block_len = Format::block_len;
  return Format::column(Format::at(panel, k / block_len), int(k % block_len));
}

VITRINE_FORCE_INLINE const XPeak* peaks_of(const LinearJob& job, std::int64_t token) {
  return job.peaks + token * n_peak_runs(job.n_cols);
}

// acc with the peaks of one token. Out of line, as is the other: the kernels that end with it are long already.
template <class Format>
__attribute__((noinline)) f32x16 with_peaks(const LinearJob& job, PanelStart panel, std::int64_t token, f32x16 acc) {
  const XPeak* const peaks = peaks_of(job, token);
  for (std::int64_t i = 0; i < n_peak_runs(job.n_cols); ++i)
    acc = fma(column<Format>(panel, peaks[i].k), broadcast(peaks[i].x), acc);
  return acc;
}

// The same for many tokens, which mostly have their peaks where the token before had them: the last columns of a panel,
// as floats.
template <class Format>
class PeakColumns {
 public:
  void start(const LinearJob& job, PanelStart panel) {
    panel_ = panel;
    const std::int64_t n_runs = n_peak_runs(job.n_cols);
    for (std::int64_t i = 0; i < n_runs && i < n_kept; ++i) k_[i] = none;
  }
  __attribute__((noinline)) f32x16 add(const LinearJob& job, std::int64_t token, f32x16 acc) {
    const XPeak* const peaks = peaks_of(job, token);
    for (std::int64_t i = 0; i < n_peak_runs(job.n_cols); ++i) {
      float* const w = columns_[i % n_kept];
      if (k_[i % n_kept] != peaks[i].k) {
        store(w, column<Format>(panel_, peaks[i].k));
        k_[i % n_kept] = peaks[i].k;
      }
      acc = fma(load(w), broadcast(peaks[i].x), acc);
    }
    return acc;
  }

 private:
  static constexpr std::int64_t n_kept = 64;  // runs
  static constexpr std::uint32_t none = 0xffffffff;
  PanelStart panel_;
  std::uint32_t k_[n_kept];
  alignas(64) float columns_[n_kept][16];
};

}  // namespace linear_detail

VITRINE_ISA_NAMESPACE_END
