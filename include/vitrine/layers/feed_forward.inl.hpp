// Bodies of layers/feed_forward.hpp.
#pragma once

#include "vitrine/layers/feed_forward.hpp"
#include "vitrine/layers/residual.hpp"
#include "vitrine/ops/elementwise.hpp"

VITRINE_NAMESPACE_BEGIN

// STEP 7/9 feed-forward: every token for itself, through the widest matrices of the block.
VITRINE_INLINE void feed_forward(const Pass& pass, const LayerWeights& weights, const BlockShape& shape,
                                 std::int64_t layer) {
  auto& worker = pass.worker;
  const auto gate = pass.rows(pass.scratch.gate), up = pass.rows(pass.scratch.up);

  pass.announce(weights.w_gate);
  pass.prepare_normed(weights.feed_forward_norm, shape.norm_eps, {&weights.w_gate, &weights.w_up});
  pass.show("7/9 feed-forward", "feed_forward_norm", layer, pass.normed, "d_model");
  linear(worker, pass.kernels, weights.w_gate, pass.input, gate);
  linear(worker, pass.kernels, weights.w_up, pass.input, up);
  worker.sync();
  pass.announce(weights.w_down);
  pass.prepare(pass.gated, {&weights.w_down}, [&](std::int64_t t) {
    gated_activation_row(pass.kernels, shape.gelu, gate.row(t), up.row(t), pass.gated.row(t));
  });
  pass.show("7/9 feed-forward", "feed_forward_gated", layer, pass.gated, "d_ff");
  add_to_residual(pass, weights.w_down, weights.feed_forward_post_norm, shape.norm_eps);
  pass.show("7/9 feed-forward", "layer_output", layer, pass.x, "d_model");
}

VITRINE_NAMESPACE_END
