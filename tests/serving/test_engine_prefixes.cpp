// What requests to an engine take over from earlier ones that began alike, and that nobody can tell from the result.
#include "support/bits.hpp"
#include "support/temporary_folder.hpp"
#include "vitrine/engine/engine.hpp"

using namespace support;

namespace {

// Log-probabilities as well: they differ when a single bit of the logits does.
GenerateOptions request(std::int64_t n, std::uint64_t seed = 3) {
  return {.sampling = {.seed = seed}, .max_new_tokens = n, .ignore_end = true, .log_probabilities = 4};
}

bool same(const LogProbabilities& a, const LogProbabilities& b) {
  const auto same_entry = [](const auto& x, const auto& y) {
    return x.id == y.id && x.log_probability == y.log_probability;
  };
  return a.of_token == b.of_token && a.rank == b.rank &&
         std::equal(a.top.begin(), a.top.end(), b.top.begin(), b.top.end(), same_entry);
}

void check_as_alone(const GenerateResult& got, const std::vector<Token>& prompt, const GenerateOptions& options) {
  Session session(tiny(), {.n_threads = 1});
  const auto expected = generate(session, prompt, options, [](const GeneratedToken&) { return true; });
  CHECK(got.tokens == expected.tokens);
  REQUIRE(got.log_probabilities.size() == expected.log_probabilities.size());
  for (std::size_t i = 0; i < got.log_probabilities.size(); ++i)
    CHECK(same(got.log_probabilities[i].raw, expected.log_probabilities[i].raw));
  REQUIRE(got.prompt_log_probabilities.size() == expected.prompt_log_probabilities.size());
  for (std::size_t i = 0; i < got.prompt_log_probabilities.size(); ++i)
    CHECK(same(got.prompt_log_probabilities[i], expected.prompt_log_probabilities[i]));
}

}  // namespace

TEST_CASE("engine: a prompt sent again, a part of it, and one that goes on are computed as far as they are new") {
  const bool switched_on = GENERATE(true, false);
  EngineOptions options{.n_threads = 1};
  if (!switched_on) options.prefixes.reset();
  Engine engine(tiny(), options);
  const auto prompt = some_tokens(200);
  auto next_turn = prompt;
  struct Case {
    std::vector<Token> tokens;
    std::int64_t cached;
  };
  auto other = prompt;
  other[100] = 300;
  std::int64_t n_prompt = 0, n_cached = 0, n_expected = 0;
  const auto check = [&](const std::vector<Token>& tokens, std::int64_t cached, std::int64_t n_new) {
    INFO(tokens.size() << " tokens, " << cached << " of them known");
    auto handle = engine.submit(tokens, request(n_new));
    const auto& result = handle.wait();
    check_as_alone(result, tokens, request(n_new));
    if (!switched_on) cached = 0;
    CHECK(result.metrics.cached_tokens == cached);
    CHECK(result.timings.cached_tokens == cached);
    n_prompt += std::int64_t(tokens.size());
    n_cached += cached;
    n_expected += std::int64_t(tokens.size()) - cached + n_new - 1;
    CHECK(engine.metrics().n_step_tokens == n_expected);
    return result.tokens;
  };
  for (const auto& [tokens, cached] : std::vector<Case>{{prompt, 0},
                                                        {prompt, 192},
                                                        {{prompt.begin(), prompt.begin() + 12}, 11},
                                                        {{prompt.begin(), prompt.begin() + 128}, 127},
                                                        {{prompt.begin(), prompt.begin() + 129}, 128},
                                                        {{prompt.begin(), prompt.begin() + 1}, 0},
                                                        {other, 100},
                                                        {some_tokens(200, 1), 0}})
    check(tokens, cached, 5);
  // The answer is kept, too: 60 tokens and the first 69 of 70 answered fill two blocks.
  auto turn = some_tokens(60, 2);
  for (const auto token : check(turn, 0, 70)) turn.push_back(token);
  for (int i = 0; i < 10; ++i) turn.push_back(i);
  check(turn, 128, 5);
  const auto metrics = engine.metrics();
  CHECK(metrics.prefix_cache_queries_total == n_prompt);
  CHECK(metrics.prefix_cache_hits_total == n_cached);
  CHECK(metrics.kv_blocks_used == 0);
  CHECK((metrics.kv_blocks_cached > 0) == switched_on);
  CHECK(metrics.kv_blocks_free == engine.options().kv_blocks);
}

