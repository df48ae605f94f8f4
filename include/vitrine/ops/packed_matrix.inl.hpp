// Bodies of ops/packed_matrix.hpp: into layout R16 and back. The layout itself is described in simd/r16.hpp.
//
// One description serves both directions: `visit` walks over the fields of one row's block and names, for each run of
// file bytes, where it lies in the panel; packing copies one way, unpacking the other.
#pragma once

#include <algorithm>
#include <cstring>

#include "vitrine/core/block_decode.hpp"
#include "vitrine/core/error.hpp"
#include "vitrine/ops/packed_matrix.hpp"

VITRINE_NAMESPACE_BEGIN

namespace packed_detail {

// The fifth bits of 32 values between the file's order (bit i of a 32-bit word) and R16's (byte i, bit s for value
// 4 s + i of one row).
inline void spread_fifth_bits(const std::uint8_t* file, std::uint8_t* r16) {
  std::uint32_t word;
  std::memcpy(&word, file, 4);
  for (int i = 0; i < 4; ++i) {
    unsigned byte = 0;
    for (int s = 0; s < 8; ++s) byte |= (word >> (4 * s + i) & 1u) << s;
    r16[i] = std::uint8_t(byte);
  }
}
inline void gather_fifth_bits(const std::uint8_t* r16, std::uint8_t* file) {
  std::uint32_t word = 0;
  for (int i = 0; i < 4; ++i)
    for (int s = 0; s < 8; ++s) word |= std::uint32_t(r16[i] >> s & 1) << (4 * s + i);
  std::memcpy(file, &word, 4);
}

// The twelve bytes of scales and minima of Q4_K and Q5_K: the file's packing against R16's three groups of four bytes,
// `stride` bytes apart.
inline void spread_k_scales(const std::uint8_t* file, std::uint8_t* r16, std::size_t stride) {
  for (int i = 0; i < 4; ++i) {
    const ScaleAndMin a = unpack_k_scale(file, i), b = unpack_k_scale(file, i + 4);
    r16[i] = std::uint8_t((a.scale & 15) | (b.scale & 15) << 4);
    r16[stride + std::size_t(i)] = std::uint8_t((a.min & 15) | (b.min & 15) << 4);
    r16[2 * stride + std::size_t(i)] =
        std::uint8_t(a.scale >> 4 | b.scale >> 4 << 2 | a.min >> 4 << 4 | b.min >> 4 << 6);
  }
}
inline void gather_k_scales(const std::uint8_t* r16, std::size_t stride, std::uint8_t* file) {
  for (int i = 0; i < 4; ++i) {
    const unsigned scales = r16[i], mins = r16[stride + std::size_t(i)], top = r16[2 * stride + std::size_t(i)];
    const unsigned scale_a = (scales & 15) | (top & 3) << 4, scale_b = scales >> 4 | (top >> 2 & 3) << 4;
    const unsigned min_a = (mins & 15) | (top >> 4 & 3) << 4, min_b = mins >> 4 | (top >> 6) << 4;
    file[i] = std::uint8_t(scale_a | scale_b >> 4 << 6);
    file[i + 4] = std::uint8_t(min_a | min_b >> 4 << 6);
    file[i + 8] = std::uint8_t((scale_b & 15) | (min_b & 15) << 4);
  }
}

inline constexpr bool to_panel = true, to_file = false;

// A byte pointer whose constness follows the direction.
template <bool wanted>
using PanelByte = std::conditional_t<wanted == to_panel, std::uint8_t, const std::uint8_t>;
template <bool wanted>
using FileByte = std::conditional_t<wanted == to_panel, const std::uint8_t, std::uint8_t>;

// Copies between a row's run of n_groups * 4 bytes in the file and its [group][16 rows][4] place in the panel.
template <bool direction>
void copy_groups(FileByte<direction>* file, PanelByte<direction>* r16, int row, int n_groups) {
  for (int s = 0; s < n_groups; ++s) {
    if constexpr (direction == to_panel)
      std::memcpy(r16 + 64 * s + 4 * row, file + 4 * s, 4);
    else
      std::memcpy(file + 4 * s, r16 + 64 * s + 4 * row, 4);
  }
}
template <bool direction>
void copy_half(FileByte<direction>* file, PanelByte<direction>* r16, int row) {
  if constexpr (direction == to_panel)
    std::memcpy(r16 + 2 * row, file, 2);
  else
    std::memcpy(file, r16 + 2 * row, 2);
}
template <bool direction>
void copy_fifth_bits(FileByte<direction>* file, PanelByte<direction>* r16, int row) {
  if constexpr (direction == to_panel)
    spread_fifth_bits(file, r16 + 4 * row);
  else
    gather_fifth_bits(r16 + 4 * row, file);
}
template <bool direction>
void copy_k_scales(FileByte<direction>* file, PanelByte<direction>* r16, int row) {
  if constexpr (direction == to_panel)
    spread_k_scales(file, r16 + 4 * row, 64);
  else
    gather_k_scales(r16 + 4 * row, 64, file);
}

// Moves block `b` of one row between the file's bytes and the panel, in either direction.
template <bool direction>
void move_block(DType type, FileByte<direction>* file, PanelByte<direction>* panel, std::int64_t b, int row) {
  constexpr bool dir = direction;
  const std::size_t pair = std::size_t(b / 2), odd = std::size_t(b % 2), block = std::size_t(b);
  switch (type) {
    case DType::q4_0: {
      auto* base = panel + pair * r16::q4_0_pair_bytes;
      copy_half<dir>(file + offsetof(BlockQ4_0, d), base + 32 * odd, row);
      copy_groups<dir>(file + offsetof(BlockQ4_0, qs), base + 64 + 256 * odd, row, 4);
      break;
    }
    case DType::q4_1: {
      auto* base = panel + block * r16::q4_1_bytes;
      copy_half<dir>(file + offsetof(BlockQ4_1, d), base, row);
      copy_half<dir>(file + offsetof(BlockQ4_1, m), base + 32, row);
      copy_groups<dir>(file + offsetof(BlockQ4_1, qs), base + 64, row, 4);
      break;
    }
    case DType::q5_0: {
      auto* base = panel + pair * r16::q5_0_pair_bytes;
      copy_half<dir>(file + offsetof(BlockQ5_0, d), base + 32 * odd, row);
      copy_fifth_bits<dir>(file + offsetof(BlockQ5_0, qh), base + 64 + 64 * odd, row);
      copy_groups<dir>(file + offsetof(BlockQ5_0, qs), base + 192 + 256 * odd, row, 4);
      break;
    }
    case DType::q5_1: {
      auto* base = panel + block * r16::q5_1_bytes;
      copy_half<dir>(file + offsetof(BlockQ5_1, d), base, row);
      copy_half<dir>(file + offsetof(BlockQ5_1, m), base + 32, row);
      copy_fifth_bits<dir>(file + offsetof(BlockQ5_1, qh), base + 64, row);
      copy_groups<dir>(file + offsetof(BlockQ5_1, qs), base + 128, row, 4);
      break;
    }
    case DType::q8_0: {
      auto* base = panel + pair * r16::q8_0_pair_bytes;
      copy_half<dir>(file + offsetof(BlockQ8_0, d), base + 32 * odd, row);
      copy_groups<dir>(file + offsetof(BlockQ8_0, qs), base + 64 + 512 * odd, row, 8);
      break;
    }
    case DType::q4_k: {
      auto* base = panel + block * r16::q4_k_bytes;
      copy_half<dir>(file + offsetof(BlockQ4_K, d), base, row);
      copy_half<dir>(file + offsetof(BlockQ4_K, dmin), base + 32, row);
      copy_k_scales<dir>(file + offsetof(BlockQ4_K, scales), base + 64, row);
      copy_groups<dir>(file + offsetof(BlockQ4_K, qs), base + 256, row, 32);
      break;
    }
    case DType::q5_k: {
      auto* base = panel + block * r16::q5_k_bytes;
      copy_half<dir>(file + offsetof(BlockQ5_K, d), base, row);
      copy_half<dir>(file + offsetof(BlockQ5_K, dmin), base + 32, row);
      copy_k_scales<dir>(file + offsetof(BlockQ5_K, scales), base + 64, row);
      copy_groups<dir>(file + offsetof(BlockQ5_K, qh), base + 256, row, 8);
      copy_groups<dir>(file + offsetof(BlockQ5_K, qs), base + 768, row, 32);
      break;
    }
    case DType::q6_k: {
      auto* base = panel + pair * r16::q6_k_pair_bytes;
      auto* half = base + 64 + odd * r16::q6_k_half_bytes;
      copy_half<dir>(file + offsetof(BlockQ6_K, d), base + 32 * odd, row);
      copy_groups<dir>(file + offsetof(BlockQ6_K, scales), half, row, 4);
      copy_groups<dir>(file + offsetof(BlockQ6_K, ql), half + 256, row, 32);
      copy_groups<dir>(file + offsetof(BlockQ6_K, qh), half + 2304, row, 16);
      break;
    }
    case DType::f32:
    case DType::f16:
    case DType::bf16: break;  // handled by element
    case DType::int8:
    case DType::int4: break;  // of caches
  }
}

// Block b of one row of a matrix in planes, 32 values as eight words of four: w[s] holds values 4 s .. 4 s + 3.
inline void block_to_planes(const std::uint8_t* file, std::uint8_t* high, std::uint8_t* low, std::int64_t b, int row) {
  auto* base = high + std::size_t(b / 2) * r16::q8_0_high_pair_bytes;
  std::memcpy(base + 32 * (b % 2) + 2 * row, file + offsetof(BlockQ8_0, d), 2);
  std::uint32_t w[8], fifth = 0, of_low[3] = {};
  std::memcpy(w, file + offsetof(BlockQ8_0, qs), 32);
  for (int s = 0; s < 8; ++s) {
    w[s] ^= 0x80808080u;
    fifth |= (w[s] >> 7 & 0x01010101u) << s;
    for (int v = 0; v < 3; ++v)
      of_low[v] |= s / 2 == v ? (w[s] & 0x07070707u) << s % 2 * 4
                   : s < 6    ? 0
                              : (w[s] >> v & 0x01010101u) << (s == 6 ? 3 : 7);
  }
  std::memcpy(base + 64 + 64 * (b % 2) + 4 * row, &fifth, 4);
  for (int s = 0; s < 4; ++s) {
    const std::uint32_t nibbles = (w[s] >> 3 & 0x0f0f0f0fu) | (w[s + 4] >> 3 & 0x0f0f0f0fu) << 4;
    std::memcpy(base + 192 + 256 * (b % 2) + 64 * s + 4 * row, &nibbles, 4);
  }
  for (int v = 0; v < 3; ++v) std::memcpy(low + 192 * b + 64 * v + 4 * row, &of_low[v], 4);
}
inline void planes_to_block(const std::uint8_t* high, const std::uint8_t* low, std::int64_t b, int row,
                            std::uint8_t* file) {
  const auto* base = high + std::size_t(b / 2) * r16::q8_0_high_pair_bytes;
  std::memcpy(file + offsetof(BlockQ8_0, d), base + 32 * (b % 2) + 2 * row, 2);
  std::uint32_t w[8], fifth, of_low[3];
  std::memcpy(&fifth, base + 64 + 64 * (b % 2) + 4 * row, 4);
  for (int v = 0; v < 3; ++v) std::memcpy(&of_low[v], low + 192 * b + 64 * v + 4 * row, 4);
  for (int s = 0; s < 8; ++s) {
    std::uint32_t nibbles;
    std::memcpy(&nibbles, base + 192 + 256 * (b % 2) + 64 * (s % 4) + 4 * row, 4);
    w[s] = (nibbles >> s / 4 * 4 & 0x0f0f0f0fu) << 3 | (fifth >> s & 0x01010101u) << 7;
    for (int v = 0; v < 3; ++v)
      w[s] |= s / 2 == v ? of_low[v] >> s % 2 * 4 & 0x07070707u
              : s < 6    ? 0
                         : (of_low[v] >> (s == 6 ? 3 : 7) & 0x01010101u) << v;
    w[s] ^= 0x80808080u;
  }
  std::memcpy(file + offsetof(BlockQ8_0, qs), w, 32);
}

}  // namespace packed_detail

