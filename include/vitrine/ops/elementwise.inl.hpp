#pragma once

#include <cmath>

#include "vitrine/core/exact_math.hpp"
#include "vitrine/core/rounding.hpp"
#include "vitrine/core/trace.hpp"
#include "vitrine/ops/elementwise.hpp"

VITRINE_NAMESPACE_BEGIN

namespace elementwise_detail {

// body(row, begin, end): whole rows when there are enough of them, else pieces of rows in multiples of sixteen, so that
// one token keeps all threads busy. A row of fewer than `least` values is not worth the splitting.
template <class Body>
void for_pieces(Worker& worker, std::int64_t n_rows, std::int64_t width, std::int64_t least, Body&& body) {
  constexpr std::int64_t grain = 16;
  const std::int64_t n_threads = worker.n_threads();
  const std::int64_t n_pieces = n_rows >= 2 * n_threads || width < least ? 1 : n_threads;
  const std::int64_t piece = (width / grain + n_pieces) / n_pieces * grain;
  const std::int64_t chunk = n_pieces > 1 ? 1 : divide_up(n_rows, 4 * n_threads);
  worker.for_chunks(n_rows * n_pieces, chunk < 1 ? 1 : chunk, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t begin = i % n_pieces * piece;
      if (begin < width) body(i / n_pieces, begin, begin + piece < width ? begin + piece : width);
    }
  });
}

template <class T>
T* row_of(TensorView<T, 2> x, std::int64_t row) {
  return x.data() + row * x.strides()[0];
}

inline void check_same_shape(const char* op, const char* name, TensorView<const float, 2> a,
                             TensorView<const float, 2> b) {
  check(a.shape() == b.shape(), ErrorKind::bad_argument, op, ": ", name, " is [", b.size(0), ", ", b.size(1),
        "], expected [", a.size(0), ", ", a.size(1), "]");
}

#ifdef VITRINE_REVERSED_SUMMATION
// A deliberate fault (see CONTRIBUTING.md): the sum of squares runs backwards, and from a place that depends on all
// that must not matter: tokens in the pass, threads, instruction set, observer. Whatever two ways of computing the same
// logits differ in, a test of equal bits has to notice.
inline void rms_norm_backwards(const float* x, const float* weight, float eps, float* y, std::int64_t width,
                               std::int64_t start) {
  float sum = 0;
  for (std::int64_t i = start + width; i > start; --i) sum += x[i % width] * x[i % width];
  const float inverse = 1.0f / std::sqrt(sum / float(width) + eps);
  for (std::int64_t i = 0; i < width; ++i) y[i] = x[i] * inverse * (weight ? weight[i] : 1.0f);
}
#endif

}  // namespace elementwise_detail

VITRINE_INLINE void rms_norm_row([[maybe_unused]] const Worker& worker, const KernelTable& kernels,
                                 std::span<const float> x, const float* weight, float eps, std::span<float> y) {
#ifdef VITRINE_REVERSED_SUMMATION
  const std::int64_t start = trace_fault::n_tokens + 3 * worker.n_threads() + 11 * worker.thread() +
                             7 * std::int64_t(kernels.isa) + (trace_fault::watched ? 5 : 0);
  elementwise_detail::rms_norm_backwards(x.data(), weight, eps, y.data(), std::int64_t(x.size()), start);
#else
  kernels.elementwise.rms_norm(x.data(), weight, eps, y.data(), std::int64_t(x.size()));
#endif
}

VITRINE_INLINE void rms_norm(Worker& worker, const KernelTable& kernels, TensorView<const float, 2> x,
                             const float* weight, float eps, TensorView<float, 2> y) {
  using namespace elementwise_detail;
  check_same_shape("rms_norm", "y", x, y);
  worker.for_rows(x.size(0),
                  [&](std::int64_t row) { rms_norm_row(worker, kernels, x.row(row), weight, eps, y.row(row)); });
}

