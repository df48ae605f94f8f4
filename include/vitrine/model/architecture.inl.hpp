// Bodies of architecture.hpp, and the list of architectures.
#pragma once

#include "vitrine/model/arch/gemma3.hpp"
#include "vitrine/model/arch/llama.hpp"
#include "vitrine/model/arch/mistral.hpp"
#include "vitrine/model/arch/qwen2.hpp"
#include "vitrine/model/arch/qwen3.hpp"
#include "vitrine/model/architecture.hpp"

VITRINE_NAMESPACE_BEGIN

VITRINE_INLINE const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> all = {arch::llama(), arch::qwen2(), arch::qwen3(), arch::mistral(),
                                                arch::gemma3()};
  return all;
}

VITRINE_INLINE const Architecture& architecture_of(const GgufFile& file) {
  const auto name = file.text("general.architecture");
  std::string names;
  for (const auto& architecture : architectures()) {
    if (!architecture.in_gguf) continue;
    if (name == architecture.name) return architecture;
    names += concat(names.empty() ? "" : ", ", architecture.name);
  }
  throw Error(ErrorKind::unsupported, concat(file.name(), ": architecture ", printable(name),
                                             " (general.architecture) is not supported; supported are ", names));
}

VITRINE_INLINE const Architecture& architecture_of(const HfConfig& config) {
  const auto type = config.text("model_type");
  std::string names;
  for (const auto& architecture : architectures())
    for (const char* const name : architecture.hf_types) {
      if (type == name) return architecture;
      names += concat(names.empty() ? "" : ", ", name);
    }
  throw Error(ErrorKind::unsupported, concat(config.name(), ": architecture ", printable(type),
                                             " (model_type) is not supported; supported are ", names));
}

VITRINE_INLINE ModelConfig config_from_gguf(const GgufFile& file) { return architecture_of(file).from_gguf(file); }

VITRINE_INLINE ModelConfig config_from_hf(const HfConfig& config) {
  const Architecture& architecture = architecture_of(config);
  ModelConfig out = architecture.from_hf(config);
  out.architecture = architecture.name;
  return out;
}

VITRINE_INLINE std::optional<std::filesystem::path> model_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return path;
  if (path.extension() != ".safetensors" && path.extension() != ".json") return std::nullopt;
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

VITRINE_INLINE ModelConfig read_config(const std::filesystem::path& path) {
  const auto folder = model_folder(path);
  if (!folder) return config_from_gguf(GgufFile::open(path));
  ModelConfig config = config_from_hf(HfConfig::open(*folder / "config.json"));
  std::error_code ignored;
  if (config.name.empty())
    config.name = std::filesystem::absolute(*folder, ignored).lexically_normal().filename().string();
  return config;
}

VITRINE_INLINE SlotShape slot_shape(Slot slot, const ModelConfig& config) {
  const std::int64_t q_rows = config.n_head * config.head_dim, kv_rows = config.n_kv_head * config.head_dim;
  switch (slot) {
    case Slot::token_embedding:
    case Slot::lm_head: return {config.n_vocab, config.d_model};
    case Slot::final_norm:
    case Slot::attention_norm:
    case Slot::attention_post_norm:
    case Slot::feed_forward_norm:
    case Slot::feed_forward_post_norm: return {config.d_model, 0};
    case Slot::q_norm:
    case Slot::k_norm: return {config.head_dim, 0};
    case Slot::q_bias: return {q_rows, 0};
    case Slot::k_bias:
    case Slot::v_bias: return {kv_rows, 0};
    case Slot::wq: return {q_rows, config.d_model};
    case Slot::wk:
    case Slot::wv: return {kv_rows, config.d_model};
    case Slot::wo: return {config.d_model, q_rows};
    case Slot::w_gate:
    case Slot::w_up: return {config.d_ff, config.d_model};
    case Slot::w_down: return {config.d_model, config.d_ff};
  }
  return {0, 0};
}

VITRINE_NAMESPACE_END
