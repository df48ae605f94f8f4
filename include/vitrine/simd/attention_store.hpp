// Writing into the KV cache: each value is rounded to the cache's type (to nearest, ties to even).
//
//   K  in panels of sixteen keys, [head_dim][16]: one lane is one key, so that a score needs no sum across lanes
//   V  in rows, [head_dim]: the mix adds whole rows
//
// A panel that comes whole is transposed in registers; single tokens (decode) are written lane by lane.
#pragma once

#include "vitrine/simd/attention_kernels.hpp"
#include "vitrine/simd/attention_tiles.hpp"
#include "vitrine/simd/lanes.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

namespace attention_detail {

// Tokens at [position, position + n), all of them in one panel of sixteen keys.
template <class Element>
inline void store_panel(const AttentionCache& cache, std::int64_t position, std::int64_t n, std::int64_t head_dim,
                        const float* k, std::int64_t k_stride, const float* v, std::int64_t v_stride) {
  using Type = typename Element::Type;
  std::byte* block = cache.blocks[position / block_keys];
  const std::int64_t slot = position % block_keys, lane = slot % panel_keys;
  Type* panel = reinterpret_cast<Type*>(block + cache.k_offset) + (slot - lane) * head_dim;
  Type* values = reinterpret_cast<Type*>(block + cache.v_offset) + slot * head_dim;
  for (std::int64_t d = 0; d < head_dim; d += 16) {
    const int n_columns = int(least(head_dim - d, 16));
    const auto read = [&](const float* p) { return n_columns == 16 ? load(p) : load_part(p, n_columns); };
    for (std::int64_t i = 0; i < n; ++i) {
      const f32x16 value = read(v + i * v_stride + d);
      if (n_columns == 16) {
        Element::write(values + i * head_dim + d, value);
      } else {
        Element::write_part(values + i * head_dim + d, value, n_columns);
      }
    }
    if (n == panel_keys) {
      f32x16 square[16];
      for (int i = 0; i < 16; ++i) square[i] = read(k + i * k_stride + d);
      transpose(square);
      Type columns[16][16];
      for (int c = 0; c < 16; ++c) Element::write(columns[c], square[c]);
      __builtin_memcpy(panel + d * panel_keys, columns, std::size_t(n_columns) * sizeof columns[0]);
    } else {
      for (std::int64_t i = 0; i < n; ++i) {
        Type rounded[16];
        Element::write(rounded, read(k + i * k_stride + d));
        for (int c = 0; c < n_columns; ++c) panel[(d + c) * panel_keys + lane + i] = rounded[c];
      }
    }
  }
}

template <class Element>
inline void store_tokens(const AttentionCache& cache, std::int64_t position, std::int64_t n_tokens,
                         std::int64_t head_dim, const float* k, std::int64_t k_stride, const float* v,
                         std::int64_t v_stride) {
  for (std::int64_t done = 0, n = 0; done < n_tokens; done += n) {
    n = least(n_tokens - done, panel_keys - (position + done) % panel_keys);
    store_panel<Element>(cache, position + done, n, head_dim, k + done * k_stride, k_stride, v + done * v_stride,
                         v_stride);
  }
}

inline void store_keys_and_values(const AttentionCache& cache, std::int64_t position, std::int64_t n_tokens,
                                  std::int64_t head_dim, const float* k, std::int64_t k_stride, const float* v,
                                  std::int64_t v_stride) {
  switch (cache.type) {
    case DType::f32: return store_tokens<ElementF32>(cache, position, n_tokens, head_dim, k, k_stride, v, v_stride);
    case DType::f16: return store_tokens<ElementF16>(cache, position, n_tokens, head_dim, k, k_stride, v, v_stride);
    default: return store_tokens<ElementBF16>(cache, position, n_tokens, head_dim, k, k_stride, v, v_stride);
  }
}

}  // namespace attention_detail

VITRINE_ISA_NAMESPACE_END
