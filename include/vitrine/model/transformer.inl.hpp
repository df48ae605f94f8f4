// Bodies of model/transformer.hpp.
#pragma once

#include <algorithm>
#include <utility>

#include "vitrine/layers/decoder_block.hpp"
#include "vitrine/model/rope_frequencies.hpp"
#include "vitrine/model/transformer.hpp"
#include "vitrine/ops/elementwise.hpp"
#include "vitrine/ops/linear.hpp"

VITRINE_NAMESPACE_BEGIN

VITRINE_INLINE bool Transformer::forward(Team& team, const KernelTable& kernels, const Batch& batch,
                                         PassScratch& scratch, TensorView<float, 2> logits,
                                         const TraceObserver* observer, const std::stop_token& stop) const {
  for (const auto& slice : batch.slices)
    for (std::int64_t i = 0; i < slice.n_rows; ++i)
      scratch.positions[std::size_t(slice.first_row + i)] = slice.pos0 + i;

#ifdef VITRINE_REVERSED_SUMMATION
  trace_fault::watched = observer != nullptr;
#endif
  bool cancelled = false;
  team.run([&](Worker& worker) {
    const Pass pass{worker, kernels, scratch, batch.slices, std::int64_t(batch.tokens.size()), observer};
    embed(pass, batch);
    for (std::int64_t layer = 0; layer < config_.n_layer; ++layer) {
      if (worker.id() == 0 && stop.stop_requested()) {
        cancelled = true;
        worker.stop();
      }
      worker.sync();  // all threads see the same answer
      if (worker.stopped()) return;
      decoder_block(pass, weights_.layers[std::size_t(layer)], shapes_[std::size_t(layer)], layer);
    }
    head(pass, batch, logits);
  });
  return !cancelled;
}

// STEP 2/9 embed: every id becomes its row of the embedding matrix, the start of the residual stream x.
VITRINE_INLINE void Transformer::embed(const Pass& pass, const Batch& batch) const {
  auto& [worker, kernels, scratch, slices, n_tokens, observer] = pass;
  const auto x = pass.rows(scratch.x);
  worker.for_chunks(n_tokens, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t)
      weights_.token_embedding.decode_row(batch.tokens[std::size_t(t)], x.row(t).data());
  });
  const std::span<const std::int64_t> positions(scratch.positions.data(), std::size_t(n_tokens));
  for (std::size_t i = 0; i < inverse_frequencies_.size(); ++i)
    rope_cos_sin(worker, inverse_frequencies_[i], positions, pass.rows(scratch.cos[i]), pass.rows(scratch.sin[i]));
  if (config_.embedding_scale != 1.0f) {
    worker.sync();
    scale(worker, kernels, x, config_.embedding_scale);
  }
  worker.sync();
  pass.show("2/9 embed", "embedding", -1, x, "d_model");
}

// STEP 8/9 head: the wanted rows of the residual stream are normed and compared with every word of the vocabulary.
VITRINE_INLINE void Transformer::head(const Pass& pass, const Batch& batch, TensorView<float, 2> logits) const {
  auto& [worker, kernels, scratch, slices, n_tokens, observer] = pass;
  const auto n_rows = std::int64_t(batch.logit_rows.size());
  if (n_rows == 0) return;
  const auto d_model = config_.d_model;
  const TensorView<float, 2> normed(scratch.normed.data(), {n_rows, d_model});
  for (std::int64_t i = 0; i < n_rows; ++i) {
    const TensorView<const float, 2> x(scratch.x.data() + batch.logit_rows[std::size_t(i)] * d_model, {1, d_model});
    rms_norm(worker, kernels, x, weights_.final_norm.data(), config_.norm_eps,
             {normed.data() + i * d_model, {1, d_model}});
  }
  worker.sync();
  pass.show("8/9 head", "final_norm", -1, normed, "d_model");
  scratch.input.prepare(worker, kernels, normed, {&weights_.head()});
  worker.sync();
  linear(worker, kernels, weights_.head(), scratch.input, {logits.data(), {n_rows, config_.n_vocab}});
  worker.sync();
  pass.show("8/9 head", "logits", -1, {logits.data(), {n_rows, config_.n_vocab}}, "n_vocab");
}

VITRINE_INLINE Transformer::Transformer(LoadedModel loaded)
    : config_(std::move(loaded.config)), weights_(std::move(loaded.weights)) {
  for (const auto& layer : config_.layers) shapes_.push_back(block_shape(layer));
  for (const auto& rope : config_.rope) inverse_frequencies_.push_back(inverse_frequencies(rope, config_.head_dim));
}

VITRINE_INLINE BlockShape Transformer::block_shape(const LayerConfig& layer) const {
  const AttentionShape attention{config_.n_head, config_.n_kv_head, config_.head_dim, layer.window,
                                 config_.attention_scale};
  return {attention, config_.d_model, config_.d_ff, config_.norm_eps, config_.activation == GateActivation::gelu_tanh,
          layer.rope};
}

VITRINE_INLINE PassScratch Transformer::make_scratch(std::int64_t max_tokens, std::int64_t max_context,
                                                     int n_threads) const {
  const auto matrix = [max_tokens](std::int64_t width) { return Tensor<float, 2>({max_tokens, width}, false); };
  const auto q_width = config_.n_head * config_.head_dim, kv_width = config_.n_kv_head * config_.head_dim;
  PassScratch scratch;
  scratch.x = matrix(config_.d_model);
  scratch.normed = matrix(config_.d_model);
  scratch.q = matrix(q_width);
  scratch.k = matrix(kv_width);
  scratch.v = matrix(kv_width);
  scratch.mixed = matrix(q_width);
  scratch.gate = matrix(config_.d_ff);
  scratch.up = matrix(config_.d_ff);
  for (std::size_t i = 0; i < inverse_frequencies_.size(); ++i) {
    scratch.cos.push_back(matrix(config_.head_dim / 2));
    scratch.sin.push_back(matrix(config_.head_dim / 2));
  }
  scratch.positions.resize(std::size_t(max_tokens));
  scratch.input.reserve(max_tokens, (std::max)({config_.d_model, config_.d_ff, q_width}));
  for (const auto& shape : shapes_) scratch.attention.reserve(shape.attention, max_tokens, max_context, n_threads);
  return scratch;
}

VITRINE_NAMESPACE_END
