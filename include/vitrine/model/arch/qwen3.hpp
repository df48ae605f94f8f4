// Qwen3, the dense models (Yang et al. 2025, arXiv 2505.09388): a Llama that normalises each head of the queries and
// keys before rotating them.
//
//   q_norm, k_norm    [head_dim], one for all heads of a layer
//
// The size of a head does not follow from d_model: 128 where config.json is silent. Windows are those of Qwen2.
#pragma once

#include "vitrine/model/arch/qwen2.hpp"

VITRINE_NAMESPACE_BEGIN

namespace arch {

inline ModelConfig qwen3_from_gguf(const GgufFile& file) { return base_from_gguf(file); }

inline ModelConfig qwen3_from_hf(const HfConfig& file) {
  HfDefaults defaults;
  defaults.n_kv_head = 32;
  defaults.head_dim = 128;
  ModelConfig config = base_from_hf(file, defaults);
  config.rope = {hf_rope(file)};
  config.layers = qwen_windows(file, config.n_layer);
  return config;
}

inline Architecture qwen3() {
  return {
      "qwen3",
      true,
      {"qwen3"},
      qwen3_from_gguf,
      qwen3_from_hf,
      with(llama_tensors(), {{Slot::q_norm, "blk.{}.attn_q_norm.weight", "model.layers.{}.self_attn.q_norm.weight"},
                             {Slot::k_norm, "blk.{}.attn_k_norm.weight", "model.layers.{}.self_attn.k_norm.weight"}})};
}

}  // namespace arch

VITRINE_NAMESPACE_END
