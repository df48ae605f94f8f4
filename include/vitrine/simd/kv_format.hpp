// How K and V of one head lie in a block of 64 tokens, for each element type of a cache.
//
//        F32, F16, BF16              INT8                               INT4
//   K    [4][head_dim][16 keys]      [4][d/4][16 keys][4] bytes q       [4][d/8][16 keys][4] bytes: q + 8 of values
//                                                                       8 j to 8 j + 3 in the low, of the next four in
//                                                                       the high nibbles
//        -                           scales [4][16 keys]                scales [4][n_groups][16 keys]
//   V    [64 keys][head_dim]         [64 keys][d] bytes q               [64 keys][n_groups][16] bytes: q + 8 of a
//                                                                       group's values i and i + 16 in byte i
//        -                           scales [64 keys]                   scales [n_groups][64 keys]
//
// A value is q * s. A group of values shares a scale and never reaches beyond its head: INT8 has one group for each
// token and head, q in [-127, 127]; INT4 groups of 32 (the last of a head may be shorter), q in [-8, 7]. Scales are
// BF16, away from zero, so that no value is beyond the range: they cost as much as F16 and never overflow or vanish.
// d is head_dim rounded up (K: to whole rows; V: to whole vectors of 16); what is too much is zero.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vitrine/core/config.hpp"
#include "vitrine/core/dtype.hpp"
#include "vitrine/core/rounding.hpp"

VITRINE_NAMESPACE_BEGIN

inline constexpr std::int64_t kv_block_tokens = 64;
inline constexpr std::int64_t kv_int4_group = 32;

VITRINE_FORCE_INLINE constexpr bool is_quantised_kv(DType type) { return type == DType::int8 || type == DType::int4; }

// Scales of one token and head.
VITRINE_FORCE_INLINE constexpr std::int64_t kv_n_groups(DType type, std::int64_t head_dim) {
  return type == DType::int8 ? 1 : type == DType::int4 ? divide_up(head_dim, kv_int4_group) : 0;
}
// Rows of 64 bytes in a panel of 16 quantised keys: four values of each key, or eight.
VITRINE_FORCE_INLINE constexpr std::int64_t kv_key_rows(DType type, std::int64_t head_dim) {
  return type == DType::int8 ? divide_up(head_dim, 4) : divide_up(head_dim, 8);
}
// Bytes from one token's V to the next's.
VITRINE_FORCE_INLINE constexpr std::int64_t kv_value_stride(DType type, std::int64_t head_dim) {
  if (type == DType::int8) return round_up(head_dim, 16);
  if (type == DType::int4) return kv_n_groups(type, head_dim) * (kv_int4_group / 2);
  return head_dim * std::int64_t(dtype_info(type).block_bytes);
}
// Where the scales begin, behind all quantised values of the block.
VITRINE_FORCE_INLINE constexpr std::size_t kv_key_bytes_without_scales(DType type, std::int64_t head_dim) {
  return std::size_t(kv_block_tokens) * (is_quantised_kv(type) ? std::size_t(kv_key_rows(type, head_dim)) * 4
                                                               : std::size_t(kv_value_stride(type, head_dim)));
}
VITRINE_FORCE_INLINE constexpr std::size_t kv_value_bytes_without_scales(DType type, std::int64_t head_dim) {
  return std::size_t(kv_block_tokens * kv_value_stride(type, head_dim));
}
VITRINE_FORCE_INLINE constexpr std::size_t kv_scale_bytes(DType type, std::int64_t head_dim) {
  return std::size_t(kv_block_tokens * kv_n_groups(type, head_dim)) * sizeof(std::uint16_t);
}
// All of one head's K, or V, in a block.
VITRINE_FORCE_INLINE constexpr std::size_t kv_key_bytes(DType type, std::int64_t head_dim) {
  return kv_key_bytes_without_scales(type, head_dim) + kv_scale_bytes(type, head_dim);
}
VITRINE_FORCE_INLINE constexpr std::size_t kv_value_bytes(DType type, std::int64_t head_dim) {
  return kv_value_bytes_without_scales(type, head_dim) + kv_scale_bytes(type, head_dim);
}

VITRINE_NAMESPACE_END
