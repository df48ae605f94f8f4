// Writing into the KV cache: each value is rounded to the cache's type (to nearest, ties to even), or quantised.
//
//   K  in panels of sixteen keys: one lane is one key, so that a score needs no sum across lanes
//   V  in rows: the mix adds whole rows
//
//   INT8   s = amax / 127 over the head, q = x / s to nearest
//   INT4   s = -peak / 8 over a group, peak being its value of largest magnitude; q = x / s to nearest, at most 7
//
// s is rounded away from zero to BF16 first. simd/kv_format.hpp has the layout. A panel of floats that comes whole is
// transposed in registers; single tokens (decode) are written lane by lane.
#pragma once

#include "vitrine/core/float16.hpp"
#include "vitrine/simd/attention_kernels.hpp"
#include "vitrine/simd/attention_tiles.hpp"
#include "vitrine/simd/kv_format.hpp"
#include "vitrine/simd/quantise.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

namespace attention_detail {

// Sixteen values from x [head_dim] on, zeros behind its end.
VITRINE_FORCE_INLINE f32x16 sixteen_of(const float* x, std::int64_t d, std::int64_t head_dim) {
  if (d + 16 <= head_dim) return load(x + d);
  return d < head_dim ? load_part(x + d, int(head_dim - d)) : zero();
}

// n tokens' keys, all of them in one panel, from `lane` on.
template <class Element>
inline void store_keys(std::byte* k_of_block, std::int64_t slot, std::int64_t n, std::int64_t head_dim, const float* k,
                       std::int64_t k_stride) {
  using Type = typename Element::Type;
  const std::int64_t lane = slot % panel_keys;
  Type* panel = reinterpret_cast<Type*>(k_of_block) + (slot - lane) * head_dim;
  for (std::int64_t d = 0; d < head_dim; d += 16) {
    const int n_columns = int(least(head_dim - d, 16));
    if (n == panel_keys) {
      f32x16 square[16];
      for (int i = 0; i < 16; ++i) square[i] = sixteen_of(k + i * k_stride, d, head_dim);
      transpose(square);
      Type columns[16][16];
      for (int c = 0; c < 16; ++c) Element::write(columns[c], square[c]);
      __builtin_memcpy(panel + d * panel_keys, columns, std::size_t(n_columns) * sizeof columns[0]);
    } else {
      for (std::int64_t i = 0; i < n; ++i) {
        Type rounded[16];
        Element::write(rounded, sixteen_of(k + i * k_stride, d, head_dim));
        for (int c = 0; c < n_columns; ++c) panel[(d + c) * panel_keys + lane + i] = rounded[c];
      }
    }
  }
}

template <class Element>
inline void store_values(std::byte* v_of_block, std::int64_t slot, std::int64_t n, std::int64_t head_dim,
                         const float* v, std::int64_t v_stride) {
  auto* values = reinterpret_cast<typename Element::Type*>(v_of_block) + slot * head_dim;
  for (std::int64_t d = 0; d < head_dim; d += 16) {
    const int n_columns = int(least(head_dim - d, 16));
    for (std::int64_t i = 0; i < n; ++i) {
      const f32x16 value = sixteen_of(v + i * v_stride, d, head_dim);
      if (n_columns == 16) {
        Element::write(values + i * head_dim + d, value);
      } else {
        Element::write_part(values + i * head_dim + d, value, n_columns);
      }
    }
  }
}

// The scale of a group of values and its inverse. A group whose scale has no finite inverse becomes zeros; for NaN and
// infinity the scale is NaN, so that no result that meets them is finite.
struct KvScale {
  std::uint16_t bits;
  float inverse;
};

VITRINE_FORCE_INLINE KvScale kv_scale(float scale) {
  const std::uint32_t raw = float_to_bits(scale), sign = raw & 0x80000000u, magnitude = raw & 0x7fffffffu;
  const std::uint32_t up = magnitude >= 0x7f800000u ? 0x7fc00000u : (magnitude + 0xffffu) & 0xffff0000u;
  const float inverse = 1.0f / bits_to_float(up | sign);
  if ((float_to_bits(inverse) & 0x7fffffffu) == 0x7f800000u) return {0, 0.0f};
  return {std::uint16_t((up | sign) >> 16), inverse};
}

// Values [begin, end) of x [head_dim]; the scale takes the largest magnitude to the end of the range.
template <DType type>
inline KvScale scale_of(const float* x, std::int64_t begin, std::int64_t end, std::int64_t head_dim) {
  i32x16 amax = broadcast_i32(0);
  f32x16 most_positive = zero();
  for (std::int64_t d = begin; d < end; d += 16) {
    const f32x16 value = sixteen_of(x, d, head_dim);
    amax = max_i32(amax, quantise_detail::magnitude_bits(value));
    most_positive = max(most_positive, value);
  }
  const float peak = bits_to_float(std::uint32_t(hmax_i32(amax)));
  if constexpr (type == DType::int8) return kv_scale(peak / 127.0f);
  return kv_scale(hmax(most_positive) == peak ? peak / -8.0f : peak / 8.0f);
}

// Sixteen values as bytes in the range of the type.
template <DType type>
VITRINE_FORCE_INLINE void quantise_sixteen(std::int8_t* out, f32x16 x, float inverse) {
  f32x16 value = x * broadcast(inverse);
  if constexpr (type == DType::int4) {
    const f32x16 top = broadcast(7.0f);
    value = select(greater(value, top), top, value);
  }
  to_bytes(out, to_i32(value));
}

// One token's head x: scale(g, bits) for each group, then values(d, bytes) for each sixteen of it.
template <DType type, class Scale, class Values>
VITRINE_FORCE_INLINE void quantise_token(const float* x, std::int64_t head_dim, Scale scale, Values values) {
  const std::int64_t width = type == DType::int8 ? head_dim : kv_int4_group;
  for (std::int64_t g = 0; g < kv_n_groups(type, head_dim); ++g) {
    const std::int64_t begin = g * width, end = least(begin + width, head_dim);
    const KvScale found = scale_of<type>(x, begin, end, head_dim);
    scale(g, found.bits);
    for (std::int64_t d = begin; d < end; d += 16) {
      std::int8_t bytes[16];
      quantise_sixteen<type>(bytes, sixteen_of(x, d, head_dim), found.inverse);
      values(d, bytes);
    }
  }
}

VITRINE_FORCE_INLINE std::uint8_t two_nibbles(std::int8_t low, std::int8_t high) {
  return std::uint8_t(((low + 8) & 15) | ((high + 8) & 15) << 4);
}

template <DType type>
inline void store_integer_keys(std::byte* k_of_block, std::int64_t slot, std::int64_t n, std::int64_t head_dim,
                               const float* k, std::int64_t k_stride) {
  const std::int64_t n_rows = kv_key_rows(type, head_dim), n_groups = kv_n_groups(type, head_dim);
  const std::int64_t panel = slot / panel_keys;
  auto* const rows = reinterpret_cast<std::uint8_t*>(k_of_block) + panel * n_rows * 64;
  auto* const scales = reinterpret_cast<std::uint16_t*>(k_of_block + kv_key_bytes_without_scales(type, head_dim)) +
                       panel * n_groups * panel_keys;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t lane = slot % panel_keys + i;
    quantise_token<type>(
        k + i * k_stride, head_dim, [&](std::int64_t g, std::uint16_t bits) { scales[g * panel_keys + lane] = bits; },
        [&](std::int64_t d, const std::int8_t* bytes) {
          constexpr std::int64_t per_row = type == DType::int8 ? 4 : 8;
          for (std::int64_t c = 0; c < 16 && (d + c) / per_row < n_rows; c += per_row) {
            std::uint8_t four[4];
            for (std::int64_t b = 0; b < 4; ++b) {
              four[b] = type == DType::int8 ? std::uint8_t(bytes[c + b]) : two_nibbles(bytes[c + b], bytes[c + b + 4]);
            }
            __builtin_memcpy(rows + (d + c) / per_row * 64 + lane * 4, four, 4);
          }
        });
  }
}

