// The weights of one decoder block. A matrix [n_rows, n_cols] maps n_cols inputs to n_rows outputs; an empty vector
// means that the architecture has no such part, and the layers then leave that step out.
//
// Norm weights are what a value is multiplied by, whatever the file holds (Gemma's safetensors hold w - 1). The rows of
// wq and wk, and of their biases, are in half-split order: component i of a head is rotated with component
// i + head_dim / 2.
#pragma once

#include <cstddef>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/ops/packed_matrix.hpp"

VITRINE_NAMESPACE_BEGIN

struct LayerWeights {
  std::vector<float> attention_norm;       // [d_model]
  std::vector<float> attention_post_norm;  // [d_model], Gemma: applied to the block's output before the residual
  std::vector<float> feed_forward_norm;    // [d_model]
  std::vector<float> feed_forward_post_norm;
  std::vector<float> q_norm, k_norm;          // [head_dim], Qwen3 and Gemma 3
  std::vector<float> q_bias, k_bias, v_bias;  // [rows of the matrix]
  PackedMatrix wq;                            // [n_head * head_dim, d_model]
  PackedMatrix wk, wv;                        // [n_kv_head * head_dim, d_model]
  PackedMatrix wo;                            // [d_model, n_head * head_dim]
  PackedMatrix w_gate, w_up;                  // [d_ff, d_model]
  PackedMatrix w_down;                        // [d_model, d_ff]
};

VITRINE_NAMESPACE_END
