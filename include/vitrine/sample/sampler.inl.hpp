// Bodies of sample/sampler.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <random>
#include <type_traits>
#include <utility>

#include "vitrine/core/error.hpp"
#include "vitrine/core/exact_math.hpp"
#include "vitrine/core/parallel.hpp"
#include "vitrine/sample/random.hpp"
#include "vitrine/sample/sampler.hpp"

VITRINE_NAMESPACE_BEGIN

namespace sampler_detail {

// The first candidate stays first, up to a step that keeps it alone.
inline bool takes_the_largest(const SamplingChain& chain) {
  for (const auto& step : chain) {
    if (std::holds_alternative<Xtc>(step) || std::holds_alternative<Typical>(step)) return false;
    if (const auto* t = std::get_if<Temperature>(&step); t && t->temperature == 0) return true;
    if (const auto* top = std::get_if<TopK>(&step); top && top->k == 1) return true;
  }
  return false;
}

// sample() is watched by nobody: every call of this compiles to nothing.
struct NoWatch {
  static constexpr bool watches = false;
};

// Writes down what explain() tells.
class Watch {
 public:
  static constexpr bool watches = true;
  explicit Watch(std::int64_t max_listed) : max_listed_(max_listed) {}

  void before_edit(std::span<const float> logits) { before_.assign(logits.begin(), logits.end()); }

  // The candidates are those before the step, the logits those after it.
  void after_edit(Candidates& candidates, std::span<const float> logits) {
    mass_removed_ = 0;
    const double first = candidates.logit(0), log_total = exact::log(candidates.total());
    for (std::size_t i = 0; i < before_.size(); ++i)
      if (logits[i] == LogitEdit::banned && before_[i] != LogitEdit::banned)
        mass_removed_ += candidates.size() == 1 ? 1.0 : exact::exp(double(before_[i]) - first - log_total);
  }

  void before_step(Candidates& candidates) {
    first_logit_ = candidates.logit(0);
    first_probability_ = candidates.probability(0);
    temperature_ = candidates.temperature();
    n_before_ = candidates.size();
  }

  // Dropping candidates multiplies every probability by the same factor.
  void after_step(Candidates& candidates) {
    mass_removed_ = 0;
    if (candidates.size() == n_before_) return;
    const double now_first =
        first_probability_ * exact::exp((double(candidates.logit(0)) - first_logit_) / temperature_);
    mass_removed_ = (std::max)(0.0, 1 - now_first / candidates.probability(0));
  }

  void list(Candidates& candidates, std::string step) {
    SamplingStage stage{.step = std::move(step),
                        .n_before = stages.empty() ? candidates.size() : stages.back().n_after,
                        .n_after = candidates.size(),
                        .mass_removed = mass_removed_,
                        .entropy = candidates.entropy(),
                        .temperature = candidates.temperature(),
                        .kept = {}};
    const auto n = max_listed_ > 0 ? (std::min)(max_listed_, candidates.size()) : candidates.size();
    for (std::int64_t i = 0; i < n; ++i)
      stage.kept.push_back({candidates.id(i), candidates.logit(i), candidates.probability(i)});
    stages.push_back(std::move(stage));
  }

  std::vector<SamplingStage> stages;

 private:
  std::int64_t max_listed_, n_before_ = 0;
  std::vector<float> before_;
  double mass_removed_ = 0, first_logit_ = 0, first_probability_ = 1, temperature_ = 1;
};

}  // namespace sampler_detail

VITRINE_INLINE std::uint64_t fresh_seed() {
  try {
    std::random_device entropy;
    const std::uint64_t upper = entropy();
    return upper << 32 | (entropy() & 0xffffffffu);
  } catch (const std::exception& error) {
    throw Error(ErrorKind::io, concat("seed: the system gives no random numbers (", error.what(), "); pass a seed"));
  }
}

VITRINE_INLINE Sampler::Sampler(const SamplingOptions& options, std::int64_t n_vocab, const KernelTable& table)
    : Sampler(sampling_chain(options, n_vocab), options.seed, n_vocab, table) {}

VITRINE_INLINE Sampler::Sampler(SamplingChain chain, std::optional<std::uint64_t> seed, std::int64_t n_vocab,
                                const KernelTable& table)
    : chain_(std::move(chain)),
      greedy_(sampler_detail::takes_the_largest(chain_)),
      seed_(seed ? *seed : fresh_seed()),
      kernels_(&table),
      candidates_(n_vocab, table) {
  check_sampling(chain_, n_vocab);
  while (n_edits_ < chain_.size() && changes_logits(chain_[n_edits_])) ++n_edits_;
  if (n_edits_ > 0) counts_.resize(std::size_t(n_vocab));
  begin(0);
}

VITRINE_INLINE std::int64_t Sampler::n_top() const {
  if (n_edits_ > 0) return 0;
  if (greedy_) return 1;
  for (const auto& step : chain_) {
    const auto* const top = std::get_if<TopK>(&step);
    if (top && top->k > 0) return top->k;
    if (!top && !std::holds_alternative<Temperature>(step)) break;
  }
  return 0;
}