TEST_CASE("engine: a request takes over what one that still runs has computed of its prompt") {
  Engine engine(tiny(), {.n_threads = 1});
  RequestHandle second;
  auto first = engine.submit(some_tokens(150), request(90), [&](const GeneratedToken& token) {
    if (token.index == 0) second = engine.submit(some_tokens(150), request(20));
    return true;
  });
  first.wait();
  check_as_alone(second.wait(), some_tokens(150), request(20));
  CHECK(second.wait().metrics.cached_tokens == 128);
  check_as_alone(first.wait(), some_tokens(150), request(90));
  CHECK(first.wait().metrics.cached_tokens == 0);
}

TEST_CASE("engine: what is kept stays within its limit, and makes room when blocks are needed") {
  const auto block = tiny()->transformer().kv_layout(DType::f16).block_bytes();
  Engine limited(tiny(), {.n_threads = 1, .prefixes = PrefixOptions{.limit_bytes = 3 * block}});
  for (int i = 0; i < 5; ++i) {
    check_as_alone(limited.submit(some_tokens(130, i), request(3)).wait(), some_tokens(130, i), request(3));
    limited.drain();
    CHECK(limited.metrics().kv_blocks_cached <= 3);
  }
  CHECK(limited.metrics().n_blocks_evicted == 5 * 2 - 3);
  CHECK_THROWS_AS(Engine(tiny(), {.prefixes = PrefixOptions{.limit_bytes = 1}}), Error);

  // Three blocks, and each request needs them all. The second one has a block and a half in common with the first, but
  // there is no fourth block to copy the half into.
  Engine full(tiny(), {.n_context = 192, .kv_blocks = 3, .n_threads = 1});
  auto other = some_tokens(180);
  other[100] = 300;
  for (const auto& [tokens, cached] : std::vector<std::pair<std::vector<Token>, std::int64_t>>{
           {some_tokens(180), 0}, {other, 64}, {some_tokens(180, 1), 0}, {some_tokens(180, 1), 128}}) {
    auto handle = full.submit(tokens, request(10));
    check_as_alone(handle.wait(), tokens, request(10));
    CHECK(handle.wait().metrics.cached_tokens == cached);
  }
  CHECK(full.metrics().n_blocks_evicted >= 2);
  CHECK(full.metrics().num_preemptions_total == 0);
  CHECK(full.metrics().request_failed_total == 0);
}

TEST_CASE("engine: with a folder another engine begins with what was computed before") {
  const TemporaryFolder folder("engine-prefixes");
  for (const std::int64_t cached : {0, 192}) {
    Engine engine(tiny(), {.n_threads = 1, .prefixes = PrefixOptions{.folder = folder.path}});
    auto handle = engine.submit(some_tokens(200), request(5));
    check_as_alone(handle.wait(), some_tokens(200), request(5));
    CHECK(handle.wait().metrics.cached_tokens == cached);
  }
  CHECK(folder.files().size() == 3);
}

TEST_CASE("engine: log-probabilities of the prompt are those that a session gives, whoever runs beside it") {
  Engine engine(tiny(), {.scheduler = {.max_running = 4, .step_tokens = 16}, .kv_blocks = 4, .n_threads = 2});
  auto with_prompt = request(5);
  with_prompt.prompt_log_probabilities = 3;
  std::vector<std::vector<Token>> prompts;
  std::vector<RequestHandle> handles;
  for (const std::int64_t n : {1, 2, 100, 100, 70}) {
    prompts.push_back(some_tokens(n));
    handles.push_back(engine.submit(prompts.back(), with_prompt));
    prompts.push_back(some_tokens(n, n));
    handles.push_back(engine.submit(prompts.back(), request(60)));
  }
  for (std::size_t i = 0; i < handles.size(); ++i) {
    INFO("request " << i);
    check_as_alone(handles[i].wait(), prompts[i], i % 2 ? request(60) : with_prompt);
    if (i % 2 == 0) CHECK(handles[i].wait().metrics.cached_tokens == 0);  // all of its logits are wanted
  }
  for (auto& handle : engine.submit_samples(some_tokens(80), 3, with_prompt))
    CHECK(handle.wait().prompt_log_probabilities.size() == 79);
  CHECK(engine.metrics().num_preemptions_total > 0);
}
