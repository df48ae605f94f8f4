// STEP 5/9 attention: each query looks at the keys it may see and takes a weighted mean of their values.
//
//   s_i = scale * (q . k_i)      m = max s_i      out = sum_i e^(s_i - m) v_i / sum_i e^(s_i - m)      arXiv:1706.03762
//
// The sums run in spans of 256 keys by absolute position, and spans are folded left to right (online softmax,
// arXiv:1805.02867, 2205.14135). For one query row and span j:
//   s_i  one chain of fused multiply-adds over d ascending, then times scale;     m_j  the exact maximum
//   p_i = exp(s_i - m_j);   l_j  their sum in 16 lanes (position mod 16), then lanes +8, +4, +2, +1
//   o_j  fused multiply-adds over keys ascending
//   fold  M' = max(M, m_j), a = exp(M - M'), b = exp(m_j - M'), l = fma(l, a, l_j b), o = fma(o, a, o_j b); the first
//         span with a visible key is copied, spans without one are skipped
// A masked key enters no maximum, no sum and no mix. (Keys are scored sixteen at a time, so its score is computed where
// a neighbour is visible, and thrown away; its value is never multiplied.) The span is the only numeric unit: prefill
// in any chunks, decode, any number of threads and any instruction set give the same bits. Keys and values are read as
// the cache stores them: of INT8 and INT4 the integers q = x / s (simd/kv_format.hpp).
//   query   becomes integers as well, sq = amax / 127 for each row
//   scores  s_i = (one chain over the groups g ascending of float(dot_g) * sk_g, from 0) * (sq * scale); dot_g is exact
//   mix     fused multiply-adds of float(v) and p_i * sv
//
// Attention sinks, for a shape that has them: keys [0, sinks) are a span of their own, the first, and meet a second
// query, rotated for sink_position(position); the other spans leave these keys out.
//
// What runs: with enough rows, one task per K/V head and tile of attention_max_rows query rows or fewer (a token's
// heads of one group are rows of the same tile, so each K/V tile is read once for all of them). With few rows (decode),
// one task per K/V head and span, then a barrier, then the fold.
#pragma once

#include <cstdint>

#include "vitrine/core/parallel.hpp"
#include "vitrine/core/tensor.hpp"
#include "vitrine/ops/attention_shape.hpp"
#include "vitrine/ops/kv_view.hpp"
#include "vitrine/simd/kernel_table.hpp"

VITRINE_NAMESPACE_BEGIN

// Memory for attention(), reserved once. One object serves one team; it may not be used by two teams at a time.
class AttentionScratch {
 public:
  // Enough for any call with this shape, n_tokens <= max_tokens, positions < max_context, a team of n_threads. Call it
  // once per shape that occurs: what is reserved only grows. Throws Error::out_of_memory.
  void reserve(const AttentionShape& shape, std::int64_t max_tokens, std::int64_t max_context, int n_threads);

  // Internal: scratch of one thread, room for results of single spans (two buffers, used in turn).
  float* thread(int id) { return reinterpret_cast<float*>(threads_.data()) + id * thread_floats_; }
  float* partials(std::uint32_t turn) {
    return reinterpret_cast<float*>(partials_.data()) + turn % 2 * partial_floats_;
  }
  std::int64_t thread_floats() const { return thread_floats_; }
  std::int64_t partial_floats() const { return partial_floats_; }
  int n_threads() const { return n_threads_; }

 private:
  AlignedBytes threads_, partials_;
  std::int64_t thread_floats_ = 0, partial_floats_ = 0;
  int n_threads_ = 0;
};

// Rounds k, v [n_tokens, n_kv_head * head_dim] to the cache's type (to nearest even) and stores them at positions pos0,
// pos0 + 1, ... No barrier at the end; sync before attention reads them. Throws Error::bad_argument, on every thread,
// unless k and v fit the cache and each other; that the table's blocks reach pos0 + n_tokens is the caller's part.
void store_kv(Worker& worker, const KernelTable& kernels, const KvView& cache, std::int64_t pos0,
              TensorView<const float, 2> k, TensorView<const float, 2> v);

// q, out [n_tokens, n_head * head_dim]; query t is at position pos0 + t and sees keys (pos0 + t - window, pos0 + t], or
// all up to its own if window is 0. A query that sees no key (pos0 + t < 0) gets zeros. Blocks that hold no visible key
// may be missing. With sinks it sees keys [0, sinks) as well, by means of q_sink, which has the shape of q.
//
// Every thread of the team makes the same call. What the caller syncs: before it, so that q and the cache are written;
// after it, before out is read. Several calls in a row (one per sequence of a batch) need nothing between them and may
// share the scratch. It may sync inside. Throws Error::bad_argument, on every thread, when shape, q, out, cache and
// scratch do not fit each other.
void attention(Worker& worker, const KernelTable& kernels, const AttentionShape& shape, TensorView<const float, 2> q,
               const KvView& cache, std::int64_t pos0, TensorView<float, 2> out, AttentionScratch& scratch,
               TensorView<const float, 2> q_sink = {});

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/ops/attention.inl.hpp"
#endif
