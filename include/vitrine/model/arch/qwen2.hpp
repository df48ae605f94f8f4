// Qwen2 and Qwen2.5 (Yang et al. 2024, arXiv 2407.10671): a Llama with biases on queries, keys and values, and, if the
// configuration asks for it, a sliding window in the upper layers.
//
//   config.json    layer_types, or else use_sliding_window, sliding_window and max_window_layers (the first with one)
//   GGUF           no window: every layer sees all keys, and a file that states a window is refused
#pragma once

#include "vitrine/model/arch/llama.hpp"

VITRINE_NAMESPACE_BEGIN

namespace arch {

inline ModelConfig qwen2_from_gguf(const GgufFile& file) { return base_from_gguf(file); }

// The windows of Qwen2 and Qwen3: layer_types where the file has them, else the layers from max_window_layers on.
inline std::vector<LayerConfig> qwen_windows(const HfConfig& file, std::int64_t n_layer) {
  const bool uses_window = file.find_boolean("use_sliding_window").value_or(false);
  const auto window = uses_window ? hf_size_or(file, "sliding_window", longest_context, 0) : 0;
  if (const auto stated = hf_layer_types(file, n_layer, window)) return *stated;
  const auto first = window > 0 ? file.integer("max_window_layers") : n_layer;
  std::vector<LayerConfig> layers(static_cast<std::size_t>(n_layer));
  for (std::int64_t i = 0; i < n_layer; ++i) layers[std::size_t(i)].window = i >= first ? window : 0;
  return layers;
}

inline ModelConfig qwen2_from_hf(const HfConfig& file) {
  HfDefaults defaults;
  defaults.n_kv_head = 32;
  ModelConfig config = base_from_hf(file, defaults);
  config.rope = {hf_rope(file)};
  config.layers = qwen_windows(file, config.n_layer);
  return config;
}

inline Architecture qwen2() {
  return {"qwen2",
          true,
          {"qwen2"},
          qwen2_from_gguf,
          qwen2_from_hf,
          with(llama_tensors(), {{Slot::q_bias, "blk.{}.attn_q.bias", "model.layers.{}.self_attn.q_proj.bias"},
                                 {Slot::k_bias, "blk.{}.attn_k.bias", "model.layers.{}.self_attn.k_proj.bias"},
                                 {Slot::v_bias, "blk.{}.attn_v.bias", "model.layers.{}.self_attn.v_proj.bias"}})};
}

}  // namespace arch

VITRINE_NAMESPACE_END
