// How each quantised weight type is read from its panel: where a block's parts lie, and its k-groups as bytes.
//
//   Format::at(panel, b)           pointers to the parts of block b: scales, minimums, quants, fifth bits
//   Format::visit(block, visit)    each k-group of it as bytes, [16 rows][4]
//   Format::column(block, k)       value k of it as F32, [16 rows], the bits of the plain decoder (block_decode.hpp)
//
// All forms of a linear layer use these: those for one token or a few feed the groups to their dots, those for many
// store them as an unpacked panel, and all take the columns that multiply an input's peaks. The layout is described in
// r16.hpp.
#pragma once

#include "vitrine/simd/lanes_bytes.hpp"
#include "vitrine/simd/r16.hpp"
#include "vitrine/simd/unroll.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

// Where a panel begins, and its low plane if the matrix has one.
struct PanelStart {
  const std::uint8_t *high, *low;
  __attribute__((always_inline)) operator const std::uint8_t*() const { return high; }
};

// A block of 32 k-values of sixteen rows.
struct Block32 {
  const std::uint16_t *d, *m;  // [16] f16; m only where the type has a minimum
  const std::uint8_t *quants, *fifth;
  const std::uint8_t* low = nullptr;  // [3][64] of a matrix in planes
};

// Groups of a type with nibbles: visit(Index<group>, Index<how many came before>, bytes)
template <bool has_fifth, class Visit>
VITRINE_FORCE_INLINE void visit_nibbles(const Block32& block, Visit visit) {
  [[maybe_unused]] bytes64 fifth;
  if constexpr (has_fifth) fifth = load_bytes(block.fifth);
  unroll<4>([&](auto index) __attribute__((always_inline)) {
    constexpr int s = decltype(index)::value;
    const bytes64 both = load_bytes(block.quants + 64 * s);
    bytes64 low = low_nibbles(both), high = high_nibbles(both);
    if constexpr (has_fifth) {
      low = low | move_bits<s, 1, 4>(fifth);
      high = high | move_bits<s + 4, 1, 4>(fifth);
    }
    visit(Index<s>{}, Index<2 * s>{}, low);
    visit(Index<s + 4>{}, Index<2 * s + 1>{}, high);
  });
}

// Value k (0 to 31) of a block with nibbles, and with the fifth bit on top.
VITRINE_FORCE_INLINE i32x16 nibble_at(const Block32& block, int k) {
  return row_bits<4>(block.quants + 64 * (k % 16 / 4), 8 * (k % 4) + 4 * (k / 16));
}
VITRINE_FORCE_INLINE i32x16 five_bits_at(const Block32& block, int k) {
  return nibble_at(block, k) + shift_left<4>(row_bits<1>(block.fifth, 8 * (k % 4) + k / 4));
}
// Of a byte's eight bits, what they mean as one with a sign.
VITRINE_FORCE_INLINE i32x16 signed_byte(i32x16 a) {
  const i32x16 half = broadcast_i32(128);
  return ((a + half) & broadcast_i32(255)) - half;
}
// d * (q - offset), and d * q + m, each operation rounded.
VITRINE_FORCE_INLINE f32x16 scaled(const Block32& block, i32x16 q, int offset) {
  return to_f32(q - broadcast_i32(offset)) * load_f16(block.d);
}
VITRINE_FORCE_INLINE f32x16 scaled_with_min(const Block32& block, i32x16 q) {
  return to_f32(q) * load_f16(block.d) + load_f16(block.m);
}

struct Q4_0 {
  static constexpr int block_len = 32, bits = 4, offset_shift = 3;  // w = d * (q - 2^offset_shift)
  static constexpr bool has_min = false;
  static constexpr std::size_t bytes_per_block = r16::q4_0_pair_bytes / 2;
  VITRINE_FORCE_INLINE Block32 at(const std::uint8_t* panel, std::int64_t b) {
    const std::uint8_t* pair = panel + std::size_t(b / 2) * r16::q4_0_pair_bytes;
    return {reinterpret_cast<const std::uint16_t*>(pair + 32 * (b % 2)), nullptr, pair + 64 + 256 * (b % 2), nullptr};
  }
  template <class Visit>
  VITRINE_FORCE_INLINE void visit(const Block32& block, Visit visit) {
    visit_nibbles<false>(block, visit);
  }
  VITRINE_FORCE_INLINE f32x16 column(const Block32& block, int k) { return scaled(block, nibble_at(block, k), 8); }
};

