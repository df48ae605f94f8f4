// Bodies of engine/drafter.hpp.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include "vitrine/engine/drafter.hpp"
#include "vitrine/engine/session.hpp"
#include "vitrine/sample/sampler.hpp"

VITRINE_NAMESPACE_BEGIN

VITRINE_INLINE double TokenDistribution::of(Token id) const {
  const auto found = std::find(ids.begin(), ids.end(), id);
  return found == ids.end() ? 0 : probabilities[std::size_t(found - ids.begin())];
}

namespace drafter_detail {

class PromptLookup final : public Drafter {
 public:
  explicit PromptLookup(const PromptLookupOptions& options) : options_(options) {
    check(options.shortest >= 1 && options.longest >= options.shortest, ErrorKind::bad_argument,
          "prompt_lookup: expected 1 <= shortest <= longest, got ", options.shortest, " and ", options.longest);
  }

  void begin(const Model&, const SamplingOptions&, std::int64_t) override {}

  // The latest place where the longest match ends, of those that something follows.
  std::int64_t guess(std::span<const Token> history, std::span<Token> guesses) override {
    const auto n = std::int64_t(history.size());
    for (auto length = (std::min)(options_.longest, n - 1); length >= options_.shortest; --length) {
      const auto end = history.last(std::size_t(length));
      for (auto at = n - length - 1; at >= 0; --at) {
        if (!std::equal(end.begin(), end.end(), history.begin() + at)) continue;
        const auto found = history.subspan(std::size_t(at + length));
        const auto n_guesses = (std::min)(found.size(), guesses.size());
        std::copy_n(found.begin(), n_guesses, guesses.begin());
        return std::int64_t(n_guesses);
      }
    }
    return 0;
  }

 private:
  PromptLookupOptions options_;
};

class DraftModel final : public Drafter {
 public:
  DraftModel(std::shared_ptr<const Model> model, int n_threads, bool with_distributions)
      : session_(std::move(model), {.n_context = 0, .n_threads = n_threads}), with_distributions_(with_distributions) {}

  void begin(const Model& target, const SamplingOptions& sampling, std::int64_t n_prompt) override {
    const auto &mine = session_.model().tokenizer(), &others = target.tokenizer();
    check(mine.n_vocab() == others.n_vocab(), ErrorKind::bad_argument, "draft model: expected the vocabulary of ",
          others.n_vocab(), " tokens that the model has, got one of ", mine.n_vocab());
    for (Token id = 0; id < mine.n_vocab(); ++id)
      check(mine.piece(id) == others.piece(id), ErrorKind::bad_argument,
            "draft model: expected the vocabulary of the model, but token ", id, " is another one");
    cost_ = double(session_.model().weights().bytes()) / double((std::max)(target.weights().bytes(), std::size_t(1)));
    auto own = sampling;
    // The target's random numbers make it draw what the target draws, if it thinks alike. Accepting by the ratio of
    // probabilities wants independent ones.
    if (with_distributions_ && own.seed) *own.seed ^= 0x9e3779b97f4a7c15u;
    sampler_.emplace(own, session_.model().config().n_vocab);
    sampler_->begin(n_prompt);
  }

  std::int64_t guess(std::span<const Token> history, std::span<Token> guesses) override {
    const auto known = session_.tokens();
    const auto most = (std::min)(known.size(), history.size() - 1);  // the last one gives the logits
    const auto common = std::mismatch(known.begin(), known.begin() + std::ptrdiff_t(most), history.begin()).first;
    session_.truncate(common - known.begin());
    const auto room = session_.context() - std::int64_t(history.size()) + 1;
    const auto n = (std::min)(room, std::int64_t(guesses.size()));
    if (n <= 0) return 0;
    if (with_distributions_) distributions_.resize(std::size_t(n));
    std::int64_t n_drawn = 0;
    try {
      auto logits = session_.prefill(history.subspan(std::size_t(session_.length())));
      while (true) {
        guesses[std::size_t(n_drawn)] = draw(logits, n_drawn);
        if (++n_drawn == n) break;
        logits = session_.decode(guesses[std::size_t(n_drawn) - 1]);
      }
    } catch (const Error& error) {  // it has no guess, which is no failure
      if (error.kind() != ErrorKind::numeric_failure) throw;
    }
    return n_drawn;
  }

  const TokenDistribution* distribution(std::int64_t i) const override {
    return with_distributions_ ? &distributions_[std::size_t(i)] : nullptr;
  }
  double cost() const override { return cost_; }

 private:
  Token draw(const Logits& logits, std::int64_t i) {
    if (!with_distributions_) return sampler_->sample(logits, session_.tokens(), session_.length());
    const auto explained = sampler_->explain(logits, session_.tokens(), session_.length());
    auto& distribution = distributions_[std::size_t(i)];
    distribution.ids.clear();
    distribution.probabilities.clear();
    for (const auto& kept : explained.stages.back().kept) {
      distribution.ids.push_back(kept.id);
      distribution.probabilities.push_back(kept.probability);
    }
    return explained.token;
  }

  Session session_;
  std::optional<Sampler> sampler_;
  bool with_distributions_;
  std::vector<TokenDistribution> distributions_;
  double cost_ = 0;
};

}  // namespace drafter_detail

VITRINE_INLINE std::shared_ptr<Drafter> prompt_lookup(const PromptLookupOptions& options) {
  return std::make_shared<drafter_detail::PromptLookup>(options);
}

VITRINE_INLINE std::shared_ptr<Drafter> draft_model(std::shared_ptr<const Model> model, int n_threads,
                                                    bool with_distributions) {
  return std::make_shared<drafter_detail::DraftModel>(std::move(model), n_threads, with_distributions);
}

VITRINE_NAMESPACE_END
