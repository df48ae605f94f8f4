// Bodies of engine/engine.hpp.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <list>
#include <mutex>
#include <utility>

#include "vitrine/core/parallel_background.hpp"
#include "vitrine/engine/available_memory.hpp"
#include "vitrine/engine/engine.hpp"
#include "vitrine/engine/engine_sequence.hpp"
#include "vitrine/engine/engine_totals.hpp"
#include "vitrine/engine/pool_room.hpp"
#include "vitrine/ops/logits.hpp"
#include "vitrine/ops/top_logits.hpp"

VITRINE_NAMESPACE_BEGIN

namespace engine_detail {

VITRINE_INLINE EngineOptions with_defaults(EngineOptions options, const ModelConfig& config, const KvLayout& layout) {
  constexpr std::int64_t default_context = 4096, largest_context = std::int64_t(1) << 31;
  check(options.n_context >= 0 && options.n_context <= largest_context, ErrorKind::bad_argument,
        "n_context: expected 1 to ", largest_context, ", or 0 for the default, got ", options.n_context);
  check(options.n_threads >= 0 && options.n_threads <= max_threads, ErrorKind::bad_argument,
        "n_threads: expected 1 to ", max_threads, ", or 0 for all, got ", options.n_threads);
  constexpr std::int64_t most = std::int64_t(1) << 20;  // room for them is taken at once
  check(options.max_queued >= 1 && options.max_queued <= most, ErrorKind::bad_argument, "max_queued: expected 1 to ",
        most, ", got ", options.max_queued);
  check(options.scheduler.step_tokens <= most, ErrorKind::bad_argument, "step_tokens: expected at most ", most,
        ", got ", options.scheduler.step_tokens);
  check(options.kv_blocks >= 0, ErrorKind::bad_argument, "kv_blocks: expected at least 1, or 0 for the default, got ",
        options.kv_blocks);
  layout.check_type();
  if (options.n_context == 0) options.n_context = (std::min)(config.n_context, default_context);
  if (options.n_threads == 0) options.n_threads = available_threads();
  if (options.kv_blocks == 0) {
    const auto enough = options.scheduler.max_running * KvLayout::blocks_for(options.n_context);
    const auto half = BlockPool::blocks_in(layout, available_memory() / 2);
    options.kv_blocks = half == 0 ? enough : (std::min)(enough, half);
  }
  // A request that has the pool to itself must get on.
  options.n_context = (std::min)(options.n_context, options.kv_blocks * kv_block_tokens);
  return options;
}

VITRINE_INLINE std::shared_ptr<PrefixCache> make_prefixes(const Model& model, const EngineOptions& options,
                                                          const std::shared_ptr<BlockPool>& pool) {
  if (!options.prefixes) return nullptr;
  auto with = *options.prefixes;
  with.kv_type = options.kv_type;
  with.pool = pool;
  return std::make_shared<PrefixCache>(model, with);
}

VITRINE_INLINE std::exception_ptr no_room() {
  return std::make_exception_ptr(Error(ErrorKind::out_of_blocks, "engine: no blocks for the only request"));
}

}  // namespace engine_detail

struct Engine::Impl {
  using EngineSequence = engine_detail::EngineSequence;
  using Sequences = std::list<EngineSequence>;  // moved from list to list without allocation

  std::shared_ptr<const Model> model;
  EngineOptions options;
  const KernelTable& kernels;

  // Of the engine's thread.
  Scheduler scheduler;
  std::shared_ptr<BlockPool> pool;
  engine_detail::PoolRoom room;
  Team team;
  PassScratch scratch;
  std::optional<TopLogits> top;
  LogitRows logits;     // as many as a step has tokens; memory is taken for those that are used
  Sequences sequences;  // running and waiting
  std::vector<Token> step_tokens;
  std::vector<SequenceSlice> slices;
  std::vector<std::int64_t> logit_rows;
  std::vector<EngineSequence*> drawing;  // [n logit rows]

