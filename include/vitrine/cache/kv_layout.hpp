// How keys and values of all layers are laid out in memory, shared by every kind of cache.
//
// The unit is a block of 64 tokens; it holds K and V of those tokens for all layers, so that a cache is nothing but a
// table of blocks (a contiguous cache has them side by side):
//   block = [n_layer][K: n_kv_head x (4 panels x head_dim x 16 keys) | V: n_kv_head x (64 keys x head_dim)]
//
//   bytes = layers x tokens x KV heads x head dim x bytes per element x 2 (K and V)
#pragma once

#include <cstddef>
#include <cstdint>

#include "vitrine/core/config.hpp"
#include "vitrine/core/dtype.hpp"
#include "vitrine/core/error.hpp"
#include "vitrine/ops/kv_view.hpp"

VITRINE_NAMESPACE_BEGIN

struct KvLayout {
  DType type = DType::f16;  // of K and V: f32, f16 or bf16
  std::int64_t n_layer = 0, n_kv_head = 0, head_dim = 0;

  friend bool operator==(const KvLayout&, const KvLayout&) = default;

  // Bytes of K (or of V) of one layer in one block.
  std::size_t part_bytes() const {
    return std::size_t(n_kv_head * kv_block_tokens * head_dim) * dtype_info(type).block_bytes;
  }
  std::size_t block_bytes() const { return 2 * std::size_t(n_layer) * part_bytes(); }
  static std::int64_t blocks_for(std::int64_t n_tokens) { return (n_tokens + kv_block_tokens - 1) / kv_block_tokens; }

  // What attention reads for one layer, given the table of blocks.
  KvView view(std::int64_t layer, std::byte* const* blocks) const {
    const std::size_t offset = 2 * std::size_t(layer) * part_bytes();
    return {type, n_kv_head, head_dim, blocks, offset, offset + part_bytes()};
  }

  // Throws bad_argument unless the element type is one that a cache can hold.
  void check_type() const {
    check(type == DType::f32 || type == DType::f16 || type == DType::bf16, ErrorKind::bad_argument,
          "KV cache type: expected F32, F16 or BF16, got ",
          dtype_info(type).name ? dtype_info(type).name : "an unknown type");
  }
};

VITRINE_NAMESPACE_END
