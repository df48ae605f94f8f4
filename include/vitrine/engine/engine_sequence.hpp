// A request inside the engine: what the scheduler knows of it, its blocks, its sampler. Internal to the engine.
//
//   waits -> start: K and V of a known beginning -> steps: tokens [n_computed, n_computed + n_now) -> n_known grows by
//   what is drawn -> ends, or is preempted: gives its blocks back, keeps its tokens and waits again
//
// Everything here belongs to the engine's thread, but for `state`, which it shares with the request's handle
// (request_state.hpp). What a request's own callback or drafter throws becomes that request's failure; the others go
// on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "vitrine/cache/paged.hpp"
#include "vitrine/core/config.hpp"
#include "vitrine/engine/request_state.hpp"
#include "vitrine/engine/scheduler.hpp"
#include "vitrine/engine/speculation.hpp"
#include "vitrine/engine/stop_rules.hpp"
#include "vitrine/ops/logits.hpp"
#include "vitrine/sample/candidates.hpp"
#include "vitrine/sample/log_probabilities.hpp"

VITRINE_NAMESPACE_BEGIN

namespace engine_detail {

struct EngineSequence;

// The running ones among the samples of one prompt: who comes later takes its blocks from one of them.
struct PromptGroup {
  std::vector<const EngineSequence*> running;  // room for all is reserved
};

struct EngineSequence : Sequence {
  EngineSequence(std::vector<Token> prompt, GenerateOptions with, OnToken callback,
                 std::shared_ptr<PromptGroup> siblings, const Model& model, std::shared_ptr<BlockPool> pool,
                 std::int64_t n_context)
      : options(std::move(with)),
        on_token(std::move(callback)),
        tokens(std::move(prompt)),
        n_prompt(std::int64_t(tokens.size())),
        group(std::move(siblings)),
        cache(std::move(pool), n_context),
        rules(model.tokenizer(), model.config().n_vocab, options, tokens.empty() ? 0 : tokens.back()),
        state(std::make_shared<RequestState>()) {
    n_known = n_prompt;
    // So that nothing is allocated while tokens come; a very long generation grows a few times instead.
    constexpr std::int64_t most_reserved = 1 << 12;
    const auto expected = std::size_t((std::min)({options.max_new_tokens, n_context - n_prompt + 1, most_reserved}));
    tokens.reserve(tokens.size() + expected);
    text.reserve(1024);
    constexpr std::size_t most_guesses = 15;
    guesses.reserve(most_guesses);
    drawn.reserve(most_guesses + 1);
    if (options.speculation.drafter) guess_count.emplace(options.speculation.max_guesses, options.speculation.adapt);
    state->given.reserve(expected);
    auto& result = state->result;
    result.tokens.reserve(expected);
    result.text.reserve(8 * expected);
    result.timings.inter_token_seconds.reserve(expected);
    result.timings.prompt_tokens = n_prompt;
    result.timings.load_seconds = model.load_seconds();
    result.seed = *options.sampling.seed;
  }

  bool wants_to_end() const { return state->cancelled || options.stop.stop_requested(); }

  // Guesses for the next step, if it is one of decode and the request has a drafter.
  void guess(std::int64_t n_context, std::int64_t n_vocab) {
    n_drafts = 0;
    if (!guess_count || n_missing() != 1 || n_known == n_prompt) return;
    const auto n_more = options.max_new_tokens - (n_known - n_prompt) - 1;
    auto& drafter = *options.speculation.drafter;
    const auto wanted = (std::min)({guess_count->next(drafter.cost()), n_more, n_context - n_known});
    if (wanted <= 0) return;
    guesses.resize(std::size_t(wanted));  // within what is reserved
    const auto n = (std::min)(drafter.guess(tokens, guesses), wanted);
    const auto is_token = [&](Token id) { return id >= 0 && id < n_vocab; };
    while (n_drafts < n && is_token(guesses[std::size_t(n_drafts)])) ++n_drafts;
  }

  // Whether the logits of all of its prompt are wanted, so that all of it has to be computed.
  bool watches_prompt() const { return options.prompt_log_probabilities.has_value(); }

  // How many of the largest logits are enough for a step; 0: all are needed.
  std::int64_t n_top() const {
    return !sampler || options.log_probabilities || n_prompt_rows > 0 ? 0 : sampler->n_top();
  }

  // Which rows of logits a step of n_now tokens, n_guesses of them guessed, is to give it.
  void want_rows(std::int64_t first, std::int64_t n_guesses) {
    first_row = first;
    n_prompt_rows = watches_prompt() ? (std::clamp)(n_prompt - 1 - n_computed, std::int64_t(0), n_now) : 0;
    n_logit_rows = n_now - n_guesses == n_missing() ? n_guesses + 1 : 0;
  }

