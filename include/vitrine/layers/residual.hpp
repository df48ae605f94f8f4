// How a layer's result enters the residual stream: x += W input, or x += post_norm(W input) where the model has one.
#pragma once

#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/layers/pass.hpp"
#include "vitrine/ops/elementwise.hpp"

VITRINE_NAMESPACE_BEGIN

// The input is what pass.input was prepared with; post_norm [d_model] or empty. Afterwards pass.x is there to be read.
inline void add_to_residual(const Pass& pass, const PackedMatrix& weight, const std::vector<float>& post_norm,
                            float norm_eps) {
  auto& worker = pass.worker;
  if (post_norm.empty() && pass.shares_vectors()) {
    linear(worker, pass.kernels, weight, pass.input, pass.x, {.add = true});
    return worker.sync();
  }
  const auto projected = pass.rows(pass.scratch.projected);
  linear(worker, pass.kernels, weight, pass.input, projected);
  worker.sync();
  auto result = projected;
  if (!post_norm.empty()) {
    result = pass.normed;
    rms_norm(pass.nearby, pass.kernels, projected, post_norm.data(), norm_eps, result);
    pass.nearby.sync();
  }
  add(pass.nearby, pass.kernels, pass.x, result);
  pass.nearby.sync();
}

VITRINE_NAMESPACE_END
