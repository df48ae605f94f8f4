// The engine: what requests get, what is refused, what fails alone, how it ends.
#include <limits>
#include <thread>

#include "support/bits.hpp"
#include "vitrine/engine/drafter.hpp"
#include "vitrine/engine/engine.hpp"

using namespace support;
using Catch::Matchers::Contains;

namespace {

GenerateOptions greedy(std::int64_t n) {
  return {.sampling = {.temperature = 0}, .max_new_tokens = n, .ignore_end = true};
}

GenerateOptions sampled(std::int64_t n, std::uint64_t seed) {
  return {.sampling = {.seed = seed}, .max_new_tokens = n, .ignore_end = true};
}

std::vector<Token> alone(const std::vector<Token>& prompt, const GenerateOptions& options) {
  Session session(tiny());
  return generate(session, prompt, options, [](const GeneratedToken&) { return true; }).tokens;
}

using support::error_of;  // beside this
Error error_of(const RequestResult& result) {
  return error_of([&] { std::rethrow_exception(result.error); });
}

}  // namespace

TEST_CASE("engine: a request gets the tokens that it gets alone, whoever runs beside it and whenever it joins") {
  Engine engine(tiny());
  const std::int64_t lengths[] = {3, 7, 12};
  std::vector<RequestHandle> handles;
  for (const auto n : lengths) handles.push_back(engine.submit(some_tokens(n), greedy(20)));
  for (std::size_t i = 0; i < 3; ++i) CHECK(handles[i].wait().tokens == alone(some_tokens(lengths[i]), greedy(20)));
  // Joining and leaving midway.
  auto first = engine.submit(some_tokens(3), sampled(40, 1));
  for (int i = 0; i < 5; ++i) REQUIRE(first.next());
  auto second = engine.submit(some_tokens(7), greedy(3));
  auto third = engine.submit(some_tokens(12), sampled(20, 2));
  CHECK(second.wait().tokens == alone(some_tokens(7), greedy(3)));
  CHECK(third.wait().tokens == alone(some_tokens(12), sampled(20, 2)));
  CHECK(first.wait().tokens == alone(some_tokens(3), sampled(40, 1)));
}

TEST_CASE("engine: tokens come by pull, by callback and in the result, all the same") {
  Engine engine(tiny());
  std::vector<Token> called;
  std::string called_text;
  auto handle = engine.submit(some_tokens(5), greedy(12), [&](const GeneratedToken& token) {
    CHECK(token.index == std::int64_t(called.size()));
    called.push_back(token.id);
    called_text += token.text;
    return true;
  });
  std::vector<Token> pulled;
  std::string pulled_text;
  double last = 0;
  for (const auto& token : handle) {
    CHECK(token.index == std::int64_t(pulled.size()));
    CHECK(token.seconds >= last);
    last = token.seconds;
    pulled.push_back(token.id);
    pulled_text += token.text;
  }
  const auto& result = handle.wait();
  CHECK(handle.finished());
  CHECK(handle.next() == nullptr);
  CHECK(pulled == alone(some_tokens(5), greedy(12)));
  CHECK(called == pulled);
  CHECK(result.tokens == pulled);
  CHECK(called_text == pulled_text);
  CHECK(result.text.substr(0, pulled_text.size()) == pulled_text);
  CHECK(result.reason == FinishReason::length);
  CHECK(result.error == nullptr);
  CHECK(result.timings.ttft_seconds >= result.timings.prefill_seconds);
  CHECK(result.metrics.inter_token.count == 11);
  CHECK(result.metrics.inter_token.p99 >= result.metrics.inter_token.p50);
  CHECK(result.sampling == "ignore_end(1 token) -> temperature(0)");
}

TEST_CASE("engine: the same seeded request gives the same answer twenty times, idle and beside others") {
  Engine engine(tiny());
  const auto prompt = some_tokens(9);
  const std::vector<Token> expected[] = {alone(prompt, greedy(10)), alone(prompt, sampled(10, 5))};
  std::vector<RequestHandle> others;
  for (int i = 0; i < 20; ++i) {
    if (i == 10)
      for (int k = 0; k < 3; ++k) others.push_back(engine.submit(some_tokens(6, k), sampled(200, std::uint64_t(k))));
    CHECK(engine.submit(prompt, greedy(10)).wait().tokens == expected[0]);
    CHECK(engine.submit(prompt, sampled(10, 5)).wait().tokens == expected[1]);
  }
}

