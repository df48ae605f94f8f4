// How a layer's result enters the residual stream: x += W input, or x += post_norm(W input) where the model has one.
#pragma once

#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/layers/pass.hpp"
#include "vitrine/ops/elementwise.hpp"

VITRINE_NAMESPACE_BEGIN

// The input is what scratch.input was prepared with; post_norm [d_model] or empty. Ends with a barrier.
inline void add_to_residual(const Pass& pass, const PackedMatrix& weight, const std::vector<float>& post_norm,
                            float norm_eps) {
  const auto x = pass.rows(pass.scratch.x), normed = pass.rows(pass.scratch.normed);
  if (post_norm.empty()) {
    linear(pass.worker, pass.kernels, weight, pass.scratch.input, x, {.add = true});
  } else {
    linear(pass.worker, pass.kernels, weight, pass.scratch.input, normed);
    pass.worker.sync();
    rms_norm(pass.worker, pass.kernels, normed, post_norm.data(), norm_eps, normed);
    pass.worker.sync();
    add(pass.worker, pass.kernels, x, normed);
  }
  pass.worker.sync();
}

VITRINE_NAMESPACE_END