VITRINE_INLINE PackedMatrix::PackedMatrix(Shaped, DType type, std::int64_t n_rows, std::int64_t n_cols,
                                          PackedLayout layout)
    : type_(type), layout_(layout), n_rows_(n_rows), n_cols_(n_cols) {
  const DTypeInfo info = dtype_info(type);
  check(info.name != nullptr, ErrorKind::unsupported, "weight type number ", std::uint32_t(type), " is not known");
  check(n_rows > 0 && n_cols > 0 && n_cols % std::int64_t(info.block_len) == 0, ErrorKind::bad_argument,
        "matrix of type ", info.name, ": expected at least one row and a multiple of ", info.block_len,
        " columns, got ", n_rows, " rows and ", n_cols, " columns");
  check(layout == PackedLayout::whole || type == DType::q8_0, ErrorKind::bad_argument,
        "matrix in planes: expected type Q8_0, got ", info.name);
  const auto limit = std::int64_t(1) << 46;  // far above any machine, far below overflow
  check(n_rows < limit / n_cols, ErrorKind::bad_argument, "matrix of ", n_rows, " by ", n_cols, " is too large");
}

VITRINE_INLINE PackedMatrix::PackedMatrix(DType type, std::int64_t n_rows, std::int64_t n_cols, PackedLayout layout)
    : PackedMatrix(Shaped{}, type, n_rows, n_cols, layout) {
  *this = PackedMatrix(type, n_rows, n_cols, std::make_shared<AlignedBytes>(bytes(), false), 0, layout);
}

