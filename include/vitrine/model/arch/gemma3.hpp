// Gemma 3, text only (Gemma Team 2025, arXiv 2503.19786): norms before and after each half of a block and on each head
// of queries and keys, GELU, embeddings times sqrt(d_model), tied head.
//
//   local layers, most of them   see a window of keys and rotate with base 10,000
//   global layers, every sixth   see all keys and rotate with base 1,000,000, in the larger models with scaled RoPE
#pragma once

#include "vitrine/model/arch/llama.hpp"

VITRINE_NAMESPACE_BEGIN

namespace arch {

inline constexpr int global_rope = 0, local_rope = 1;  // indices into ModelConfig::rope

inline void finish_gemma3(ModelConfig& config, RopeConfig global, RopeConfig local) {
  config.activation = GateActivation::gelu_tanh;
  config.embedding_scale = float(std::sqrt(double(config.d_model)));
  config.rope = {std::move(global), std::move(local)};
  for (auto& layer : config.layers) layer.rope = layer.window > 0 ? local_rope : global_rope;
}

inline ModelConfig gemma3_from_gguf(const GgufFile& file) {
  const std::string pattern_key = gguf_key(file, "attention.sliding_window_pattern");
  ModelConfig config =
      base_from_gguf(file, {"attention.sliding_window", "attention.sliding_window_pattern", "rope.freq_base_swa"});
  const auto window = gguf_size(file, "attention.sliding_window", longest_context);
  const auto* pattern = file.find(pattern_key);
  if (pattern != nullptr && pattern->type == GgufType::array) {  // one BOOL per layer: is it local?
    check(pattern->element_type == GgufType::boolean && std::int64_t(pattern->count) == config.n_layer,
          ErrorKind::bad_file, file.name(), ": ", pattern_key, ": expected ", config.n_layer, " BOOL, got ",
          pattern->count, " ", gguf_type_name(pattern->element_type));
    for (std::size_t i = 0; i < config.layers.size(); ++i)
      config.layers[i].window = pattern->bytes[i] != std::byte{0} ? window : 0;
  } else {
    const auto period = gguf_size_or(file, "attention.sliding_window_pattern", most_layers, 6);
    for (std::int64_t i = 0; i < config.n_layer; ++i)
      config.layers[std::size_t(i)].window = (i + 1) % period != 0 ? window : 0;
  }
  // The format has no key for query_pre_attn_scalar; of the released models only the 27B (62 layers) has one that is
  // not the size of a head, and like every other reader of the format we know it by its depth.
  if (config.n_layer == 62) config.attention_scale = inverse_square_root(config.d_model / config.n_head);

  RopeConfig global = config.rope[0], local;
  refuse(!global.frequency_divisors.empty(), file.name(), "tensor 'rope_freqs.weight'",
         "frequency divisors are not supported for this architecture");
  const std::string local_key = gguf_key(file, "rope.freq_base_swa");
  local.theta = rope_base(file.name(), local_key, file.find_real(local_key).value_or(10000));
  finish_gemma3(config, std::move(global), std::move(local));
  return config;
}

inline ModelConfig gemma3_from_hf(const HfConfig& file) {
  HfDefaults defaults;
  defaults.n_kv_head = 4;
  defaults.head_dim = 256;
  defaults.tied_head = true;
  defaults.activation_key = "hidden_activation";
  defaults.activation = "gelu_pytorch_tanh";
  ModelConfig config = base_from_hf(file, defaults);
  const auto scalar = file.find_real("query_pre_attn_scalar").value_or(256);
  config.attention_scale = float(1.0 / std::sqrt(double(positive(file.name(), "query_pre_attn_scalar", scalar))));

  const auto window = hf_size_or(file, "sliding_window", longest_context, 4096);
  if (const auto stated = hf_layer_types(file, config.n_layer, window)) {
    config.layers = *stated;
  } else {
    const char* const key = file.has("sliding_window_pattern") ? "sliding_window_pattern" : "_sliding_window_pattern";
    const auto period = hf_size_or(file, key, most_layers, 6);
    for (std::int64_t i = 0; i < config.n_layer; ++i)
      config.layers[std::size_t(i)].window = (i + 1) % period != 0 ? window : 0;
  }

  const auto sections = file.find_section("rope_parameters");
  if (sections && sections->has("full_attention")) {  // transformers 5
    check(!file.find_section("rope_scaling"), ErrorKind::unsupported, file.name(),
          ": expected rope_parameters or rope_scaling, got both");
    check(sections->has("sliding_attention"), ErrorKind::bad_file, file.name(),
          ": key 'rope_parameters.sliding_attention' is missing");
    finish_gemma3(config, hf_rope_section(*sections->find_section("full_attention"), 1e6f),
                  hf_rope_section(*sections->find_section("sliding_attention"), 1e4f));
    return config;
  }
  RopeConfig local;
  const auto theta = file.find_real("rope_local_base_freq").value_or(10000);
  local.theta = rope_base(file.name(), "rope_local_base_freq", theta);
  finish_gemma3(config, hf_rope(file, 1e6), std::move(local));
  return config;
}

inline Architecture gemma3() {
  Architecture description{
      "gemma3",
      true,
      {"gemma3_text"},
      gemma3_from_gguf,
      gemma3_from_hf,
      with(llama_tensors(),
           {{Slot::q_norm, "blk.{}.attn_q_norm.weight", "model.layers.{}.self_attn.q_norm.weight"},
            {Slot::k_norm, "blk.{}.attn_k_norm.weight", "model.layers.{}.self_attn.k_norm.weight"},
            {Slot::attention_post_norm, "blk.{}.post_attention_norm.weight",
             "model.layers.{}.post_attention_layernorm.weight"},
            {Slot::feed_forward_norm, "blk.{}.ffn_norm.weight", "model.layers.{}.pre_feedforward_layernorm.weight"},
            {Slot::feed_forward_post_norm, "blk.{}.post_ffw_norm.weight",
             "model.layers.{}.post_feedforward_layernorm.weight"}})};
  description.norms_less_one_in_hf = true;
  return description;
}

}  // namespace arch

VITRINE_NAMESPACE_END
