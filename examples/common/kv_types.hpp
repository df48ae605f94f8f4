// Element types of a KV cache by name: "f16", "int8", or "int8/int4" for K and V.
#pragma once

#include <string>

#include "common/program.hpp"
#include "vitrine/cache/kv_layout.hpp"
#include "vitrine/engine/model.hpp"

namespace example {

inline vitrine::KvTypes kv_types(const std::string& option, const std::string& text) {
  using vitrine::DType;
  const auto type = [&](std::string name) {
    for (char& c : name) c = c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c;
    for (const auto known : {DType::f32, DType::f16, DType::bf16, DType::int8, DType::int4})
      if (name == vitrine::kv_type_name(known)) return known;
    throw UsageError("--" + option + ": expected f32, f16, bf16, int8 or int4, or two of them as k/v, got '" + text +
                     "'");
  };
  const auto slash = text.find('/');
  if (slash == std::string::npos) return type(text);
  return {type(text.substr(0, slash)), type(text.substr(slash + 1))};
}

// Bytes of a value of K or V on average, scales included.
inline double kv_value_bytes(const vitrine::Model& model, vitrine::KvTypes types) {
  const auto layout = model.transformer().kv_layout(types);
  return double(layout.block_bytes()) /
         double(2 * vitrine::kv_block_tokens * layout.n_layer * layout.n_kv_head * layout.head_dim);
}

}  // namespace example
