// How attention sees a KV cache, whatever kind it is: blocks of 64 tokens, found through a table.
//
// For one layer and one block of tokens [64 b, 64 b + 64):
//   K at block + k_offset: [n_kv_head][one head's K: panels of 16 keys, one vector lane is one key (layout R16)]
//   V at block + v_offset: [n_kv_head][one head's V: 64 rows]
// simd/kv_format.hpp says how each element type lies there; K and V may have different ones. A contiguous cache has its
// blocks side by side; a paged cache has them anywhere. Four blocks make one span of 256 keys, the numeric unit of
// attention.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "vitrine/core/config.hpp"
#include "vitrine/core/dtype.hpp"
#include "vitrine/simd/kv_format.hpp"

VITRINE_NAMESPACE_BEGIN

inline constexpr std::int64_t attention_span = 256;

// Element types of a cache: F32, F16, BF16, INT8 or INT4, of K and V each. One type stands for both.
struct KvTypes {
  DType k = DType::f16, v = DType::f16;

  constexpr KvTypes() = default;
  constexpr KvTypes(DType both) : k(both), v(both) {}  // NOLINT: a type is a pair of types
  constexpr KvTypes(DType of_k, DType of_v) : k(of_k), v(of_v) {}
  friend constexpr bool operator==(const KvTypes&, const KvTypes&) = default;

  bool known() const { return kv_type_name(k) != nullptr && kv_type_name(v) != nullptr; }
  // "F16", or "INT8/INT4" if they differ.
  std::string name() const {
    const auto one = [](DType type) {
      const char* const kept = kv_type_name(type);
      const char* const other = dtype_info(type).name;
      return std::string(kept ? kept : other ? other : "an unknown type");
    };
    return k == v ? one(k) : one(k) + "/" + one(v);
  }
};

struct KvView {
  KvTypes types;
  std::int64_t n_kv_head = 0, head_dim = 0;
  std::byte* const* blocks = nullptr;      // [ceil(kv_len / 64)] first byte of each token block
  std::size_t k_offset = 0, v_offset = 0;  // bytes from a block's start to this layer's K and V

  // Bytes of one head in a block.
  std::size_t k_head_bytes() const { return kv_key_bytes(types.k, head_dim); }
  std::size_t v_head_bytes() const { return kv_value_bytes(types.v, head_dim); }
  // K and V of one head in block b.
  std::byte* k(std::int64_t block, std::int64_t kv_head) const {
    return blocks[block] + k_offset + std::size_t(kv_head) * k_head_bytes();
  }
  std::byte* v(std::int64_t block, std::int64_t kv_head) const {
    return blocks[block] + v_offset + std::size_t(kv_head) * v_head_bytes();
  }
};

VITRINE_NAMESPACE_END
