#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>

#include "vitrine/core/exact_math.hpp"
#include "vitrine/core/float16.hpp"
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
                              TensorView<const float, 2> v, std::int64_t pos0, TensorView<float, 2> out,
                              TensorView<const float, 2> q_sink) {
  using namespace reference_detail;
  for (std::int64_t h = 0; h < shape.n_head; ++h) {
    const std::int64_t kv_head = h / shape.group();
    const Matrix keys = head(k, kv_head, shape.head_dim).cast<double>();
    const Matrix values = head(v, kv_head, shape.head_dim).cast<double>();
    // [n_tokens, n_keys]: how much each query likes each key.
    Matrix scores = head(q, h, shape.head_dim).cast<double>() * keys.transpose() * double(shape.scale);
    const std::int64_t n_sinks = (std::min)(shape.sinks, std::int64_t(scores.cols()));
    if (n_sinks > 0)
      scores.leftCols(n_sinks) =
          head(q_sink, h, shape.head_dim).cast<double>() * keys.topRows(n_sinks).transpose() * double(shape.scale);
    for (std::int64_t t = 0; t < scores.rows(); ++t) {
      const std::int64_t position = pos0 + t;
      for (std::int64_t key = 0; key < scores.cols(); ++key) {
        const bool visible = key <= position && (key >= shape.first_key(position) || key < shape.sinks);
        if (!visible) scores(t, key) = -std::numeric_limits<double>::infinity();
      }
      softmax({scores.data() + t * scores.cols(), std::size_t(scores.cols())});
    }
    head(out, h, shape.head_dim) = (scores * values).cast<float>();
  }
}

namespace reference_detail {

// The value of largest magnitude; of two the positive one.
inline float peak_of(std::span<const float> x) {
  float peak = 0;
  for (const float value : x) {
    if (std::fabs(value) > std::fabs(peak) || value == std::fabs(peak)) peak = value;
  }
  return peak;
}

inline void quantise(std::span<const float> x, float scale, float least, float most, std::span<float> out) {
  const float inverse = 1.0f / scale;
  for (std::size_t i = 0; i < x.size(); ++i) {
    // A scale too small to have an inverse is that of a group of zeros.
    const float q = std::isfinite(inverse) ? std::nearbyint(x[i] * inverse) : 0.0f;
    out[i] = (std::min)((std::max)(q, least), most) * scale;
  }
}

inline float away_from_zero_to_bf16(float x) {
  return std::copysign(bits_to_float((float_to_bits(std::fabs(x)) + 0xffffu) & 0xffff0000u), x);
}

}  // namespace reference_detail

VITRINE_INLINE void stored(DType type, std::span<const float> x, std::span<float> out) {
  using namespace reference_detail;
  const auto each = [&](auto f) { std::transform(x.begin(), x.end(), out.begin(), f); };
  if (type == DType::f32) each([](float value) { return value; });
  if (type == DType::f16) each([](float value) { return f16_to_f32(f32_to_f16(value)); });
  if (type == DType::bf16) each([](float value) { return bf16_to_f32(f32_to_bf16(value)); });
  if (type == DType::int8) quantise(x, away_from_zero_to_bf16(std::fabs(peak_of(x)) / 127.0f), -127, 127, out);
  for (std::size_t i = 0; type == DType::int4 && i < x.size(); i += 32) {
    const auto group = x.subspan(i, (std::min)(x.size() - i, std::size_t(32)));
    quantise(group, away_from_zero_to_bf16(peak_of(group) / -8.0f), -8, 7, out.subspan(i, group.size()));
  }
}

VITRINE_INLINE void query(DType k_type, std::span<const float> x, std::span<float> out) {
  using namespace reference_detail;
  std::copy(x.begin(), x.end(), out.begin());
  if (k_type != DType::int8 && k_type != DType::int4) return;
  const float amax = std::fabs(peak_of(x)), inverse = 127.0f / amax;
  for (float& value : out) value = std::isfinite(inverse) ? std::nearbyint(value * inverse) * (amax / 127.0f) : 0.0f;
}

VITRINE_INLINE double silu(double x) { return x / (1.0 + exact::exp(-x)); }

VITRINE_INLINE double gelu(double x) {
  const double root_two_over_pi = 0.79788456080286535588;
  return 0.5 * x * (1.0 + exact::tanh(root_two_over_pi * (x + 0.044715 * x * x * x)));
}

}  // namespace reference

VITRINE_NAMESPACE_END
