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
  check_batch(batch, scratch, logits, team.n_threads());
  for (const auto& slice : batch.slices)
    for (std::int64_t i = 0; i < slice.n_rows; ++i)
      scratch.positions[std::size_t(slice.first_row + i)] = slice.pos0 + i;

#ifdef VITRINE_REVERSED_SUMMATION
  trace_fault::watched = observer != nullptr;
#endif
  bool cancelled = false;
  team.run([&](Worker& worker) {
    const Pass pass{worker, kernels, scratch, batch.slices, std::int64_t(batch.tokens.size()), observer};
    // Asked before each layer and before the head; after the barrier all threads see the same answer.
    const auto to_be_left = [&] {
      if (worker.id() == 0 && stop.stop_requested()) {
        cancelled = true;
        worker.stop();
      }
      worker.sync();
      return worker.stopped();
    };
    embed(pass, batch);
    for (std::int64_t layer = 0; layer < config_.n_layer; ++layer) {
      if (to_be_left()) return;
      decoder_block(pass, weights_.layers[std::size_t(layer)], shapes_[std::size_t(layer)], layer);
    }
    if (to_be_left()) return;
    head(pass, batch, logits);
  });
  return !cancelled;
}

VITRINE_INLINE void Transformer::check_batch(const Batch& batch, const PassScratch& scratch,
                                             TensorView<float, 2> logits, int n_threads) const {
  constexpr auto bad = ErrorKind::bad_argument;
  const auto n_tokens = std::int64_t(batch.tokens.size());
  check(n_tokens >= 1 && n_tokens <= std::int64_t(scratch.positions.size()), bad, "batch: expected 1 to ",
        scratch.positions.size(), " tokens, as the scratch was made for, got ", n_tokens);
  check(n_threads <= scratch.n_threads, bad, "batch: the scratch was made for ", scratch.n_threads,
        " threads, the team has ", n_threads);
  for (std::size_t i = 0; i < batch.tokens.size(); ++i)
    check(batch.tokens[i] >= 0 && batch.tokens[i] < config_.n_vocab, bad, "token at index ", i, ": expected 0 to ",
          config_.n_vocab - 1, ", got ", batch.tokens[i]);
  std::int64_t next_row = 0;
  for (const auto& slice : batch.slices) {
    check(slice.first_row == next_row && slice.n_rows >= 1, bad, "slice: expected rows from ", next_row, " on, got ",
          slice.n_rows, " from ", slice.first_row);
    check(slice.layout != nullptr && slice.blocks != nullptr && slice.layout->n_layer == config_.n_layer &&
              slice.layout->n_kv_head == config_.n_kv_head && slice.layout->head_dim == config_.head_dim,
          bad, "slice: expected a cache of this model's shape");
    check(slice.pos0 >= 0 && slice.pos0 + slice.n_rows <= scratch.max_context, bad, "slice: expected positions below ",
          scratch.max_context, ", got ", slice.n_rows, " from ", slice.pos0);
    next_row += slice.n_rows;
  }
  check(next_row == n_tokens, bad, "slices: expected to cover ", n_tokens, " tokens, they cover ", next_row);
  const auto n_logit_rows = std::int64_t(batch.logit_rows.size());
  check(n_logit_rows <= logits.size(0) && n_logit_rows <= n_tokens &&
            (n_logit_rows == 0 || logits.size(1) == config_.n_vocab),
        bad, "logits: expected room for [", n_logit_rows, ", ", config_.n_vocab, "], got [", logits.size(0), ", ",
        logits.size(1), "]");
  for (const auto row : batch.logit_rows)
    check(row >= 0 && row < n_tokens, bad, "logit_rows: expected 0 to ", n_tokens - 1, ", got ", row);
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
  const parallel_detail::DefaultFloatEnvironment environment;  // frequencies must not depend on the host's rounding
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
  scratch.max_context = max_context;
  scratch.n_threads = n_threads;
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
