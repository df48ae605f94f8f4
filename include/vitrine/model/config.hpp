// What an architecture's metadata boils down to: the numbers the layers need, independent of the file format.
//
// Every supported architecture fills this one structure (model/arch/*.hpp); the layers know nothing of architectures.
// The sizes, as papers name them: d_model = width of the residual stream, n_head query heads and n_kv_head key/value
// heads of head_dim each (n_head * head_dim need not be d_model), d_ff = width inside the feed-forward layer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

enum class GateActivation { silu, gelu_tanh };  // feed-forward: down(act(gate(x)) * up(x))

enum class RopeScaling { none, linear, llama3 };

// Rotary position embedding (Su et al. 2021, arXiv 2104.09864), half-split pairs (i, i + head_dim / 2).
struct RopeConfig {
  float theta = 10000.0f;  // base of the inverse frequencies theta^(-2i / head_dim)
  RopeScaling scaling = RopeScaling::none;
  float factor = 1.0f;  // linear: frequencies / factor; llama3: the long wavelengths / factor
  float low_freq_factor = 1.0f, high_freq_factor = 4.0f;
  std::int64_t original_context = 0;        // llama3: context length of pre-training
  std::vector<float> frequency_divisors{};  // [head_dim / 2], GGUF's rope_freqs.weight; empty: none
};

struct LayerConfig {
  std::int64_t window = 0;  // keys a query sees, itself included: pos - window < key <= pos; 0: all
  int rope = 0;             // index into ModelConfig::rope
};

struct ModelConfig {
  std::string architecture;  // "llama", "qwen2", "qwen3", "mistral", "gemma3"
  std::string name;          // general.name or the folder's name, for people
  std::int64_t n_layer = 0, n_head = 0, n_kv_head = 0, head_dim = 0;
  std::int64_t d_model = 0, d_ff = 0, n_vocab = 0;
  std::int64_t n_context = 0;  // the length the model was trained for
  float norm_eps = 1e-5f;
  float attention_scale = 0;    // multiplies q . k; usually 1 / sqrt(head_dim)
  float embedding_scale = 1.0;  // Gemma: sqrt(d_model), rounded as the reference rounds it
  bool tied_head = false;       // the output head is the token embedding
  GateActivation activation = GateActivation::silu;
  std::vector<RopeConfig> rope;     // one, or local and global ones
  std::vector<LayerConfig> layers;  // [n_layer]
};

VITRINE_NAMESPACE_END
