// A linear layer on random weights and inputs, the results that its definition gives, and what the kernels give.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "linear_oracle.hpp"
#include "numbers.hpp"
#include "vitrine/ops/linear.hpp"
#include "vitrine/simd/dispatch.hpp"

namespace linear_test {

using namespace linear_oracle;
using namespace ops_test;

struct LinearCase {
  DType type;
  std::int64_t n_rows, n_cols, max_tokens;
  std::vector<std::byte> rows;
  std::vector<float> x, wanted;  // [max_tokens, n_cols], [max_tokens, n_rows]
  PackedMatrix w;
};

// Packs the rows, and computes what is wanted of them and x.
inline void complete(LinearCase& c) {
  c.w.pack_panels(0, c.w.n_panels(), c.rows.data(), nullptr);
  c.wanted.resize(std::size_t(c.max_tokens * c.n_rows));
  for (std::int64_t t = 0; t < c.max_tokens; ++t) {
    const float* x = c.x.data() + t * c.n_cols;
    QuantisedX quantised;
    if (activation_block(c.type)) quantised = quantise(x, c.n_cols, activation_block(c.type));
    for (std::int64_t r = 0; r < c.n_rows; ++r)
      c.wanted[std::size_t(t * c.n_rows + r)] =
          dot(c.type, c.rows.data() + std::size_t(r) * c.w.row_bytes(), c.n_cols, x, quantised);
  }
}

inline LinearCase make_case(DType type, std::int64_t n_rows, std::int64_t n_cols, std::int64_t max_tokens,
                            bool extreme) {
  LinearCase c{type, n_rows, n_cols, max_tokens, {}, {}, {}, PackedMatrix(type, n_rows, n_cols)};
  c.rows = random_rows(type, n_rows, n_cols, extreme, unsigned(n_rows * 1000 + n_cols));
  std::mt19937 random(7);
  for (std::int64_t i = 0; i < max_tokens * n_cols; ++i) {
    const float value = (float(random() % 20001) - 10000) * 1e-3f;
    c.x.push_back(extreme ? (random() & 1 ? 8.0f : -8.0f) : value * (i % 97 == 0 ? 20.0f : 1.0f));
  }
  if (!extreme && activation_block(type) && max_tokens > 2)  // a block of zeros, and one too small for a scale
    for (std::int64_t i = 0; i < n_cols && i < std::int64_t(activation_block(type)); ++i) {
      c.x[std::size_t(n_cols + i)] = 0.0f;
      c.x[std::size_t(2 * n_cols + i)] = 1e-38f;
    }
  complete(c);
  return c;
}

// Enough for every form, the one for whole tiles too: a full tile and one that is not.
inline constexpr std::int64_t in_tiles = least_matrix_tokens + 3;
static_assert(in_tiles > matrix_tokens && in_tiles % matrix_tokens != 0);

// What w gives for x [n_tokens, n_cols], through prepare and linear; a column beyond the rows shows stray writes. With
// row_by_row the input's rows are made while it is prepared.
inline std::vector<float> product(const PackedMatrix& w, const float* values, Isa isa, std::int64_t n_tokens,
                                  int n_threads, LinearOptions options = {}, float start = -77.0f,
                                  bool row_by_row = false) {
  const std::int64_t stride = w.n_rows() + 3;
  std::vector<float> y(std::size_t(n_tokens * stride), start);
  const TensorView<const float, 2> x(values, {n_tokens, w.n_cols()});
  Tensor<float, 2> made({n_tokens, w.n_cols()});
  LinearInput input;
  input.reserve(n_tokens, w.n_cols());
  Team team(n_threads);
  team.run([&](Worker& worker) {
    if (row_by_row)
      input.prepare(worker, kernels(isa), made.view(), {&w},
                    [&](std::int64_t t) { std::copy_n(x.row(t).data(), w.n_cols(), made.view().row(t).data()); });
    else
      input.prepare(worker, kernels(isa), x, {&w});
    worker.sync();
    linear(worker, kernels(isa), w, input, TensorView<float, 2>(y.data(), {n_tokens, w.n_rows()}, {stride, 1}),
           options);
  });
  std::vector<float> out;
  for (std::int64_t t = 0; t < n_tokens; ++t) {
    const auto row = y.begin() + t * stride;
    out.insert(out.end(), row, row + w.n_rows());
    for (std::int64_t extra = w.n_rows(); extra < stride; ++extra) REQUIRE(row[extra] == start);
  }
  return out;
}

// The first n_tokens tokens of the case.
inline std::vector<float> run(const LinearCase& c, Isa isa, std::int64_t n_tokens, int n_threads,
                              LinearOptions options = {}, float start = -77.0f, bool row_by_row = false) {
  return product(c.w, c.x.data(), isa, n_tokens, n_threads, options, start, row_by_row);
}

inline bool equals_wanted(const LinearCase& c, const std::vector<float>& got) {
  return std::memcmp(got.data(), c.wanted.data(), got.size() * sizeof(float)) == 0;
}

}  // namespace linear_test
