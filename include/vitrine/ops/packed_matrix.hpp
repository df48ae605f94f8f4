// A weight matrix [n_rows, n_cols] in layout R16 (simd/r16.hpp): sixteen rows interleaved, so that one vector lane
// works on one row; used by one-token and many-token kernels alike.
//
//   PackedMatrix w(DType::q4_1, n_rows, n_cols);                       // allocates
//   w.pack_panels(first, last, file_rows, nullptr);                    // from several threads, disjoint panels
//
// It takes as many bytes as the rows take in the file (rows padded to a multiple of 16). Immutable once packed, so any
// number of threads may read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "vitrine/core/config.hpp"
#include "vitrine/core/dtype.hpp"
#include "vitrine/core/rounding.hpp"
#include "vitrine/core/tensor.hpp"
#include "vitrine/simd/r16.hpp"

VITRINE_NAMESPACE_BEGIN

// Whether a matrix lies whole in its panels or, which type Q8_0 can, in two planes (simd/r16.hpp).
enum class PackedLayout { whole, planes };

class PackedMatrix {
 public:
  PackedMatrix() = default;

  // Allocates, without contents. n_cols must be a multiple of the type's block length and both sizes positive; throws
  // Error::bad_argument otherwise, or for planes of another type than Q8_0; Error::out_of_memory when refused.
  PackedMatrix(DType type, std::int64_t n_rows, std::int64_t n_cols, PackedLayout layout = PackedLayout::whole);

  // The same in `memory` from byte `offset` on, a multiple of 64, where bytes_of(type, n_rows, n_cols) bytes are its
  // own: many matrices lie better in one large piece of memory than in pieces too small for the system's large pages.
  // Throws Error::bad_argument if there is no such room.
  PackedMatrix(DType type, std::int64_t n_rows, std::int64_t n_cols, std::shared_ptr<AlignedBytes> memory,
               std::size_t offset, PackedLayout layout = PackedLayout::whole);

  // Uses `packed`, bytes_of(type, n_rows, n_cols) bytes that `owner` keeps alive, as they are; 64-byte aligned.
  PackedMatrix(DType type, std::int64_t n_rows, std::int64_t n_cols, const std::byte* packed,
               std::shared_ptr<const void> owner, PackedLayout layout = PackedLayout::whole);
  static std::size_t bytes_of(DType type, std::int64_t n_rows, std::int64_t n_cols);

  PackedMatrix(PackedMatrix&& other) noexcept { *this = std::move(other); }
  PackedMatrix& operator=(PackedMatrix&& other) noexcept {
    std::swap(type_, other.type_);
    std::swap(layout_, other.layout_);
    std::swap(n_rows_, other.n_rows_);
    std::swap(n_cols_, other.n_cols_);
    std::swap(data_, other.data_);
    std::swap(writable_, other.writable_);
    std::swap(owner_, other.owner_);
    return *this;
  }

  // Packs panels [first, last) (panel p holds rows 16 p .. 16 p + 15). `file_rows` is the whole matrix in the file's
  // order, n_rows times row_bytes(), any alignment. Packed row i is file row row_order[i], or i when row_order is null.
  // Safe to call at once from several threads for disjoint panels.
  void pack_panels(std::int64_t first, std::int64_t last, const std::byte* file_rows, const std::int64_t* row_order);

  // Row `row` as floats, out [n_cols]: exactly what the plain block decoder gives for the file's row.
  void decode_row(std::int64_t row, float* out) const;

  // Panel `index` as it lies, or would lie, in a matrix that is whole: out [panel_bytes()].
  void whole_panel(std::int64_t index, std::byte* out) const;

  DType type() const { return type_; }
  bool in_planes() const { return layout_ == PackedLayout::planes; }
  std::int64_t n_rows() const { return n_rows_; }
  std::int64_t n_cols() const { return n_cols_; }
  std::int64_t n_panels() const { return divide_up(n_rows_, panel_rows); }
  std::int64_t n_blocks() const { return n_cols_ / block_len(); }                                    // per row
  std::size_t row_bytes() const { return std::size_t(n_blocks()) * dtype_info(type_).block_bytes; }  // in the file
  std::size_t panel_bytes() const { return r16::panel_bytes(type_, n_blocks()); }
  std::size_t bytes() const { return std::size_t(n_panels()) * panel_bytes(); }
  bool empty() const { return n_rows_ == 0; }
  const std::byte* data() const { return data_; }  // all of it, [bytes()]
  // A panel, or its high plane; the bytes from one to the next.
  std::size_t panel_stride() const { return panel_bytes() - low_stride(); }
  const std::byte* panel(std::int64_t index) const { return data_ + std::size_t(index) * panel_stride(); }
  // A panel's low plane; null and 0 of a matrix that lies whole.
  std::size_t low_stride() const {
    return in_planes() ? std::size_t(divide_up(n_blocks(), 2)) * r16::q8_0_low_pair_bytes : 0;
  }
  const std::byte* low_panel(std::int64_t index) const {
    return in_planes() ? panel(n_panels()) + std::size_t(index) * low_stride() : nullptr;
  }

 private:
  std::int64_t block_len() const { return dtype_info(type_).block_len; }

  DType type_ = DType::f32;
  PackedLayout layout_ = PackedLayout::whole;
  std::int64_t n_rows_ = 0, n_cols_ = 0;
  const std::byte* data_ = nullptr;  // the panels as layout_ has them, in what owner_ keeps
  std::byte* writable_ = nullptr;    // the same; null if they are not to be written
  std::shared_ptr<const void> owner_;

  struct Shaped {};
  PackedMatrix(Shaped, DType type, std::int64_t n_rows, std::int64_t n_cols, PackedLayout layout);
};

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/ops/packed_matrix.inl.hpp"
#endif