  // Of everybody.
  engine_detail::EngineTotals totals;
  std::mutex mutex;  // of those that follow
  std::condition_variable work, idle;
  Sequences arrived;
  std::int64_t n_waiting = 0;  // beside those that have just arrived
  std::int64_t n_unfinished = 0;
  bool ending = false;
  std::stop_source stop_steps;
  BackgroundThread thread;  // the last: it ends before the rest goes

  Impl(std::shared_ptr<const Model> shared_model, const EngineOptions& wanted)
      : model(std::move(shared_model)),
        options(engine_detail::with_defaults(wanted, model->config(), model->transformer().kv_layout(wanted.kv_type))),
        kernels(options.isa ? vitrine::kernels(*options.isa) : vitrine::kernels()),
        scheduler(options.scheduler),
        pool(std::make_shared<BlockPool>(model->transformer().kv_layout(options.kv_type), options.kv_blocks)),
        room(pool, engine_detail::make_prefixes(*model, options, pool)),
        team(options.n_threads, options.crowding),
        scratch(model->transformer().make_scratch(options.scheduler.step_tokens, options.n_context, options.n_threads)),
        top(make_top_logits(model->weights().head(), options.top_logits)),
        logits(options.scheduler.step_tokens, model->config().n_vocab, false) {
    const auto most = std::size_t(options.scheduler.max_running);
    scheduler.reserve(most + std::size_t(options.max_queued));
    step_tokens.reserve(std::size_t(options.scheduler.step_tokens));
    slices.reserve(most);
    logit_rows.reserve(std::size_t(logits.n_rows()));
    drawing.reserve(most);
  }
  ~Impl() {
    {
      const std::lock_guard lock(mutex);
      ending = true;
    }
    stop_steps.request_stop();
    work.notify_all();
  }

  static EngineSequence& of(Sequence& sequence) { return engine_detail::PoolRoom::of(sequence); }

  void run() {
    const parallel_detail::DefaultFloatEnvironment environment;  // a host that traps on NaN still gets an Error
    while (take_arrivals()) {
      for (auto at = sequences.begin(); at != sequences.end();) {
        auto& sequence = *at++;
        if (sequence.wants_to_end())
          finish(sequence, FinishReason::cancelled);
        else if (sequence.rules.is_time_over(sequence.watch.seconds()))
          finish(sequence, FinishReason::time_limit);
      }
      try {
        step();
      } catch (...) {  // no single request's doing, such as memory refused: whoever runs has lost its step
        const auto error = std::current_exception();
        while (!scheduler.running().empty()) finish(of(*scheduler.running().back()), FinishReason::failed, error);
      }
      count_requests();
    }
    while (!sequences.empty()) finish(sequences.front(), FinishReason::cancelled);
  }

  void count_requests() {
    totals.requests(scheduler);
    const std::lock_guard lock(mutex);
    n_waiting = std::int64_t(scheduler.n_waiting());
  }

  // Waits for something to do; false when it is time to end.
  bool take_arrivals() {
    std::unique_lock lock(mutex);
    work.wait(lock, [&] { return ending || !arrived.empty() || !sequences.empty(); });
    for (auto& sequence : arrived) scheduler.add(sequence);
    sequences.splice(sequences.end(), arrived);
    n_waiting = std::int64_t(scheduler.n_waiting());
    return !ending;
  }

  // One pass over some tokens of some sequences.
  void step() {
    for (Sequence* running : scheduler.running()) guess(of(*running));
    const auto planned = scheduler.plan(room);
    count_requests();
    if (sequences.empty()) return;
    if (planned.empty()) return finish(sequences.front(), FinishReason::failed, engine_detail::no_room());
    step_tokens.clear();
    slices.clear();
    logit_rows.clear();
    drawing.clear();
    for (Sequence* in_step : planned) add_to_step(of(*in_step));
    const Batch batch{step_tokens, slices, logit_rows};
    const auto view = logits.view(top ? &*top : nullptr, logit_rows.size() == 1 ? drawing.front()->n_top() : 0);
    if (!model->transformer().forward(team, kernels, batch, scratch, view, nullptr, stop_steps.get_token())) return;
    for (Sequence* in_step : planned) {
      of(*in_step).cache.append(in_step->n_now);
      in_step->n_computed += in_step->n_now;
    }
    totals.step(std::int64_t(step_tokens.size()));
    draw_tokens();
    for (Sequence* in_step : planned) take_tokens(of(*in_step));
  }

