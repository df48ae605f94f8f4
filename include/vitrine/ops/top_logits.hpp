// The largest logits of one token without reading all of the head, bit for bit those of the full product.
//
// Who takes the largest logit, or draws among the largest k, needs no others. Of a head in planes (simd/r16.hpp) a
// first pass reads the upper five bits of each weight, 65 % of the bytes, and finds what each panel of sixteen rows
// gives at most (simd/linear_bounds.hpp). Then the panels that promise most are computed in full. The k-th largest
// logit among them is a threshold: panels whose bound is below it hold none of the k largest, and all others are
// computed in full, too, by the kernel that always does. What is not computed is -infinity.
//
//   bound >= logit for every row, k logits >= threshold: so rows with bound < threshold are not among the k largest
//
// So the tokens are those of the full head, ties included, and it is a matter of time only how many panels are left:
// on Gemma-3-270M 0.2 % for k = 1 and 4 % for k = 40. Where they were too many, the next steps go the ordinary way.
// A row that is not finite is never skipped. (Prior art for certified skipping: CSV-Decode, arXiv 2511.21702, which
// clusters rows and bounds by Cauchy and Schwarz.)
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/core/parallel.hpp"
#include "vitrine/ops/linear.hpp"
#include "vitrine/ops/packed_matrix.hpp"
#include "vitrine/simd/kernel_table.hpp"

VITRINE_NAMESPACE_BEGIN

class TopLogits {
 public:
  static constexpr std::int64_t most = 64;  // of the largest that can be asked for

  TopLogits() = default;
  explicit TopLogits(const PackedMatrix& head);

  // Whether a step had better go this way. Not inside a parallel region, once per step, whose compute() must follow if
  // it is true. What it answers follows from the steps before, never from the clock.
  bool begins(std::int64_t n_top);

  // The n_top of begins() for the head and the one token in `input`: logits [n_vocab], and block_max as linear() gives
  // it (-FLT_MAX where nothing was computed). Every thread of the team calls it; it does not end with a barrier. False,
  // on all of them, if the input is so large or small that there is no bound; then nothing was written.
  bool compute(Worker& worker, const KernelTable& table, const PackedMatrix& head, const LinearInput& input,
               std::span<float> logits, std::span<float> block_max);

  struct Counts {
    std::int64_t n_steps = 0;             // that went this way
    std::int64_t n_panels = 0;            // of the head, in all of them together
    std::int64_t n_panels_completed = 0;  // of these, computed in full
    std::int64_t n_left_out = 0;          // steps asked for that went the ordinary way
  };
  const Counts& counts() const { return counts_; }

 private:
  static constexpr std::int64_t block_panels = SamplingKernels::block / panel_rows;

  void bound(Worker& worker, const KernelTable& table, const PackedMatrix& head, LinearJob job, std::span<float> logits,
             std::span<float> block_max);
  void choose_first();
  void set_threshold(std::span<const float> logits);
  void complete(const LinearJob& job, LinearKernel kernel, std::int64_t block, std::span<float> block_max);

  std::vector<XBlock32> input_;         // [n_cols / 32] for the bounds
  std::vector<float> bounds_;           // [n_panels]
  std::vector<float> block_bounds_;     // [n_blocks] the largest of each four
  std::vector<float> order_;            // [n_blocks] for selecting
  std::vector<std::uint8_t> computed_;  // [n_blocks] bit i: panel i of the block
  std::vector<std::int64_t> first_;     // the blocks, at most n_top, of which a panel is computed first
  std::vector<float> first_logits_;     // [most * 16]
  std::int64_t n_top_ = 0;
  float threshold_ = 0;
  bool has_bound_ = false;
  std::int64_t n_to_wait_ = 0, wait_ = 0;  // steps before the next try, and the last such number
  Counts counts_;
};

// Room for it, if it is wanted and the head allows it.
inline std::optional<TopLogits> make_top_logits(const PackedMatrix& head, bool wanted) {
  if (!wanted || !head.in_planes()) return std::nullopt;
  return TopLogits(head);
}

// Input for the bounds' kernel from that of the product with one token: out [n_cols / 32]. False if it is so large, or
// not finite, that the product might overflow, or its peaks are so small that rounding might hide them.
bool bound_input(const LinearJob& job, XBlock32* out);

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/ops/top_logits.inl.hpp"
#endif
