// Kernel entries: linear layers, y[t][r] = sum over k of W[r][k] * x[t][k], and the quantisation of their input.
//
// Arithmetic of the quantised types, the same from every table: per block the exact 32-bit integer dot i of weights and
// activations (offsets and integer scales included), then acc = fma(float(i), d * xd, acc) and, for types with a
// minimum, acc = fma(m, xd * float(sum_x), acc); blocks in ascending k, one accumulator per row. Last, for the peaks of
// the input, which are zeros in its blocks, acc = fma(w, x, acc) in ascending k, with the weight as the plain decoder
// gives it (core/block_decode.hpp). Float types: acc = fma(w, x, acc) in ascending k.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

// The peaks of an input: its columns are cut into sections, and the largest magnitude of each, the first of equals, NaN
// above all, is left as it is (simd/linear_results.hpp). One section for each 256 columns, but four at most, as equal
// as they can be in whole 256s; the last one takes the rest, too.
struct XPeak {
  float x;
  std::uint32_t k;
};
VITRINE_FORCE_INLINE constexpr std::int64_t n_peaks(std::int64_t n_cols) {
  return n_cols < 512 ? 1 : n_cols < 1024 ? n_cols / 256 : 4;
}
// Where section number i begins, or ends if it is the one before.
VITRINE_FORCE_INLINE constexpr std::int64_t section_begin(std::int64_t n_cols, std::int64_t i) {
  return i == n_peaks(n_cols) ? n_cols : n_cols / 256 * i / n_peaks(n_cols) * 256;
}

// Activations quantised to 8 bits, x about q * scale with q in [-127, 127]: in blocks of 32, or of 256 for the K types.
struct XBlock32 {
  float scale;             // xd = amax / 127
  float scaled_sum;        // xd * float(sum of q)
  std::int32_t minus_sum;  // -(sum of q)
  std::int8_t q[32];
  // The two parts of it: over k with k % 4 below 2, and over the others, as the multiply-add instructions pair them.
  std::int16_t minus_pair_sums[2];
};
struct XBlock256 {
  float scale;
  // Sums of q over the 8 runs of 32, then minus the sums over the 16 runs of 16. Within every four, the order is
  // 0, 2, 1, 3: the even and the odd ones form pairs for the multiply-add instructions.
  std::int16_t pair_sums[24];
  std::int8_t q[256];
};

// One token's input, to be quantised: x [n_cols], and where its peaks [n_peaks(n_cols)] go.
struct XRow {
  const float* x;
  std::int64_t n_cols;
  XPeak* peaks;
};

inline constexpr std::int64_t matrix_tokens = 16;        // as many as the matrix form takes at a time
inline constexpr std::int64_t least_matrix_tokens = 28;  // with fewer, the other forms are faster

// Blocks of matrix_tokens tokens side by side, as the matrix form reads them. The sums are those of XBlock32 and
// XBlock256.
struct alignas(64) XTile32 {
  float scale[matrix_tokens], scaled_sum[matrix_tokens];
  std::int8_t q[matrix_tokens][32];
};
struct alignas(64) XTile256 {
  float scale[matrix_tokens];
  std::int8_t q[4][matrix_tokens][64];
  std::int16_t pair_sums[matrix_tokens][24];
};

