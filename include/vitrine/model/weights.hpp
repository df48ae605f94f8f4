// All weights of a model, packed for the kernels: what the loader fills and the forward pass reads.
//
//   token_embedding   an id's row is where the token begins          [n_vocab, d_model]
//   layers            the blocks, n_layer of them                    layers/layer_weights.hpp has their shapes
//   final_norm        before the head                                [d_model]
//   lm_head           one row per word of the vocabulary; a tied model has none and uses the embedding again
//
// A matrix [n_out, n_in] stands as the files have it, one row per output, in the kernels' order of memory (layout R16,
// simd/r16.hpp) and in the file's own element type. Immutable once loaded; share it between threads freely.
#pragma once

#include <cstddef>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/layers/layer_weights.hpp"
#include "vitrine/ops/packed_matrix.hpp"

VITRINE_NAMESPACE_BEGIN

struct ModelWeights {
  PackedMatrix token_embedding;   // [n_vocab, d_model]
  PackedMatrix lm_head;           // [n_vocab, d_model]; empty when tied to the embedding
  std::vector<float> final_norm;  // [d_model]
  std::vector<LayerWeights> layers;

  // The output head: d_model inputs to n_vocab logits.
  const PackedMatrix& head() const { return lm_head.empty() ? token_embedding : lm_head; }

  // Calls matrix(const PackedMatrix&) and vector(const std::vector<float>&) for all weights, in a fixed order.
  template <class OnMatrix, class OnVector>
  void visit(OnMatrix&& matrix, OnVector&& vector) const {
    matrix(token_embedding);
    matrix(lm_head);
    vector(final_norm);
    for (const auto& layer : layers) {
      for (const auto* each : {&layer.wq, &layer.wk, &layer.wv, &layer.wo, &layer.w_gate, &layer.w_up, &layer.w_down})
        matrix(*each);
      for (const auto* each :
           {&layer.attention_norm, &layer.attention_post_norm, &layer.feed_forward_norm, &layer.feed_forward_post_norm,
            &layer.q_norm, &layer.k_norm, &layer.q_bias, &layer.k_bias, &layer.v_bias})
        vector(*each);
    }
  }

  std::size_t bytes() const {
    std::size_t sum = 0;
    visit([&](const PackedMatrix& matrix) { sum += matrix.bytes(); },
          [&](const std::vector<float>& values) { sum += values.size() * sizeof(float); });
    return sum;
  }
};

VITRINE_NAMESPACE_END
