// How a layer's result enters the residual stream x [n_tokens, d_model]:
//
//   x += W input                where the model has no norm behind the layer: the product adds to x itself
//   x += post_norm(W input)     where it has one (Gemma)
//
// A product is whole before it meets x, so it changes no bit whether its kernel adds it or a step of its own does.
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