TEST_CASE("engine: more requests than may run wait for their turn, and all end") {
  Engine engine(tiny(), {.scheduler = {.max_running = 2}});
  std::vector<RequestHandle> handles;
  for (int i = 0; i < 8; ++i) handles.push_back(engine.submit(some_tokens(4, i), greedy(10)));
  for (int i = 0; i < 8; ++i) CHECK(handles[std::size_t(i)].wait().tokens == alone(some_tokens(4, i), greedy(10)));
  CHECK(engine.metrics().request_success_total == 8);
}

TEST_CASE("engine: four requests that each need all the blocks there are take turns, and each gets its own text") {
  Engine engine(tiny(), {.n_context = 128, .kv_blocks = 2});
  CHECK(engine.options().n_context == 128);
  std::vector<RequestHandle> handles;
  for (int i = 0; i < 4; ++i) handles.push_back(engine.submit(some_tokens(20, i), greedy(108)));
  for (int i = 0; i < 4; ++i) CHECK(handles[std::size_t(i)].wait().tokens == alone(some_tokens(20, i), greedy(108)));
  CHECK(engine.metrics().num_preemptions_total >= 1);
  // What a request may have follows from the pool, too, and is said.
  Engine little(tiny(), {.n_context = 200, .kv_blocks = 1});
  CHECK(little.options().n_context == 64);
  const auto result = little.submit(some_tokens(60), greedy(100)).wait();
  CHECK(result.reason == FinishReason::context_full);
  CHECK(result.tokens.size() == 5);
  const auto error = error_of([&] { little.submit(some_tokens(64), greedy(1)); });
  CHECK(error.kind() == ErrorKind::context_full);
  CHECK_THAT(error.what(), Contains("prompt of 64") && Contains("may have 64"));
}

TEST_CASE("engine: what is wrong with a request is said at submit, and its neighbour notices nothing") {
  Engine engine(tiny());
  auto neighbour = engine.submit(some_tokens(8), greedy(100));
  const auto refused = [&](const std::vector<Token>& prompt, const GenerateOptions& options, const std::string& named) {
    const auto error = error_of([&] { engine.submit(prompt, options); });
    CHECK(error.kind() == ErrorKind::bad_argument);
    CHECK_THAT(error.what(), Contains(named));
  };
  for (const Token bad : {Token(-1), Token(384), std::numeric_limits<Token>::max()}) {
    refused({1, bad}, greedy(2), "index 1: expected 0 to 383, got " + std::to_string(bad));
    refused({1}, {.extra_end = {bad}}, "extra_end");
  }
  refused({}, greedy(2), "prompt");
  refused({1}, greedy(0), "max_new_tokens");
  refused({1}, {.sampling = {.top_p = 2}}, "top_p");
  refused({1}, {.sampling = {.logit_bias = {{384, 1.0f}}}}, "logit_bias");
  CHECK(error_of([&] { engine.submit_samples({1}, 0); }).kind() == ErrorKind::bad_argument);
  CHECK(error_of([&] { engine.submit(some_tokens(256), greedy(1)); }).kind() == ErrorKind::context_full);
  CHECK(neighbour.wait().tokens == alone(some_tokens(8), greedy(100)));
  CHECK(engine.metrics().request_failed_total == 0);
}

