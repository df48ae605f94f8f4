// The tokens that may still be chosen, in the order (logit descending, id ascending), sorted only as far as needed.
//
// Every step of the chain keeps a prefix of that order, so the state is a length and a temperature. A vocabulary has
// 262,144 entries in Gemma, of which a step looks at a few dozen: the largest m are found without sorting the rest.
// The m-th largest of the maxima of blocks of 64 logits is a lower bound of the m-th largest logit, hence only blocks
// whose maximum reaches it are read again.
//
// Probabilities are weights exp((logit - largest) / temperature) over their sum. That sum runs over the prefix in
// order; only while the prefix is the whole vocabulary it runs in 16 lanes by id and a tree (design: Arithmetic,
// version 1).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/core/token.hpp"
#include "vitrine/simd/dispatch.hpp"

VITRINE_NAMESPACE_BEGIN

class Candidates {
 public:
  // Nothing is allocated after this. The kernels make no difference but time.
  explicit Candidates(std::int64_t n_vocab, const KernelTable& table = kernels());

  // Starts over with these logits [n_vocab], which must stay alive until the token is chosen. Tokens with logit -inf
  // are no candidates. Throws Error(numeric_failure) for NaN, for two +inf, and when no candidate is left; a single
  // +inf is the only candidate.
  void reset(std::span<const float> logits);

  // [n_vocab], where a step that changes logits may write before reset(edited()).
  std::span<float> edited() { return edited_; }

  std::int64_t size() const { return n_kept_; }

  void divide_by(double temperature);     // 0: keep the first alone
  void keep_first(std::int64_t n);        // n >= 1
  void keep_nucleus(double mass);         // i stays when the mass before it is less than `mass`; the first always stays
  void keep_probable(double of_largest);  // p >= of_largest * (largest p)

  // The first candidate, without sorting any.
  Token best() const;

  // The i-th candidate and its probability; sorts up to there.
  Token id(std::int64_t i);
  float logit(std::int64_t i);
  double probability(std::int64_t i);

  // The candidate at this point, in [0, 1), of the cumulative distribution.
  Token at_mass(double point);

 private:
  struct Candidate {
    float logit;
    Token id;
  };
  static constexpr std::int64_t block = SamplingKernels::block;

  void radix_sort();
  void sort_first(std::int64_t n);
  void weigh_sorted();
  double weight(std::int64_t i);  // of the i-th in order; sorts up to there
  double total();

  const KernelTable* kernels_;
  std::span<const float> logits_;
  std::vector<float> edited_;             // [n_vocab]
  std::vector<float> block_max_;          // [ceil(n_vocab / 64)]
  std::vector<float> block_order_;        // the same, for selecting
  std::vector<Candidate> sorted_;         // the first n_sorted_ in order
  std::unique_ptr<Candidate[]> sorting_;  // [n_vocab]
  std::vector<double> weights_;           // of the first n_weights_ at this temperature
  std::int64_t n_admissible_ = 0;         // logits that are not -inf
  std::int64_t n_kept_ = 0, n_sorted_ = 0, n_weights_ = 0;
  float largest_ = 0;
  double temperature_ = 1, total_ = 0;  // total_ <= 0: not known
};

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/sample/candidates.inl.hpp"
#endif
