// The attention half of a decoder block: norm, q k v, rotation, cache, attention, output projection, residual.
//
//   x += post_norm( Wo attention( rope(q_norm(Wq h)), cache of rope(k_norm(Wk h)), Wv h ) ),  h = norm(x)
//
// Grouped-query attention (Ainslie et al. 2023, arXiv 2305.13245): n_head queries share n_kv_head keys and values.
#pragma once

#include <cstdint>

#include "vitrine/core/config.hpp"
#include "vitrine/layers/layer_weights.hpp"
#include "vitrine/layers/pass.hpp"

VITRINE_NAMESPACE_BEGIN

// Adds the layer's output to pass.x [n_tokens, d_model] and writes K and V of its tokens into their caches.
void attention_layer(const Pass& pass, const LayerWeights& weights, const BlockShape& shape, std::int64_t layer);

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/layers/attention_layer.inl.hpp"
#endif