TEST_CASE("engine: a full queue refuses with the numbers, and takes requests again later") {
  std::atomic<bool> go{false};
  Engine engine(tiny(), {.scheduler = {.max_running = 1}, .max_queued = 3});
  auto running = engine.submit(some_tokens(3), greedy(2), [&](const GeneratedToken&) {
    while (!go) std::this_thread::yield();
    return true;
  });
  while (engine.metrics().num_requests_running == 0) std::this_thread::yield();
  std::vector<RequestHandle> waiting;
  for (int i = 0; i < 3; ++i) waiting.push_back(engine.submit(some_tokens(3), greedy(2)));
  CHECK(engine.metrics().num_requests_waiting == 3);
  const auto error = error_of([&] { engine.submit(some_tokens(3), greedy(2)); });
  CHECK(error.kind() == ErrorKind::queue_full);
  CHECK_THAT(error.what(), Contains("3 of at most 3"));
  CHECK(engine.metrics().request_refused_total == 1);
  go = true;
  engine.drain();
  CHECK(engine.submit(some_tokens(3), greedy(2)).wait().tokens.size() == 2);
}

TEST_CASE("engine: what fails, fails alone, with its error in the result") {
  Engine engine(tiny());
  auto neighbour = engine.submit(some_tokens(8), greedy(60));
  auto penalised = greedy(50);
  penalised.sampling.repetition_penalty = 1.2e-38;  // takes a logit out of float's range
  auto numeric = engine.submit(some_tokens(5), penalised);
  CHECK(numeric.wait().reason == FinishReason::failed);
  CHECK(error_of(numeric.wait()).kind() == ErrorKind::numeric_failure);
  const auto read_all = [&] {
    while (numeric.next()) {
    }
  };
  CHECK(error_of(read_all).kind() == ErrorKind::numeric_failure);

  auto thrown = engine.submit(some_tokens(5), greedy(10), [](const GeneratedToken& token) {
    if (token.index == 2) throw std::runtime_error("the host's own");
    return true;
  });
  CHECK(thrown.wait().reason == FinishReason::failed);
  CHECK(thrown.wait().tokens.size() == 3);
  for (int i = 0; i < 3; ++i) REQUIRE(thrown.next());  // what came before is given first
  CHECK_THROWS_WITH(thrown.next(), "the host's own");

  auto in_progress = greedy(10);
  in_progress.progress = [](const ProgressEvent&) { throw std::runtime_error("no progress"); };
  CHECK(engine.submit(some_tokens(5), in_progress).wait().reason == FinishReason::failed);
  CHECK(neighbour.wait().tokens == alone(some_tokens(8), greedy(60)));
  CHECK(engine.metrics().request_failed_total == 3);
  CHECK(engine.metrics().kv_blocks_used == 0);
}

TEST_CASE("engine: cancelled by handle, by dropping it, by stop token and by callback") {
  Engine engine(tiny());
  std::stop_source stop;
  auto with_stop = greedy(240);
  with_stop.stop = stop.get_token();
  auto by_handle = engine.submit(some_tokens(4), greedy(240));
  auto by_stop = engine.submit(some_tokens(5), with_stop);
  auto by_callback =
      engine.submit(some_tokens(6), greedy(240), [](const GeneratedToken& token) { return token.index < 4; });
  { auto dropped = engine.submit(some_tokens(7), greedy(240)); }
  REQUIRE(by_handle.next());
  by_handle.cancel();
  stop.request_stop();
  for (auto* handle : {&by_handle, &by_stop, &by_callback}) CHECK(handle->wait().reason == FinishReason::cancelled);
  CHECK(by_callback.wait().tokens.size() == 5);
  const auto whole = alone(some_tokens(4), greedy(240));
  const auto& part = by_handle.wait().tokens;
  CHECK(std::equal(part.begin(), part.end(), whole.begin()));
  engine.drain();
  CHECK(engine.metrics().request_cancelled_total == 4);
  RequestHandle none;
  CHECK(error_of([&] { none.next(); }).kind() == ErrorKind::bad_argument);
}

TEST_CASE("engine: its end cancels what runs and waits, and handles outlive it") {
  std::vector<RequestHandle> handles;
  {
    Engine engine(tiny(), {.scheduler = {.max_running = 2}});
    for (int i = 0; i < 5; ++i) handles.push_back(engine.submit(some_tokens(4), greedy(250)));
    REQUIRE(handles[0].next());
  }
  for (auto& handle : handles) {
    const auto& result = handle.wait();
    CHECK((result.reason == FinishReason::cancelled || result.reason == FinishReason::length));
  }
  CHECK(handles[4].wait().reason == FinishReason::cancelled);
  CHECK(!handles[0].wait().tokens.empty());  // what it got stays
  {
    Engine engine(tiny());
    handles[1] = engine.submit(some_tokens(4), greedy(50));
    engine.drain();
  }
  CHECK(handles[1].wait().tokens == alone(some_tokens(4), greedy(50)));
  { Engine idle(tiny()); }
}