VITRINE_INLINE PackedMatrix::PackedMatrix(DType type, std::int64_t n_rows, std::int64_t n_cols,
                                          std::shared_ptr<AlignedBytes> memory, std::size_t offset, PackedLayout layout)
    : PackedMatrix(Shaped{}, type, n_rows, n_cols, layout) {
  const std::size_t size = memory ? memory->size() : 0;
  check(offset % tensor_alignment == 0 && offset <= size && bytes() <= size - offset, ErrorKind::bad_argument,
        "matrix: expected room for ", bytes(), " bytes at a multiple of ", tensor_alignment, ", got offset ", offset,
        " in ", size, " bytes");
  data_ = writable_ = memory->data() + offset;
  owner_ = std::move(memory);
}

VITRINE_INLINE PackedMatrix::PackedMatrix(DType type, std::int64_t n_rows, std::int64_t n_cols, const std::byte* packed,
                                          std::shared_ptr<const void> owner, PackedLayout layout)
    : PackedMatrix(Shaped{}, type, n_rows, n_cols, layout) {
  data_ = packed;
  owner_ = std::move(owner);
}

VITRINE_INLINE std::size_t PackedMatrix::bytes_of(DType type, std::int64_t n_rows, std::int64_t n_cols) {
  return PackedMatrix(Shaped{}, type, n_rows, n_cols, PackedLayout::whole).bytes();
}

