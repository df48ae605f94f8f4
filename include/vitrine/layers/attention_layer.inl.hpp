// Bodies of layers/attention_layer.hpp.
#pragma once

#include "vitrine/layers/attention_layer.hpp"
#include "vitrine/layers/residual.hpp"
#include "vitrine/ops/elementwise.hpp"

VITRINE_NAMESPACE_BEGIN

namespace attention_layer_detail {

// Heads side by side in a row, seen as rows of their own: [n_tokens, n_head * head_dim] -> [n_tokens * n_head,
// head_dim].
VITRINE_INLINE TensorView<float, 2> heads(TensorView<float, 2> x, std::int64_t head_dim) {
  return {x.data(), {x.count() / head_dim, head_dim}};
}

// STEP 3/9 project: the normed residual becomes a query per head, and a key and a value per KV head.
VITRINE_INLINE void project(const Pass& pass, const LayerWeights& weights, const BlockShape& shape,
                            std::int64_t layer) {
  auto& [worker, kernels, scratch, slices, n_tokens, observer] = pass;
  const auto x = pass.rows(scratch.x), normed = pass.rows(scratch.normed);
  const auto q = pass.rows(scratch.q), k = pass.rows(scratch.k), v = pass.rows(scratch.v);

  rms_norm(worker, kernels, x, weights.attention_norm.data(), shape.norm_eps, normed);
  worker.sync();
  pass.show("3/9 project", "attention_norm", layer, normed, "d_model");
  scratch.input.prepare(worker, kernels, normed, {&weights.wq, &weights.wk, &weights.wv});
  worker.sync();
  const auto bias = [](const std::vector<float>& values) { return values.empty() ? nullptr : values.data(); };
  linear(worker, kernels, weights.wq, scratch.input, q, {.bias = bias(weights.q_bias)});
  linear(worker, kernels, weights.wk, scratch.input, k, {.bias = bias(weights.k_bias)});
  linear(worker, kernels, weights.wv, scratch.input, v, {.bias = bias(weights.v_bias)});
  worker.sync();
  pass.show("3/9 project", "q", layer, q, "n_head * head_dim");
  pass.show("3/9 project", "k", layer, k, "n_kv_head * head_dim");
  pass.show("3/9 project", "v", layer, v, "n_kv_head * head_dim");

  if (weights.q_norm.empty() && weights.k_norm.empty()) return;
  const auto head_dim = shape.attention.head_dim;
  if (!weights.q_norm.empty())
    rms_norm(worker, kernels, heads(q, head_dim), weights.q_norm.data(), shape.norm_eps, heads(q, head_dim));
  if (!weights.k_norm.empty())
    rms_norm(worker, kernels, heads(k, head_dim), weights.k_norm.data(), shape.norm_eps, heads(k, head_dim));
  worker.sync();
  pass.show("3/9 project", "q_norm", layer, q, "n_head * head_dim");
  pass.show("3/9 project", "k_norm", layer, k, "n_kv_head * head_dim");
}

// STEP 4/9 rope: queries and keys are turned by their position.
VITRINE_INLINE void rotate(const Pass& pass, const BlockShape& shape, std::int64_t layer) {
  auto& [worker, kernels, scratch, slices, n_tokens, observer] = pass;
  const auto q = pass.rows(scratch.q), k = pass.rows(scratch.k);
  const auto cos = pass.rows(scratch.cos[std::size_t(shape.rope)]);
  const auto sin = pass.rows(scratch.sin[std::size_t(shape.rope)]);
  rope(worker, kernels, q, shape.attention.n_head, shape.attention.head_dim, cos, sin);
  rope(worker, kernels, k, shape.attention.n_kv_head, shape.attention.head_dim, cos, sin);
  worker.sync();
  pass.show("4/9 rope", "q_rope", layer, q, "n_head * head_dim");
  pass.show("4/9 rope", "k_rope", layer, k, "n_kv_head * head_dim");
}

// STEP 5/9 attention: K and V go into the cache (rounded to its type); then each query reads the cache.
VITRINE_INLINE void attend(const Pass& pass, const BlockShape& shape, std::int64_t layer) {
  auto& [worker, kernels, scratch, slices, n_tokens, observer] = pass;
  const auto rows_of = [](TensorView<float, 2> x, const SequenceSlice& slice) {
    return TensorView<float, 2>{x.data() + slice.first_row * x.size(1), {slice.n_rows, x.size(1)}};
  };
  const auto q = pass.rows(scratch.q), k = pass.rows(scratch.k), v = pass.rows(scratch.v);
  const auto mixed = pass.rows(scratch.mixed);
  for (const auto& slice : slices)
    store_kv(worker, kernels, slice.layout->view(layer, slice.blocks), slice.pos0, rows_of(k, slice),
             rows_of(v, slice));
  worker.sync();
  for (const auto& slice : slices)
    attention(worker, kernels, shape.attention, rows_of(q, slice), slice.layout->view(layer, slice.blocks), slice.pos0,
              rows_of(mixed, slice), scratch.attention);
  worker.sync();
  pass.show("5/9 attention", "attention", layer, mixed, "n_head * head_dim");
}

// STEP 6/9 output: the heads' results are mixed and added to the residual stream.
VITRINE_INLINE void project_output(const Pass& pass, const LayerWeights& weights, const BlockShape& shape,
                                   std::int64_t layer) {
  auto& [worker, kernels, scratch, slices, n_tokens, observer] = pass;
  const auto x = pass.rows(scratch.x);
  scratch.input.prepare(worker, kernels, pass.rows(scratch.mixed), {&weights.wo});
  worker.sync();
  add_to_residual(pass, weights.wo, weights.attention_post_norm, shape.norm_eps);
  pass.show("6/9 output", "attention_residual", layer, x, "d_model");
}

}  // namespace attention_layer_detail

VITRINE_INLINE void attention_layer(const Pass& pass, const LayerWeights& weights, const BlockShape& shape,
                                    std::int64_t layer) {
  attention_layer_detail::project(pass, weights, shape, layer);
  attention_layer_detail::rotate(pass, shape, layer);
  attention_layer_detail::attend(pass, shape, layer);
  attention_layer_detail::project_output(pass, weights, shape, layer);
}

VITRINE_NAMESPACE_END
