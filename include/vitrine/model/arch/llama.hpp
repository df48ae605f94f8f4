// Llama 1 to 3.x and all that copy it (SmolLM2, TinyLlama, ...; Touvron et al. 2023, arXiv 2302.13971): RMSNorm, rotary
// positions, grouped-query attention, gated feed-forward with SiLU, no biases.
//
// The pattern for a new architecture: one function per file format that turns its keys into a ModelConfig, the names of
// the tensors, and llama() that lists them. GGUF files of Llama have the rows of q and k interleaved (pairs (2i, 2i+1)
// are rotated); the loader puts them into the half-split order that the kernels know.
#pragma once

#include "vitrine/model/arch/common_gguf.hpp"
#include "vitrine/model/arch/common_hf.hpp"

VITRINE_NAMESPACE_BEGIN

namespace arch {

// In GGUF, Mistral models are of this architecture, too, and say nothing of their window.
inline ModelConfig llama_from_gguf(const GgufFile& file) { return base_from_gguf(file); }

inline ModelConfig llama_from_hf(const HfConfig& file) {
  ModelConfig config = base_from_hf(file, {});
  config.rope = {hf_rope(file)};
  return config;
}

inline std::vector<TensorName> llama_tensors() {
  return {{Slot::token_embedding, "token_embd.weight", "model.embed_tokens.weight"},
          {Slot::final_norm, "output_norm.weight", "model.norm.weight"},
          {Slot::lm_head, "output.weight", "lm_head.weight"},
          {Slot::attention_norm, "blk.{}.attn_norm.weight", "model.layers.{}.input_layernorm.weight"},
          {Slot::wq, "blk.{}.attn_q.weight", "model.layers.{}.self_attn.q_proj.weight"},
          {Slot::wk, "blk.{}.attn_k.weight", "model.layers.{}.self_attn.k_proj.weight"},
          {Slot::wv, "blk.{}.attn_v.weight", "model.layers.{}.self_attn.v_proj.weight"},
          {Slot::wo, "blk.{}.attn_output.weight", "model.layers.{}.self_attn.o_proj.weight"},
          {Slot::feed_forward_norm, "blk.{}.ffn_norm.weight", "model.layers.{}.post_attention_layernorm.weight"},
          {Slot::w_gate, "blk.{}.ffn_gate.weight", "model.layers.{}.mlp.gate_proj.weight"},
          {Slot::w_up, "blk.{}.ffn_up.weight", "model.layers.{}.mlp.up_proj.weight"},
          {Slot::w_down, "blk.{}.ffn_down.weight", "model.layers.{}.mlp.down_proj.weight"}};
}

inline Architecture llama() {
  Architecture description{"llama", true, {"llama"}, llama_from_gguf, llama_from_hf, llama_tensors()};
  description.interleaved_rope_in_gguf = true;
  return description;
}

// The names of `base` with those of other or further slots put in their place.
inline std::vector<TensorName> with(std::vector<TensorName> base, const std::vector<TensorName>& changes) {
  for (const auto& change : changes) {
    std::erase_if(base, [&](const TensorName& name) { return name.slot == change.slot; });
    base.push_back(change);
  }
  return base;
}

}  // namespace arch

VITRINE_NAMESPACE_END