VITRINE_INLINE void PackedMatrix::pack_panels(std::int64_t first, std::int64_t last, const std::byte* file_rows,
                                              const std::int64_t* row_order) {
  using namespace packed_detail;
  check(first >= 0 && first <= last && last <= n_panels(), ErrorKind::bad_argument, "panels [", first, ", ", last,
        ") of a matrix that has ", n_panels());
  check(writable_ != nullptr, ErrorKind::bad_argument, "pack_panels: expected a matrix with memory of its own");
  const std::size_t block_bytes = dtype_info(type_).block_bytes;
  for (std::int64_t p = first; p < last; ++p) {
    const auto place = [&](const std::byte* start) {
      return start ? reinterpret_cast<std::uint8_t*>(writable_ + (start - data_)) : nullptr;
    };
    auto *panel = place(this->panel(p)), *low = place(low_panel(p));
    const int rows_here = int(n_rows_ - p * panel_rows < panel_rows ? n_rows_ - p * panel_rows : panel_rows);
    // Padding rows, and the unused half of an odd last pair, are zeros.
    if (rows_here < panel_rows || n_blocks() % r16::unit(type_).blocks != 0) {
      std::memset(panel, 0, panel_stride());
      if (low) std::memset(low, 0, low_stride());
    }
    // Sixteen short rows in turn are no stream that a processor foresees; the next panel's follow in the file.
    const bool is_followed = (p + 2) * panel_rows <= n_rows_ && !row_order;
    const std::uint8_t* rows[panel_rows];
    for (int r = 0; r < rows_here; ++r) {
      const std::int64_t index = row_order ? row_order[p * panel_rows + r] : p * panel_rows + r;
      check(index >= 0 && index < n_rows_, ErrorKind::bad_argument, "row order: expected rows below ", n_rows_,
            ", got ", index);
      rows[r] = reinterpret_cast<const std::uint8_t*>(file_rows) + std::size_t(index) * row_bytes();
    }
    for (std::int64_t b = 0; b < n_blocks(); ++b)
      for (int r = 0; r < rows_here; ++r) {
        const std::uint8_t* block = rows[r] + std::size_t(b) * block_bytes;
        if (is_followed) __builtin_prefetch(block + panel_rows * row_bytes());
        if (is_float_type(type_))
          std::memcpy(panel + (std::size_t(b) * panel_rows + std::size_t(r)) * block_bytes, block, block_bytes);
        else if (low)
          block_to_planes(block, panel, low, b, r);
        else
          move_block<to_panel>(type_, block, panel, b, r);
      }
  }
}