  void guess(EngineSequence& sequence) {
    try {
      sequence.guess(options.n_context, model->config().n_vocab);
    } catch (...) {
      sequence.n_drafts = 0;
      sequence.error = std::current_exception();
    }
  }

  // Tokens that a sequence knows, and behind the last of them the guesses that the step has room for.
  void add_to_step(EngineSequence& sequence) {
    if (!sequence.sampler) begin(sequence);
    sequence.drawn.clear();
    const auto first_row = std::int64_t(step_tokens.size()), n = sequence.n_now;
    const auto n_known = (std::min)(n, sequence.n_missing()), n_guesses = n - n_known;
    const auto known = sequence.tokens.begin() + sequence.n_computed, guesses = sequence.guesses.begin();
    step_tokens.insert(step_tokens.end(), known, known + n_known);
    step_tokens.insert(step_tokens.end(), guesses, guesses + n_guesses);
    slices.push_back({&sequence.cache.tables(), sequence.n_computed, first_row, n});
    sequence.want_rows(std::int64_t(logit_rows.size()), n_guesses);
    for (std::int64_t i = 0; i < sequence.n_prompt_rows; ++i) logit_rows.push_back(first_row + i);
    for (auto i = n - sequence.n_logit_rows; i < n; ++i) logit_rows.push_back(first_row + i);
    if (sequence.n_prompt_rows + sequence.n_logit_rows > 0) drawing.push_back(&sequence);
  }

  // Before the first step of a request.
  void begin(EngineSequence& sequence) {
    try {
      sequence.sampler.emplace(sampling_with_end_tokens(sequence.options, model->tokenizer()), model->config().n_vocab,
                               kernels);
      sequence.sampler->begin(sequence.n_prompt);
      sequence.started_at = sequence.watch.seconds();
      auto& result = sequence.state->result;  // these are read after the end only
      result.metrics.queue_seconds = sequence.started_at;
      result.metrics.cached_tokens = result.timings.cached_tokens = sequence.n_computed;
      result.sampling = describe(sequence.sampler->chain());
      totals.started(sequence.n_prompt, sequence.n_computed, sequence.started_at);
    } catch (...) {
      sequence.error = std::current_exception();
    }
  }

  // Every request by itself, and all threads share them out.
  void draw_tokens() {
    const auto n = std::int64_t(drawing.size());
    const auto draw = [&](std::int64_t begin, std::int64_t end) {
      for (auto i = begin; i < end; ++i)
        if (auto& sequence = *drawing[std::size_t(i)]; !sequence.error) sequence.draw(kernels, logits);
    };
    if (n <= 1) return draw(0, n);
    team.run([&](Worker& worker) { worker.for_chunks(n, 1, draw); });
  }

  void report_progress(EngineSequence& sequence) {
    if (!sequence.options.progress || sequence.n_known > sequence.n_prompt || sequence.error) return;
    try {
      sequence.options.progress({"prefill", sequence.n_computed, sequence.n_prompt, "tokens"});
    } catch (...) {
      sequence.error = std::current_exception();
    }
  }