VITRINE_INLINE void Sampler::begin(std::int64_t n_prompt) {
  check(n_prompt >= 0, ErrorKind::bad_argument, "n_prompt: expected at least 0 tokens, got ", n_prompt);
  n_prompt_ = n_prompt;
  const auto* mirostat = chain_.empty() ? nullptr : std::get_if<Mirostat>(&chain_.back());
  mu_ = mirostat ? mirostat->start() : 0;
}

VITRINE_INLINE void Sampler::apply(const SamplingStep& step, std::int64_t position) {
  std::visit(
      [&]<class Step>(const Step& s) {
        if constexpr (std::is_same_v<Step, Xtc>)
          s.apply(candidates_, random_uniform(seed_, std::uint64_t(position), random_stream::xtc));
        else if constexpr (std::is_same_v<Step, Mirostat>)
          s.apply(candidates_, mu_);
        else if constexpr (!edits_logits<Step>)
          s.apply(candidates_);
      },
      step);
}

template <class Watch>
Sampler::Result Sampler::run(const Logits& logits, std::span<const Token> history, std::int64_t position,
                             Watch& watch) {
  const parallel_detail::DefaultFloatEnvironment environment;  // a host's flush-to-zero must not choose our tokens
  candidates_.reset(logits);
  if constexpr (Watch::watches) watch.list(candidates_, "logits");
  if (n_edits_ > 0) {
    candidates_.begin_edit();
    const auto edited = candidates_.edited();
    LogitEdit edit{edited, history, n_prompt_, candidates_.changed_blocks(), counts_, scratch_};
    for (std::size_t i = 0; i < n_edits_; ++i) {
      if constexpr (Watch::watches) watch.before_edit(edited);
      std::visit(
          [&]<class Step>(const Step& step) {
            if constexpr (edits_logits<Step>) step.apply(edit);
          },
          chain_[i]);
      if constexpr (Watch::watches) {
        watch.after_edit(candidates_, edited);
        candidates_.reset(edited);
        watch.list(candidates_, describe(chain_[i]));
      }
    }
    candidates_.end_edit();
  }
  if constexpr (!Watch::watches) {
    if (greedy_) {
      candidates_.keep(0, 1);
      return {{candidates_.best(), 0, 0, 1}, {}};
    }
  }
  for (std::size_t i = n_edits_; i < chain_.size(); ++i) {
    if constexpr (Watch::watches) watch.before_step(candidates_);
    apply(chain_[i], position);
    if constexpr (Watch::watches) {
      watch.after_step(candidates_);
      watch.list(candidates_, describe(chain_[i]));
    }
  }
  if (candidates_.size() == 1) return {{candidates_.id(0), 0, 0, 1}, {}};
  const double draw = random_uniform(seed_, std::uint64_t(position), random_stream::token);
  auto drawn = candidates_.at_mass(draw);
  drawn.mass_before /= candidates_.total();
  drawn.weight /= candidates_.total();
  return {drawn, draw};
}

VITRINE_INLINE Token Sampler::sample(const Logits& logits, std::span<const Token> history, std::int64_t position) {
  sampler_detail::NoWatch nobody;
  const auto drawn = run(logits, history, position, nobody).drawn;
  if (const auto* mirostat = chain_.empty() ? nullptr : std::get_if<Mirostat>(&chain_.back()))
    mu_ = mirostat->after(mu_, drawn.weight);
  return drawn.id;
}

VITRINE_INLINE SamplingExplanation Sampler::explain(const Logits& logits, std::span<const Token> history,
                                                    std::int64_t position, std::int64_t max_listed) {
  sampler_detail::Watch watch(max_listed);
  const auto [drawn, draw] = run(logits, history, position, watch);
  return {std::move(watch.stages), drawn.id, drawn.weight, drawn.place, drawn.mass_before, draw};
}

VITRINE_INLINE TokenLogProbabilities Sampler::log_probabilities(const Logits& logits, Token token, std::int64_t n_top) {
  const auto n_vocab = std::int64_t(candidates_.edited().size());
  owned(n_vocab == 0 ? nullptr : this, "sampler");
  check(candidates_.size() > 0, ErrorKind::bad_argument, "log_probabilities: expected after sample(), got it before");
  check(token >= 0 && token < n_vocab, ErrorKind::bad_argument, "token: expected 0 to ", n_vocab - 1, ", got ", token);
  check(n_top >= 0, ErrorKind::bad_argument, "n_top: expected at least 0, got ", n_top);
  const parallel_detail::DefaultFloatEnvironment environment;
  if (!raw_) raw_ = std::make_unique<Candidates>(n_vocab, *kernels_);
  raw_->reset(logits);
  return {vitrine::log_probabilities(*raw_, token, n_top), vitrine::log_probabilities(candidates_, token, n_top)};
}

VITRINE_NAMESPACE_END
