// Generation: reasons to end, streaming, callbacks, seeds, timings.
#include <functional>

#include "support/bits.hpp"
#include "vitrine/engine/engine.hpp"

using namespace support;

namespace {

std::shared_ptr<const Model> qwen2() { return model(data("tiny/qwen2/model-f32.gguf")); }

std::vector<Token> prompt() { return {3, 1, 4, 1, 5, 9, 2, 6}; }

}  // namespace

TEST_CASE("generation ends at max_new_tokens, and the range gives what the result holds") {
  Session session(qwen2());
  auto generation =
      generate(session, prompt(), {.sampling = {.temperature = 0}, .max_new_tokens = 12, .ignore_end = true});
  std::vector<Token> ids;
  std::string text;
  double last = 0;
  for (const auto& token : generation) {
    CHECK(token.index == std::int64_t(ids.size()));
    CHECK(token.seconds >= last);
    last = token.seconds;
    ids.push_back(token.id);
    text += token.text;
  }
  const auto& result = generation.result();
  CHECK(result.reason == FinishReason::length);
  CHECK(result.tokens == ids);
  CHECK(ids.size() == 12);
  CHECK(result.text.substr(0, text.size()) == text);
  CHECK(generation.next() == nullptr);

  const auto& timings = result.timings;
  CHECK(timings.prompt_tokens == 8);
  CHECK(timings.inter_token_seconds.size() == 11);
  CHECK(timings.prefill_seconds > 0);
  CHECK(timings.ttft_seconds >= timings.prefill_seconds);
  CHECK(timings.total_seconds == Approx(timings.ttft_seconds + 11 * timings.tpot_seconds()));
  CHECK(timings.decode_tokens_per_second() == Approx(1 / timings.tpot_seconds()));
  CHECK(timings.load_seconds > 0);
  CHECK(result.sampling == "ignore_end(2 tokens) -> temperature(0)");
}

TEST_CASE("every end token ends a generation and its text is not given") {
  Session session(qwen2());
  const GenerateOptions options{.sampling = {.temperature = 0}, .max_new_tokens = 8, .ignore_end = true};
  const auto free_run = generate(session, prompt(), options, go_on);
  REQUIRE(free_run.tokens.size() == 8);
  session.reset();
  auto ended_options = options;
  ended_options.ignore_end = false;
  ended_options.extra_end = {383, free_run.tokens[3]};
  const auto ended = generate(session, prompt(), ended_options, go_on);
  CHECK(ended.reason == FinishReason::end_token);
  const auto first = std::find(free_run.tokens.begin(), free_run.tokens.end(), free_run.tokens[3]);
  CHECK(ended.tokens == std::vector<Token>(free_run.tokens.begin(), first));
  CHECK(ended.timings.inter_token_seconds.size() == ended.tokens.size());  // the end token was drawn, too
  // The model's own end tokens work without being named.
  CHECK(!qwen2()->tokenizer().end_tokens().empty());
}

TEST_CASE("a full context ends a generation and says so") {
  Session session(qwen2(), {.n_context = 12});
  const auto result = generate(session, prompt(), {.sampling = {.temperature = 0}, .ignore_end = true}, go_on);
  CHECK(result.reason == FinishReason::context_full);
  CHECK(result.tokens.size() == 5);  // four are in the context, one more was drawn from its last logits
  CHECK(session.length() == 12);
}

TEST_CASE("a prompt that leaves no room is an error with the three numbers") {
  for (const std::int64_t n_context : {7, 8}) {
    Session session(qwen2(), {.n_context = n_context});
    try {
      generate(session, prompt(), {.max_new_tokens = 77}, go_on);
      FAIL("expected an error");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::context_full);
      using Catch::Matchers::Contains;
      CHECK_THAT(error.what(),
                 Contains("prompt of 8") && Contains("holds " + std::to_string(n_context)) && Contains("77"));
    }
    CHECK(session.length() == 0);
  }
  Session one(qwen2(), {.n_context = 1});
  CHECK_THROWS_WITH(generate(one, {3}), Catch::Matchers::Contains("the prompt of 1 token does not fit"));
  Session enough(qwen2(), {.n_context = 9});
  CHECK(generate(enough, prompt(), {.ignore_end = true}, go_on).tokens.size() == 2);
}

