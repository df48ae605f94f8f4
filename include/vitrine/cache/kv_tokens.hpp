// Single tokens of a cache's blocks, for what happens seldom: saving, and moving tokens to other positions.
//
//   clear_behind(layout, block, n)       zeroes a block but for its first n tokens (of 64), scales included
//   read_kv(view, position, k, v)        K and V of one token as floats, k and v [n_kv_head * head_dim]; not of
//                                        quantised caches
//
// Where a token's values lie in its block is said in simd/kv_format.hpp: keys in panels of 16 tokens, values in rows.
// Nothing is checked here: the caller has seen to it that the position is in the cache.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "vitrine/cache/kv_layout.hpp"
#include "vitrine/core/block_decode.hpp"
#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

namespace kv_tokens_detail {

// Zeroes rows [16 keys][unit bytes] of n_panels panels, each of n_rows rows: the keys from n_tokens on.
inline void clear_rows(std::byte* panels, std::int64_t n_rows, std::int64_t unit, std::int64_t n_tokens) {
  for (std::int64_t row = 0; row < 4 * n_rows; ++row) {
    const auto kept = (std::clamp)(n_tokens - 16 * (row / n_rows), std::int64_t(0), std::int64_t(16));
    std::memset(panels + (16 * row + kept) * unit, 0, std::size_t((16 - kept) * unit));
  }
}

}  // namespace kv_tokens_detail

// Zeroes all of a block but its first n_tokens, so that no memory of somebody else's gets into a file.
inline void clear_behind(const KvLayout& layout, std::byte* block, std::int64_t n_tokens) {
  using kv_tokens_detail::clear_rows;
  constexpr std::int64_t scale_bytes = sizeof(std::uint16_t);
  const auto [k_type, v_type] = std::pair(layout.types.k, layout.types.v);
  const auto head_dim = layout.head_dim, v_stride = kv_value_stride(v_type, head_dim);
  std::byte* const table[1] = {block};
  for (std::int64_t layer = 0; layer < layout.n_layer; ++layer) {
    const KvView view = layout.view(layer, table);
    for (std::int64_t head = 0; head < layout.n_kv_head; ++head) {
      std::byte *const k = view.k(0, head), *const v = view.v(0, head);
      if (is_quantised_kv(k_type)) {
        clear_rows(k, kv_key_rows(k_type, head_dim), 4, n_tokens);
        clear_rows(k + kv_key_bytes_without_scales(k_type, head_dim), kv_n_groups(k_type, head_dim), scale_bytes,
                   n_tokens);
      } else {
        clear_rows(k, head_dim, std::int64_t(dtype_info(k_type).block_bytes), n_tokens);
      }
      std::memset(v + n_tokens * v_stride, 0, std::size_t((kv_block_tokens - n_tokens) * v_stride));
      for (std::int64_t group = 0; group < kv_n_groups(v_type, head_dim); ++group)
        std::memset(
            v + kv_value_bytes_without_scales(v_type, head_dim) + (group * kv_block_tokens + n_tokens) * scale_bytes, 0,
            std::size_t((kv_block_tokens - n_tokens) * scale_bytes));
    }
  }
}

// K and V of one token as floats, k and v [n_kv_head * head_dim]; for element types that are floats.
inline void read_kv(const KvView& view, std::int64_t position, float* k, float* v) {
  const auto k_bytes = std::int64_t(dtype_info(view.types.k).block_bytes),
             v_bytes = std::int64_t(dtype_info(view.types.v).block_bytes);
  const auto block = position / kv_block_tokens, t = position % kv_block_tokens;
  for (std::int64_t head = 0; head < view.n_kv_head; ++head)
    for (std::int64_t d = 0; d < view.head_dim; ++d) {
      const auto* const key = view.k(block, head) + ((t / 16 * view.head_dim + d) * 16 + t % 16) * k_bytes;
      const auto* const value = view.v(block, head) + (t * view.head_dim + d) * v_bytes;
      decode_block_row(view.types.k, key, 1, k + head * view.head_dim + d);
      decode_block_row(view.types.v, value, 1, v + head * view.head_dim + d);
    }
}

VITRINE_NAMESPACE_END
