// Logits as the head gives them: rows of [n_vocab], and with each the largest of every 64 of them, noted as they were
// computed.
//
//   LogitRows room(n_rows, n_vocab);      // of a session or an engine; a pass writes into room.view()
//   Logits logits = room.row(0);          // a span<const float>, and logits.block_max()
//
// A row is a span and may be used as one. Whoever wants its largest elements, or to know whether all are finite, reads
// n_vocab / 64 maxima and the blocks that matter instead of all; of a row without maxima, all. The result is the same.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include "vitrine/core/config.hpp"
#include "vitrine/core/error.hpp"
#include "vitrine/core/rounding.hpp"
#include "vitrine/core/tensor.hpp"
#include "vitrine/ops/elementwise.hpp"
#include "vitrine/simd/kernel_table.hpp"

VITRINE_NAMESPACE_BEGIN

class TopLogits;  // ops/top_logits.hpp

class Logits : public std::span<const float> {
 public:
  static constexpr std::int64_t block = SamplingKernels::block;
  static constexpr std::int64_t n_blocks(std::int64_t n_vocab) { return divide_up(n_vocab, block); }

  Logits() = default;
  // Any other row: without maxima.
  template <class Row>
  requires(std::convertible_to<const Row&, std::span<const float>> && !std::derived_from<Row, Logits>)
      Logits(const Row& row)
      : span(row) {}
  // block_max [ceil(n_vocab / 64)] as a pass has written it for this row.
  Logits(std::span<const float> row, std::span<const float> block_max) : span(row), block_max_(block_max) {
    check(std::int64_t(block_max.size()) == n_blocks(std::int64_t(row.size())), ErrorKind::bad_argument,
          "logits: expected a maximum for each of ", n_blocks(std::int64_t(row.size())), " blocks, got ",
          block_max.size());
  }

  // The largest of each 64, or NaN where one of them is not finite; what decode_top left out counts as absent: a block
  // without any other has -FLT_MAX. Empty if nobody has looked.
  std::span<const float> block_max() const { return block_max_; }

 private:
  std::span<const float> block_max_;
};

inline bool all_finite(const KernelTable& kernels, const Logits& logits) {
  const std::span<const float> maxima = logits.block_max();
  return find_peak(kernels, maxima.empty() ? std::span<const float>(logits) : maxima).all_finite;
}

// Where a pass writes logits.
struct LogitsView {
  LogitsView() = default;
  LogitsView(TensorView<float, 2> all, TensorView<float, 2> maxima = {}) : values(all), block_max(maxima) {}
  TensorView<float, 2> values;     // [n_rows, n_vocab]
  TensorView<float, 2> block_max;  // [n_rows, ceil(n_vocab / 64)], or none wanted
  // If only the n_top largest of a single row are wanted, and there is room to find them: others may be left out, as
  // -infinity that the maxima do not count.
  TopLogits* top = nullptr;
  std::int64_t n_top = 0;
};

class LogitRows {
 public:
  LogitRows() = default;
  LogitRows(std::int64_t n_rows, std::int64_t n_vocab, bool zeroed = true)
      : values_({n_rows, n_vocab}, zeroed), block_max_({n_rows, Logits::n_blocks(n_vocab)}, zeroed) {}

  std::int64_t n_rows() const { return values_.shape()[0]; }
  LogitsView view(TopLogits* top = nullptr, std::int64_t n_top = 0) {
    LogitsView all(values_.view(), block_max_.view());
    all.top = n_top > 0 ? top : nullptr;
    all.n_top = n_top;
    return all;
  }
  Logits row(std::int64_t i) const { return {values_.view().row(i), block_max_.view().row(i)}; }
  static std::size_t row_bytes(std::int64_t n_vocab) {
    return std::size_t(n_vocab + Logits::n_blocks(n_vocab)) * sizeof(float);
  }

 private:
  Tensor<float, 2> values_, block_max_;
};

VITRINE_NAMESPACE_END
