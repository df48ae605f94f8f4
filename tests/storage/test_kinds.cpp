// The invariant over kinds of storage: contiguous, paged and ring give the same bits, in any company.
#include "support/bits.hpp"

using namespace support;

namespace {

// Windows (8 tokens in both) far shorter than the prompt, and a model without any.
const std::vector<std::string> models = {"tiny/mistral_swa", "tiny/gemma3/model-f32.gguf",
                                         "tiny/llama_gqa/model-f16.gguf"};
const std::vector<CacheKind> kinds = {CacheKind::contiguous, CacheKind::paged, CacheKind::ring};

std::vector<Token> long_prompt(const std::shared_ptr<const Model>& model, std::int64_t n = 300) {
  std::vector<Token> prompt;
  for (std::int64_t i = 0; i < n; ++i) prompt.push_back(Token((i * 7919 + 13) % model->config().n_vocab));
  return prompt;
}

}  // namespace

TEST_CASE("kinds: contiguous, paged and ring storage give the same bits") {
  const auto path = GENERATE(from_range(models));
  const auto kv_type = GENERATE(KvTypes(DType::f32), DType::f16, DType::bf16, DType::int8, DType::int4);
  INFO(path << ", " << kv_type.name());
  const auto shared = model(data(path));
  const auto prompt = long_prompt(shared);
  const auto expected = run(shared, prompt, 8, {.n_threads = 1, .kv_type = kv_type, .chunk = 300});
  for (const auto kind : kinds)
    for (const std::int64_t chunk : {1, 17, 64, 300})
      for (const int n_threads : {1, 2}) {
        INFO(cache_kind_name(kind) << ", chunk " << chunk << ", " << n_threads << " threads");
        const auto other =
            run(shared, prompt, 8, {.n_threads = n_threads, .kv_type = kv_type, .cache = kind, .chunk = chunk});
        CHECK(first_difference(expected, other) == -1);
      }
}

TEST_CASE("kinds: a ring really overwrites what left the window, and keeps the rest", "[control]") {
  const auto shared = model(data("tiny/mistral_swa"));
  const auto window = shared->config().layers[0].window;
  REQUIRE((window > 0 && window < 64));
  Session session(shared, {.n_context = 1000, .cache = CacheKind::ring, .chunk = 16}),
      plain(shared, {.n_context = 1000});
  CHECK(session.kv_bytes() * 16 == plain.kv_bytes() * std::size_t((window - 1 + 16 + 63) / 64 + 1));
}

TEST_CASE("kinds: going back and cancelled calls leave a session with the bits of a fresh one") {
  const auto path = GENERATE(from_range(models));
  const auto kind = GENERATE(from_range(kinds));
  INFO(path << ", " << cache_kind_name(kind));
  const auto shared = model(data(path));
  const auto prompt = long_prompt(shared, 250);
  const SessionOptions options{.n_context = 256, .n_threads = 1, .cache = kind, .chunk = 16};
  Session fresh(shared, {.n_context = 256, .n_threads = 1});
  const auto expected = copy(fresh.prefill(std::span(prompt).first(200)));
  Session session(shared, options);
  session.prefill(prompt);
  for (const std::int64_t keep : {199, 180, 65, 64, 3, 0}) {
    INFO("back to " << keep);
    session.truncate(keep);
    CHECK(same_bits(session.prefill(std::span(prompt).subspan(std::size_t(keep), std::size_t(200 - keep))), expected));
  }
  session.truncate(20);
  std::stop_source source;
  const auto stop = [&](const ProgressEvent& event) { event.done >= 160 ? source.request_stop() : false; };
  CHECK_THROWS_AS(session.prefill(std::span(prompt).subspan(20, 200), source.get_token(), stop), Error);
  CHECK(session.length() == 20);
  CHECK(same_bits(session.prefill(std::span(prompt).subspan(20, 180)), expected));
}

TEST_CASE("kinds: forks go their own ways with the bits of fresh sessions") {
  const auto path = GENERATE(from_range(models));
  const auto kind = GENERATE(from_range(kinds));
  INFO(path << ", " << cache_kind_name(kind));
  const auto shared = model(data(path));
  const auto prompt = long_prompt(shared, 150);
  const SessionOptions options{.n_context = 256, .n_threads = 1, .cache = kind, .chunk = 32};
  Session session(shared, options);
  session.prefill(std::span(prompt).first(100));
  Session first = session.fork(), second = session.fork();
  CHECK(first.length() == 100);
  CHECK(first.n_passes() == 0);
  const std::vector<std::size_t> ways = {100, 105, 109};
  Session* const sessions[] = {&session, &first, &second};
  for (int step = 0; step < 30; ++step)  // in turn, so that each could spoil the others' blocks
    for (std::size_t i = 0; i < 3; ++i) sessions[i]->decode(prompt[ways[i] + std::size_t(step)]);
  for (std::size_t i = 0; i < 3; ++i) {
    INFO("way " << i);
    auto tokens = std::vector<Token>(prompt.begin(), prompt.begin() + 100);
    tokens.insert(tokens.end(), prompt.begin() + std::ptrdiff_t(ways[i]),
                  prompt.begin() + std::ptrdiff_t(ways[i]) + 30);
    tokens.push_back(7);
    Session alone(shared, {.n_context = 256, .n_threads = 1});
    CHECK(same_bits(sessions[i]->decode(7), alone.prefill(tokens)));
  }
  if (kind != CacheKind::paged) return;
  // Three blocks each, of which the first is everybody's; the second was copied for two of them.
  const auto counts = session.cache().paged()->pool()->counts();
  CHECK(counts.n_used == 1 + 3 * 2);
  CHECK(counts.n_shared == 1);
  CHECK(counts.n_copied == 2);
}

TEST_CASE("kinds: sessions on one pool, and what does not fit them", "[control]") {
  const auto shared = model(data("tiny/llama_gqa/model-f32.gguf"));
  const auto prompt = long_prompt(shared, 130);
  const auto pool = std::make_shared<BlockPool>(shared->transformer().kv_layout(DType::f16), 4);
  Session one(shared, {.cache = CacheKind::paged, .pool = pool, .chunk = 64});
  Session other(shared, {.cache = CacheKind::paged, .pool = pool, .chunk = 64});
  one.prefill(prompt);
  CHECK(error_of([&] { other.prefill(prompt); }).kind() == ErrorKind::out_of_blocks);
  CHECK(other.length() == 0);
  CHECK(pool->counts().n_used == 3);  // what its first chunk took is given back
  one.truncate(60);
  other.prefill(prompt);
  CHECK(pool->counts().n_used == 4);
  CHECK(error_of([&] { Session(shared, {.pool = pool}); }).kind() == ErrorKind::bad_argument);
  CHECK(error_of([&] { Session(shared, {.kv_type = DType::f32, .cache = CacheKind::paged, .pool = pool}); }).kind() ==
        ErrorKind::bad_argument);
  CHECK(error_of([&] { Session(shared, {.cache = CacheKind(9)}); }).kind() == ErrorKind::bad_argument);
}
