// Reading a configuration from GGUF metadata. The keys are "<architecture>.<name>" (ggml's docs/gguf.md).
//
//   base_from_gguf(file)    a ModelConfig of sizes, the norm's epsilon, one RoPE and full attention in every layer;
//                           what an architecture has besides, its own function adds, and names the keys for it
//
// Every key of the architecture must be known here or named so: an unknown one is Error::unsupported, for it might
// change the results. A missing or impossible value is Error::bad_file. n_vocab is the number
// of rows of the embedding, and a key that says otherwise is an error.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "vitrine/model/arch/common.hpp"

VITRINE_NAMESPACE_BEGIN

namespace arch {

inline std::string gguf_key(const GgufFile& file, std::string_view name) {
  // No stream: short of memory, one ends in the middle of the text and says nothing.
  std::string key(file.text("general.architecture"));
  return key.append(".").append(name);
}

inline std::int64_t gguf_size(const GgufFile& file, std::string_view name, std::int64_t most) {
  const std::string key = gguf_key(file, name);
  return in_range(file.name(), key, file.integer(key), most);
}
inline std::int64_t gguf_size_or(const GgufFile& file, std::string_view name, std::int64_t most, std::int64_t absent) {
  return file.has(gguf_key(file, name)) ? gguf_size(file, name, most) : absent;
}

// Every key "<architecture>.*" is a hyper-parameter. One that is not known here might change the results, so it is
// refused; `more` are the names that this architecture reads in addition to the common ones.
inline void check_keys(const GgufFile& file, const std::vector<std::string_view>& more) {
  static const std::vector<std::string_view> known = {"block_count",
                                                      "context_length",
                                                      "embedding_length",
                                                      "feed_forward_length",
                                                      "vocab_size",
                                                      "attention.head_count",
                                                      "attention.head_count_kv",
                                                      "attention.key_length",
                                                      "attention.value_length",
                                                      "attention.layer_norm_rms_epsilon",
                                                      "rope.freq_base",
                                                      "rope.dimension_count",
                                                      "rope.scaling.type",
                                                      "rope.scaling.factor",
                                                      "rope.scaling.original_context_length",
                                                      "rope.scaling.finetuned",
                                                      "rope.scale_linear",
                                                      "tensor_data_layout"};
  // Known, but only as long as they say that nothing special is wanted.
  static const std::vector<std::string_view> zero = {"expert_count", "expert_used_count", "attention.sliding_window",
                                                     "attn_logit_softcapping", "final_logit_softcapping"};
  const std::string prefix = gguf_key(file, "");
  for (const auto& value : file.metadata()) {
    if (value.key.substr(0, prefix.size()) != prefix) continue;
    const auto name = value.key.substr(prefix.size());
    const auto in = [&](const auto& names) { return std::find(names.begin(), names.end(), name) != names.end(); };
    if (in(known) || in(more)) continue;
    if (in(zero)) {
      const bool is_real = value.type == GgufType::f32 || value.type == GgufType::f64;
      refuse(is_real ? file.real(value.key) != 0 : file.integer(value.key) != 0, file.name(), value.key,
             "this feature is not supported for this architecture");
      continue;
    }
    if (name == "attention.causal") {
      refuse(!file.boolean(value.key), file.name(), value.key, "only causal attention is supported");
      continue;
    }
    refuse(true, file.name(), printable(value.key),
           "this hyper-parameter is not known to this library, and ignoring it might change the results");
  }
}

// The rope.* keys. frequency_divisors come from the tensor rope_freqs.weight where the file has one.
inline RopeConfig gguf_rope(const GgufFile& file, std::int64_t head_dim) {
  RopeConfig rope;
  const auto key = [&](const char* name) { return gguf_key(file, name); };
  if (const auto theta = file.find_real(key("rope.freq_base")))
    rope.theta = rope_base(file.name(), key("rope.freq_base"), *theta);
  const auto type = file.find_text(key("rope.scaling.type")).value_or("linear");
  check(type == "none" || type == "linear", ErrorKind::unsupported, file.name(), ": ", key("rope.scaling.type"),
        ": RoPE type ", printable(type), " is not supported, expected 'none' or 'linear'");
  auto factor = file.find_real(key("rope.scaling.factor"));
  if (!factor) factor = file.find_real(key("rope.scale_linear"));
  if (type == "linear" && factor && *factor != 0 && *factor != 1) {  // 0 and 1 both say: not scaled
    rope.scaling = RopeScaling::linear;
    rope.factor = positive(file.name(), key("rope.scaling.factor"), *factor);
  }
  const auto rotated = gguf_size_or(file, "rope.dimension_count", largest_width, head_dim);
  check(rotated == head_dim, ErrorKind::unsupported, file.name(), ": ", key("rope.dimension_count"), " is ", rotated,
        ", expected the size of a head, ", head_dim, ": rotating a part of a head is not supported");

  if (const auto* tensor = file.find_tensor("rope_freqs.weight")) {
    check(tensor->dtype() == DType::f32 && tensor->n_dims == 1 && tensor->dims[0] == head_dim / 2, ErrorKind::bad_file,
          file.name(), ": tensor 'rope_freqs.weight': expected F32 [", head_dim / 2, "], got ", tensor->type_name, " [",
          tensor->dims[0], tensor->n_dims > 1 ? ", ...]" : "]");
    rope.frequency_divisors.resize(std::size_t(head_dim / 2));
    file.parts().at(tensor->part).check_size();
    std::memcpy(rope.frequency_divisors.data(), file.bytes(*tensor).data(), std::size_t(tensor->n_bytes));
    for (const float divisor : rope.frequency_divisors)
      positive(file.name(), "a value of tensor 'rope_freqs.weight'", double(divisor));
  }
  return rope;
}

// Everything that the architectures here have in common: sizes, the norm's epsilon, one RoPE, full attention.
inline ModelConfig base_from_gguf(const GgufFile& file, const std::vector<std::string_view>& more_keys = {}) {
  check_keys(file, more_keys);
  const std::string& name = file.name();
  ModelConfig config;
  config.architecture = file.text("general.architecture");
  config.name = file.find_text("general.name").value_or("");
  config.n_layer = gguf_size(file, "block_count", most_layers);
  config.n_context = gguf_size(file, "context_length", longest_context);
  config.d_model = gguf_size(file, "embedding_length", largest_width);
  config.d_ff = gguf_size(file, "feed_forward_length", largest_width);
  config.n_head = gguf_size(file, "attention.head_count", most_heads);
  config.n_kv_head = gguf_size_or(file, "attention.head_count_kv", most_heads, config.n_head);

  config.head_dim = gguf_size_or(file, "attention.key_length", largest_width, 0);
  if (config.head_dim == 0) {
    check(config.d_model % config.n_head == 0, ErrorKind::bad_file, name, ": ", gguf_key(file, "embedding_length"),
          " is ", config.d_model, " and ", gguf_key(file, "attention.head_count"), " is ", config.n_head,
          ", expected a multiple of it as there is no ", gguf_key(file, "attention.key_length"));
    config.head_dim = config.d_model / config.n_head;
  }
  const auto value_dim = gguf_size_or(file, "attention.value_length", largest_width, config.head_dim);
  check(value_dim == config.head_dim, ErrorKind::unsupported, name, ": ", gguf_key(file, "attention.value_length"),
        " is ", value_dim, ", expected the length of a key, ", config.head_dim);
  check_heads(name, config, gguf_key(file, "attention.head_count"), gguf_key(file, "attention.head_count_kv"));

  const std::string eps = gguf_key(file, "attention.layer_norm_rms_epsilon");
  config.norm_eps = positive(name, eps, file.real(eps));
  config.attention_scale = inverse_square_root(config.head_dim);
  config.rope = {gguf_rope(file, config.head_dim)};
  config.layers.resize(std::size_t(config.n_layer));

  const auto* embedding = file.find_tensor("token_embd.weight");
  check(embedding != nullptr, ErrorKind::bad_file, name, ": tensor 'token_embd.weight' is missing");
  config.n_vocab = in_range(name, "the number of rows of tensor 'token_embd.weight'", embedding->dims[1], INT32_MAX);
  if (const auto* tokens = file.find("tokenizer.ggml.tokens"); tokens != nullptr && tokens->type == GgufType::array)
    check(std::int64_t(tokens->count) == config.n_vocab, ErrorKind::bad_file, name, ": tokenizer.ggml.tokens has ",
          tokens->count, " entries, but tensor 'token_embd.weight' has ", config.n_vocab, " rows");
  const auto vocab_size = gguf_size_or(file, "vocab_size", INT32_MAX, config.n_vocab);
  check(vocab_size == config.n_vocab, ErrorKind::bad_file, name, ": ", gguf_key(file, "vocab_size"), " is ", vocab_size,
        ", but tensor 'token_embd.weight' has ", config.n_vocab, " rows");
  config.tied_head = file.find_tensor("output.weight") == nullptr;
  return config;
}

}  // namespace arch

VITRINE_NAMESPACE_END