struct Q4_1 {
  static constexpr int block_len = 32, bits = 4, offset_shift = -1;  // w = d * q + m
  static constexpr bool has_min = true;
  static constexpr std::size_t bytes_per_block = r16::q4_1_bytes;
  VITRINE_FORCE_INLINE Block32 at(const std::uint8_t* panel, std::int64_t b) {
    const std::uint8_t* block = panel + std::size_t(b) * r16::q4_1_bytes;
    const auto* d = reinterpret_cast<const std::uint16_t*>(block);
    return {d, d + 16, block + 64, nullptr};
  }
  template <class Visit>
  VITRINE_FORCE_INLINE void visit(const Block32& block, Visit visit) {
    visit_nibbles<false>(block, visit);
  }
  VITRINE_FORCE_INLINE f32x16 column(const Block32& block, int k) {
    return scaled_with_min(block, nibble_at(block, k));
  }
};

struct Q5_0 {
  static constexpr int block_len = 32, bits = 5, offset_shift = 4;
  static constexpr bool has_min = false;
  static constexpr std::size_t bytes_per_block = r16::q5_0_pair_bytes / 2;
  VITRINE_FORCE_INLINE Block32 at(const std::uint8_t* panel, std::int64_t b) {
    const std::uint8_t* pair = panel + std::size_t(b / 2) * r16::q5_0_pair_bytes;
    return {reinterpret_cast<const std::uint16_t*>(pair + 32 * (b % 2)), nullptr, pair + 192 + 256 * (b % 2),
            pair + 64 + 64 * (b % 2)};
  }
  template <class Visit>
  VITRINE_FORCE_INLINE void visit(const Block32& block, Visit visit) {
    visit_nibbles<true>(block, visit);
  }
  VITRINE_FORCE_INLINE f32x16 column(const Block32& block, int k) { return scaled(block, five_bits_at(block, k), 16); }
};

struct Q5_1 {
  static constexpr int block_len = 32, bits = 5, offset_shift = -1;
  static constexpr bool has_min = true;
  static constexpr std::size_t bytes_per_block = r16::q5_1_bytes;
  VITRINE_FORCE_INLINE Block32 at(const std::uint8_t* panel, std::int64_t b) {
    const std::uint8_t* block = panel + std::size_t(b) * r16::q5_1_bytes;
    const auto* d = reinterpret_cast<const std::uint16_t*>(block);
    return {d, d + 16, block + 128, block + 64};
  }
  template <class Visit>
  VITRINE_FORCE_INLINE void visit(const Block32& block, Visit visit) {
    visit_nibbles<true>(block, visit);
  }
  VITRINE_FORCE_INLINE f32x16 column(const Block32& block, int k) {
    return scaled_with_min(block, five_bits_at(block, k));
  }
};

struct Q8_0 {
  static constexpr int block_len = 32, bits = 8, offset_shift = scratch_offset<8> == 128 ? 7 : -1;
  static constexpr bool has_min = false;
  static constexpr std::size_t bytes_per_block = r16::q8_0_pair_bytes / 2;
  VITRINE_FORCE_INLINE Block32 at(const std::uint8_t* panel, std::int64_t b) {
    const std::uint8_t* pair = panel + std::size_t(b / 2) * r16::q8_0_pair_bytes;
    return {reinterpret_cast<const std::uint16_t*>(pair + 32 * (b % 2)), nullptr, pair + 64 + 512 * (b % 2), nullptr};
  }
  template <class Visit>
  VITRINE_FORCE_INLINE void visit(const Block32& block, Visit visit) {
    unroll<8>([&](auto index) __attribute__((always_inline)) {
      constexpr int s = decltype(index)::value;
      visit(Index<s>{}, Index<s>{}, load_bytes(block.quants + 64 * s));
    });
  }
  VITRINE_FORCE_INLINE f32x16 column(const Block32& block, int k) {
    return scaled(block, signed_byte(row_bits<8>(block.quants + 64 * (k / 4), 8 * (k % 4))), 0);
  }
};

