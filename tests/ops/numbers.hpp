// Numbers that the tests of ops compute with, and how they are compared.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <random>

#include "vitrine/core/dtype.hpp"
#include "vitrine/core/tensor.hpp"

namespace ops_test {

using namespace vitrine;

inline constexpr float infinity = std::numeric_limits<float>::infinity();
inline constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

inline const DType all_types[] = {DType::f32,  DType::f16,  DType::bf16, DType::q4_0, DType::q4_1, DType::q5_0,
                                  DType::q5_1, DType::q8_0, DType::q4_k, DType::q5_k, DType::q6_k};

inline Tensor<float, 2> random_matrix(std::int64_t rows, std::int64_t cols, unsigned seed, float range = 3.0f) {
  Tensor<float, 2> result({rows, cols});
  std::mt19937 random(seed);
  for (std::int64_t i = 0; i < rows * cols; ++i) result.data()[i] = (float(random()) * 0x1p-31f - 1.0f) * range;
  return result;
}

inline bool same_bits(const Tensor<float, 2>& a, const Tensor<float, 2>& b) {
  return a.shape() == b.shape() && std::memcmp(a.data(), b.data(), sizeof(float) * std::size_t(a.view().count())) == 0;
}

}  // namespace ops_test
