// Bodies of engine/speculation.hpp.
#pragma once

#include <algorithm>
#include <variant>

#include "vitrine/engine/speculation.hpp"
#include "vitrine/engine/timings.hpp"
#include "vitrine/sample/random.hpp"

VITRINE_NAMESPACE_BEGIN

VITRINE_INLINE std::int64_t GuessCount::next(double cost_of_guess) {
  if (!adapts_) return most_;
  const double right = n_right_ / n_judged_;
  std::int64_t best = 0;
  double best_rate = 1, tokens = 1, power = 1;
  for (std::int64_t k = 1; k <= most_; ++k) {
    power *= right;
    tokens += power;
    const double rate = tokens / (1 + double(k) * (cost_of_guess + cost_of_row));
    if (rate <= best_rate) continue;
    best = k;
    best_rate = rate;
  }
  if (best == 0 && ++n_without_ < retry_after) return 0;
  n_without_ = 0;
  return (std::max)(best, std::int64_t(1));
}

VITRINE_INLINE void GuessCount::judged(bool right) {
  constexpr double keep = 0.95;
  n_judged_ = keep * n_judged_ + 1;
  n_right_ = keep * n_right_ + (right ? 1 : 0);
}

VITRINE_INLINE Token accept_or_replace(const TokenDistribution& p, const TokenDistribution* q, Token guess,
                                       double u_accept, double u_rest) {
  const auto of_q = [&](Token id) { return q ? q->of(id) : id == guess ? 1.0 : 0.0; };
  if (u_accept * of_q(guess) < p.of(guess)) return guess;
  const auto surplus = [&](std::size_t i) { return (std::max)(p.probabilities[i] - of_q(p.ids[i]), 0.0); };
  double total = 0;
  for (std::size_t i = 0; i < p.ids.size(); ++i) total += surplus(i);
  double below = 0;
  Token last = guess;
  for (std::size_t i = 0; i < p.ids.size(); ++i) {
    if (surplus(i) <= 0) continue;
    last = p.ids[i];
    below += surplus(i);
    if (u_rest * total < below) break;
  }
  return last;
}

VITRINE_INLINE Speculation::Speculation(const SpeculationOptions& options, const Model& target, const Sampler& sampler,
                                        const SamplingOptions& sampling, std::int64_t n_prompt)
    : options_(options), count_(options.max_guesses, options.adapt) {
  check_speculation(options);
  const auto is_mirostat = [](const SamplingStep& step) { return std::holds_alternative<Mirostat>(step); };
  check(options.rule == AcceptRule::same_token ||
            std::none_of(sampler.chain().begin(), sampler.chain().end(), is_mirostat),
        ErrorKind::bad_argument, "rule: probability_ratio does not go with Mirostat, which learns from what it draws");
  guesses_.resize(std::size_t(options.max_guesses));
  auto of_drafter = sampling;
  of_drafter.seed = sampler.seed();
  options_.drafter->begin(target, of_drafter, n_prompt);
}

VITRINE_INLINE Logits Speculation::decode(Session& session, Token token, std::int64_t n_more,
                                          const std::stop_token& stop) {
  if (const auto n_ahead = session.n_ahead(); n_ahead > 0) {
    const bool right = guesses_[std::size_t(n_guesses_ - n_ahead)] == token;
    count_.judged(right);
    ++result_.n_judged;
    if (right) ++result_.n_accepted;
    if (right) return session.decode(token, stop);
  }
  n_guesses_ = 0;
  const auto wanted = n_plain_ == 0 ? 0 : (std::min)(count_.next(options_.drafter->cost()), n_more - 1);
  const Stopwatch guessing;
  if (wanted > 0) {
    history_.reserve(std::size_t(session.context()) + 1);
    history_.assign(session.tokens().begin(), session.tokens().end());
    history_.push_back(token);
    const auto n = options_.drafter->guess(history_, std::span(guesses_).first(std::size_t(wanted)));
    const auto is_token = [&](Token guess) { return guess >= 0 && guess < session.model().config().n_vocab; };
    while (n_guesses_ < (std::min)(n, wanted) && is_token(guesses_[std::size_t(n_guesses_)])) ++n_guesses_;
    result_.guess_seconds += guessing.seconds();
  }
  const Stopwatch pass;
  const auto logits = session.decode(token, std::span(guesses_).first(std::size_t(n_guesses_)), stop);
  n_guesses_ = session.n_ahead();  // as many as found room
  if (n_guesses_ == 0) {
    ++n_plain_;
    result_.plain_pass_seconds += (pass.seconds() - result_.plain_pass_seconds) / double(n_plain_);
  } else {
    ++result_.n_passes;
    result_.n_guesses += n_guesses_;
    result_.pass_seconds += pass.seconds();
  }
  return logits;
}

VITRINE_INLINE Token Speculation::sample(Session& session, Sampler& sampler, const Logits& logits) {
  const auto position = session.length(), n_ahead = session.n_ahead();
  if (options_.rule == AcceptRule::same_token || n_ahead == 0)
    return sampler.sample(logits, session.tokens(), position);
  TokenDistribution p;
  const auto explained = sampler.explain(logits, session.tokens(), position);
  for (const auto& kept : explained.stages.back().kept) {
    p.ids.push_back(kept.id);
    p.probabilities.push_back(kept.probability);
  }
  const auto place = n_guesses_ - n_ahead;
  const auto uniform = [&](std::uint64_t stream) {
    return random_uniform(sampler.seed(), std::uint64_t(position), stream);
  };
  return accept_or_replace(p, options_.drafter->distribution(place), guesses_[std::size_t(place)],
                           uniform(random_stream::guess_accepted), uniform(random_stream::guess_replaced));
}

VITRINE_NAMESPACE_END
