// Generation: reasons to end, streaming, callbacks, seeds, timings.
#include "support/bits.hpp"

using namespace support;

namespace {

std::shared_ptr<const Model> tiny() { return model(data("tiny/qwen2/model-f32.gguf")); }

std::vector<Token> prompt() { return {3, 1, 4, 1, 5, 9, 2, 6}; }

const auto go_on = [](const GeneratedToken&) { return true; };

}  // namespace

TEST_CASE("generation ends at max_new_tokens, and the range gives what the result holds") {
  Session session(tiny());
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
  CHECK(result.sampling == "temperature(0)");
}

TEST_CASE("every end token ends a generation and its text is not given") {
  Session session(tiny());
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
  CHECK(!tiny()->tokenizer().end_tokens().empty());
}

TEST_CASE("a full context ends a generation and says so") {
  Session session(tiny(), {.n_context = 12});
  const auto result = generate(session, prompt(), {.sampling = {.temperature = 0}, .ignore_end = true}, go_on);
  CHECK(result.reason == FinishReason::context_full);
  CHECK(result.tokens.size() == 5);  // four are in the context, one more was drawn from its last logits
  CHECK(session.length() == 12);
}

TEST_CASE("a prompt that leaves no room is an error with the three numbers") {
  for (const std::int64_t n_context : {7, 8}) {
    Session session(tiny(), {.n_context = n_context});
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
  Session enough(tiny(), {.n_context = 9});
  CHECK(generate(enough, prompt(), {.ignore_end = true}, go_on).tokens.size() == 2);
}

TEST_CASE("a callback, a stop token and cancel() end a generation as cancelled") {
  Session session(tiny());
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

TEST_CASE("a seed reproduces a sampled generation, for any number of threads, and is reported") {
  const GenerateOptions options{.sampling = {.temperature = 1.5, .seed = 42}, .max_new_tokens = 24, .ignore_end = true};
  std::vector<std::vector<Token>> runs;
  for (const int n_threads : {1, 2, 3}) {
    Session session(tiny(), {.n_threads = n_threads});
    const auto result = generate(session, prompt(), options, go_on);
    CHECK(result.seed == 42);
    runs.push_back(result.tokens);
  }
  CHECK(runs[0] == runs[1]);
  CHECK(runs[0] == runs[2]);

  Session session(tiny());
  auto fresh = options;
  fresh.sampling.seed.reset();
  const auto unseeded = generate(session, prompt(), fresh, go_on);
  CHECK(unseeded.tokens != runs[0]);
  session.reset();
  fresh.sampling.seed = unseeded.seed;
  CHECK(generate(session, prompt(), fresh, go_on).tokens == unseeded.tokens);
}

TEST_CASE("generation with and without the cache gives the same tokens") {
  std::vector<std::vector<Token>> runs;
  for (const bool use_cache : {true, false}) {
    Session session(tiny(), {.use_cache = use_cache});
    runs.push_back(
        generate(session, prompt(),
                 {.sampling = {.temperature = 1, .top_k = 20, .seed = 3}, .max_new_tokens = 20, .ignore_end = true},
                 go_on)
            .tokens);
  }
  CHECK(runs[0] == runs[1]);
}

TEST_CASE("bad options are refused by name") {
  Session session(tiny());
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
