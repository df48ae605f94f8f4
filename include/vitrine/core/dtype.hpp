// Element types of weights and caches, and the quantised block formats as plain structs.
//
// The numbers of the enumeration are GGUF's tensor type ids (ggml documentation, docs/gguf.md), but for int8 and int4,
// which only caches have; sizes and field orders of the blocks are those of the file format. Only types, constants and
// always-inlined functions here: ISA units include this file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

enum class DType : std::uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  bf16 = 30,
  // Elements of a KV cache (simd/kv_format.hpp); no file has them, and dtype_info does not know them.
  int8 = 0x10000,
  int4 = 0x10001
};

// Scales d (and minima m) are f16. In the 32-value formats byte i of `qs` holds value i in its low and value i + 16 in
// its high nibble; bit i of `qh` is the fifth bit of value i.
struct BlockQ4_0 {  // w = d * (q - 8)
  std::uint16_t d;
  std::uint8_t qs[16];
};
struct BlockQ4_1 {  // w = d * q + m
  std::uint16_t d, m;
  std::uint8_t qs[16];
};
struct BlockQ5_0 {  // w = d * (q - 16)
  std::uint16_t d;
  std::uint8_t qh[4], qs[16];
};
struct BlockQ5_1 {  // w = d * q + m
  std::uint16_t d, m;
  std::uint8_t qh[4], qs[16];
};
struct BlockQ8_0 {  // w = d * q
  std::uint16_t d;
  std::int8_t qs[32];
};
// The 256-value "K" formats have 8 sub-blocks of 32 with 6-bit scales and minima packed into 12 bytes (Q4_K, Q5_K), or
// 16 sub-blocks of 16 with 8-bit scales (Q6_K).
struct BlockQ4_K {  // w = d * scale[j] * q - dmin * min[j]
  std::uint16_t d, dmin;
  std::uint8_t scales[12], qs[128];
};
struct BlockQ5_K {  // as Q4_K with a fifth bit
  std::uint16_t d, dmin;
  std::uint8_t scales[12], qh[32], qs[128];
};
struct BlockQ6_K {  // w = d * scale[j] * (q - 32)
  std::uint8_t ql[128], qh[64];
  std::int8_t scales[16];
  std::uint16_t d;
};
static_assert(sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20 && sizeof(BlockQ5_0) == 22 && sizeof(BlockQ5_1) == 24);
static_assert(sizeof(BlockQ8_0) == 34 && sizeof(BlockQ4_K) == 144 && sizeof(BlockQ5_K) == 176 &&
              sizeof(BlockQ6_K) == 210);

struct DTypeInfo {
  const char* name;         // as in GGUF tools: "F32", "Q4_K"; nullptr for an unknown type
  std::uint32_t block_len;  // values per block
  std::uint32_t block_bytes;
};

VITRINE_FORCE_INLINE constexpr DTypeInfo dtype_info(DType type) {
  switch (type) {
    case DType::f32: return {"F32", 1, 4};
    case DType::f16: return {"F16", 1, 2};
    case DType::bf16: return {"BF16", 1, 2};
    case DType::q4_0: return {"Q4_0", 32, sizeof(BlockQ4_0)};
    case DType::q4_1: return {"Q4_1", 32, sizeof(BlockQ4_1)};
    case DType::q5_0: return {"Q5_0", 32, sizeof(BlockQ5_0)};
    case DType::q5_1: return {"Q5_1", 32, sizeof(BlockQ5_1)};
    case DType::q8_0: return {"Q8_0", 32, sizeof(BlockQ8_0)};
    case DType::q4_k: return {"Q4_K", 256, sizeof(BlockQ4_K)};
    case DType::q5_k: return {"Q5_K", 256, sizeof(BlockQ5_K)};
    case DType::q6_k: return {"Q6_K", 256, sizeof(BlockQ6_K)};
    case DType::int8:
    case DType::int4: break;
  }
  return {nullptr, 0, 0};
}

// "F16", "INT8"; nullptr for what no cache can hold.
VITRINE_FORCE_INLINE constexpr const char* kv_type_name(DType type) {
  switch (type) {
    case DType::f32:
    case DType::f16:
    case DType::bf16: return dtype_info(type).name;
    case DType::int8: return "INT8";
    case DType::int4: return "INT4";
    default: return nullptr;
  }
}

VITRINE_FORCE_INLINE constexpr bool is_float_type(DType type) { return dtype_info(type).block_len == 1; }

// Length of the blocks in which an activation is quantised for this weight type: 32, or 256 for the K formats; 0 for
// float weights, whose activations stay F32.
VITRINE_FORCE_INLINE constexpr std::uint32_t activation_block(DType type) {
  return is_float_type(type) ? 0 : dtype_info(type).block_len;
}

VITRINE_NAMESPACE_END
