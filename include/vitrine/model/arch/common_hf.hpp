// Reading a configuration from config.json, in the form of transformers 5 (rope_parameters) and of 4 (rope_theta,
// rope_scaling).
//
// The measure of what may be ignored is transformers itself: a key that its code for this model_type does not read
// cannot change the results.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vitrine/model/arch/common.hpp"

VITRINE_NAMESPACE_BEGIN

namespace arch {

inline std::int64_t hf_size(const HfConfig& config, std::string_view key, std::int64_t most) {
  return in_range(config.name(), config.full_key(key), config.integer(key), most);
}
inline std::int64_t hf_size_or(const HfConfig& config, std::string_view key, std::int64_t most, std::int64_t absent) {
  return config.has(key) ? hf_size(config, key, most) : absent;
}

// The RoPE of a section: {"rope_type": ..., "factor": ..., ...}. `theta` is what holds if the section does not say.
inline RopeConfig hf_rope_section(const HfConfig& section, float theta) {
  RopeConfig rope;
  rope.theta = theta;
  if (const auto stated = section.find_real("rope_theta"))
    rope.theta = rope_base(section.name(), section.full_key("rope_theta"), *stated);
  const auto type = section.has("rope_type") ? section.find_text("rope_type") : section.find_text("type");
  const auto real = [&](const char* key) { return positive(section.name(), section.full_key(key), section.real(key)); };
  if (type == "linear") {
    rope.scaling = RopeScaling::linear;
    rope.factor = real("factor");
  } else if (type == "llama3") {
    rope.scaling = RopeScaling::llama3;
    rope.factor = real("factor");
    rope.low_freq_factor = real("low_freq_factor");
    rope.high_freq_factor = real("high_freq_factor");
    check(rope.low_freq_factor < rope.high_freq_factor, ErrorKind::bad_file, section.name(), ": ",
          section.full_key("low_freq_factor"), " is ", rope.low_freq_factor, ", expected less than high_freq_factor, ",
          rope.high_freq_factor);
    rope.original_context = hf_size(section, "original_max_position_embeddings", longest_context);
  } else {
    check(type == "default" || (!type && !section.has("factor")), ErrorKind::unsupported, section.name(), ": ",
          section.full_key("rope_type"), ": RoPE type ", type ? printable(*type) : "(none stated)",
          " is not supported, expected 'default', 'linear' or 'llama3'");
  }
  static const std::vector<std::string> known = {"rope_theta",
                                                 "rope_type",
                                                 "type",
                                                 "factor",
                                                 "low_freq_factor",
                                                 "high_freq_factor",
                                                 "original_max_position_embeddings",
                                                 "partial_rotary_factor"};
  for (const auto& key : section.keys())
    refuse(std::find(known.begin(), known.end(), key) == known.end(), section.name(), printable(section.full_key(key)),
           "this RoPE parameter is not supported");
  if (const auto part = section.find_real("partial_rotary_factor"))
    refuse(*part != 1, section.name(), section.full_key("partial_rotary_factor"),
           "rotating a part of a head is not supported");
  return rope;
}

// The one RoPE of a model, wherever config.json says it.
inline RopeConfig hf_rope(const HfConfig& config, double default_theta = 10000) {
  const float theta = rope_base(config.name(), "rope_theta", config.find_real("rope_theta").value_or(default_theta));
  auto section = config.find_section("rope_parameters");
  const auto scaling = config.find_section("rope_scaling");
  check(!section || !scaling, ErrorKind::unsupported, config.name(),
        ": expected rope_parameters or rope_scaling, got both");
  if (!section) section = scaling;
  if (section) return hf_rope_section(*section, theta);
  RopeConfig rope;
  rope.theta = theta;
  return rope;
}

// Windows by layer from layer_types, if the file has them. `window` 0: the model has no sliding layers.
inline std::optional<std::vector<LayerConfig>> hf_layer_types(const HfConfig& config, std::int64_t n_layer,
                                                              std::int64_t window) {
  const auto types = config.find_texts("layer_types");
  if (!types) return std::nullopt;
  check(std::int64_t(types->size()) == n_layer, ErrorKind::bad_file, config.name(), ": layer_types has ", types->size(),
        " entries, expected num_hidden_layers = ", n_layer);
  std::vector<LayerConfig> layers;
  for (const auto& type : *types) {
    check(type == "full_attention" || type == "sliding_attention", ErrorKind::unsupported, config.name(),
          ": layer_types: ", printable(type), " is not supported, expected 'full_attention' or 'sliding_attention'");
    check(type == "full_attention" || window > 0, ErrorKind::bad_file, config.name(),
          ": layer_types has 'sliding_attention', but no sliding_window is set");
    layers.push_back({type == "sliding_attention" ? window : 0, 0});
  }
  return layers;
}

struct HfDefaults {  // what transformers assumes for a key that is not in the file; 0: the key must be there
  std::int64_t n_kv_head = 0, head_dim = 0;
  bool tied_head = false;
  const char* activation_key = "hidden_act";
  const char* activation = "silu";
  double rope_theta = 10000;
};

// Everything but RoPE and windows (one unscaled RoPE and full attention are filled in).
inline ModelConfig base_from_hf(const HfConfig& file, const HfDefaults& defaults) {
  const std::string& name = file.name();
  ModelConfig config;
  config.name = file.find_text("_name_or_path").value_or("");
  config.n_layer = hf_size(file, "num_hidden_layers", most_layers);
  config.n_context = hf_size(file, "max_position_embeddings", longest_context);
  config.d_model = hf_size(file, "hidden_size", largest_width);
  config.d_ff = hf_size(file, "intermediate_size", largest_width);
  config.n_vocab = hf_size(file, "vocab_size", INT32_MAX);
  config.n_head = hf_size(file, "num_attention_heads", most_heads);
  const auto n_kv = file.states("num_key_value_heads") || defaults.n_kv_head == 0 ? config.n_head : defaults.n_kv_head;
  config.n_kv_head = hf_size_or(file, "num_key_value_heads", most_heads, n_kv);
  config.head_dim = hf_size_or(file, "head_dim", largest_width, file.states("head_dim") ? 0 : defaults.head_dim);
  if (config.head_dim == 0) {
    check(config.d_model % config.n_head == 0, ErrorKind::bad_file, name, ": hidden_size is ", config.d_model,
          " and num_attention_heads is ", config.n_head, ", expected a multiple of it as there is no head_dim");
    config.head_dim = config.d_model / config.n_head;
  }
  check_heads(name, config, "num_attention_heads", "num_key_value_heads");
  config.norm_eps = positive(name, "rms_norm_eps", file.real("rms_norm_eps"));
  config.attention_scale = inverse_square_root(config.head_dim);
  config.tied_head = file.find_boolean("tie_word_embeddings").value_or(defaults.tied_head);
  config.rope = {RopeConfig{}};
  config.layers.resize(std::size_t(config.n_layer));

  const auto activation = file.find_text(defaults.activation_key).value_or(defaults.activation);
  check(activation == defaults.activation, ErrorKind::unsupported, name, ": ", defaults.activation_key, ": ",
        printable(activation), " is not supported, expected '", defaults.activation, "'");
  if (const auto part = file.find_real("partial_rotary_factor"))
    refuse(*part != 1, name, "partial_rotary_factor", "rotating a part of a head is not supported");
  refuse(file.has("quantization_config"), name, "quantization_config", "quantised safetensors are not supported");
  for (const char* key : {"attention_bias", "mlp_bias", "attn_logit_softcapping", "final_logit_softcapping",
                          "use_bidirectional_attention", "num_experts", "num_local_experts"})
    refuse(!file.is_off(key), name, key, "this feature is not supported for this architecture");
  if (const auto classes = file.find_texts("architectures"); classes && !classes->empty()) {
    const auto generates = [](const std::string& text) { return text.find("ForCausalLM") != std::string::npos; };
    check(std::any_of(classes->begin(), classes->end(), generates), ErrorKind::unsupported, name,
          ": architectures: expected a model ForCausalLM, got ", printable(classes->front()));
  }
  return config;
}

}  // namespace arch

VITRINE_NAMESPACE_END
