// Products of whole tiles of bytes, where the CPU has them (AMX-INT8); all else in the kernels is the same as without.
//
//   c [16][16] int32  +=  a [16][k] int8  *  b [k / 4][16][4] int8 or uint8        exact; k is 64 or less
//
// b is what layout R16 keeps of sixteen rows of weights, a the activations of sixteen tokens. There are eight tile
// registers. TileUse sets their shapes and sets them back when it ends: a host program may have shapes of its own
// (what its tiles held is lost, as with any call), and where it has none, the registers are released, since an
// operating system has more to save while they are in use.
// (Intel 64 and IA-32 SDM vol. 2, TDPBSSD; in assembly, because g++'s macros want register numbers as text.)
#pragma once

#include <cstdint>

#include "vitrine/simd/lanes_bytes.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

class TileUse {
 public:
  // Registers 0 to 3 are c; 4 is a [16][k]; 5 to 7 are b [k / 4][16][4].
  explicit TileUse(int k) {
    struct alignas(64) {
      std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
      std::uint16_t row_bytes[16] = {};
      std::uint8_t rows[16] = {};
    } shape;
    for (int i = 0; i < 8; ++i) {
      shape.row_bytes[i] = std::uint16_t(i == 4 ? k : 64);
      shape.rows[i] = std::uint8_t(i > 4 ? k / 4 : 16);
    }
    __asm__ volatile("sttilecfg %0" : "=m"(before_));
    __asm__ volatile("ldtilecfg %0" ::"m"(shape));
  }
  ~TileUse() { __asm__ volatile("ldtilecfg %0" ::"m"(before_)); }  // all zeros, where no shapes were set: a release
  TileUse(const TileUse&) = delete;
  TileUse& operator=(const TileUse&) = delete;

 private:
  struct alignas(64) {
    std::uint8_t bytes[64];
  } before_;
};

template <int tile>
VITRINE_FORCE_INLINE void tile_zero() {
  __asm__ volatile("tilezero %%tmm%c0" ::"i"(tile));
}
template <int tile>
VITRINE_FORCE_INLINE void tile_load(const void* first_row, std::int64_t stride) {
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(first_row), "r"(stride), "i"(tile) : "memory");
}
template <int tile>
VITRINE_FORCE_INLINE void tile_store(void* first_row, std::int64_t stride) {
  __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(first_row), "r"(stride), "i"(tile) : "memory");
}
// a is signed; so is b, unless unsigned_b.
template <int c, int a, int b, bool unsigned_b>
VITRINE_FORCE_INLINE void tile_dot() {
  if constexpr (unsigned_b)
    __asm__ volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(c), "i"(a), "i"(b));
  else
    __asm__ volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(c), "i"(a), "i"(b));
}

template <int n>
VITRINE_FORCE_INLINE i32x16 shift_right(i32x16 a) {
  return {_mm512_srai_epi32(a.v, n)};
}
VITRINE_FORCE_INLINE bytes64 subtract_bytes(bytes64 a, int b) {
  return {_mm512_sub_epi8(a.v, _mm512_set1_epi8(char(b)))};
}
// Each row's four bytes times its factor, which is below 256; the lower eight bits of the products.
VITRINE_FORCE_INLINE bytes64 scale_bytes(bytes64 a, i32x16 factor) {
  const __m512i words = _mm512_mullo_epi32(factor.v, _mm512_set1_epi32(0x10001));
  const __m512i even = _mm512_and_si512(_mm512_mullo_epi16(a.v, words), _mm512_set1_epi16(0xff));
  return {_mm512_or_si512(even, _mm512_slli_epi16(_mm512_mullo_epi16(_mm512_srli_epi16(a.v, 8), words), 8))};
}

VITRINE_ISA_NAMESPACE_END
