// The reference ops against numbers worked out by hand or published, because they judge everything else.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "vitrine/ops/reference.hpp"

using namespace vitrine;

namespace {
Tensor<float, 2> matrix(std::int64_t rows, std::int64_t cols, const std::vector<float>& values) {
  Tensor<float, 2> result({rows, cols});
  for (std::size_t i = 0; i < values.size(); ++i) result.data()[i] = values[i];
  return result;
}
}  // namespace

TEST_CASE("reference linear: y = x W^T + b") {
  const auto w = matrix(3, 2, {1, 2, 3, 4, 5, 6}), x = matrix(2, 2, {1, 10, -1, 0.5});
  const std::vector<float> bias{0.5, 0, -1};
  Tensor<float, 2> y({2, 3});
  reference::linear(w.view(), x.view(), bias, y.view());
  CHECK(y(0, 0) == 21.5f);
  CHECK(y(0, 1) == 43.0f);
  CHECK(y(0, 2) == 64.0f);
  CHECK(y(1, 0) == 0.5f);
  CHECK(y(1, 1) == -1.0f);
  CHECK(y(1, 2) == -3.0f);
  reference::linear(w.view(), x.view(), {}, y.view());
  CHECK(y(1, 2) == -2.0f);
}

TEST_CASE("reference linear walks more rows than it converts at once") {
  Tensor<float, 2> w({2500, 3}), x({1, 3}), y({1, 2500});
  for (std::int64_t r = 0; r < 2500; ++r) w(r, 1) = float(r);
  x(0, 1) = 2;
  reference::linear(w.view(), x.view(), {}, y.view());
  for (std::int64_t r = 0; r < 2500; ++r) REQUIRE(y(0, r) == float(2 * r));
}

TEST_CASE("reference rms_norm") {
  const auto x = matrix(1, 4, {1, -2, 3, -4});
  Tensor<float, 2> y({1, 4});
  const std::vector<float> weight{1, 1, 2, 0};
  reference::rms_norm(x.view(), weight, 0.5, y.view());  // mean of squares 7.5, plus eps 8
  const double factor = 1 / std::sqrt(8.0);
  CHECK(y(0, 0) == float(factor));
  CHECK(y(0, 2) == float(6 * factor));
  CHECK(y(0, 3) == 0.0f);
  reference::rms_norm(x.view(), {}, 0.5, y.view());
  CHECK(y(0, 3) == float(-4 * factor));
}

// Which two values of a head turn together decides everything: the same head, position and base in both layouts.
TEST_CASE("reference rope: both pair layouts") {
  const std::vector<float> inverse_frequencies{1.0f, 0.01f};
  const std::vector<std::int64_t> positions{1};
  auto x = matrix(1, 4, {1, 2, 3, 4});
  reference::rope(x.view(), 4, inverse_frequencies, positions, reference::RopePairs::interleaved);
  CHECK(x(0, 0) == Approx(-1.142640).margin(1e-6));
  CHECK(x(0, 1) == Approx(1.922076).margin(1e-6));
  CHECK(x(0, 2) == Approx(2.959851).margin(1e-6));
  CHECK(x(0, 3) == Approx(4.029800).margin(1e-6));
  x = matrix(1, 4, {1, 2, 3, 4});
  reference::rope(x.view(), 4, inverse_frequencies, positions);
  CHECK(x(0, 0) == Approx(-1.984111).margin(1e-6));
  CHECK(x(0, 1) == Approx(1.959901).margin(1e-6));
  CHECK(x(0, 2) == Approx(2.462378).margin(1e-6));
  CHECK(x(0, 3) == Approx(4.019800).margin(1e-6));
}

