// Mistral 7B (Jiang et al. 2023, arXiv 2310.06825): a Llama in which every layer sees a sliding window of keys.
//
//   config.json    sliding_window: 4096 if the key is missing, no window if it is null, the same for all layers
//
// Only from safetensors: in GGUF these models are written as "llama", without the window. Layers with and without
// a window in one file are refused.
#pragma once

#include "vitrine/model/arch/llama.hpp"

VITRINE_NAMESPACE_BEGIN

namespace arch {

inline ModelConfig mistral_from_hf(const HfConfig& file) {
  HfDefaults defaults;
  defaults.n_kv_head = 8;
  ModelConfig config = base_from_hf(file, defaults);
  config.rope = {hf_rope(file)};
  // null: no window. transformers takes a missing key to be 4096.
  const auto window = hf_size_or(file, "sliding_window", longest_context, file.states("sliding_window") ? 0 : 4096);
  for (auto& layer : config.layers) layer.window = window;
  if (const auto stated = hf_layer_types(file, config.n_layer, window))
    for (const auto& layer : *stated)
      refuse(layer.window != window, file.name(), "layer_types",
             "layers with and without window are not supported here");
  return config;
}

inline Architecture mistral() { return {"mistral", false, {"mistral"}, nullptr, mistral_from_hf, llama_tensors()}; }

}  // namespace arch

VITRINE_NAMESPACE_END