TEST_CASE("engine: a step reads the weights once for all, and a long prompt holds up nobody who decodes") {
  Engine engine(tiny(), {.scheduler = {.step_tokens = 64, .prompt_work = 1}});
  // The callbacks run on the engine's thread, so the count of steps stands still meanwhile.
  std::vector<std::int64_t> steps[2];
  std::vector<RequestHandle> handles;
  RequestHandle long_prompt;
  std::int64_t long_joined = 0;
  for (std::size_t i = 0; i < 2; ++i)
    handles.push_back(engine.submit(some_tokens(4, std::int64_t(i)), greedy(60), [&, i](const GeneratedToken& token) {
      steps[i].push_back(engine.metrics().n_steps);
      if (i == 0 && token.index == 5) {
        long_prompt = engine.submit(some_tokens(200), greedy(1));
        long_joined = engine.metrics().n_steps;
      }
      return true;
    }));
  engine.drain();
  for (const auto& of_request : steps)
    for (std::size_t k = 1; k < of_request.size(); ++k) REQUIRE(of_request[k] == of_request[k - 1] + 1);
  CHECK(long_prompt.wait().tokens == alone(some_tokens(200), greedy(1)));
  CHECK(engine.metrics().n_steps >= long_joined + 200 / 10);      // 6.5 + 2 and a little of work in a step
  CHECK(engine.metrics().n_step_tokens == 4 + 4 + 2 * 59 + 200);  // each token once
}

TEST_CASE("engine: samples of one prompt share its blocks, and are what each seed gives alone") {
  Engine engine(tiny(), {.scheduler = {.prompt_work = 0}});
  const auto prompt = some_tokens(100);
  auto handles = engine.submit_samples(prompt, 5, sampled(30, 40));
  for (std::uint64_t i = 0; i < 5; ++i) {
    const auto& result = handles[i].wait();
    CHECK(result.seed == 40 + i);
    CHECK(result.tokens == alone(prompt, sampled(30, 40 + i)));
    CHECK(result.metrics.cached_tokens == (i == 0 ? 0 : 99));
  }
  const auto metrics = engine.metrics();
  CHECK(metrics.n_step_tokens == 100 + 4 + 5 * 29);  // the last token of the prompt is everybody's own
  CHECK(metrics.n_blocks_copied == 4);               // of the second block, which the prompt fills in part
}

TEST_CASE("engine: guesses save steps and change no token, whoever runs beside them") {
  Engine engine(tiny(), {.n_threads = 1});
  const auto prompt = some_tokens(9);
  for (const auto& plain : {greedy(30), sampled(30, 3)}) {
    auto same_model = plain, by_lookup = plain, short_one = plain;
    same_model.speculation = {.drafter = draft_model(tiny(), 1), .max_guesses = 4, .adapt = false};
    by_lookup.speculation.drafter = prompt_lookup({.longest = 2, .shortest = 1});
    short_one.speculation = {.drafter = draft_model(tiny(), 1), .adapt = false};
    short_one.max_new_tokens = 7;
    short_one.log_probabilities = 1;
    auto a = engine.submit(prompt, same_model), b = engine.submit(prompt, by_lookup), c = engine.submit(prompt, plain);
    auto d = engine.submit(prompt, short_one);
    const auto expected = alone(prompt, plain);
    for (auto* handle : {&a, &b, &c}) CHECK(handle->wait().tokens == expected);
    CHECK(d.wait().tokens == std::vector<Token>(expected.begin(), expected.begin() + 7));
    CHECK(d.wait().log_probabilities.size() == 7);
    std::vector<Token> read;
    for (const auto& token : d) read.push_back(token.id);
    CHECK(read == d.wait().tokens);
    const auto& of_model = a.wait().metrics;
    CHECK(of_model.n_accepted_tokens == of_model.n_draft_tokens);  // it guesses for itself
    CHECK(of_model.n_accepted_tokens >= 20);
    CHECK(c.wait().metrics.n_draft_tokens == 0);
  }
  CHECK(engine.metrics().kv_blocks_used == 0);
  auto ratio = greedy(3);
  ratio.speculation = {.drafter = prompt_lookup(), .rule = AcceptRule::probability_ratio};
  CHECK_THROWS_WITH(engine.submit(prompt, ratio), Contains("speculation.rule"));
  ratio.speculation = {.drafter = prompt_lookup(), .max_guesses = 99};
  CHECK_THROWS_WITH(engine.submit(prompt, ratio), Contains("max_guesses"));
}