// The high plane of a Q8_0 matrix in planes: h of q + 128 = 8 h + l. Its offset is in the input (bound_input).
struct Q8_0High : Q5_0 {
  static constexpr int offset_shift = 0;
};

// Both planes: the groups come as q + 128.
struct Q8_0Planes {
  static constexpr int block_len = 32, bits = 8, offset_shift = Q8_0::offset_shift;
  static constexpr bool has_min = false;
  static constexpr std::size_t bytes_per_block = r16::q8_0_high_pair_bytes / 2;
  static constexpr std::size_t low_bytes_per_block = r16::q8_0_low_pair_bytes / 2;
  VITRINE_FORCE_INLINE Block32 at(PanelStart panel, std::int64_t b) {
    Block32 block = Q5_0::at(panel, b);
    block.low = panel.low + std::size_t(b) * low_bytes_per_block;
    return block;
  }
  template <class Visit>
  VITRINE_FORCE_INLINE void visit(const Block32& block, Visit visit) {
    const bytes64 fifth = load_bytes(block.fifth);
    const bytes64 low[3] = {load_bytes(block.low), load_bytes(block.low + 64), load_bytes(block.low + 128)};
    const auto low_bits = [&](auto group) __attribute__((always_inline)) {
      constexpr int g = decltype(group)::value, at = g % 2 * 4;
      if constexpr (g < 6)
        return move_bits<at, 3, 0>(low[g / 2]);
      else
        return move_bits<at + 3, 1, 0>(low[0]) | move_bits<at + 3, 1, 1>(low[1]) | move_bits<at + 3, 1, 2>(low[2]);
    };
    unroll<4>([&](auto index) __attribute__((always_inline)) {
      constexpr int s = decltype(index)::value;
      const bytes64 both = load_bytes(block.quants + 64 * s);
      visit(Index<s>{}, Index<2 * s>{}, move_bits<0, 4, 3>(both) | move_bits<s, 1, 7>(fifth) | low_bits(Index<s>{}));
      visit(Index<s + 4>{}, Index<2 * s + 1>{},
            move_bits<4, 4, 3>(both) | move_bits<s + 4, 1, 7>(fifth) | low_bits(Index<s + 4>{}));
    });
  }
  VITRINE_FORCE_INLINE f32x16 column(const Block32& block, int k) {
    const int at = 8 * (k % 4) + 4 * (k / 4 % 2);
    const i32x16 low = k < 24 ? row_bits<3>(block.low + 64 * (k / 8), at)
                              : row_bits<1>(block.low, at + 3) + shift_left<1>(row_bits<1>(block.low + 64, at + 3)) +
                                    shift_left<2>(row_bits<1>(block.low + 128, at + 3));
    return scaled(block, shift_left<3>(five_bits_at(block, k)) + low, 128);
  }
};

template <class Format>
inline constexpr bool is_in_planes = requires {
  Format::low_bytes_per_block;
};

// A group's bytes in the form that an unpacked panel keeps.
template <class Format>
VITRINE_FORCE_INLINE bytes64 scratch_form(bytes64 w) {
  if constexpr (is_in_planes<Format>)
    return offset_to_scratch(w);
  else
    return to_scratch<Format::bits>(w);
}

// A block of 256 k-values of sixteen rows: runs of `run_groups` k-groups, each with an integer scale per row.
struct Block256 {
  const std::uint16_t *d, *dmin;  // [16] f16; dmin only where the type has minima
  const std::uint8_t *scales, *quants, *high;
};

