// Many requests at random, in an engine that has too little of everything: each gets the tokens that it gets alone.
#include <array>
#include <deque>
#include <set>

#include "support/models.hpp"
#include "vitrine/engine/drafter.hpp"
#include "vitrine/engine/engine.hpp"
#include "vitrine/sample/random.hpp"

using namespace support;

namespace {

struct Draws {
  std::uint64_t seed, n = 0;
  std::int64_t below(std::int64_t limit) { return std::int64_t(random_uniform(seed, n++) * double(limit)); }
};

// What is wanted of one request, and what it gets when it has a session of its own.
struct Wanted {
  std::vector<Token> prompt;
  GenerateOptions options;
  std::int64_t cancel_at = -1;   // by the callback, at this token
  std::int64_t cancel_mid = -1;  // by the stop token, when so many tokens of the prompt are computed
  std::int64_t n_samples = 1;
};

// `document` [n_context]: some prompts begin with a part of it.
Wanted draw_request(Draws& draws, std::int64_t n_vocab, const std::vector<Token>& document) {
  Wanted wanted;
  const auto n_context = std::int64_t(document.size());
  const auto n_prompt = draws.below(3) == 0 ? 1 + draws.below(n_context - 2) : 1 + draws.below(40);
  const auto n_in_document = draws.below(2) == 0 ? 0 : draws.below(n_context);
  const auto distinct = 1 + draws.below(n_vocab - 1);
  for (std::int64_t i = 0; i < n_prompt; ++i)
    wanted.prompt.push_back(i < n_in_document ? document[std::size_t(i)] : Token(draws.below(distinct)));
  auto& sampling = wanted.options.sampling;
  sampling.seed = std::uint64_t(draws.below(1000));
  sampling.temperature = draws.below(3) == 0 ? 0 : 1.0;
  if (draws.below(2)) sampling.top_k = std::int32_t(1 + draws.below(50));
  if (draws.below(2)) sampling.top_p = 0.9;
  if (draws.below(3) == 0) sampling.repetition_penalty = 1.3;
  wanted.options.max_new_tokens = 1 + draws.below(70);
  wanted.options.ignore_end = draws.below(4) != 0;
  for (int i = 0; i < 3; ++i) wanted.options.extra_end.push_back(Token(draws.below(n_vocab)));
  if (n_prompt > 40 && draws.below(3)) {
    wanted.cancel_mid = 1 + draws.below(n_prompt - 24);  // a step has no more
  } else if (draws.below(6) == 0) {
    wanted.cancel_at = draws.below(wanted.options.max_new_tokens);
  } else if (draws.below(5) == 0) {
    wanted.n_samples = 2 + draws.below(4);
  }
  return wanted;
}

GenerateResult alone(const std::shared_ptr<const Model>& model, Wanted wanted, std::int64_t sample,
                     std::int64_t n_context) {
  Session session(model, {.n_context = n_context, .n_threads = 1});
  *wanted.options.sampling.seed += std::uint64_t(sample);
  return generate(session, wanted.prompt, wanted.options,
                  [&](const GeneratedToken& token) { return token.index != wanted.cancel_at; });
}

}  // namespace

