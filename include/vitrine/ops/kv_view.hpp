// How attention sees a KV cache, whatever kind it is: blocks of 64 tokens, found through a table.
//
// For one layer and one block of tokens [64 b, 64 b + 64):
//   K at block + k_offset: [n_kv_head][4 panels][head_dim][16 keys]   (layout R16: one vector lane is one key)
//   V at block + v_offset: [n_kv_head][64 keys][head_dim]
// A contiguous cache has its blocks side by side; a paged cache has them anywhere. Four blocks make one span of 256
// keys, the numeric unit of attention.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vitrine/core/config.hpp"
#include "vitrine/core/dtype.hpp"

VITRINE_NAMESPACE_BEGIN

inline constexpr std::int64_t kv_block_tokens = 64;
inline constexpr std::int64_t attention_span = 256;

struct KvView {
  DType type = DType::f32;  // element type of K and V: f32, f16 or bf16
  std::int64_t n_kv_head = 0, head_dim = 0;
  std::byte* const* blocks = nullptr;      // [ceil(kv_len / 64)] first byte of each token block
  std::size_t k_offset = 0, v_offset = 0;  // bytes from a block's start to this layer's K and V

  std::size_t element_bytes() const { return dtype_info(type).block_bytes; }
  std::size_t head_bytes() const { return std::size_t(kv_block_tokens * head_dim) * element_bytes(); }
  // [4][head_dim][16] keys of one head in block b
  std::byte* k(std::int64_t block, std::int64_t kv_head) const {
    return blocks[block] + k_offset + std::size_t(kv_head) * head_bytes();
  }
  // [64][head_dim] values of one head in block b
  std::byte* v(std::int64_t block, std::int64_t kv_head) const {
    return blocks[block] + v_offset + std::size_t(kv_head) * head_bytes();
  }
};

VITRINE_NAMESPACE_END