TEST_CASE("a prompt longer than the context is refused by every way in, none is cut") {
  const auto of_length = [](std::size_t n) { return std::vector<Token>(n, 7); };
  const GenerateOptions options{.sampling = {.temperature = 0}, .max_new_tokens = 8, .ignore_end = true};
  Session session(qwen2(), {.n_context = 32});
  Engine engine(qwen2(), {.n_context = 32});
  for (const std::size_t n : {32, 33, 100}) {
    for (const auto& call : std::vector<std::function<void()>>{[&] { generate(session, of_length(n), options, go_on); },
                                                               [&] { engine.submit(of_length(n), options); }}) {
      try {
        call();
        FAIL("expected an error");
      } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::context_full);
        using Catch::Matchers::Contains;
        CHECK_THAT(error.what(), Contains(std::to_string(n)) && Contains("32") && Contains("8"));
      }
    }
    CHECK(session.length() == 0);
  }
  const auto answer = generate(session, of_length(31), options, go_on);
  CHECK(answer.reason == FinishReason::context_full);
  CHECK(answer.tokens.size() == 2);
  CHECK(engine.submit(of_length(31), options).wait().tokens == answer.tokens);
  session.reset();
  CHECK(generate(session, of_length(24), options, go_on).reason == FinishReason::length);
}

TEST_CASE("a callback, a stop token and cancel() end a generation as cancelled") {
  Session session(qwen2());
  const auto by_callback =
      generate(session, prompt(), {.ignore_end = true}, [](const GeneratedToken& token) { return token.index < 2; });
  CHECK(by_callback.reason == FinishReason::cancelled);
  CHECK(by_callback.tokens.size() == 3);

  session.reset();
  std::stop_source source;
  auto generation = generate(session, prompt(), {.ignore_end = true, .stop = source.get_token()});
  int n = 0;
  for ([[maybe_unused]] const auto& token : generation)
    if (++n == 4) source.request_stop();
  CHECK(n == 4);
  CHECK(generation.result().reason == FinishReason::cancelled);

  session.reset();
  const auto at_once = generate(session, prompt(), {.stop = source.get_token()}, go_on);
  CHECK(at_once.reason == FinishReason::cancelled);
  CHECK(at_once.tokens.empty());
  CHECK(session.length() == 0);
}

TEST_CASE("a failure ends a generation: nothing is read twice, and the session is as it was before") {
  bool failing = false;
  Session session(qwen2(), {.trace = [&](const TraceEvent&) {
                    if (failing) throw std::runtime_error("seen enough");
                  }});
  const auto ended = [&](Generation& generation, std::size_t n_tokens, std::int64_t length) {
    const auto n_passes = session.n_passes();
    for (int i = 0; i < 3; ++i) CHECK(generation.next() == nullptr);
    generation.cancel();
    CHECK(generation.result().reason == FinishReason::failed);
    CHECK(generation.result().tokens.size() == n_tokens);
    CHECK(session.length() == length);
    CHECK(session.n_passes() == n_passes);
  };
  SECTION("a pass fails in the midst of it") {
    Generation generation(session, prompt(), {.sampling = {.temperature = 0}, .ignore_end = true});
    for (int i = 0; i < 3; ++i) REQUIRE(generation.next() != nullptr);
    failing = true;
    CHECK_THROWS_WITH(generation.next(), "seen enough");
    failing = false;
    ended(generation, 3, 10);
  }
  SECTION("no token can be drawn from the logits of the prompt") {
    session.prefill(std::vector<Token>{7});
    Generation generation(session, prompt(), {.sampling = {.temperature = 0, .repetition_penalty = 3e38}});
    CHECK_THROWS_WITH(generation.next(), Catch::Matchers::Contains("repetition_penalty(3e+38) takes the logit"));
    ended(generation, 0, 1);
  }
  SECTION("the caller's progress throws, and the range ends") {
    const auto progress = [](const ProgressEvent&) { throw std::runtime_error("no more"); };
    Generation generation(session, prompt(), {.progress = progress});
    CHECK_THROWS_WITH(generation.begin(), "no more");
    ended(generation, 0, 0);
    CHECK(generation.begin() == generation.end());
  }
  CHECK(finish_reason_name(FinishReason::failed) == std::string("failed"));
}

