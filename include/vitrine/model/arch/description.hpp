// What an architecture has to say of itself: which names it goes by, how its metadata is read, what its tensors are
// called. architecture.hpp has the list of all; arch/llama.hpp is the one to read first.
//
// A Slot is a place in a model that a tensor can fill; which slots an architecture names decides what a layer does (a
// layer with q_norm normalises its queries, one without does not).
#pragma once

#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/model/config.hpp"
#include "vitrine/model/gguf.hpp"
#include "vitrine/model/hf_config.hpp"

VITRINE_NAMESPACE_BEGIN

// The parts of a model that a tensor can fill; see LayerWeights and ModelWeights.
enum class Slot {
  token_embedding,
  final_norm,
  lm_head,
  attention_norm,
  attention_post_norm,
  feed_forward_norm,
  feed_forward_post_norm,
  q_norm,
  k_norm,
  q_bias,
  k_bias,
  v_bias,
  wq,
  wk,
  wv,
  wo,
  w_gate,
  w_up,
  w_down
};

// What the tensor of a slot is called; "{}" stands for the number of the layer, and is there exactly for the slots of a
// layer.
struct TensorName {
  Slot slot;
  const char* gguf;
  const char* hf;
};

struct Architecture {
  const char* name;
  bool in_gguf;                       // whether GGUF files of this general.architecture exist
  std::vector<const char*> hf_types;  // config.json's model_type
  ModelConfig (*from_gguf)(const GgufFile&);
  ModelConfig (*from_hf)(const HfConfig&);
  std::vector<TensorName> tensors;
  bool interleaved_rope_in_gguf = false;  // rotary pairs are rows (2i, 2i + 1) there, not (i, i + head_dim / 2)
  bool norms_less_one_in_hf = false;      // a norm multiplies by 1 + w there
};

VITRINE_NAMESPACE_END