template <DType type>
inline void store_integer_values(std::byte* v_of_block, std::int64_t slot, std::int64_t n, std::int64_t head_dim,
                                 const float* v, std::int64_t v_stride) {
  const std::int64_t stride = kv_value_stride(type, head_dim);
  auto* const scales = reinterpret_cast<std::uint16_t*>(v_of_block + kv_value_bytes_without_scales(type, head_dim));
  for (std::int64_t i = 0; i < n; ++i) {
    auto* const row = reinterpret_cast<std::uint8_t*>(v_of_block) + (slot + i) * stride;
    quantise_token<type>(
        v + i * v_stride, head_dim,
        [&](std::int64_t g, std::uint16_t bits) { scales[g * block_keys + slot + i] = bits; },
        [&](std::int64_t d, const std::int8_t* bytes) {
          if constexpr (type == DType::int8) {
            __builtin_memcpy(row + d, bytes, 16);
          } else {
            std::uint8_t* const group = row + d / kv_int4_group * 16;
            const bool high = d % kv_int4_group != 0;
            for (int b = 0; b < 16; ++b) {
              group[b] = high ? std::uint8_t((group[b] & 15) | ((bytes[b] + 8) & 15) << 4) : two_nibbles(bytes[b], 0);
            }
          }
        });
  }
}

inline void store_keys_and_values(const AttentionCache& cache, std::int64_t position, std::int64_t n_tokens,
                                  std::int64_t head_dim, const float* k, std::int64_t k_stride, const float* v,
                                  std::int64_t v_stride) {
  const auto keys = [&] {
    switch (cache.k_type) {
      case DType::f32: return store_keys<ElementF32>;
      case DType::f16: return store_keys<ElementF16>;
      case DType::int8: return store_integer_keys<DType::int8>;
      case DType::int4: return store_integer_keys<DType::int4>;
      default: return store_keys<ElementBF16>;
    }
  }();
  const auto values = [&] {
    switch (cache.v_type) {
      case DType::f32: return store_values<ElementF32>;
      case DType::f16: return store_values<ElementF16>;
      case DType::int8: return store_integer_values<DType::int8>;
      case DType::int4: return store_integer_values<DType::int4>;
      default: return store_values<ElementBF16>;
    }
  }();
  for (std::int64_t done = 0, n = 0; done < n_tokens; done += n) {
    n = least(n_tokens - done, panel_keys - (position + done) % panel_keys);
    std::byte* const block = cache.blocks[(position + done) / block_keys];
    const std::int64_t slot = (position + done) % block_keys;
    keys(block + cache.k_offset, slot, n, head_dim, k + done * k_stride, k_stride);
    values(block + cache.v_offset, slot, n, head_dim, v + done * v_stride, v_stride);
  }
}

}  // namespace attention_detail

VITRINE_ISA_NAMESPACE_END
