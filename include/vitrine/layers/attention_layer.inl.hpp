// Bodies of layers/attention_layer.hpp.
#pragma once

#include <algorithm>

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
  auto &worker = pass.worker, &nearby = pass.nearby;
  const auto q = pass.rows(pass.scratch.q), k = pass.rows(pass.scratch.k), v = pass.rows(pass.scratch.v);

  pass.announce(weights.wq);
  pass.prepare_normed(weights.attention_norm, shape.norm_eps, {&weights.wq, &weights.wk, &weights.wv});
  pass.show("3/9 project", "attention_norm", layer, pass.normed, "d_model");
  const auto bias = [](const std::vector<float>& values) { return values.empty() ? nullptr : values.data(); };
  linear(worker, pass.kernels, weights.wq, pass.input, q, {.bias = bias(weights.q_bias)});
  linear(worker, pass.kernels, weights.wk, pass.input, k, {.bias = bias(weights.k_bias)});
  linear(worker, pass.kernels, weights.wv, pass.input, v, {.bias = bias(weights.v_bias)});
  worker.sync();
  pass.show("3/9 project", "q", layer, q, "n_head * head_dim");
  pass.show("3/9 project", "k", layer, k, "n_kv_head * head_dim");
  pass.show("3/9 project", "v", layer, v, "n_kv_head * head_dim");

  // From here on queries and keys are those of the pass, which may be this thread's own copies.
  const auto norm_heads = [&](TensorView<float, 2> from, const std::vector<float>& weight, TensorView<float, 2> to) {
    const auto head_dim = shape.attention.head_dim;
    if (!weight.empty())
      rms_norm(nearby, pass.kernels, heads(from, head_dim), weight.data(), shape.norm_eps, heads(to, head_dim));
    else if (to.data() != from.data())
      std::copy_n(from.data(), from.count(), to.data());
  };
  norm_heads(q, weights.q_norm, pass.q);
  norm_heads(k, weights.k_norm, pass.k);
  if (weights.q_norm.empty() && weights.k_norm.empty()) return;
  nearby.sync();
  pass.show("3/9 project", "q_norm", layer, pass.q, "n_head * head_dim");
  pass.show("3/9 project", "k_norm", layer, pass.k, "n_kv_head * head_dim");
}

// STEP 4/9 rope: queries and keys are turned by their position.
VITRINE_INLINE void rotate(const Pass& pass, const BlockShape& shape, std::int64_t layer) {
  const auto cos = pass.rows(pass.scratch.cos[std::size_t(shape.rope)]);
  const auto sin = pass.rows(pass.scratch.sin[std::size_t(shape.rope)]);
  if (shape.attention.sinks > 0) {  // the sinks are seen from where a query would stand right behind the window
    const auto sink_cos = pass.rows(pass.scratch.sink_cos[std::size_t(shape.rope)]);
    const auto sink_sin = pass.rows(pass.scratch.sink_sin[std::size_t(shape.rope)]);
    pass.nearby.for_chunks(pass.n_tokens, 16, [&](std::int64_t begin, std::int64_t end) {
      std::copy_n(pass.q.row(begin).data(), (end - begin) * pass.q.size(1), pass.q_sink.row(begin).data());
    });
    pass.nearby.sync();
    rope(pass.nearby, pass.kernels, pass.q_sink, shape.attention.n_head, shape.attention.head_dim, sink_cos, sink_sin);
  }
  rope(pass.nearby, pass.kernels, pass.q, shape.attention.n_head, shape.attention.head_dim, cos, sin);
  rope(pass.nearby, pass.kernels, pass.k, shape.attention.n_kv_head, shape.attention.head_dim, cos, sin);
  pass.nearby.sync();
  pass.show("4/9 rope", "q_rope", layer, pass.q, "n_head * head_dim");
  pass.show("4/9 rope", "k_rope", layer, pass.k, "n_kv_head * head_dim");
  if (shape.attention.sinks > 0) pass.show("4/9 rope", "q_sink", layer, pass.q_sink, "n_head * head_dim");
}

// STEP 5/9 attention: K and V go into the cache (rounded to its type); then each query reads the cache.
VITRINE_INLINE void attend(const Pass& pass, const BlockShape& shape, std::int64_t layer) {
  auto& worker = pass.worker;
  const auto rows_of = [](TensorView<float, 2> x, const SequenceSlice& slice) {
    return TensorView<float, 2>{x.data() + slice.first_row * x.size(1), {slice.n_rows, x.size(1)}};
  };
  const auto v = pass.rows(pass.scratch.v), mixed = pass.rows(pass.scratch.mixed);
  for (const auto& slice : pass.slices)
    store_kv(worker, pass.kernels, slice.cache->view(layer), slice.pos0, rows_of(pass.k, slice), rows_of(v, slice));
  worker.sync();
  // A sequence that is a large part of the work is shared by all threads; of many others each thread takes whole ones.
  const auto work = [](const SequenceSlice& slice) { return slice.n_rows * (slice.pos0 + slice.n_rows); };
  std::int64_t all_work = 0;
  for (const auto& slice : pass.slices) all_work += work(slice);
  const auto is_large = [&](const SequenceSlice& slice) { return 2 * worker.n_threads() * work(slice) > all_work; };
  const auto attend_slice = [&](Worker& by, const SequenceSlice& slice) {
    attention(by, pass.kernels, shape.attention, rows_of(pass.q, slice), slice.cache->view(layer), slice.pos0,
              rows_of(mixed, slice), pass.scratch.attention,
              shape.attention.sinks > 0 ? rows_of(pass.q_sink, slice) : TensorView<float, 2>());
  };
  for (const auto& slice : pass.slices)
    if (is_large(slice)) attend_slice(worker, slice);
  if (pass.slices.size() > 1) {
    OwnWorker alone(worker);
    worker.for_chunks(std::int64_t(pass.slices.size()), 1, [&](std::int64_t i, std::int64_t) {
      if (const auto& slice = pass.slices[std::size_t(i)]; !is_large(slice)) attend_slice(alone, slice);
    });
  }
  worker.sync();
  pass.show("5/9 attention", "attention", layer, mixed, "n_head * head_dim");
}

// STEP 6/9 output: the heads' results are mixed and added to the residual stream.
VITRINE_INLINE void project_output(const Pass& pass, const LayerWeights& weights, const BlockShape& shape,
                                   std::int64_t layer) {
  pass.announce(weights.wo);
  pass.prepare(pass.rows(pass.scratch.mixed), {&weights.wo});
  add_to_residual(pass, weights.wo, weights.attention_post_norm, shape.norm_eps);
  pass.show("6/9 output", "attention_residual", layer, pass.x, "d_model");
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
