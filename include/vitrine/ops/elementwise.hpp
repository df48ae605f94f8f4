// The small ops between the matrix products: norm, rotation, residual, activation, arg-max.
//
// Every thread of the team makes the same call and gets a share of the rows (of the columns too when there are few
// rows); but for the ops named _row, which say what they do. No barrier at the end: the caller syncs before anyone
// reads the result. Same bits for any number of threads and any instruction set: rows are independent, and the one sum
// (of rms_norm) runs in sixteen lanes in a fixed order.
// Shapes that do not fit each other are Error::bad_argument, thrown by every thread before anything is written.
// ops/reference.hpp has the same ops as a textbook writes them.
#pragma once

#include <cstdint>
#include <span>

#include "vitrine/core/parallel.hpp"
#include "vitrine/core/tensor.hpp"
#include "vitrine/simd/kernel_table.hpp"

VITRINE_NAMESPACE_BEGIN

// y = x * (1 / sqrt(mean(x^2) + eps)) * weight for every row; x, y [n_rows, width], y may be x; weight [width] or null.
void rms_norm(Worker& worker, const KernelTable& kernels, TensorView<const float, 2> x, const float* weight, float eps,
              TensorView<float, 2> y);

// The cosines and sines of angle float(position) * inverse_frequency, computed in float as the models were trained;
// inverse_frequencies [head_dim / 2], positions [n_tokens], cos, sin [n_tokens, head_dim / 2].
void rope_cos_sin(Worker& worker, std::span<const float> inverse_frequencies, std::span<const std::int64_t> positions,
                  TensorView<float, 2> cos, TensorView<float, 2> sin);

// STEP 4/9 rope: turns pair (i, i + head_dim / 2) of every head by its angle: (a cos - b sin, b cos + a sin).
// x [n_tokens, n_head * head_dim] in place; cos, sin [n_tokens, head_dim / 2].
void rope(Worker& worker, const KernelTable& kernels, TensorView<float, 2> x, std::int64_t n_head,
          std::int64_t head_dim, TensorView<const float, 2> cos, TensorView<const float, 2> sin);

// x += y, both [n_rows, width].
void add(Worker& worker, const KernelTable& kernels, TensorView<float, 2> x, TensorView<const float, 2> y);

// x *= factor, [n_rows, width].
void scale(Worker& worker, const KernelTable& kernels, TensorView<float, 2> x, float factor);

// Of one row, done by the thread that calls; sizes are the caller's care. For LinearInput::prepare, which quantises a
// row where it was made.
//   rms_norm_row            as rms_norm; `worker` is whose work it is (nothing but the deliberate fault asks)
//   gated_activation_row    out = act(gate) * up, act = gelu (tanh form) or silu; out may be gate or up
void rms_norm_row(const Worker& worker, const KernelTable& kernels, std::span<const float> x, const float* weight,
                  float eps, std::span<float> y);
void gated_activation_row(const KernelTable& kernels, bool gelu, std::span<const float> gate, std::span<const float> up,
                          std::span<float> out);

// Where the greatest value is. Ties go to the lowest id; NaN never wins; id is -1 if nothing exceeds -infinity.
struct Peak {
  std::int64_t id = -1;
  float value = 0;
  bool all_finite = true;  // no infinity and no NaN among the values: false is a numeric failure of whoever made them
};
Peak find_peak(const KernelTable& kernels, std::span<const float> values);

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/ops/elementwise.inl.hpp"
#endif
