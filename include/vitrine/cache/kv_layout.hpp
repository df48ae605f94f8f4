// How keys and values of all layers are laid out in memory, shared by every kind of cache.
//
// The unit is a block of 64 tokens; it holds K and V of those tokens for all layers, so that a cache is nothing but a
// table of blocks (a contiguous cache has them side by side):
//   block = [n_layer][K: n_kv_head x (4 panels of 16 keys) | V: n_kv_head x (64 rows)]        simd/kv_format.hpp
//
//   bytes = layers x tokens x KV heads x head dim x (bytes per element of K + of V), and the scales of INT8 and INT4
#pragma once

#include <cstddef>
#include <cstdint>

#include "vitrine/core/config.hpp"
#include "vitrine/core/error.hpp"
#include "vitrine/core/rounding.hpp"
#include "vitrine/ops/kv_view.hpp"

VITRINE_NAMESPACE_BEGIN

struct KvLayout {
  KvTypes types;
  std::int64_t n_layer = 0, n_kv_head = 0, head_dim = 0;

  friend bool operator==(const KvLayout&, const KvLayout&) = default;

  // Bytes of K and of V of one layer in one block.
  std::size_t k_bytes() const { return std::size_t(n_kv_head) * kv_key_bytes(types.k, head_dim); }
  std::size_t v_bytes() const { return std::size_t(n_kv_head) * kv_value_bytes(types.v, head_dim); }
  std::size_t block_bytes() const { return std::size_t(n_layer) * (k_bytes() + v_bytes()); }
  static std::int64_t blocks_for(std::int64_t n_tokens) { return divide_up(n_tokens, kv_block_tokens); }

  // What attention reads for one layer, given the table of blocks.
  KvView view(std::int64_t layer, std::byte* const* blocks) const {
    const std::size_t offset = std::size_t(layer) * (k_bytes() + v_bytes());
    return {types, n_kv_head, head_dim, blocks, offset, offset + k_bytes()};
  }

  // Throws bad_argument unless the element types are such that a cache can hold.
  void check_type() const {
    check(types.known(), ErrorKind::bad_argument, "KV cache type: expected F32, F16, BF16, INT8 or INT4, got ",
          types.name());
  }
};

VITRINE_NAMESPACE_END
