// A small GGUF Llama written in code, to be spoilt key by key and tensor by tensor.
#pragma once

#include <string>

#include "gguf_writer.hpp"

namespace testing {

inline GgufWriter tiny_llama(std::uint64_t d_model = 16) {
  constexpr std::uint64_t d_ff = 24, n_vocab = 10, n_head = 4, n_kv_head = 2;
  const std::uint64_t head_dim = d_model / n_head;
  GgufWriter writer;
  writer.text("general.architecture", "llama").text("general.name", "Tiny");
  writer.u32("llama.block_count", 1).u32("llama.context_length", 64);
  writer.u32("llama.embedding_length", std::uint32_t(d_model));
  writer.u32("llama.feed_forward_length", d_ff).u32("llama.attention.head_count", n_head);
  writer.u32("llama.attention.head_count_kv", n_kv_head).f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  const auto ramp = [](std::uint64_t n) {
    std::vector<float> values(n);
    for (std::uint64_t i = 0; i < n; ++i) values[i] = float(i) * 0.25f;
    return values;
  };
  const auto matrix = [&](const std::string& name, std::uint64_t n_rows, std::uint64_t n_cols) {
    writer.tensor(name, {n_cols, n_rows}, ramp(n_rows * n_cols));
  };
  matrix("token_embd.weight", n_vocab, d_model);
  writer.tensor("output_norm.weight", {d_model}, ramp(d_model));
  writer.tensor("blk.0.attn_norm.weight", {d_model}, ramp(d_model));
  writer.tensor("blk.0.ffn_norm.weight", {d_model}, ramp(d_model));
  matrix("blk.0.attn_q.weight", n_head * head_dim, d_model);
  matrix("blk.0.attn_k.weight", n_kv_head * head_dim, d_model);
  matrix("blk.0.attn_v.weight", n_kv_head * head_dim, d_model);
  matrix("blk.0.attn_output.weight", d_model, n_head * head_dim);
  matrix("blk.0.ffn_gate.weight", d_ff, d_model);
  matrix("blk.0.ffn_up.weight", d_ff, d_model);
  matrix("blk.0.ffn_down.weight", d_model, d_ff);
  return writer;
}

}  // namespace testing