  // The tokens that were drawn go to their request, which may end with any of them.
  void take_tokens(EngineSequence& sequence) {
    report_progress(sequence);
    if (sequence.n_logit_rows > 0 && sequence.n_known == sequence.n_prompt) room.keep(sequence);
    const auto n_drawn = std::int64_t(sequence.drawn.size());
    if (sequence.n_logit_rows > 0 && n_drawn > 0) {
      // What was guessed wrong is forgotten.
      sequence.n_computed = sequence.n_known + n_drawn - 1;
      sequence.cache.truncate(sequence.n_computed);
      if (const auto n_guesses = sequence.n_logit_rows - 1; n_guesses > 0) {
        sequence.state->result.metrics.n_draft_tokens += n_guesses;
        sequence.state->result.metrics.n_accepted_tokens += n_drawn - 1;
        totals.guessed(n_guesses, n_drawn - 1);
      }
      for (std::size_t i = 0; i < std::size_t(n_drawn); ++i)
        if (!take_token(sequence, i)) return;
    }
    if (sequence.error) finish(sequence, FinishReason::failed, sequence.error);
  }

  // False if the request has ended, and is gone.
  bool take_token(EngineSequence& sequence, std::size_t i) {
    const double now = sequence.watch.seconds(), since_last = now - sequence.last_token_at;
    const bool is_first = sequence.n_known == sequence.n_prompt;
    if (is_first)
      totals.first_token(now, now - sequence.started_at);
    else
      totals.further_token(since_last);
    sequence.last_token_at = now;
    try {
      const auto [reason, token] = sequence.add_token(i, now, is_first ? -1 : since_last, options.n_context);
      sequence.state->changed.notify_all();
      const bool go_on = !token || !sequence.on_token || sequence.on_token(*token);
      if (reason == FinishReason::none && go_on) return true;
      if (reason != FinishReason::none)
        finish(sequence, reason, nullptr, true);
      else
        finish(sequence, FinishReason::cancelled);
    } catch (...) {
      finish(sequence, FinishReason::failed, std::current_exception());
    }
    return false;
  }

  // Takes a request out of everything; the sequence is gone afterwards.
  void finish(EngineSequence& sequence, FinishReason reason, std::exception_ptr error = nullptr,
              bool text_is_complete = false) {
    scheduler.remove(sequence);
    room.give_back(sequence);
    sequence.end(reason, std::move(error), text_is_complete);
    const bool has_token = sequence.n_known > sequence.n_prompt;
    totals.ended(reason, sequence.watch.seconds(),
                 has_token ? sequence.last_token_at - sequence.state->result.timings.ttft_seconds : -1);
    const auto at = std::find_if(sequences.begin(), sequences.end(), [&](auto& other) { return &other == &sequence; });
    sequences.erase(at);
    count_requests();
    const std::lock_guard lock(mutex);
    if (--n_unfinished == 0) idle.notify_all();
  }

  // --- Any thread.

  void check_request(const std::vector<Token>& prompt, const GenerateOptions& of_request) const {
    const auto n_vocab = model->config().n_vocab, n_prompt = std::int64_t(prompt.size());
    check(!prompt.empty(), ErrorKind::bad_argument, "prompt: expected at least 1 token, got none");
    for (std::size_t i = 0; i < prompt.size(); ++i)
      check(prompt[i] >= 0 && prompt[i] < n_vocab, ErrorKind::bad_argument, "token at index ", i, ": expected 0 to ",
            n_vocab - 1, ", got ", prompt[i]);
    check_end_tokens(of_request, n_vocab);
    check_sampling(sampling_with_end_tokens(of_request, model->tokenizer()), n_vocab);
    for (const auto& n : {of_request.log_probabilities, of_request.prompt_log_probabilities})
      check(n.value_or(0) >= 0, ErrorKind::bad_argument, "log_probabilities: expected at least 0, got ", n.value_or(0));
    check_speculation(of_request.speculation);
    check(of_request.speculation.rule == AcceptRule::same_token, ErrorKind::bad_argument,
          "speculation.rule: expected same_token in an engine: with probability_ratio the tokens would depend on how "
          "many guesses a step has room for, hence on other requests");
    check(n_prompt < options.n_context, ErrorKind::context_full, "the prompt of ", counted(n_prompt, "token"),
          " does not fit: a request may have ", counted(options.n_context, "token"), ", and max_new_tokens is ",
          of_request.max_new_tokens, "; a prompt is never cut, and at least 1 place must be left to answer");
  }

