// Layout R16: how weights lie in memory. Sixteen rows are one panel; one vector lane is one row.
//
// Within a panel the k axis runs in order. Quantised types keep each row's groups of four consecutive k-values
// together, as the integer dot instructions want them, with the rows side by side:
//
//   quants of one k-group:  [16 rows][4 values]    64 bytes, a cache line; all loads aligned, no sum across lanes
//   scales of one block:    [16 rows]              one vector
//
// A panel takes as many bytes as its rows take in the file. Types whose block of 16 rows is no whole number of cache
// lines are laid in pairs of blocks (an odd last block gets a pair to itself). Offsets below are in bytes.
//
//   F32 F16 BF16  [k][16 rows]
//   Q4_0  pair    d[2][16] f16 | nibbles[2][256]
//   Q4_1          d[16] m[16] f16 | nibbles[256]
//   Q5_0  pair    d[2][16] f16 | fifth bits[2][64] | nibbles[2][256]
//   Q5_1          d[16] m[16] f16 | fifth bits[64] | nibbles[256]
//   Q8_0  pair    d[2][16] f16 | int8 [2][8 groups][64]
//   Q8_0  in planes: see below
//   Q4_K          d[16] dmin[16] f16 | scales[192] | nibbles[4 chunks][8 groups][64]
//   Q5_K          d[16] dmin[16] f16 | scales[192] | fifth bits[8 groups][64] | nibbles as Q4_K
//   Q6_K  pair    d[2][16] f16 | 2 x (scales[4][16 rows][4] int8 | low nibbles[2 halves][2][8 groups][64] |
//                                     high bits[2 halves][8 groups][64])
//
//   nibbles[256]     byte 64 s + 4 r + i: row r, low nibble = value 4 s + i, high nibble = value 16 + 4 s + i
//   fifth bits[64]   byte 4 r + i: bit s is the fifth bit of row r's value 4 s + i
//   scales[192]      three times [16 rows][4 bytes]: byte i holds the low four bits of scale i, high nibble: scale
//                    i + 4; the same for the minima; the upper two bits of scale i, scale i + 4, min i, min i + 4
//
// A head of type Q8_0 may lie in two planes, so that its upper bits can be read alone (ops/top_logits.hpp). With
// q + 128 = 8 h + l, h of five bits and l of three, all panels' high planes come first, then all low planes; both
// together take the bytes of Q8_0:
//
//   high  pair    the panel of a Q5_0 matrix whose quants are h: d[2][16] f16 | fifth bits[2][64] | nibbles[2][256]
//   low   pair    [2][3][64]: byte 4 r + i of vector v holds row r's l of values 8 v + i (bits 0 to 2) and 8 v + 4 + i
//                 (bits 4 to 6); of values 24 + i and 28 + i it holds bit v of l (in bits 3 and 7)
#pragma once

#include <cstddef>
#include <cstdint>

#include "vitrine/core/config.hpp"
#include "vitrine/core/dtype.hpp"
#include "vitrine/core/rounding.hpp"

VITRINE_NAMESPACE_BEGIN

inline constexpr std::int64_t panel_rows = 16;

namespace r16 {

inline constexpr std::uint32_t layout_version = 2;  // files that hold this layout are tied to it

inline constexpr std::size_t q4_0_pair_bytes = 64 + 2 * 256;
inline constexpr std::size_t q4_1_bytes = 64 + 256;
inline constexpr std::size_t q5_0_pair_bytes = 64 + 2 * 64 + 2 * 256;
inline constexpr std::size_t q5_1_bytes = 64 + 64 + 256;
inline constexpr std::size_t q8_0_pair_bytes = 64 + 2 * 512;
inline constexpr std::size_t q8_0_high_pair_bytes = q5_0_pair_bytes, q8_0_low_pair_bytes = 2 * 3 * 64;
static_assert(q8_0_high_pair_bytes + q8_0_low_pair_bytes == q8_0_pair_bytes);
inline constexpr std::size_t q4_k_bytes = 64 + 192 + 2048;
inline constexpr std::size_t q5_k_bytes = 64 + 192 + 512 + 2048;
inline constexpr std::size_t q6_k_half_bytes = 256 + 2048 + 1024;
inline constexpr std::size_t q6_k_pair_bytes = 64 + 2 * q6_k_half_bytes;

// How many blocks share one unit of the layout, and the bytes of that unit (all 16 rows).
struct Unit {
  std::int64_t blocks;
  std::size_t bytes;
};
VITRINE_FORCE_INLINE constexpr Unit unit(DType type) {
  switch (type) {
    case DType::f32: return {1, 64};
    case DType::f16:
    case DType::bf16: return {1, 32};
    case DType::q4_0: return {2, q4_0_pair_bytes};
    case DType::q4_1: return {1, q4_1_bytes};
    case DType::q5_0: return {2, q5_0_pair_bytes};
    case DType::q5_1: return {1, q5_1_bytes};
    case DType::q8_0: return {2, q8_0_pair_bytes};
    case DType::q4_k: return {1, q4_k_bytes};
    case DType::q5_k: return {1, q5_k_bytes};
    case DType::q6_k: return {2, q6_k_pair_bytes};
    case DType::int8:
    case DType::int4: break;  // of caches
  }
  return {1, 0};
}

// Bytes from one panel to the next, for n_blocks blocks a row (n_blocks = n_cols for float types): whole cache lines.
VITRINE_FORCE_INLINE constexpr std::size_t panel_bytes(DType type, std::int64_t n_blocks) {
  const Unit u = unit(type);
  return round_up(std::size_t(divide_up(n_blocks, u.blocks)) * u.bytes, 64);
}

}  // namespace r16

VITRINE_NAMESPACE_END
