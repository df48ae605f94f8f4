// Linear layers: y = W x (+ bias) (+ y), for one token or many, with the same bits either way.
//
//   LinearInput input;  input.reserve(max_tokens, max_cols);                       // once
//   input.prepare(worker, table, x, {&wq, &wk, &wv});  worker.sync();              // x [n_tokens, n_cols]
//   linear(worker, table, wq, input, q);  linear(worker, table, wk, input, k);     // y [n_tokens, n_rows]
//
// Quantised weights read the input quantised to 8 bits, in blocks of 32 or 256 values by weight type, and its peaks as
// they are; float weights read the floats. The arithmetic is stated in simd/linear_kernels.hpp. All functions here are
// called by every thread of a team and share the work out; none of them ends with a barrier.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/core/parallel.hpp"
#include "vitrine/core/tensor.hpp"
#include "vitrine/ops/packed_matrix.hpp"
#include "vitrine/simd/kernel_table.hpp"

VITRINE_NAMESPACE_BEGIN

// The input of one or more linear layers, in every form that they read.
class LinearInput {
 public:
  // Room for inputs of up to max_tokens x max_cols. Not inside a parallel region.
  void reserve(std::int64_t max_tokens, std::int64_t max_cols);

  // Takes x [n_tokens, n_cols] as the input; every reader must have n_cols columns. Quantises it once for each block
  // length that the readers need and keeps a pointer to x for float weights. The caller puts a barrier before the first
  // use, and before the next prepare. Throws Error::bad_argument when shapes do not fit each other or the room
  // reserved.
  void prepare(Worker& worker, const KernelTable& table, TensorView<const float, 2> x,
               std::initializer_list<const PackedMatrix*> readers);

  // The same, where make_row(t) writes x[t] first: whoever made a row quantises it, so nobody waits in between. (With
  // fewer tokens than threads some have nothing to do; it takes them longer to meet than one of them to make a row.)
  template <class MakeRow>
  void prepare(Worker& worker, const KernelTable& table, TensorView<const float, 2> x,
               std::initializer_list<const PackedMatrix*> readers, MakeRow&& make_row) {
    const Encodings encodings = accept(worker, table, x, readers);
    worker.for_rows(x.size(0), [&](std::int64_t t) {
      make_row(t);
      quantise(table, encodings, x, t, 0, 1);
    });
  }

  std::int64_t n_tokens() const { return x_.size(0); }
  std::int64_t n_cols() const { return x_.size(1); }
  TensorView<const float, 2> x() const { return x_; }
  // Gives a job its input in every form that the last prepare made.
  void give_to(LinearJob& job) const;

 private:
  struct Encodings {
    bool of_32, of_256, as_tiles;
  };
  // Checks x and its readers and keeps what there is to be prepared.
  Encodings accept(const Worker& worker, const KernelTable& table, TensorView<const float, 2> x,
                   std::initializer_list<const PackedMatrix*> readers);
  // One of n_pieces of x[token] into every encoding, and its peaks.
  void quantise(const KernelTable& table, Encodings encodings, TensorView<const float, 2> x, std::int64_t token,
                std::int64_t piece, std::int64_t n_pieces);

  std::int64_t max_tokens_ = 0, max_cols_ = 0;
  AlignedBytes room_32_, room_256_;
  std::vector<XPeak> peaks_;  // [n_tokens][n_peaks(n_cols)]
  // Written by thread 0 in prepare, read by all after the caller's barrier.
  TensorView<const float, 2> x_;
  Encodings encodings_ = {};
};

struct LinearOptions {
  const float* bias = nullptr;  // [n_rows], added to each token's result
  bool add = false;             // y = y + result, as a residual wants it
  // [n_tokens, ceil(n_rows / 64)] or none: the largest of each 64 results of a token, NaN if one is not finite.
  TensorView<float, 2> block_max{};
};

// y[t, r] = sum over k of W[r, k] * x[t, k], then + bias[r], then y + that if options.add. y is [n_tokens, n_rows] with
// any row stride. Throws Error::bad_argument when the shapes do not fit, or the input was not prepared for this matrix.
void linear(Worker& worker, const KernelTable& table, const PackedMatrix& w, const LinearInput& x,
            TensorView<float, 2> y, LinearOptions options = {});

// Asks memory for about the beginning of this thread's share of a matrix that n_tokens will be multiplied with next, so
// that memory is not idle while their input is made; nothing for more than a few tokens. Changes nothing else.
void fetch_first(const Worker& worker, const PackedMatrix& w, std::int64_t n_tokens);

// The kernels of one weight type, for benchmarks and tests that call them directly; of a matrix in its layout.
const LinearForms& linear_forms(const LinearKernels& kernels, DType type);
const LinearForms& linear_forms(const LinearKernels& kernels, const PackedMatrix& w);

// What they are told about a matrix; input and output are still to be filled in.
LinearJob linear_job(const PackedMatrix& w);

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/ops/linear.inl.hpp"
#endif