// One linear layer over a range of panels. Weights in layout R16 (simd/r16.hpp).
struct LinearJob {
  const std::byte* weights = nullptr;  // [n_panels][panel_bytes]
  std::size_t panel_bytes = 0;
  const std::byte* low = nullptr;  // [n_panels][low_bytes], the low planes of a matrix in planes; else none
  std::size_t low_bytes = 0;
  // Weights from here on are not for this thread: kernels for one token or a few fetch up to it.
  const std::byte* fetch_end = nullptr;
  const std::byte* fetch_end_of_low = nullptr;
  std::int64_t n_rows = 0, n_cols = 0, n_tokens = 0;
  const float* x = nullptr;  // [n_tokens][x_stride], float types
  std::int64_t x_stride = 0;
  const XPeak* peaks = nullptr;      // [n_tokens][n_peaks(n_cols)], quantised types
  const XBlock32* x_32 = nullptr;    // [n_tokens][n_cols / 32], types with blocks of 32
  const XBlock256* x_256 = nullptr;  // [n_tokens][n_cols / 256], the K types
  // Instead of these for the matrix form: [ceil(n_tokens / matrix_tokens)][n_cols / 32] and [..][n_cols / 256]. What a
  // last tile that is not full holds for the missing tokens does not matter.
  const XTile32* tiles_32 = nullptr;
  const XTile256* tiles_256 = nullptr;
  float* y = nullptr;  // [n_tokens][y_stride]; columns 0 .. n_rows - 1 are written
  std::int64_t y_stride = 0;
  const float* bias = nullptr;  // [n_rows] or none
  bool add = false;             // y + result instead of result
  // [n_tokens][block_max_stride] or none: the largest of each SamplingKernels::block results, NaN if one of them is not
  // finite. Ranges of panels then begin with such a block, and end with one or with the matrix.
  float* block_max = nullptr;
  std::int64_t block_max_stride = 0;
};

using LinearKernel = void (*)(const LinearJob& job, std::int64_t first_panel, std::int64_t last_panel);

// Panels that one token goes through side by side: two streams of memory come faster than one, and the input, which a
// panel of weights drives out of the first-level cache, is read half as often.
inline constexpr int one_token_panels = 2;
inline constexpr std::int64_t most_few_tokens = 32;  // with more, unpacking a panel pays

// The forms of one weight type: for a single token straight from the packed panels; for a few tokens likewise, where
// the CPU has the registers; for any number of tokens (each panel is unpacked once and kept in cache); for
// least_matrix_tokens or more, where the CPU multiplies whole tiles. All give the same bits for the same token.
struct LinearForms {
  LinearKernel one_token = nullptr, many_tokens = nullptr;
  LinearKernel few_tokens = nullptr, matrix = nullptr;  // or none

  LinearKernel best(std::int64_t n_tokens) const {
    if (n_tokens == 1) return one_token;
    if (matrix && n_tokens >= least_matrix_tokens) return matrix;
    return few_tokens && n_tokens <= most_few_tokens ? few_tokens : many_tokens;
  }
};

struct LinearKernels {
  LinearForms f32, f16, bf16, q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k, q6_k;
  LinearForms q8_0_planes;  // of the same values as q8_0

  // Of a matrix in planes, one token, reading the high planes only: y[panel] is no less than what any row of the panel
  // gives in the full product, or infinity where the scales do not allow to tell. x_32 is made by bound_input(); peaks
  // are those of the product.
  LinearKernel upper_bounds;

  // Whether the quantised types take an input of n_tokens as tiles: where they have a matrix form, all of them do.
  bool takes_tiles(std::int64_t n_tokens) const { return quantise_tile_32 && n_tokens >= least_matrix_tokens; }

  // Quantises sections [first, last) of the n_peaks(n_cols) of `row` into its peaks and into the blocks that they are
  // made of. A block whose largest magnitude has no finite inverse scale (all zeros, or below 3.8e-37) becomes zeros; a
  // peak that is a NaN or infinity, and one in a block's scale, leave no result of the token finite.
  void (*quantise_32)(const XRow& row, XBlock32* out, std::int64_t first, std::int64_t last);
  void (*quantise_256)(const XRow& row, XBlock256* out, std::int64_t first, std::int64_t last);
  // The same, as token number `token` of tiles; none without a matrix form.
  void (*quantise_tile_32)(const XRow& row, XTile32* out, int token, std::int64_t first, std::int64_t last) = nullptr;
  void (*quantise_tile_256)(const XRow& row, XTile256* out, int token, std::int64_t first, std::int64_t last) = nullptr;
};

VITRINE_NAMESPACE_END
