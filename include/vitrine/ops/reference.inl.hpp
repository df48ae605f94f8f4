#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>

#include "vitrine/core/exact_math.hpp"
#include "vitrine/ops/reference.hpp"

VITRINE_NAMESPACE_BEGIN

namespace reference {

namespace reference_detail {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using EigenMap = Eigen::Map<
    std::conditional_t<std::is_const_v<T>,
                       const Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>,
                       Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>,
    Eigen::Unaligned, Eigen::OuterStride<>>;

// A matrix view as an Eigen expression, without a copy.
template <class T>
EigenMap<T> as_eigen(TensorView<T, 2> view) {
  return {view.data(), view.size(0), view.size(1), Eigen::OuterStride<>(view.strides()[0])};
}

// The columns of one head in [n_tokens, n_head * head_dim].
template <class T>
auto head(TensorView<T, 2> x, std::int64_t index, std::int64_t head_dim) {
  return as_eigen(x).middleCols(index * head_dim, head_dim);
}

}  // namespace reference_detail

VITRINE_INLINE void linear(TensorView<const float, 2> w, TensorView<const float, 2> x, std::span<const float> bias,
                           TensorView<float, 2> y) {
  using namespace reference_detail;
  const std::int64_t n_rows = w.size(0), rows_at_once = 1024;  // a vocabulary in double would not fit every memory
  const Matrix inputs = as_eigen(x).cast<double>();
  for (std::int64_t first = 0; first < n_rows; first += rows_at_once) {
    const std::int64_t n = (std::min)(rows_at_once, n_rows - first);
    Matrix products = inputs * as_eigen(w).middleRows(first, n).cast<double>().transpose();
    if (!bias.empty()) {
      for (std::int64_t r = 0; r < n; ++r) products.col(r).array() += double(bias[std::size_t(first + r)]);
    }
    as_eigen(y).middleCols(first, n) = products.cast<float>();
  }
}

VITRINE_INLINE void rms_norm(TensorView<const float, 2> x, std::span<const float> weight, double eps,
                             TensorView<float, 2> y) {
  for (std::int64_t t = 0; t < x.size(0); ++t) {
    double sum_of_squares = 0;
    for (const float value : x.row(t)) sum_of_squares += double(value) * double(value);
    const double factor = 1.0 / std::sqrt(sum_of_squares / double(x.size(1)) + eps);
    for (std::int64_t i = 0; i < x.size(1); ++i) {
      y(t, i) = float(double(x(t, i)) * factor * (weight.empty() ? 1.0 : double(weight[std::size_t(i)])));
    }
  }
}

VITRINE_INLINE void rope(TensorView<float, 2> x, std::int64_t head_dim, std::span<const float> inverse_frequencies,
                         std::span<const std::int64_t> positions, RopePairs pairs) {
  const std::int64_t half = head_dim / 2;
  for (std::int64_t t = 0; t < x.size(0); ++t) {
    for (std::int64_t first = 0; first < x.size(1); first += head_dim) {
      for (std::int64_t i = 0; i < half; ++i) {
        const float angle = float(positions[std::size_t(t)]) * inverse_frequencies[std::size_t(i)];
        const exact::SinCos turn = exact::sin_cos(double(angle));
        float& a = x(t, first + (pairs == RopePairs::half_split ? i : 2 * i));
        float& b = x(t, first + (pairs == RopePairs::half_split ? i + half : 2 * i + 1));
        const double a_before = double(a), b_before = double(b);
        a = float(a_before * turn.cos - b_before * turn.sin);
        b = float(b_before * turn.cos + a_before * turn.sin);
      }
    }
  }
}

VITRINE_INLINE void softmax(std::span<double> row) {
  double maximum = -std::numeric_limits<double>::infinity();
  for (const double value : row) maximum = (std::max)(maximum, value);
  double sum = 0;
  for (double& value : row) {
    value = value == -std::numeric_limits<double>::infinity() ? 0.0 : exact::exp(value - maximum);
    sum += value;
  }
  if (sum == 0) return;
  for (double& value : row) value /= sum;
}

VITRINE_INLINE void attention(const AttentionShape& shape, TensorView<const float, 2> q, TensorView<const float, 2> k,
                              TensorView<const float, 2> v, std::int64_t pos0, TensorView<float, 2> out) {
  using namespace reference_detail;
  for (std::int64_t h = 0; h < shape.n_head; ++h) {
    const std::int64_t kv_head = h / shape.group();
    const Matrix keys = head(k, kv_head, shape.head_dim).cast<double>();
    const Matrix values = head(v, kv_head, shape.head_dim).cast<double>();
    // [n_tokens, n_keys]: how much each query likes each key.
    Matrix scores = head(q, h, shape.head_dim).cast<double>() * keys.transpose() * double(shape.scale);
    for (std::int64_t t = 0; t < scores.rows(); ++t) {
      const std::int64_t position = pos0 + t;
      for (std::int64_t key = 0; key < scores.cols(); ++key) {
        const bool visible = key <= position && key >= shape.first_key(position);
        if (!visible) scores(t, key) = -std::numeric_limits<double>::infinity();
      }
      softmax({scores.data() + t * scores.cols(), std::size_t(scores.cols())});
    }
    head(out, h, shape.head_dim) = (scores * values).cast<float>();
  }
}

VITRINE_INLINE double silu(double x) { return x / (1.0 + exact::exp(-x)); }

VITRINE_INLINE double gelu(double x) {
  const double root_two_over_pi = 0.79788456080286535588;
  return 0.5 * x * (1.0 + exact::tanh(root_two_over_pi * (x + 0.044715 * x * x * x)));
}

}  // namespace reference

VITRINE_NAMESPACE_END
