// Bodies of core/block_decode.hpp.
#pragma once

#include <cstring>

#include "vitrine/core/block_decode.hpp"
#include "vitrine/core/error.hpp"
#include "vitrine/core/float16.hpp"

VITRINE_NAMESPACE_BEGIN

namespace block_decode_detail {

// Fifth bit of value i, moved to its place above the nibble.
inline int fifth_bit(const std::uint8_t* qh, int i) { return (qh[i / 8] >> (i % 8) & 1) << 4; }

inline void decode(const BlockQ4_0& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < 16; ++i) {
    out[i] = float((block.qs[i] & 15) - 8) * d;
    out[i + 16] = float((block.qs[i] >> 4) - 8) * d;
  }
}

inline void decode(const BlockQ4_1& block, float* out) {
  const float d = f16_to_f32(block.d), m = f16_to_f32(block.m);
  for (int i = 0; i < 16; ++i) {
    out[i] = float(block.qs[i] & 15) * d + m;
    out[i + 16] = float(block.qs[i] >> 4) * d + m;
  }
}

inline void decode(const BlockQ5_0& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < 16; ++i) {
    out[i] = float(((block.qs[i] & 15) | fifth_bit(block.qh, i)) - 16) * d;
    out[i + 16] = float(((block.qs[i] >> 4) | fifth_bit(block.qh, i + 16)) - 16) * d;
  }
}

inline void decode(const BlockQ5_1& block, float* out) {
  const float d = f16_to_f32(block.d), m = f16_to_f32(block.m);
  for (int i = 0; i < 16; ++i) {
    out[i] = float((block.qs[i] & 15) | fifth_bit(block.qh, i)) * d + m;
    out[i + 16] = float((block.qs[i] >> 4) | fifth_bit(block.qh, i + 16)) * d + m;
  }
}

inline void decode(const BlockQ8_0& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < 32; ++i) out[i] = float(block.qs[i]) * d;
}

// Q4_K and Q5_K: bytes 32 c .. 32 c + 31 hold sub-block 2 c in their low and 2 c + 1 in their high nibbles; bit j of
// qh[i] is the fifth bit of value i of sub-block j.
inline void decode_k(std::uint16_t d_bits, std::uint16_t dmin_bits, const std::uint8_t* scales, const std::uint8_t* qs,
                     const std::uint8_t* qh, float* out) {
  const float d = f16_to_f32(d_bits), dmin = f16_to_f32(dmin_bits);
  for (int j = 0; j < 8; ++j) {
    const ScaleAndMin packed = unpack_k_scale(scales, j);
    const float scale = d * float(packed.scale), min = dmin * float(packed.min);
    for (int i = 0; i < 32; ++i) {
      int q = qs[32 * (j / 2) + i] >> (4 * (j % 2)) & 15;
      if (qh) q |= (qh[i] >> j & 1) << 4;
      out[32 * j + i] = scale * float(q) - min;
    }
  }
}

inline void decode(const BlockQ4_K& block, float* out) {
  decode_k(block.d, block.dmin, block.scales, block.qs, nullptr, out);
}
inline void decode(const BlockQ5_K& block, float* out) {
  decode_k(block.d, block.dmin, block.scales, block.qs, block.qh, out);
}

// Two halves of 128 values; within a half, value 32 g + i (g = 0 to 3) has its low nibble in ql[32 (g % 2) + i], low
// half of the byte for g < 2, and its two upper bits in qh[i], bits 2 g and 2 g + 1.
inline void decode(const BlockQ6_K& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int k = 0; k < 256; ++k) {
    const int half = k / 128, g = k / 32 % 4, i = k % 32;
    const int low = block.ql[64 * half + 32 * (g % 2) + i] >> (4 * (g / 2)) & 15;
    const int high = block.qh[32 * half + i] >> (2 * g) & 3;
    out[k] = d * float(block.scales[k / 16]) * float((low | high << 4) - 32);
  }
}

template <class Block>
void decode_blocks(const std::byte* bytes, std::int64_t n, std::int64_t block_len, float* out) {
  for (std::int64_t i = 0; i < n / block_len; ++i) {
    Block block;
    std::memcpy(&block, bytes + std::size_t(i) * sizeof block, sizeof block);
    decode(block, out + i * block_len);
  }
}

}  // namespace block_decode_detail

VITRINE_INLINE void decode_block_row(DType type, const std::byte* blocks, std::int64_t n, float* out) {
  using namespace block_decode_detail;
  const DTypeInfo info = dtype_info(type);
  check(info.name != nullptr, ErrorKind::unsupported, "weight type number ", std::uint32_t(type), " is not known");
  check(n >= 0 && n % std::int64_t(info.block_len) == 0, ErrorKind::bad_argument, info.name,
        " row: expected a multiple of ", info.block_len, " values, got ", n);
  const auto decode_16 = [&](auto widen) {
    for (std::int64_t i = 0; i < n; ++i) {
      std::uint16_t bits;
      std::memcpy(&bits, blocks + 2 * std::size_t(i), sizeof bits);
      out[i] = widen(bits);
    }
  };
  switch (type) {
    case DType::f32: std::memcpy(out, blocks, sizeof(float) * std::size_t(n)); break;
    case DType::f16: decode_16([](std::uint16_t bits) { return f16_to_f32(bits); }); break;
    case DType::bf16: decode_16([](std::uint16_t bits) { return bf16_to_f32(bits); }); break;
    case DType::q4_0: decode_blocks<BlockQ4_0>(blocks, n, info.block_len, out); break;
    case DType::q4_1: decode_blocks<BlockQ4_1>(blocks, n, info.block_len, out); break;
    case DType::q5_0: decode_blocks<BlockQ5_0>(blocks, n, info.block_len, out); break;
    case DType::q5_1: decode_blocks<BlockQ5_1>(blocks, n, info.block_len, out); break;
    case DType::q8_0: decode_blocks<BlockQ8_0>(blocks, n, info.block_len, out); break;
    case DType::q4_k: decode_blocks<BlockQ4_K>(blocks, n, info.block_len, out); break;
    case DType::q5_k: decode_blocks<BlockQ5_K>(blocks, n, info.block_len, out); break;
    case DType::q6_k: decode_blocks<BlockQ6_K>(blocks, n, info.block_len, out); break;
    case DType::int8:
    case DType::int4: break;  // of caches
  }
}

VITRINE_NAMESPACE_END