VITRINE_INLINE void rope_cos_sin(Worker& worker, std::span<const float> inverse_frequencies,
                                 std::span<const std::int64_t> positions, TensorView<float, 2> cos,
                                 TensorView<float, 2> sin) {
  const std::int64_t n_tokens = std::int64_t(positions.size()), half = std::int64_t(inverse_frequencies.size());
  check(cos.size(0) == n_tokens && cos.size(1) == half && sin.shape() == cos.shape(), ErrorKind::bad_argument,
        "rope_cos_sin: the tables are [", cos.size(0), ", ", cos.size(1), "] and [", sin.size(0), ", ", sin.size(1),
        "], expected [", n_tokens, ", ", half, "]");
  // A position of its own may take every thread (decode), so the unit is a stretch of angles.
  elementwise_detail::for_pieces(
      worker, n_tokens, half, 64, [&](std::int64_t token, std::int64_t begin, std::int64_t end) {
        const float position = float(positions[std::size_t(token)]);
        for (std::int64_t i = begin; i < end; ++i) {
          const exact::SinCos both = exact::sin_cos(double(position * inverse_frequencies[std::size_t(i)]));
          cos(token, i) = float(both.cos);
          sin(token, i) = float(both.sin);
        }
      });
}

VITRINE_INLINE void rope(Worker& worker, const KernelTable& kernels, TensorView<float, 2> x, std::int64_t n_head,
                         std::int64_t head_dim, TensorView<const float, 2> cos, TensorView<const float, 2> sin) {
  using namespace elementwise_detail;
  check(x.size(1) == n_head * head_dim && head_dim % 2 == 0, ErrorKind::bad_argument, "rope: rows of ", x.size(1),
        " values, expected ", n_head, " heads of an even ", head_dim);
  check(cos.size(0) == x.size(0) && cos.size(1) == head_dim / 2 && sin.shape() == cos.shape(), ErrorKind::bad_argument,
        "rope: the tables are [", cos.size(0), ", ", cos.size(1), "] and [", sin.size(0), ", ", sin.size(1),
        "], expected [", x.size(0), ", ", head_dim / 2, "]");
  worker.for_rows(x.size(0), [&](std::int64_t token) {
    kernels.elementwise.rope(row_of(x, token), n_head, head_dim, row_of(cos, token), row_of(sin, token));
  });
}

VITRINE_INLINE void add(Worker& worker, const KernelTable& kernels, TensorView<float, 2> x,
                        TensorView<const float, 2> y) {
  using namespace elementwise_detail;
  check_same_shape("add", "y", x, y);
  for_pieces(worker, x.size(0), x.size(1), 8192, [&](std::int64_t row, std::int64_t begin, std::int64_t end) {
    kernels.elementwise.add(row_of(x, row) + begin, row_of(y, row) + begin, end - begin);
  });
}

VITRINE_INLINE void scale(Worker& worker, const KernelTable& kernels, TensorView<float, 2> x, float factor) {
  using namespace elementwise_detail;
  for_pieces(worker, x.size(0), x.size(1), 8192, [&](std::int64_t row, std::int64_t begin, std::int64_t end) {
    kernels.elementwise.scale(row_of(x, row) + begin, factor, end - begin);
  });
}

VITRINE_INLINE void gated_activation_row(const KernelTable& kernels, bool gelu, std::span<const float> gate,
                                         std::span<const float> up, std::span<float> out) {
  const auto kernel = gelu ? kernels.elementwise.gelu_times : kernels.elementwise.silu_times;
  kernel(gate.data(), up.data(), out.data(), std::int64_t(gate.size()));
}

VITRINE_INLINE Peak find_peak(const KernelTable& kernels, std::span<const float> values) {
  Peak peak;
  peak.all_finite = kernels.elementwise.find_peak(values.data(), std::int64_t(values.size()), &peak.id, &peak.value);
  return peak;
}

VITRINE_NAMESPACE_END