TEST_CASE("reference rope turns each head alike and keeps lengths") {
  const std::vector<float> inverse_frequencies{1.0f, 0.1f};
  const std::vector<std::int64_t> positions{0, 5000};
  auto x = matrix(2, 8, {1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4});
  reference::rope(x.view(), 4, inverse_frequencies, positions);
  for (std::int64_t i = 0; i < 4; ++i) {
    CHECK(x(0, i) == float(i + 1));  // position 0: nothing turns
    CHECK(x(1, i) == x(1, i + 4));
  }
  CHECK(x(1, 0) * x(1, 0) + x(1, 2) * x(1, 2) == Approx(10));
  CHECK(x(1, 0) == Approx(std::cos(5000.0) - 3 * std::sin(5000.0)));
}

TEST_CASE("reference softmax") {
  std::vector<double> row{2, 1, 0};
  reference::softmax(row);
  CHECK(row[0] == Approx(0.66524096));
  CHECK(row[1] == Approx(0.24472847));
  CHECK(row[2] == Approx(0.09003057));
  const double none = -std::numeric_limits<double>::infinity();
  row = {none, 5000, none};
  reference::softmax(row);
  CHECK(row == std::vector<double>{0, 1, 0});
  row = {none, none};
  reference::softmax(row);
  CHECK(row == std::vector<double>{0, 0});
}

TEST_CASE("reference attention: causal, window, grouped heads") {
  AttentionShape shape{.n_head = 2, .n_kv_head = 1, .head_dim = 2, .window = 0, .scale = 1.0f};
  const auto k = matrix(3, 2, {0, 0, 0, 0, 0, 0}), v = matrix(3, 2, {3, 0, 6, 3, 0, 9});
  const auto q = matrix(3, 4, {1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 2, 2});
  Tensor<float, 2> out({3, 4});
  // Equal scores: each query takes the mean of what it may see.
  reference::attention(shape, q.view(), k.view(), v.view(), 0, out.view());
  CHECK(out(0, 0) == 3.0f);
  CHECK(out(1, 0) == 4.5f);
  CHECK(out(1, 3) == 1.5f);
  CHECK(out(2, 0) == Approx(3.0f));
  CHECK(out(2, 1) == Approx(4.0f));
  shape.window = 2;
  reference::attention(shape, q.view(), k.view(), v.view(), 0, out.view());
  CHECK(out(2, 0) == 3.0f);
  CHECK(out(2, 1) == 6.0f);
  // A query before all keys sees none of them.
  reference::attention(shape, q.view(), k.view(), v.view(), -1, out.view());
  CHECK(out(0, 0) == 0.0f);
  CHECK(out(1, 0) == 3.0f);
}

TEST_CASE("reference attention: scores decide") {
  const AttentionShape shape{.n_head = 2, .n_kv_head = 2, .head_dim = 2, .window = 0, .scale = 0.5f};
  const auto k = matrix(2, 4, {2, 0, 0, 2, 0, 2, 2, 0}), v = matrix(2, 4, {1, 0, 1, 0, 0, 1, 0, 1});
  const auto q = matrix(1, 4, {1, 0, 1, 0});
  Tensor<float, 2> out({1, 4});
  reference::attention(shape, q.view(), k.view(), v.view(), 1, out.view());
  const double e = std::exp(1.0);
  CHECK(out(0, 0) == Approx(e / (e + 1)));  // head 0: scores 1, 0
  CHECK(out(0, 1) == Approx(1 / (e + 1)));
  CHECK(out(0, 2) == Approx(1 / (e + 1)));  // head 1 reads K/V head 1: scores 0, 1
  CHECK(out(0, 3) == Approx(e / (e + 1)));
}

TEST_CASE("reference activations") {
  CHECK(reference::silu(0) == 0);
  CHECK(reference::silu(1) == Approx(0.7310585786));
  CHECK(reference::silu(-20) == Approx(-4.1223072e-8));
  CHECK(reference::gelu(0) == 0);
  CHECK(reference::gelu(1) == Approx(0.8411919906));
  CHECK(reference::gelu(-3) == Approx(-0.0036373920));
}
