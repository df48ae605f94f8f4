// The formula for the bytes of a KV cache of one sequence, for each type of value and each kind of cache.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "common/kv_shape.hpp"
#include "vitrine/cache/ring.hpp"
#include "vitrine/engine/session_options.hpp"

namespace example {

struct KvType {
  const char* name;
  struct Part {
    double bytes, group;  // group: values of a head that share a scale of two bytes; 0: none
    double per_value(double head_dim) const {
      return bytes + (group > 0 ? 2 * std::ceil(head_dim / group) / head_dim : 0);
    }
  } k, v;
  bool scaled() const { return k.group > 0 || v.group > 0; }
  double per_value(double head_dim) const { return (k.per_value(head_dim) + v.per_value(head_dim)) / 2; }
};
inline constexpr KvType::Part kv_int8{1, 1e9}, kv_int4{0.5, 32};
inline constexpr KvType kv_cache_types[] = {{"F32", {4, 0}, {4, 0}},         {"F16", {2, 0}, {2, 0}},
                                            {"BF16", {2, 0}, {2, 0}},        {"INT8", kv_int8, kv_int8},
                                            {"INT8/INT4", kv_int8, kv_int4}, {"INT4", kv_int4, kv_int4}};

// A contiguous or paged cache keeps all positions, whatever its layers look at.
inline double kv_bytes(const KvShape& shape, double value_bytes, double length) {
  double n_kv_heads = 0;  // summed over the layers
  for (const auto& layer : shape.layers) n_kv_heads += layer.n_kv_head;
  return 2 * shape.head_dim * value_bytes * n_kv_heads * length;
}

// Tokens of a prompt that go through the model together, as one thread takes them unless it is told otherwise.
inline constexpr std::int64_t ring_chunk = 256;

// A ring keeps, of layers with a window, no more than the blocks that the window and a chunk of the prompt can touch.
inline double ring_bytes(const KvShape& shape, double value_bytes, double length) {
  double heads_of_tokens = 0;
  for (const auto& layer : shape.layers) {
    const auto capacity = std::int64_t(length), chunk = (std::min)(ring_chunk, capacity);
    const auto n_blocks = vitrine::RingCache::n_blocks({.window = std::int64_t(layer.window)}, capacity, chunk);
    heads_of_tokens += layer.n_kv_head * (std::min)(length, double(n_blocks * vitrine::kv_block_tokens));
  }
  return 2 * shape.head_dim * value_bytes * heads_of_tokens;
}

}  // namespace example
