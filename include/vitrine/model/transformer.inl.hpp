// Bodies of model/transformer.hpp.
#pragma once

#include <algorithm>
#include <utility>

#include "vitrine/layers/decoder_block.hpp"
#include "vitrine/model/rope_frequencies.hpp"
#include "vitrine/model/transformer.hpp"
#include "vitrine/ops/elementwise.hpp"
#include "vitrine/ops/linear.hpp"
#include "vitrine/ops/top_logits.hpp"

VITRINE_NAMESPACE_BEGIN

VITRINE_INLINE bool Transformer::forward(Team& team, const KernelTable& kernels, const Batch& batch,
                                         PassScratch& scratch, const LogitsView& logits, const TraceObserver* observer,
                                         const std::stop_token& stop) const {
  check_batch(batch, scratch, logits, team.n_threads());
  for (const auto& slice : batch.slices)
    for (std::int64_t i = 0; i < slice.n_rows; ++i)
      scratch.positions[std::size_t(slice.first_row + i)] = slice.pos0 + i;
  const AttentionShape limited{.window = scratch.limit.window, .sinks = scratch.limit.sinks};
  for (std::size_t i = 0; i < scratch.sink_positions.size(); ++i)
    scratch.sink_positions[i] = limited.sink_position(scratch.positions[i]);

#ifdef VITRINE_REVERSED_SUMMATION
  trace_fault::watched = observer != nullptr;
  trace_fault::n_tokens = std::int64_t(batch.tokens.size());
#endif
  // Whoever looks at all logits is shown all.
  auto wanted = logits;
  const bool only_top = wanted.top && batch.logit_rows.size() == 1 && wanted.block_max.data() && !observer;
  if (!only_top || !wanted.top->begins(wanted.n_top)) wanted.top = nullptr;
  Cancellation cancel{stop};
  team.run([&](Worker& worker) {
    OwnWorker alone(worker);
    const Pass pass(worker, alone, kernels, scratch, batch.slices, std::int64_t(batch.tokens.size()), observer, cancel);
    embed(pass, batch);
    for (std::int64_t layer = 0; layer < config_.n_layer; ++layer) {
      decoder_block(pass, weights_.layers[std::size_t(layer)], scratch.shapes[std::size_t(layer)], layer);
      if (cancel.requested || worker.stopped()) return;
    }
    head(pass, batch, wanted);
  });
  return !cancel.requested;
}

VITRINE_INLINE void Transformer::check_batch(const Batch& batch, const PassScratch& scratch, const LogitsView& logits,
                                             int n_threads) const {
  constexpr auto bad = ErrorKind::bad_argument;
  owned(weights_.layers.empty() ? nullptr : this, "transformer");
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
    check(slice.cache != nullptr && slice.cache->layout().n_layer == config_.n_layer &&
              slice.cache->layout().n_kv_head == config_.n_kv_head &&
              slice.cache->layout().head_dim == config_.head_dim,
          bad, "slice: expected a cache of this model's shape");
    check(slice.pos0 >= 0 && slice.pos0 + slice.n_rows <= scratch.max_context, bad, "slice: expected positions below ",
          scratch.max_context, ", got ", slice.n_rows, " from ", slice.pos0);
    next_row += slice.n_rows;
  }
  check(next_row == n_tokens, bad, "slices: expected to cover ", n_tokens, " tokens, they cover ", next_row);
  const auto n_logit_rows = std::int64_t(batch.logit_rows.size()), n_blocks = Logits::n_blocks(config_.n_vocab);
  const auto &values = logits.values, &block_max = logits.block_max;
  check(n_logit_rows <= values.size(0) && n_logit_rows <= n_tokens &&
            (n_logit_rows == 0 || values.size(1) == config_.n_vocab),
        bad, "logits: expected room for [", n_logit_rows, ", ", config_.n_vocab, "], got [", values.size(0), ", ",
        values.size(1), "]");
  check(!block_max.data() || (block_max.size(0) == values.size(0) && block_max.size(1) == n_blocks), bad,
        "logits: expected room for maxima [", values.size(0), ", ", n_blocks, "], got [", block_max.size(0), ", ",
        block_max.size(1), "]");
  for (const auto row : batch.logit_rows)
    check(row >= 0 && row < n_tokens, bad, "logit_rows: expected 0 to ", n_tokens - 1, ", got ", row);
}

// STEP 2/9 embed: every id becomes its row of the embedding matrix, the start of the residual stream x.
VITRINE_INLINE void Transformer::embed(const Pass& pass, const Batch& batch) const {
  auto &worker = pass.worker, &nearby = pass.nearby;
  auto& scratch = pass.scratch;
  nearby.for_chunks(pass.n_tokens, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t)
      weights_.token_embedding.decode_row(batch.tokens[std::size_t(t)], pass.x.row(t).data());
  });
  if (config_.embedding_scale != 1.0f) {
    nearby.sync();
    scale(nearby, pass.kernels, pass.x, config_.embedding_scale);
  }
  const std::span<const std::int64_t> positions(scratch.positions.data(), std::size_t(pass.n_tokens));
  const std::span<const std::int64_t> sink_positions(scratch.sink_positions.data(),
                                                     scratch.sink_cos.empty() ? 0 : positions.size());
  for (std::size_t i = 0; i < inverse_frequencies_.size(); ++i)
    rope_cos_sin(worker, inverse_frequencies_[i], positions, pass.rows(scratch.cos[i]), pass.rows(scratch.sin[i]));
  for (std::size_t i = 0; i < scratch.sink_cos.size(); ++i)
    rope_cos_sin(worker, inverse_frequencies_[i], sink_positions, pass.rows(scratch.sink_cos[i]),
                 pass.rows(scratch.sink_sin[i]));
  worker.sync();
  pass.show("2/9 embed", "embedding", -1, pass.x, "d_model");
}

