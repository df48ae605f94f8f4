// Removing a range: later tokens move up, their keys are turned to where they are then.
#include <cmath>

#include "support/bits.hpp"
#include "vitrine/cache/kv_tokens.hpp"

using namespace support;

namespace {

// With one layer, K and V of a token depend on itself alone: there the shorter text and the shifted cache agree.
std::shared_ptr<const Model> one_layer(const std::string& path) {
  auto loaded = load_model_files(data(path));
  loaded.config.n_layer = 1;
  loaded.config.layers.resize(1);
  loaded.weights.layers.resize(1);
  return std::make_shared<const Model>(Transformer(std::move(loaded)), model(data(path))->tokenizer());
}

double largest_difference(std::span<const float> a, std::span<const float> b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, double(std::fabs(a[i] - b[i])));
  return largest;
}

}  // namespace

TEST_CASE("after a removal the logits are those of the kept tokens at their new places") {
  for (const char* path : {"tiny/llama_gqa/model-f32.gguf", "tiny/qwen3/model-f32.gguf", "tiny/gemma3/model-f32.gguf"})
    for (const auto kind : {CacheKind::contiguous, CacheKind::paged})
      for (const auto& [begin, end] : std::vector<std::pair<std::int64_t, std::int64_t>>{
               {4, 5}, {4, 20}, {0, 64}, {10, 139}, {63, 65}, {0, 1}, {100, 140}, {140, 140}}) {
        INFO(path << ", " << cache_kind_name(kind) << ", " << begin << " to " << end);
        const auto shared = one_layer(path);
        const auto prompt = some_tokens(140);
        auto kept = prompt;
        kept.erase(kept.begin() + begin, kept.begin() + end);
        Session session(shared, {.n_context = 200, .kv_type = DType::f32, .cache = kind});
        session.prefill(prompt);
        Session before = session.fork();
        session.remove_range(begin, end);
        CHECK(session.length() == std::int64_t(kept.size()));
        CHECK(std::equal(kept.begin(), kept.end(), session.tokens().begin()));
        const auto n_computed = session.n_pass_tokens();
        const auto shifted = copy(session.decode(7));
        CHECK(session.n_pass_tokens() == n_computed + 1);
        Session fresh(shared, {.n_context = 200, .kv_type = DType::f32});
        kept.push_back(7);
        CHECK(largest_difference(shifted, fresh.prefill(kept)) < 2e-5);
        // What was forked before has noticed nothing.
        Session whole(shared, {.n_context = 200, .kv_type = DType::f32});
        whole.prefill(prompt);
        CHECK(same_bits(before.decode(7), whole.decode(7)));
      }
}

TEST_CASE("in rounded types keys drift by a rounding, values not at all") {
  const auto shared = one_layer("tiny/llama_gqa/model-f32.gguf");
  const auto prompt = some_tokens(100);
  for (const auto type : {DType::f16, DType::bf16}) {
    INFO(dtype_info(type).name);
    Session session(shared, {.kv_type = type}), fresh(shared, {.kv_type = type});
    session.prefill(prompt);
    session.remove_range(10, 30);
    auto kept = prompt;
    kept.erase(kept.begin() + 10, kept.begin() + 30);
    fresh.prefill(kept);
    const auto moved = session.cache().tables().view(0), expected = fresh.cache().tables().view(0);
    const auto width = std::size_t(moved.n_kv_head * moved.head_dim);
    std::vector<float> k(width), v(width), expected_k(width), expected_v(width);
    double drift = 0, largest = 0;
    for (std::int64_t t = 0; t < 80; ++t) {
      read_kv(moved, t, k.data(), v.data());
      read_kv(expected, t, expected_k.data(), expected_v.data());
      CHECK(same_bits(v, expected_v));
      drift = std::max(drift, largest_difference(k, expected_k));
      for (const float x : expected_k) largest = std::max(largest, double(std::fabs(x)));
    }
    CHECK(drift > 0);
    CHECK(drift < largest * (type == DType::f16 ? 0.002 : 0.016));  // two roundings, of 2^-11 or 2^-8
  }
}

TEST_CASE("ranges that are none, and caches that cannot, are refused and nothing changes") {
  const auto shared = model(data("tiny/mistral_swa"));
  Session session(shared, {.n_context = 16});
  session.prefill(some_tokens(16));
  const auto kind_of = [](auto&& action) {
    try {
      action();
    } catch (const Error& error) {
      return error.kind();
    }
    FAIL("expected an Error, got none");
    throw;
  };
  for (const auto& [begin, end] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {-1, 3}, {4, 3}, {4, 17}, {17, 17}, {0, 2147483647}, {-32, -1}})
    CHECK(kind_of([&, &b = begin, &e = end] { session.remove_range(b, e); }) == ErrorKind::bad_argument);
  CHECK(session.length() == 16);
  Session ring(shared, {.n_context = 200, .cache = CacheKind::ring, .chunk = 8});
  ring.prefill(some_tokens(100));
  CHECK(kind_of([&] { ring.remove_range(1, 2); }) == ErrorKind::unsupported);
  CHECK(ring.length() == 100);
  Session quantised(shared, {.n_context = 200, .kv_type = {DType::f16, DType::int8}});
  quantised.prefill(some_tokens(100));
  CHECK(kind_of([&] { quantised.remove_range(1, 2); }) == ErrorKind::unsupported);
  // In a full context a removal makes room for exactly as many.
  session.remove_range(4, 10);
  CHECK(session.length() == 10);
  for (int i = 0; i < 6; ++i) session.decode(i);
  CHECK(kind_of([&] { session.decode(1); }) == ErrorKind::context_full);
}