// The 6-bit scales and minima of Q4_K and Q5_K: bytes i of each row are entries i (low) and i + 4 (high).
struct KScales {
  bytes64 scale[2], min[2];
};
VITRINE_FORCE_INLINE KScales load_k_scales(const std::uint8_t* p) {
  const bytes64 scale = load_bytes(p), min = load_bytes(p + 64), top = load_bytes(p + 128);
  return {{low_nibbles(scale) | move_bits<0, 2, 4>(top), high_nibbles(scale) | move_bits<2, 2, 4>(top)},
          {low_nibbles(min) | move_bits<4, 2, 4>(top), high_nibbles(min) | move_bits<6, 2, 4>(top)}};
}

template <bool has_fifth>
struct QxK {
  static constexpr int block_len = 256, bits = has_fifth ? 5 : 4, n_runs = 8, run_groups = 8;
  static constexpr bool has_min = true;
  static constexpr std::size_t block_bytes = has_fifth ? r16::q5_k_bytes : r16::q4_k_bytes;
  static constexpr std::size_t bytes_per_block = block_bytes;
  VITRINE_FORCE_INLINE Block256 at(const std::uint8_t* panel, std::int64_t b) {
    const std::uint8_t* block = panel + std::size_t(b) * block_bytes;
    const auto* d = reinterpret_cast<const std::uint16_t*>(block);
    return {d, d + 16, block + 64, block + (has_fifth ? 768 : 256), block + 256};
  }
  // Which runs the low and the high nibbles of group s in a chunk belong to.
  static constexpr int low_run(int chunk, int) { return 2 * chunk; }
  static constexpr int high_run(int chunk, int) { return 2 * chunk + 1; }
  struct Scales {
    KScales k;
  };
  VITRINE_FORCE_INLINE Scales load_scales(const Block256& block) { return {load_k_scales(block.scales)}; }
  template <int run>
  VITRINE_FORCE_INLINE i32x16 scale(const Scales& scales) {
    return scale_at<run % 4>(scales.k.scale[run / 4]);
  }
  // What multiplies the block's pair sums: the minima, as pairs. A block's sum_x is their dot with sums of x.
  static constexpr int n_pair_vectors = 4, first_pair = 0;
  template <int i>
  VITRINE_FORCE_INLINE i32x16 pair_factor(const Scales& scales) {
    return i % 2 ? odd_bytes(scales.k.min[i / 2]) : even_bytes(scales.k.min[i / 2]);
  }
  // visit(Index<s>, bytes of group s of the low run, of the high run)
  template <int chunk, class Visit>
  VITRINE_FORCE_INLINE void visit(const Block256& block, Visit visit) {
    unroll<8>([&](auto index) __attribute__((always_inline)) {
      constexpr int s = decltype(index)::value;
      const bytes64 both = load_bytes(block.quants + 512 * chunk + 64 * s);
      bytes64 low = low_nibbles(both), high = high_nibbles(both);
      if constexpr (has_fifth) {
        const bytes64 fifth = load_bytes(block.high + 64 * s);
        low = low | move_bits<2 * chunk, 1, 4>(fifth);
        high = high | move_bits<2 * chunk + 1, 1, 4>(fifth);
      }
      visit(Index<s>{}, low, high);
    });
  }
  VITRINE_FORCE_INLINE f32x16 column(const Block256& block, int k) {
    const int run = k / 32, at = 8 * (k % 4), of_scale = 8 * (run % 4);
    const std::size_t group = std::size_t(64 * (k % 32 / 4));
    i32x16 q = row_bits<4>(block.quants + 512 * (run / 2) + group, at + 4 * (run % 2));
    if constexpr (has_fifth) q = q + shift_left<4>(row_bits<1>(block.high + group, at + run));
    const i32x16 scale = row_bits<4>(block.scales, of_scale + 4 * (run / 4)) +
                         shift_left<4>(row_bits<2>(block.scales + 128, of_scale + 2 * (run / 4)));
    const i32x16 min = row_bits<4>(block.scales + 64, of_scale + 4 * (run / 4)) +
                       shift_left<4>(row_bits<2>(block.scales + 128, of_scale + 4 + 2 * (run / 4)));
    return load_f16(block.d) * to_f32(scale) * to_f32(q) - load_f16(block.dmin) * to_f32(min);
  }
};
using Q4_K = QxK<false>;
using Q5_K = QxK<true>;