TEST_CASE("an iterator whose step failed has reached the end") {
  bool failing = false;
  Session session(qwen2(), {.trace = [&](const TraceEvent&) {
                    if (failing) throw std::runtime_error("seen enough");
                  }});
  Generation generation(session, prompt(), {.ignore_end = true});
  auto token = generation.begin();
  REQUIRE(token != generation.end());
  failing = true;
  CHECK_THROWS_WITH(++token, "seen enough");
  CHECK(token == generation.end());
}

TEST_CASE("a seed reproduces a sampled generation, for any number of threads, and is reported") {
  const GenerateOptions options{.sampling = {.temperature = 1.5, .seed = 42}, .max_new_tokens = 24, .ignore_end = true};
  std::vector<std::vector<Token>> runs;
  for (const int n_threads : {1, 2, 3}) {
    Session session(qwen2(), {.n_threads = n_threads});
    const auto result = generate(session, prompt(), options, go_on);
    CHECK(result.seed == 42);
    runs.push_back(result.tokens);
  }
  CHECK(runs[0] == runs[1]);
  CHECK(runs[0] == runs[2]);

  Session session(qwen2());
  auto fresh = options;
  fresh.sampling.seed.reset();
  const auto unseeded = generate(session, prompt(), fresh, go_on);
  CHECK(unseeded.tokens != runs[0]);
  session.reset();
  fresh.sampling.seed = unseeded.seed;
  CHECK(generate(session, prompt(), fresh, go_on).tokens == unseeded.tokens);
}

TEST_CASE("a session that is changed while its generation runs is refused") {
  Session session(qwen2());
  auto generation = generate(session, prompt(), {.max_new_tokens = 8, .ignore_end = true});
  REQUIRE(generation.next() != nullptr);
  session.truncate(1);
  const auto error = error_of([&] { generation.next(); });
  CHECK(error.kind() == ErrorKind::bad_argument);
  CHECK_THAT(error.what(), Catch::Contains("expected the session as the last step left it"));
  CHECK(generation.result().reason == FinishReason::failed);
  CHECK(generation.next() == nullptr);
}

TEST_CASE("generation with and without the cache gives the same tokens") {
  std::vector<std::vector<Token>> runs;
  for (const bool use_cache : {true, false}) {
    Session session(qwen2(), {.use_cache = use_cache});
    runs.push_back(
        generate(session, prompt(),
                 {.sampling = {.temperature = 1, .top_k = 20, .seed = 3}, .max_new_tokens = 20, .ignore_end = true},
                 go_on)
            .tokens);
  }
  CHECK(runs[0] == runs[1]);
}

TEST_CASE("bad options are refused by name") {
  Session session(qwen2());
  const auto refuses = [&](GenerateOptions options, const std::string& name) {
    try {
      generate(session, prompt(), options, go_on);
      FAIL("expected an error naming " << name);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::bad_argument);
      CHECK_THAT(error.what(), Catch::Matchers::Contains(name));
    }
  };
  refuses({.max_new_tokens = 0}, "max_new_tokens");
  refuses({.sampling = {.temperature = -1}}, "temperature");
  refuses({.extra_end = {100000}}, "extra_end");
  CHECK(session.length() == 0);
}
