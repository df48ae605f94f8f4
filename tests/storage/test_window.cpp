// Windows and attention sinks that a session asks for (StreamingLLM): what is kept, recomputed or split changes no bit,
// and the sinks are met by queries that stand right behind the window.
#include <map>

#include "support/bits.hpp"
#include "vitrine/model/rope_frequencies.hpp"
#include "vitrine/ops/reference.hpp"

using namespace support;

namespace {

// No window of their own, one in all layers (24 tokens), one in some.
const std::vector<std::string> windowed_models = {"tiny/llama_gqa/model-f16.gguf", "tiny/mistral_swa",
                                                  "tiny/gemma3/model-f32.gguf"};

}  // namespace

TEST_CASE(
    "window and sinks: every kind of cache, chunk, thread and instruction set, and no cache, give the same bits") {
  const auto path = GENERATE(from_range(windowed_models));
  const std::int64_t sinks = GENERATE(0, 4, 70);
  const auto kv_type = GENERATE(KvTypes(DType::f16), KvTypes(DType::int8, DType::int4));
  INFO(path << ", " << sinks << " sinks, " << kv_type.name());
  const auto shared = model(data(path));
  const auto prompt = spread_tokens(*shared, 300);
  SessionOptions options{.n_threads = 1, .kv_type = kv_type, .window = 20, .sinks = sinks, .chunk = 300};
  const auto expected = run(shared, prompt, 4, options);
  for (const auto kind : all_cache_kinds)
    for (const std::int64_t chunk : {1, 17, 64}) {
      INFO(cache_kind_name(kind) << ", chunk " << chunk);
      options.n_threads = chunk == 64 ? 1 : 2;
      options.cache = kind;
      options.chunk = chunk;
      CHECK(first_difference(expected, run(shared, prompt, 4, options)) == -1);
    }
  for (const auto isa : available_isas()) {
    INFO(isa_name(isa));
    options.isa = isa;
    options.use_cache = isa == Isa::scalar;
    CHECK(first_difference(expected, run(shared, prompt, 4, options)) == -1);
  }
}

TEST_CASE("window and sinks: what a session sees, and what it does not", "[control]") {
  const auto shared = model(data("tiny/llama_gqa/model-f16.gguf"));
  auto prompt = spread_tokens(*shared, 300);
  const auto n_layer = shared->config().n_layer;
  const auto last = [&](std::int64_t window, std::int64_t sinks) {
    Session session(shared,
                    {.n_context = 301, .n_threads = 1, .kv_type = DType::f32, .window = window, .sinks = sinks});
    session.prefill(prompt);
    return copy(session.decode(5));
  };
  const auto all = last(0, 0), window = last(20, 0), sinks = last(20, 4);
  CHECK_FALSE(same_bits(all, window));
  CHECK_FALSE(same_bits(sinks, window));
  CHECK_FALSE(same_bits(sinks, all));
  CHECK(same_bits(all, last(301, 0)));  // as long as the text
  const auto largest = [](const std::vector<float>& a, const std::vector<float>& b) {
    float result = 0;
    for (std::size_t i = 0; i < a.size(); ++i) result = std::max(result, std::abs(a[i] - b[i]));
    return result;
  };
  CHECK(largest(all, last(200, 101)) < 1e-4f);  // nothing lies between them; only summed in another order
  CHECK(largest(all, sinks) > 1e-2f);
  REQUIRE(300 - 20 * n_layer > 150);
  for (const std::size_t position : {0, 3, 4, 150, 290}) {
    INFO("another token at position " << position);
    const Token kept = prompt[position];
    prompt[position] = (kept + 1) % Token(shared->config().n_vocab);
    CHECK(same_bits(last(20, 0), window) == (position <= 150));
    CHECK(same_bits(last(20, 4), sinks) == (position == 4 || position == 150));
    prompt[position] = kept;
  }
}

TEST_CASE("sinks: the second query is the first one, turned for the place right behind the window", "[control]") {
  const auto shared = model(data("tiny/llama_gqa/model-f16.gguf"));
  const auto& config = shared->config();
  std::map<std::string, std::vector<float>> seen;  // of layer 0
  SessionOptions options{.n_context = 60, .n_threads = 1, .window = 20, .sinks = 4, .chunk = 60};
  options.trace = [&](const TraceEvent& event) {
    if (event.layer == 0)
      seen[std::string(event.name)] = {event.value.data(), event.value.data() + event.value.count()};
  };
  Session session(shared, options);
  session.prefill(spread_tokens(*shared, 60));
  std::vector<std::int64_t> positions, sink_positions;
  for (std::int64_t p = 0; p < 60; ++p) positions.push_back(p), sink_positions.push_back(std::min<std::int64_t>(p, 23));
  const auto expect = [&](const char* name, const std::vector<std::int64_t>& at) {
    INFO(name);
    auto q = seen["q"];
    const auto width = config.n_head * config.head_dim;
    REQUIRE(std::int64_t(q.size()) == 60 * width);
    reference::rope({q.data(), {60, width}}, config.head_dim, inverse_frequencies(config.rope[0], config.head_dim), at);
    float worst = 0;
    for (std::size_t i = 0; i < q.size(); ++i) worst = std::max(worst, std::abs(q[i] - seen[name][i]));
    CHECK(worst < 1e-5f);
  };
  expect("q_rope", positions);
  expect("q_sink", sink_positions);
}

TEST_CASE("window and sinks: options that make no sense are refused by name", "[control]") {
  const auto shared = model(data("tiny/llama_gqa/model-f16.gguf"));
  for (const auto& [window, sinks] : {std::pair(-1, 0), std::pair(0, 4), std::pair(10, -1), std::pair(10, 257)}) {
    SessionOptions options{.window = window, .sinks = sinks};
    try {
      Session refused(shared, options);
      FAIL("expected an Error");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::bad_argument);
      CHECK_THAT(error.what(), Catch::Matchers::Contains(window < 0 ? "window" : "sinks"));
    }
  }
}
