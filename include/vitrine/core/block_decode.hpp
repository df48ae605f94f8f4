// The plain decoder of every weight type: block bytes of the file format to float.
//
//   decode_block_row(DType::q4_1, bytes, n, out)       out [n], n / 32 blocks of 20 bytes: out[i] = d * q[i] + m
//
// This is the meaning of the formats, value by value, with one rounding per written operation; embedding rows and tests
// use it. The block structs and formulas are in dtype.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vitrine/core/config.hpp"
#include "vitrine/core/dtype.hpp"

VITRINE_NAMESPACE_BEGIN

// Decodes n values, n a multiple of the type's block length. `blocks` need not be aligned. Throws Error::bad_argument
// for another n and Error::unsupported for an unknown type.
void decode_block_row(DType type, const std::byte* blocks, std::int64_t n, float* out);

// The 6-bit scale and minimum of sub-block j (0 to 7) in the 12 packed bytes of Q4_K and Q5_K.
struct ScaleAndMin {
  std::uint8_t scale, min;
};
constexpr ScaleAndMin unpack_k_scale(const std::uint8_t* packed, int j) {
  // Sub-blocks 0 to 3 have bytes of their own; the top two bits of those bytes belong to sub-blocks 4 to 7.
  if (j < 4) return {std::uint8_t(packed[j] & 63), std::uint8_t(packed[j + 4] & 63)};
  return {std::uint8_t((packed[j + 4] & 15) | (packed[j - 4] >> 6 << 4)),
          std::uint8_t((packed[j + 4] >> 4) | (packed[j] >> 6 << 4))};
}

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/core/block_decode.inl.hpp"
#endif