  // The tokens that this step gives, from its rows of logits: one, and one more for each guess that was right. They
  // come to the request by add_token().
  void draw(const KernelTable& kernels, const LogitRows& logits) {
    log_probabilities.clear();
    const auto finite_row = [&](std::int64_t i, std::int64_t position) {
      const auto row = logits.row(first_row + i);
      check(all_finite(kernels, row), ErrorKind::numeric_failure, "the logits at position ", position,
            " hold NaN or infinity");
      return row;
    };
    try {
      const auto n_before = n_computed - n_now;  // they are computed by now
      for (std::int64_t i = 0; i < n_prompt_rows; ++i) see_prompt(kernels, n_before + i, finite_row(i, n_before + i));
      for (std::int64_t i = 0; i < n_logit_rows; ++i) {
        const auto position = std::int64_t(tokens.size());
        const auto row = finite_row(n_prompt_rows + i, position - 1);
        const auto id = sampler->sample(row, tokens, position);
        drawn.push_back(id);
        if (const auto n_top = options.log_probabilities)
          log_probabilities.push_back(sampler->log_probabilities(row, id, *n_top));
        if (i + 1 == n_logit_rows) break;
        const bool right = id == guesses[std::size_t(i)];
        guess_count->judged(right);
        if (!right) break;
        tokens.push_back(id);  // the history of the next one
      }
    } catch (...) {
      error = std::current_exception();
    }
    tokens.resize(std::size_t(n_known));
  }

  // The log-probability of the token of the prompt that comes after `position`. (A request that was preempted comes by
  // here again.)
  void see_prompt(const KernelTable& kernels, std::int64_t position, const Logits& row) {
    auto& all = state->result.prompt_log_probabilities;
    if (std::int64_t(all.size()) > position) return;
    if (!candidates) candidates.emplace(std::int64_t(row.size()), kernels);
    candidates->reset(row);
    all.push_back(
        vitrine::log_probabilities(*candidates, tokens[std::size_t(position) + 1], *options.prompt_log_probabilities));
  }

  // Puts token i that was drawn into the result, as generate() does; `since_last` is below 0 for the first. What is
  // to be given to the callback: none if the token ends the request and adds nothing to its text.
  std::pair<FinishReason, std::optional<GeneratedToken>> add_token(std::size_t i, double now, double since_last,
                                                                   std::int64_t n_context) {
    const auto id = drawn[i];
    const std::lock_guard lock(state->mutex);
    auto& result = state->result;
    auto& timings = result.timings;
    timings.total_seconds = now;
    if (since_last < 0) {
      timings.ttft_seconds = now;
      timings.prefill_seconds = now - started_at;
    } else {
      timings.inter_token_seconds.push_back(since_last);
    }
    text.clear();
    const auto [reason, in_answer] = rules.push(id, now, n_known < n_context, text);
    result.text += text;
    if (reason == FinishReason::stop_string) result.stop_string = rules.stop_string();
    if (!in_answer && text.empty()) return {reason, std::nullopt};
    GeneratedToken token{id, text, std::int64_t(result.tokens.size()), now};
    if (in_answer) {
      tokens.push_back(id);
      ++n_known;
      result.tokens.push_back(id);
      if (options.log_probabilities) {
        result.log_probabilities.push_back(std::move(log_probabilities[i]));
        token.log_probabilities = &result.log_probabilities.back();
      }
    }
    state->given.push_back({id, result.text.size(), now});
    return {reason, token};
  }

  void end(FinishReason reason, std::exception_ptr why, bool text_is_complete) {
    {
      const std::lock_guard lock(state->mutex);
      auto& result = state->result;
      result.reason = reason;
      result.error = std::move(why);
      result.metrics.n_preemptions = n_preemptions;
      try {  // the rest is not worth losing for these
        if (!text_is_complete) rules.finish(result.text);
        result.metrics.inter_token = summarise(result.timings.inter_token_seconds);
      } catch (const std::bad_alloc&) {
      }
      state->finished = true;
    }
    state->changed.notify_all();
  }

  GenerateOptions options;
  OnToken on_token;
  std::vector<Token> tokens;  // [n_known]
  std::int64_t n_prompt;
  std::shared_ptr<PromptGroup> group;  // null if the prompt has one sample
  PagedCache cache;
  std::optional<Sampler> sampler;  // from its first start on: it has memory for a whole vocabulary
  StopRules rules;
  std::shared_ptr<RequestState> state;

  std::string text;  // of the token at hand
  Stopwatch watch;   // since the request
  double started_at = -1, last_token_at = 0;
  std::optional<GuessCount> guess_count;  // if it has a drafter
  std::vector<Token> guesses;             // the first n_drafts of them count
  // Rows of logits of this step: of the prompt, and behind them those to draw from, none before all that it knows is
  // computed.
  std::int64_t first_row = 0, n_prompt_rows = 0, n_logit_rows = 0;
  std::optional<Candidates> candidates;                  // of the prompt's log-probabilities
  std::vector<Token> drawn;                              // in this step
  std::vector<TokenLogProbabilities> log_probabilities;  // of these, if asked for
  std::exception_ptr error;                              // it is to fail with, after these
};

}  // namespace engine_detail

VITRINE_NAMESPACE_END
