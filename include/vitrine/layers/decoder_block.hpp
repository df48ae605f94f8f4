// One decoder block of a pre-norm transformer (Vaswani et al. 2017, arXiv 1706.03762; norms before each half as in
// Touvron et al. 2023, arXiv 2302.13971):
//
//   x += attention(norm(x))        tokens look at earlier ones      attention_layer.hpp   3/9 to 6/9
//   x += feed_forward(norm(x))     every token for itself           feed_forward.hpp      7/9
//
// x [n_tokens, d_model] is the residual stream: both halves only add to it. A model is n_layer of these blocks.
#pragma once

#include <cstdint>

#include "vitrine/core/config.hpp"
#include "vitrine/layers/attention_layer.hpp"
#include "vitrine/layers/feed_forward.hpp"

VITRINE_NAMESPACE_BEGIN

inline void decoder_block(const Pass& pass, const LayerWeights& weights, const BlockShape& shape, std::int64_t layer) {
  attention_layer(pass, weights, shape, layer);
  pass.cancel.ask(pass.worker);
  feed_forward(pass, weights, shape, layer);
}

VITRINE_NAMESPACE_END