// STEP 8/9 head: the wanted rows of the residual stream are normed and compared with every word of the vocabulary.
VITRINE_INLINE void Transformer::head(const Pass& pass, const Batch& batch, const LogitsView& logits) const {
  auto& worker = pass.worker;
  const auto n_rows = std::int64_t(batch.logit_rows.size());
  if (n_rows == 0) return;
  const TensorView<float, 2> normed(pass.normed.data(), {n_rows, config_.d_model});
  pass.announce(weights_.head(), n_rows);
  pass.prepare(normed, {&weights_.head()}, [&](std::int64_t i) {
    rms_norm_row(pass.nearby, pass.kernels, pass.x.row(batch.logit_rows[std::size_t(i)]), weights_.final_norm.data(),
                 config_.norm_eps, normed.row(i));
  });
  pass.show("8/9 head", "final_norm", -1, normed, "d_model");
  const auto first = [n_rows](TensorView<float, 2> all) -> TensorView<float, 2> {
    return {all.data(), {n_rows, all.size(1)}, all.strides()};
  };
  const auto values = first(logits.values);
  const auto maxima = first(logits.block_max);
  if (!logits.top ||
      !logits.top->compute(worker, pass.kernels, weights_.head(), pass.input, values.row(0), maxima.row(0)))
    linear(worker, pass.kernels, weights_.head(), pass.input, values, {.block_max = maxima});
  worker.sync();
  pass.show("8/9 head", "logits", -1, values, "n_vocab");
}

VITRINE_INLINE Transformer::Transformer(LoadedModel loaded)
    : config_(std::move(loaded.config)), weights_(std::move(loaded.weights)) {
  const parallel_detail::DefaultFloatEnvironment environment;  // frequencies must not depend on the host's rounding
  for (const auto& rope : config_.rope)
    inverse_frequencies_.push_back(vitrine::inverse_frequencies(rope, config_.head_dim));
}

VITRINE_INLINE std::vector<KvReach> Transformer::kv_reach(const ModelConfig& config, const KvReach& limit) {
  std::vector<KvReach> result;
  for (const auto& layer : config.layers) {
    const auto limited = block_shape(config, layer).attention.limited(limit.window, limit.sinks);
    result.push_back({limited.window, limited.sinks});
  }
  return result;
}

VITRINE_INLINE BlockShape Transformer::block_shape(const ModelConfig& config, const LayerConfig& layer) {
  const AttentionShape attention{config.n_head, config.n_kv_head, config.head_dim, layer.window,
                                 config.attention_scale};
  return {attention, config.d_model, config.d_ff, config.norm_eps, config.activation == GateActivation::gelu_tanh,
          layer.rope};
}

VITRINE_INLINE PassScratch Transformer::make_scratch(const ModelConfig& config, std::int64_t max_tokens,
                                                     std::int64_t max_context, int n_threads, const KvReach& limit) {
  const auto q_width = config.n_head * config.head_dim, kv_width = config.n_kv_head * config.head_dim;
  const auto most_cols = (std::max)({config.d_model, config.d_ff, q_width});
  const auto matrix = [max_tokens](std::int64_t width) { return Tensor<float, 2>({max_tokens, width}, false); };
  PassScratch scratch;
  scratch.limit = limit;
  for (const auto& layer : config.layers) {
    auto& shape = scratch.shapes.emplace_back(block_shape(config, layer));
    shape.attention = shape.attention.limited(limit.window, limit.sinks);
  }
  scratch.max_context = max_context;
  scratch.n_threads = n_threads;
  scratch.q = matrix(q_width);
  scratch.k = matrix(kv_width);
  scratch.v = matrix(kv_width);
  scratch.mixed = matrix(q_width);
  scratch.projected = matrix(config.d_model);
  scratch.gate = matrix(config.d_ff);
  scratch.up = matrix(config.d_ff);
  scratch.shared.x = matrix(config.d_model);
  scratch.shared.normed = matrix(config.d_model);
  if (limit.sinks > 0) scratch.shared.q_sink = matrix(q_width);
  scratch.shared.input.reserve(max_tokens, most_cols);
  for (int i = 0; i < n_threads; ++i) {
    const auto own = [](std::int64_t width) { return Tensor<float, 2>({max_own_tokens, width}); };
    auto& vectors = scratch.own.emplace_back();
    vectors.x = own(config.d_model);
    vectors.normed = own(config.d_model);
    vectors.q = own(q_width);
    if (limit.sinks > 0) vectors.q_sink = own(q_width);
    vectors.k = own(kv_width);
    vectors.gated = own(config.d_ff);
    vectors.input.reserve(max_own_tokens, most_cols);
  }
  for (std::size_t i = 0; i < config.rope.size(); ++i) {
    scratch.cos.push_back(matrix(config.head_dim / 2));
    scratch.sin.push_back(matrix(config.head_dim / 2));
    if (limit.sinks == 0) continue;
    scratch.sink_cos.push_back(matrix(config.head_dim / 2));
    scratch.sink_sin.push_back(matrix(config.head_dim / 2));
  }
  scratch.positions.resize(std::size_t(max_tokens));
  if (limit.sinks > 0) scratch.sink_positions.resize(std::size_t(max_tokens));
  for (const auto& shape : scratch.shapes)
    scratch.attention.reserve(shape.attention, max_tokens, max_context, n_threads);
  return scratch;
}

VITRINE_NAMESPACE_END
