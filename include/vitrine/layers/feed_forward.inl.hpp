// Bodies of layers/feed_forward.hpp.
#pragma once

#include "vitrine/layers/feed_forward.hpp"
#include "vitrine/layers/residual.hpp"
#include "vitrine/ops/elementwise.hpp"

VITRINE_NAMESPACE_BEGIN

// STEP 7/9 feed-forward: every token for itself, through the widest matrices of the block.
VITRINE_INLINE void feed_forward(const Pass& pass, const LayerWeights& weights, const BlockShape& shape,
                                 std::int64_t layer) {
  auto& [worker, kernels, scratch, slices, n_tokens, observer] = pass;
  const auto x = pass.rows(scratch.x), normed = pass.rows(scratch.normed);
  const auto gate = pass.rows(scratch.gate), up = pass.rows(scratch.up);

  rms_norm(worker, kernels, x, weights.feed_forward_norm.data(), shape.norm_eps, normed);
  worker.sync();
  pass.show("7/9 feed-forward", "feed_forward_norm", layer, normed, "d_model");
  scratch.input.prepare(worker, kernels, normed, {&weights.w_gate, &weights.w_up});
  worker.sync();
  linear(worker, kernels, weights.w_gate, scratch.input, gate);
  linear(worker, kernels, weights.w_up, scratch.input, up);
  worker.sync();
  gated_activation(worker, kernels, shape.gelu, gate, up, gate);
  worker.sync();
  pass.show("7/9 feed-forward", "feed_forward_gated", layer, gate, "d_ff");
  scratch.input.prepare(worker, kernels, gate, {&weights.w_down});
  worker.sync();
  add_to_residual(pass, weights.w_down, weights.feed_forward_post_norm, shape.norm_eps);
  pass.show("7/9 feed-forward", "layer_output", layer, x, "d_model");
}

VITRINE_NAMESPACE_END
