// One decoder block: attention, then feed-forward, each adding to the residual stream x (pre-norm transformer).
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
