// The tokens that may still be chosen, in the order (logit descending, id ascending), sorted only as far as needed.
//
// Every step of the chain keeps an interval of that order, nearly always one that begins at the first, so the state is
// two places and a temperature. A vocabulary has 262,144 entries in Gemma, of which a step looks at a few dozen: the
// largest m are found without sorting the rest. The m-th largest of the maxima of blocks of 64 logits is a lower bound
// of the m-th largest logit, hence only blocks whose maximum reaches it are read. The maxima come with the logits from
// the model's head; of logits that have none, they are found by a scan. Steps that change logits renew those of the
// blocks they touch.
//
// Probabilities are weights exp((z_i - z_0) / T) over their sum, z_0 being the first one kept. That sum runs over the
// interval in order; only while the interval is the whole vocabulary it runs in 16 lanes by id and a tree (design:
// Arithmetic).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/core/token.hpp"
#include "vitrine/ops/logits.hpp"
#include "vitrine/simd/dispatch.hpp"

VITRINE_NAMESPACE_BEGIN

class Candidates {
 public:
  // Nothing is allocated after this. The kernels make no difference but time.
  explicit Candidates(std::int64_t n_vocab, const KernelTable& table = kernels());

  // Starts over with these logits [n_vocab], which must stay alive until the token is chosen. Tokens with logit -inf
  // are no candidates. Throws Error(numeric_failure) for NaN, for two +inf, and when no candidate is left; a single
  // +inf is the only candidate.
  void reset(const Logits& logits);

  // To change logits: begin_edit() copies those of the last reset() to edited(); who writes there also sets the entry
  // of the logit's block in changed_blocks(). end_edit() does what reset(edited()) would, and looks at these only.
  void begin_edit();
  std::span<float> edited() { return edited_; }                         // [n_vocab]
  std::span<std::uint8_t> changed_blocks() { return changed_blocks_; }  // [ceil(n_vocab / 64)]
  void end_edit();

  std::int64_t size() const { return end_ - begin_; }
  double temperature() const { return temperature_; }

  void divide_by(double temperature);               // 0: keep the first alone
  void keep(std::int64_t begin, std::int64_t end);  // the begin-th and those after it, before the end-th; at least one

  // The first candidate, without sorting any.
  Token best();

  // The i-th candidate; these sort up to there. Weights are relative to the first candidate's.
  Token id(std::int64_t i);
  float logit(std::int64_t i);
  double weight(std::int64_t i);
  double probability(std::int64_t i) { return weight(i) / total(); }
  double surprise(std::int64_t i);  // -log p in nats, also where p is too small for a double

  double total();      // sum of the weights
  double entropy();    // -sum p log p, in nats
  double deviation();  // standard deviation of their logits, of the population

  bool has(Token token);
  double log_probability(Token token);  // -inf for one that is no candidate
  std::int64_t rank(Token token);       // how many of the vocabulary come before it in the order

  // The candidate at this point, in [0, 1), of the cumulative distribution.
  struct Drawn {
    Token id;
    std::int64_t place;          // among the candidates
    double mass_before, weight;  // of those before it, and its own: in units of total()
  };
  Drawn at_mass(double point);

 private:
  struct Candidate {
    float logit;
    Token id;
  };
  static constexpr std::int64_t block = Logits::block;

  void begin(const SamplingKernels::Facts& facts);
  std::int64_t length_of(std::int64_t b) const;  // of block b
  bool whole() const { return begin_ == 0 && end_ == n_admissible_; }
  bool in_lanes() const;  // sums run over the whole vocabulary, by the kernels
  double distance(std::int64_t i) const;
  double log_total();
  float bound_by_histogram(std::int64_t n) const;
  void radix_sort();
  void sort_first(std::int64_t n);
  void weigh_sorted();

  const KernelTable* kernels_;
  std::span<const float> logits_;
  std::span<const float> block_max_;          // [ceil(n_vocab / 64)], as they came with the logits or own_block_max_
  std::vector<float> own_block_max_;          // the same
  std::vector<float> block_order_;            // the same, for selecting
  std::vector<float> edited_;                 // [n_vocab]
  std::vector<std::uint8_t> changed_blocks_;  // [ceil(n_vocab / 64)]
  std::vector<Candidate> sorted_;             // the first n_sorted_ in order
  std::unique_ptr<Candidate[]> sorting_;      // [n_vocab]
  std::vector<double> weights_;               // of the first ones kept, at this temperature
  std::int64_t n_admissible_ = 0;             // logits that are not -inf
  std::int64_t begin_ = 0, end_ = 0;          // what is kept, as places in the order of all
  std::int64_t n_sorted_ = 0, n_weights_ = 0;
  float largest_ = 0;                                   // of all
  float first_ = 0;                                     // logit of the first one kept
  double temperature_ = 1, total_ = 0, log_total_ = 0;  // total_ <= 0: not known
};

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/sample/candidates.inl.hpp"
#endif
