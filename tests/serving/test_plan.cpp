// The memory plan against what sessions really take.
#include "support/allocation_counts.hpp"
#include "support/bits.hpp"
#include "vitrine/engine/memory_plan.hpp"

using namespace support;

namespace {

ModelConfig llama_like() {
  ModelConfig config;
  config.n_layer = 32;
  config.n_head = config.n_kv_head = 32;
  config.head_dim = 96;
  config.d_model = 3072;
  config.d_ff = 8192;
  config.n_vocab = 32064;
  config.n_context = 131072;
  config.rope.resize(1);
  config.layers.resize(32);
  return config;
}

}  // namespace

TEST_CASE("the plan gives the bytes of K and V before a model is loaded") {
  const auto config = llama_like();
  CHECK(plan(config, {.n_context = 131072}).kv == 51'539'607'552);  // 32 x 131072 x (3072 + 3072) x 2
  CHECK(plan(config, {.n_context = 131072, .kv_type = DType::f32}).kv == 2 * 51'539'607'552);
  CHECK(plan(config, {.n_context = 131072, .cache = CacheKind::paged}).kv == 51'539'607'552);
  CHECK(plan(config, {.n_context = 131072}, 8).kv == 8 * 51'539'607'552);
  CHECK(plan(config, {.n_context = 131072}, 8).scratch == plan(config, {.n_context = 131072}).scratch);
  auto windowed = config;
  for (auto& layer : windowed.layers) layer.window = 4096;
  // ceil((4095 + 256) / 64) + 1 blocks of 64 tokens
  CHECK(plan(windowed, {.n_context = 131072, .cache = CacheKind::ring, .chunk = 256}).kv == 32ull * 69 * 64 * 6144 * 2);
  CHECK(plan(windowed, {.n_context = 131072}).kv == 51'539'607'552);
  CHECK_THROWS_AS(plan(config, {.n_context = -1}), Error);
  CHECK_THROWS_AS(plan(config, {}, 0), Error);
}

TEST_CASE("the longest context that fits does, and 64 tokens more do not") {
  const auto config = llama_like();
  for (const auto kind : {CacheKind::contiguous, CacheKind::paged})
    for (const std::size_t budget : {std::size_t(1) << 30, std::size_t(7) << 30, std::size_t(100) << 30})
      for (const std::int64_t n_sequences : {1, 4}) {
        SessionOptions options{.n_threads = 2, .cache = kind};
        options.n_context = longest_context(config, options, budget, n_sequences);
        INFO(options.n_context << " tokens");
        REQUIRE(options.n_context > 0);
        CHECK(plan(config, options, n_sequences).total() <= budget);
        options.n_context += 64;
        CHECK(plan(config, options, n_sequences).total() > budget);
      }
  CHECK(longest_context(config, {}, 1000) == 0);
}

TEST_CASE("quantised keys and values have no copy: but for them next to nothing grows with the context") {
  for (const auto type : {DType::int8, DType::int4})
    for (const auto kind : {CacheKind::contiguous, CacheKind::paged}) {
      const auto of = [&](std::int64_t n_context) {
        return plan(llama_like(), {.n_context = n_context, .n_threads = 2, .kv_type = type, .cache = kind});
      };
      const auto half = of(4096), whole = of(8192);
      const auto others = (whole.total() - whole.kv) - (half.total() - half.kv);
      const std::size_t copy_of_one_layer = 4096 * 2 * 3072 * sizeof(float);
      CHECK(others < copy_of_one_layer / 20);
    }
}

TEST_CASE("a session takes what the plan says") {
  for (const char* path : {"tiny/llama_gqa/model-f32.gguf", "tiny/mistral_swa", "tiny/gemma3/model-f32.gguf"})
    for (const auto kind : all_cache_kinds)
      for (const auto type : {KvTypes(DType::f16), KvTypes(DType::int8, DType::f32)})
        for (const int n_threads : {1, 2}) {
          const SessionOptions options{.n_context = 2000,
                                       .n_threads = n_threads,
                                       .kv_type = type,
                                       .cache = kind,
                                       .window = n_threads == 2 ? 70 : 0,
                                       .sinks = n_threads == 2 ? 4 : 0,
                                       .chunk = 100};
          const auto shared = model(data(path));
          INFO(path << ", " << cache_kind_name(kind) << ", " << type.name() << ", " << n_threads << " threads");
          const auto expected = plan(shared->config(), options);
          const auto before = n_bytes_wanted.load();
          Session session(shared, options);
          auto taken = std::size_t(n_bytes_wanted.load() - before);
          if (kind == CacheKind::paged)
            taken += expected.kv;  // comes with the tokens, up to
          else
            CHECK(session.kv_bytes() == expected.kv);
          // What is not in the plan: the session itself, the threads, what is read to learn how much memory there is.
          CHECK(taken >= expected.total());
          if (shared->config().rope.size() == 1)  // with several windows some memory is taken twice in turn
            CHECK(taken < expected.total() + 64'000);
        }
}
