// What a pass costs on paper: multiply-adds and bytes that must be read, from the shapes of the weights alone.
//
//   matrices    2 n_rows n_cols operations per token; read once per pass, however many tokens are in it
//   attention   4 n_head head_dim operations per token and key seen (q.k, then p v)
//   KV cache    2 n_kv_head head_dim values per key and layer, read once per pass
#pragma once

#include <algorithm>
#include <cstdint>

#include "vitrine/engine/model.hpp"
#include "vitrine/ops/linear.hpp"
#include "vitrine/simd/dispatch.hpp"

namespace example {

struct Cost {
  double integer_ops = 0, float_ops = 0;  // a multiply-add counts as two; integer: products with quantised weights
  double matrix_ops = 0;                  // integer ones that the kernels in use give to products of whole tiles (AMX)
  double weight_bytes = 0, kv_bytes = 0;

  double ops() const { return integer_ops + float_ops + matrix_ops; }
  double bytes() const { return weight_bytes + kv_bytes; }
  Cost& operator+=(const Cost& other) {
    integer_ops += other.integer_ops;
    float_ops += other.float_ops;
    matrix_ops += other.matrix_ops;
    weight_bytes += other.weight_bytes;
    kv_bytes += other.kv_bytes;
    return *this;
  }
};

// One pass over n_tokens at positions pos0, pos0 + 1, ...; the head runs for the last token if `with_logits`.
inline Cost pass_cost(const vitrine::Model& model, std::int64_t n_tokens, std::int64_t pos0, double kv_value_bytes,
                      bool with_logits = true) {
  Cost cost;
  const auto& config = model.config();
  const auto add_matrix = [&cost](const vitrine::PackedMatrix& matrix, std::int64_t rows_of_input) {
    const double ops = 2 * double(matrix.n_rows()) * double(matrix.n_cols()) * double(rows_of_input);
    const auto& forms = vitrine::linear_forms(vitrine::kernels().linear, matrix.type());
    const bool in_tiles = forms.matrix && forms.best(rows_of_input) == forms.matrix;
    (vitrine::is_float_type(matrix.type()) ? cost.float_ops : in_tiles ? cost.matrix_ops : cost.integer_ops) += ops;
    cost.weight_bytes += double(matrix.bytes());
  };
  for (const auto& layer : model.weights().layers)
    for (const auto* matrix : {&layer.wq, &layer.wk, &layer.wv, &layer.wo, &layer.w_gate, &layer.w_up, &layer.w_down})
      add_matrix(*matrix, n_tokens);
  if (with_logits) add_matrix(model.weights().head(), 1);

  for (const auto& layer : config.layers) {
    double keys_seen = 0;  // summed over the tokens
    for (std::int64_t t = 0; t < n_tokens; ++t)
      keys_seen += double(layer.window > 0 ? std::min(layer.window, pos0 + t + 1) : pos0 + t + 1);
    // The last token sees `window` keys, itself among them, and each token before it reaches one key further back.
    const std::int64_t all = pos0 + n_tokens;
    const std::int64_t reach = layer.window > 0 ? std::min(all, layer.window + n_tokens - 1) : all;
    cost.float_ops += 4 * double(config.n_head * config.head_dim) * keys_seen;
    cost.kv_bytes += 2 * double(config.n_kv_head * config.head_dim) * double(reach) * kv_value_bytes;
  }
  return cost;
}

// A prompt of n tokens in chunks, behind pos0 others.
inline Cost prefill_cost(const vitrine::Model& model, std::int64_t n_tokens, std::int64_t chunk, double kv_value_bytes,
                         std::int64_t pos0 = 0) {
  Cost cost;
  for (std::int64_t begin = 0; begin < n_tokens; begin += chunk)
    cost +=
        pass_cost(model, std::min(chunk, n_tokens - begin), pos0 + begin, kv_value_bytes, begin + chunk >= n_tokens);
  return cost;
}

}  // namespace example
