// The table of linear_kernels.hpp: for each weight type its forms, for one token, a few and many.
//
//   linear_float.hpp      F32, F16, BF16
//   linear_block32.hpp    Q4_0, Q4_1, Q5_0, Q5_1, Q8_0
//   linear_block256.hpp   Q4_K, Q5_K, Q6_K
//   linear_matrix.hpp     these for whole tiles of bytes (AMX), which kernels_tiles.hpp adds to the table
//   linear_common.hpp     what these share: the sweep of tiles, integer and float sums
//   linear_results.hpp    the end of a row: the input's peaks, bias, residual, maxima
//   linear_formats.hpp    where the parts of a block lie, and how its quants become bytes
//   linear_bounds.hpp     from the high plane of a matrix in planes: what its rows give at most
//   quantise.hpp          their input to 8 bits
#pragma once

#include "vitrine/simd/linear_block256.hpp"
#include "vitrine/simd/linear_block32.hpp"
#include "vitrine/simd/linear_bounds.hpp"
#include "vitrine/simd/linear_float.hpp"
#include "vitrine/simd/linear_kernels.hpp"
#include "vitrine/simd/quantise.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

// The entries that multiply bytes.
constexpr void set_quantised_forms(LinearKernels& kernels) {
  using namespace linear_detail;
  kernels.q4_0 = forms_32<Q4_0>();
  kernels.q4_1 = forms_32<Q4_1>();
  kernels.q5_0 = forms_32<Q5_0>();
  kernels.q5_1 = forms_32<Q5_1>();
  kernels.q8_0 = forms_32<Q8_0>();
  kernels.q4_k = forms_256<Q4_K>();
  kernels.q5_k = forms_256<Q5_K>();
  kernels.q6_k = forms_256<Q6_K>();
  kernels.q8_0_planes = forms_32<Q8_0Planes>();
  kernels.upper_bounds = upper_bounds;
}

constexpr LinearKernels linear_kernels() {
  using namespace linear_detail;
  LinearKernels kernels = {};
  kernels.f32 = float_forms<WeightsF32>();
  kernels.f16 = float_forms<WeightsF16>();
  kernels.bf16 = float_forms<WeightsBF16>();
  kernels.quantise_32 = quantise_detail::quantise_32;
  kernels.quantise_256 = quantise_detail::quantise_256;
  set_quantised_forms(kernels);
  return kernels;
}

VITRINE_ISA_NAMESPACE_END