TEST_CASE("engine: random arrivals, lengths, cancellations and preemptions change no token") {
  const std::string folders[] = {"tiny/llama_gqa", "tiny/mistral_swa", "tiny/gemma3"};
  for (std::uint64_t seed = 0; seed < (is_sanitized ? 1 : 3); ++seed) {
    INFO("seed " << seed);
    const auto tiny = model(data(folders[seed]));
    Draws draws{seed};
    constexpr std::int64_t n_context = 150, n_requests = is_sanitized ? 50 : 200, at_least = is_sanitized ? 1 : 10;
    std::vector<Token> document;
    while (std::int64_t(document.size()) < n_context) document.push_back(Token(draws.below(tiny->config().n_vocab)));
    EngineOptions options{.n_context = n_context,
                          .scheduler = {.max_running = 6, .step_tokens = 24, .prompt_work = 0.7},
                          .kv_blocks = 6,
                          .n_threads = 2,
                          .crowding = Crowding::ignore};
    Engine engine(tiny, options);

    struct Sent {
      Wanted wanted;
      std::stop_source stop;
      std::vector<RequestHandle> handles;
      std::atomic<bool> was_in_prefill{false};
    };
    std::deque<Sent> sent;
    std::int64_t n_handles = 0;
    while (n_handles < n_requests) {
      auto& request = sent.emplace_back();
      request.wanted = draw_request(draws, tiny->config().n_vocab, document);
      auto with = request.wanted.options;
      with.stop = request.stop.get_token();
      if (const auto mid = request.wanted.cancel_mid; mid > 0)
        with.progress = [&request, mid](const ProgressEvent& event) {
          if (event.done < mid || event.done >= event.total) return;
          request.was_in_prefill = true;
          request.stop.request_stop();
        };
      if (const auto way = draws.below(9); way < 3) {  // lookups are seldom right where weights are random
        with.speculation.drafter = way == 0 ? draft_model(tiny, 1) : prompt_lookup({.longest = 2, .shortest = 1});
        with.speculation.max_guesses = 1 + draws.below(8);
        with.speculation.adapt = draws.below(2) == 0;
      }
      if (request.wanted.n_samples > 1)
        request.handles = engine.submit_samples(request.wanted.prompt, request.wanted.n_samples, with);
      else
        request.handles.push_back(
            engine.submit(request.wanted.prompt, with,
                          [at = request.wanted.cancel_at](const GeneratedToken& token) { return token.index != at; }));
      n_handles += std::int64_t(request.handles.size());
      if (draws.below(3) == 0) {  // let some time pass: until somebody has got a few tokens
        auto& handles = sent[std::size_t(draws.below(std::int64_t(sent.size())))].handles;
        for (auto n = draws.below(5); n > 0 && handles[0].next(); --n) {
        }
      }
    }
    engine.drain();

    std::int64_t n_cancelled_in_prefill = 0, n_tokens = 0;
    std::set<FinishReason> reasons;
    for (auto& request : sent) {
      for (std::size_t i = 0; i < request.handles.size(); ++i) {
        auto& handle = request.handles[i];
        CHECK(handle.finished());
        const auto& result = handle.wait();
        if (request.was_in_prefill) {
          CHECK(result.reason == FinishReason::cancelled);
          CHECK(result.tokens.empty());
          ++n_cancelled_in_prefill;
          continue;
        }
        const auto expected = alone(tiny, request.wanted, std::int64_t(i), n_context);
        CHECK(result.tokens == expected.tokens);
        CHECK(result.text == expected.text);
        CHECK(result.reason == expected.reason);
        CHECK(result.seed == expected.seed);
        CHECK(result.sampling == expected.sampling);
        CHECK(result.timings.inter_token_seconds.size() == expected.timings.inter_token_seconds.size());
        reasons.insert(result.reason);
        n_tokens += std::int64_t(result.timings.inter_token_seconds.size()) + 1;
      }
    }
    using enum FinishReason;
    if (!is_sanitized) CHECK(reasons == std::set{end_token, length, context_full, cancelled});
    const auto metrics = engine.metrics();
    CHECK(n_cancelled_in_prefill >= at_least);
    CHECK(metrics.num_preemptions_total >= at_least);
    CHECK(metrics.n_blocks_copied >= at_least);
    CHECK(metrics.n_blocks_evicted >= at_least);
    CHECK(metrics.prefix_cache_hits_total >= at_least * kv_block_tokens);
    CHECK(metrics.generation_tokens_total == n_tokens);
    CHECK(metrics.spec_decode_num_accepted_tokens_total >= at_least);
    CHECK(metrics.spec_decode_num_accepted_tokens_total < metrics.spec_decode_num_draft_tokens_total);
    CHECK(metrics.n_steps < n_tokens);  // several requests in a step
    CHECK(metrics.kv_blocks_used == 0);
    CHECK(metrics.kv_blocks_free == 6);
    CHECK(metrics.num_requests_running + metrics.num_requests_waiting == 0);
    CHECK(metrics.request_success_total + metrics.request_cancelled_total == n_handles);
    CHECK(metrics.request_failed_total == 0);
  }
}
