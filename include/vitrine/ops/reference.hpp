// The ops as a textbook writes them: whole matrices, double sums, no cache, no tricks. Two uses: the oracle that the
// fast kernels are tested against, and the page to read first.
//
//   linear      y = x W^T + b
//   rms_norm    y_i = x_i / sqrt(mean(x^2) + eps) * w_i                                   arXiv:1910.07467
//   rope        pair (a, b) of a head at position p, angle p * f: (a cos - b sin, b cos + a sin)   arXiv:2104.09864
//   attention   softmax(q k^T * scale + mask) v, one K/V head for a group of query heads  arXiv:1706.03762, 2305.13245
//   silu        x / (1 + e^-x)                                                            arXiv:1702.03118
//   gelu        x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))                             arXiv:1606.08415
//
// This is the only place that uses Eigen. Nothing here is fast, nothing promises bits, and no shape is checked: views
// that do not fit each other are the caller's mistake, as in a textbook.
#pragma once

#include <cstdint>
#include <span>

#include "vitrine/core/dtype.hpp"
#include "vitrine/core/tensor.hpp"
#include "vitrine/ops/attention_shape.hpp"

VITRINE_NAMESPACE_BEGIN

namespace reference {

// y [n_tokens, n_rows] = x [n_tokens, n_cols] times the transpose of w [n_rows, n_cols]; bias [n_rows] or empty.
void linear(TensorView<const float, 2> w, TensorView<const float, 2> x, std::span<const float> bias,
            TensorView<float, 2> y);

// Rows of x [n_rows, width] by their root mean square; weight [width] or empty.
void rms_norm(TensorView<const float, 2> x, std::span<const float> weight, double eps, TensorView<float, 2> y);

// Where the two members of pair i sit in a head: i and i + head_dim / 2 in all our memory (and Hugging Face's), 2 i and
// 2 i + 1 in the original RoPE and in GGUF's llama files, whose rows the loader permutes.
enum class RopePairs { half_split, interleaved };

// Rotates every head of x [n_tokens, n_head * head_dim] in place; inverse_frequencies [head_dim / 2], positions
// [n_tokens]. The angle is rounded to float, because the models were trained that way.
void rope(TensorView<float, 2> x, std::int64_t head_dim, std::span<const float> inverse_frequencies,
          std::span<const std::int64_t> positions, RopePairs pairs = RopePairs::half_split);

// p_i = e^(x_i - max x) / sum; an entry of -infinity gives 0, a row of nothing else gives zeros.
void softmax(std::span<double> row);

// q [n_tokens, n_head * head_dim] at positions pos0, pos0 + 1, ...; k, v [n_keys, n_kv_head * head_dim] at positions 0,
// 1, ...; out as q. Query t sees keys (pos0 + t - window, pos0 + t]; a query that sees none gets zeros. With sinks it
// sees keys [0, sinks) as well, and scores them with q_sink instead of q.
void attention(const AttentionShape& shape, TensorView<const float, 2> q, TensorView<const float, 2> k,
               TensorView<const float, 2> v, std::int64_t pos0, TensorView<float, 2> out,
               TensorView<const float, 2> q_sink = {});

// What a cache of this type gives back for one head of K or V, x [head_dim]: the nearest value that it can hold. INT8
// and INT4 are whole numbers q times a scale s, which is rounded away from zero to BF16; q = x / s to the nearest.
//   INT8   one scale for the head: s = amax / 127
//   INT4   one for every 32 values: s = -peak / 8 (peak: the value of largest magnitude), q in [-8, 7]
void stored(DType type, std::span<const float> x, std::span<float> out);

// The query that attention multiplies keys of this type with, x [head_dim]: as it is, or for INT8 and INT4 rounded to
// whole numbers times amax / 127.
void query(DType k_type, std::span<const float> x, std::span<float> out);

double silu(double x);
double gelu(double x);  // the tanh form, which Gemma uses

}  // namespace reference

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/ops/reference.inl.hpp"
#endif