struct Q6_K {
  static constexpr int block_len = 256, bits = 6, n_runs = 16, run_groups = 4;
  static constexpr bool has_min = false;
  static constexpr std::size_t bytes_per_block = r16::q6_k_pair_bytes / 2;
  VITRINE_FORCE_INLINE Block256 at(const std::uint8_t* panel, std::int64_t b) {
    const std::uint8_t* pair = panel + std::size_t(b / 2) * r16::q6_k_pair_bytes;
    const std::uint8_t* half = pair + 64 + r16::q6_k_half_bytes * std::size_t(b % 2);
    return {reinterpret_cast<const std::uint16_t*>(pair + 32 * (b % 2)), nullptr, half, half + 256, half + 2304};
  }
  // Chunk c holds values 128 (c / 2) + 32 (c % 2) .. + 31 in its low nibbles, and those 64 further on in the high ones.
  static constexpr int low_run(int chunk, int s) { return 8 * (chunk / 2) + 2 * (chunk % 2) + s / 4; }
  static constexpr int high_run(int chunk, int s) { return low_run(chunk, s) + 4; }
  struct Scales {
    bytes64 quarter[4];
  };
  VITRINE_FORCE_INLINE Scales load_scales(const Block256& block) {
    return {{load_bytes(block.scales), load_bytes(block.scales + 64), load_bytes(block.scales + 128),
             load_bytes(block.scales + 192)}};
  }
  template <int run>
  VITRINE_FORCE_INLINE i32x16 scale(const Scales& scales) {
    return signed_scale_at<run % 4>(scales.quarter[run / 4]);
  }
  // The scales once more, as pairs: their dot with minus the sums of x, times 32, takes the offset of q back.
  static constexpr int n_pair_vectors = 8, first_pair = 8;
  template <int i>
  VITRINE_FORCE_INLINE i32x16 pair_factor(const Scales& scales) {
    return i % 2 ? signed_odd_bytes(scales.quarter[i / 2]) : signed_even_bytes(scales.quarter[i / 2]);
  }
  template <int chunk, class Visit>
  VITRINE_FORCE_INLINE void visit(const Block256& block, Visit visit) {
    unroll<8>([&](auto index) __attribute__((always_inline)) {
      constexpr int s = decltype(index)::value, half = chunk / 2, g = chunk % 2;
      const bytes64 both = load_bytes(block.quants + 512 * chunk + 64 * s);
      const bytes64 high = load_bytes(block.high + 512 * half + 64 * s);
      visit(Index<s>{}, low_nibbles(both) | move_bits<2 * g, 2, 4>(high),
            high_nibbles(both) | move_bits<2 * g + 4, 2, 4>(high));
    });
  }
  VITRINE_FORCE_INLINE f32x16 column(const Block256& block, int k) {
    const int half = k / 128, g = k / 32 % 4, at = 8 * (k % 4), run = k / 16;
    const std::size_t group = std::size_t(64 * (k % 32 / 4));
    const i32x16 q = row_bits<4>(block.quants + 512 * (2 * half + g % 2) + group, at + 4 * (g / 2)) +
                     shift_left<4>(row_bits<2>(block.high + 512 * half + group, at + 2 * g));
    const i32x16 scale = signed_byte(row_bits<8>(block.scales + 64 * (run / 4), 8 * (run % 4)));
    return load_f16(block.d) * to_f32(scale) * to_f32(q - broadcast_i32(32));
  }
};

VITRINE_ISA_NAMESPACE_END