TEST_CASE("engine: eight threads submit, read and cancel at once") {
  Engine engine(tiny(), {.n_context = 100, .scheduler = {.max_running = 5}, .kv_blocks = 6});
  std::vector<std::thread> threads;
  std::atomic<int> n_right{0};
  std::vector<Token> expected[8];
  for (int i = 0; i < 8; ++i) expected[i] = alone(some_tokens(10 + 5 * i, i), sampled(20, std::uint64_t(i)));
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 4; ++round) {
        auto wanted = engine.submit(some_tokens(10 + 5 * i, i), sampled(20, std::uint64_t(i)));
        auto cancelled = engine.submit(some_tokens(30), greedy(60));
        std::vector<Token> got;
        for (const auto& token : wanted) got.push_back(token.id);
        cancelled.cancel();
        if (engine.metrics().request_failed_total == 0 && got == expected[i]) ++n_right;
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(n_right == 32);
}

TEST_CASE("engine: options out of range are refused by name") {
  for (const auto& [options, named] :
       std::vector<std::pair<EngineOptions, std::string>>{{{.n_context = -1}, "n_context"},
                                                          {{.scheduler = {.max_running = 0}}, "max_running"},
                                                          {{.scheduler = {.step_tokens = 1}}, "step_tokens"},
                                                          {{.max_queued = 0}, "max_queued"},
                                                          {{.max_queued = std::int64_t(1) << 60}, "max_queued"},
                                                          {{.kv_blocks = -1}, "kv_blocks"},
                                                          {{.n_threads = -1}, "n_threads"},
                                                          {{.kv_type = DType::q6_k}, "Q6_K"},
                                                          {{.isa = Isa(77)}, "isa"}}) {
    const auto error = error_of([&, &o = options] { Engine refused(tiny(), o); });
    CHECK(error.kind() == ErrorKind::bad_argument);
    CHECK_THAT(error.what(), Contains(named));
  }
  CHECK(error_of([] { Engine refused(nullptr); }).kind() == ErrorKind::bad_argument);
}

TEST_CASE("latencies: percentiles of a list are exact, those of a histogram within 5 %") {
  std::vector<double> seconds;
  LatencyHistogram histogram;
  for (int i = 1000; i >= 1; --i) {
    seconds.push_back(double(i) / 1000);
    histogram.add(double(i) / 1000);
  }
  const auto exact = summarise(seconds), close = histogram.summary();
  CHECK(exact.count == 1000);
  CHECK(exact.p50 == 500.0 / 1000);
  CHECK(exact.p95 == 950.0 / 1000);
  CHECK(exact.p99 == 990.0 / 1000);
  CHECK(exact.mean == Approx(0.5005));
  CHECK(exact.largest == 1);
  CHECK(close.count == 1000);
  CHECK(close.mean == Approx(0.5005));
  for (const auto& [a, b] : {std::pair(close.p50, exact.p50), {close.p95, exact.p95}, {close.p99, exact.p99}})
    CHECK((a >= b && a <= 1.05 * b));
  CHECK(summarise({}).count == 0);
  CHECK(LatencyHistogram().summary().count == 0);
  CHECK(summarise(std::vector<double>{3}).p99 == 3);
  histogram.add(1e9);
  histogram.add(0);
  CHECK(histogram.summary().largest == 1e9);
}