VITRINE_INLINE void PackedMatrix::whole_panel(std::int64_t index, std::byte* out) const {
  using namespace packed_detail;
  check(index >= 0 && index < n_panels(), ErrorKind::bad_argument, "panel ", index, " of a matrix that has ",
        n_panels());
  const auto *high = reinterpret_cast<const std::uint8_t*>(panel(index)),
             *low = reinterpret_cast<const std::uint8_t*>(low_panel(index));
  if (!low) {
    std::memcpy(out, high, panel_bytes());
    return;
  }
  std::memset(out, 0, panel_bytes());
  const auto n_rows = (std::min)(n_rows_ - index * panel_rows, panel_rows);
  std::uint8_t block[sizeof(BlockQ8_0)];
  for (std::int64_t b = 0; b < n_blocks(); ++b)
    for (int r = 0; r < int(n_rows); ++r) {
      planes_to_block(high, low, b, r, block);
      move_block<to_panel>(type_, block, reinterpret_cast<std::uint8_t*>(out), b, r);
    }
}

VITRINE_INLINE void PackedMatrix::decode_row(std::int64_t row, float* out) const {
  using namespace packed_detail;
  check(row >= 0 && row < n_rows_, ErrorKind::bad_argument, "row ", row, " of a matrix that has ", n_rows_);
  const DTypeInfo info = dtype_info(type_);
  const auto* panel = reinterpret_cast<const std::uint8_t*>(this->panel(row / panel_rows));
  const auto* low = reinterpret_cast<const std::uint8_t*>(low_panel(row / panel_rows));
  const int r = int(row % panel_rows);
  std::uint8_t block[sizeof(BlockQ6_K)];
  static_assert(sizeof block >= sizeof(BlockQ5_K));
  for (std::int64_t b = 0; b < n_blocks(); ++b) {
    if (is_float_type(type_))
      std::memcpy(block, panel + (std::size_t(b) * panel_rows + std::size_t(r)) * info.block_bytes, info.block_bytes);
    else if (low)
      planes_to_block(panel, low, b, r, block);
    else
      move_block<to_file>(type_, block, panel, b, r);
    decode_block_row(type_, reinterpret_cast<const std::byte*>(block), info.block_len, out + b * info.block_len);
  }
}

VITRINE_NAMESPACE_END