  std::vector<RequestHandle> submit(const std::vector<Token>& prompt, std::int64_t n_samples,
                                    const GenerateOptions& of_all, const OnToken& on_token) {
    check_request(prompt, of_all);
    check(n_samples >= 1 && n_samples <= options.max_queued, ErrorKind::bad_argument, "n_samples: expected 1 to ",
          options.max_queued, ", got ", n_samples);
    const auto group = n_samples > 1 ? std::make_shared<engine_detail::PromptGroup>() : nullptr;
    if (group) group->running.reserve(std::size_t(n_samples));
    const auto seed = of_all.sampling.seed ? *of_all.sampling.seed : fresh_seed();
    std::vector<RequestHandle> handles;
    handles.reserve(std::size_t(n_samples));
    Sequences made;
    for (std::int64_t i = 0; i < n_samples; ++i) {
      auto with = of_all;
      with.sampling.seed = seed + std::uint64_t(i);
      if (with.speculation.drafter)
        with.speculation.drafter->begin(*model, sampling_with_end_tokens(with, model->tokenizer()),
                                        std::int64_t(prompt.size()));
      made.emplace_back(prompt, std::move(with), on_token, group, *model, pool, options.n_context);
      handles.emplace_back(made.back().state);
    }
    const std::lock_guard lock(mutex);
    const auto waiting = n_waiting + std::int64_t(arrived.size());
    if (waiting + n_samples > options.max_queued) {
      totals.refused(n_samples);
      throw Error(ErrorKind::queue_full, concat("queue: ", waiting, " of at most ", options.max_queued,
                                                " requests are waiting, ", n_samples, " more do not fit"));
    }
    arrived.splice(arrived.end(), made);
    n_unfinished += n_samples;
    work.notify_one();
    return handles;
  }
};

VITRINE_INLINE Engine::Engine(std::shared_ptr<const Model> model, EngineOptions options) {
  check(model != nullptr, ErrorKind::bad_argument, "model: expected one, got a null pointer");
  const auto make = [&] { return std::make_unique<Impl>(std::move(model), options); };
  impl_ = naming_memory(make, "an engine with n_context = ", options.n_context,
                        ", max_running = ", options.scheduler.max_running,
                        ", step_tokens = ", options.scheduler.step_tokens);
  impl_->thread.start([impl = impl_.get()] { impl->run(); });
}
VITRINE_INLINE Engine::~Engine() = default;

VITRINE_INLINE RequestHandle Engine::submit(std::vector<Token> prompt, GenerateOptions options, OnToken on_token) {
  const auto submit = [&] { return impl_->submit(prompt, 1, options, on_token); };
  return std::move(naming_memory(submit, "a request with ", counted(std::int64_t(prompt.size()), "token")).front());
}

VITRINE_INLINE std::vector<RequestHandle> Engine::submit_samples(std::vector<Token> prompt, std::int64_t n_samples,
                                                                 GenerateOptions options) {
  const auto submit = [&] { return impl_->submit(prompt, n_samples, options, {}); };
  return naming_memory(submit, counted(n_samples, "request"), " with ", counted(std::int64_t(prompt.size()), "token"));
}

VITRINE_INLINE void Engine::drain() {
  std::unique_lock lock(impl_->mutex);
  impl_->idle.wait(lock, [&] { return impl_->n_unfinished == 0; });
}

VITRINE_INLINE EngineMetrics Engine::metrics() const {
  auto result = impl_->totals.metrics(*impl_->pool, impl_->room);
  const std::lock_guard lock(impl_->mutex);
  result.num_requests_waiting += std::int64_t(impl_->arrived.size());
  return result;
}

VITRINE_INLINE const EngineOptions& Engine::options() const { return impl_->options; }
VITRINE_INLINE const Model& Engine::model() const { return *impl_->model; }

VITRINE_NAMESPACE_END
