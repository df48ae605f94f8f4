// The feed-forward half of a decoder block, gated (Shazeer 2020, arXiv 2002.05202):
//
//   x += post_norm( Wdown( act(Wgate h) * Wup h ) ),  h = norm(x),  act = SiLU or GELU
//
// Every token for itself: gate and up [n_tokens, d_ff] say how much of each of d_ff features is there, down mixes them
// back to d_model. These three matrices are most of a model's weights.
#pragma once

#include <cstdint>

#include "vitrine/core/config.hpp"
#include "vitrine/layers/layer_weights.hpp"
#include "vitrine/layers/pass.hpp"

VITRINE_NAMESPACE_BEGIN

// Adds the layer's output to pass.x [n_tokens, d_model].
void feed_forward(const Pass& pass, const LayerWeights& weights, const BlockShape& shape, std::int64_t layer);

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/layers/feed_forward.inl.hpp"
#endif
