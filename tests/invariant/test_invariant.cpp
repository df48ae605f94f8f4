// The invariant on tiny models: a token's logits do not depend on how they were computed, not by one bit.
//
// `cmake/test.sh fault` sees each of these tests fail, in a build where one sum depends on what must not matter; but
// for those marked [control], which compare no bits.
#include <random>
#include <set>
#include <thread>

#include "support/bits.hpp"
#include "vitrine/cache/contiguous.hpp"
#include "vitrine/cache/paged.hpp"

using namespace support;

namespace {

struct TinyModel {
  const char* path;
  KvTypes kv_type;
};
// Every architecture, every element type of the cache, float and quantised weights, windows shorter than the prompt.
const std::vector<TinyModel> all_models = {
    {"tiny/llama_mha/model-bf16.gguf", DType::f16},
    {"tiny/llama_gqa/model-f16.gguf", DType::f32},
    {"tiny/llama_gqa", DType::bf16},
    {"tiny/llama_rope_llama3/model-f32.gguf", DType::f16},
    {"tiny/qwen2/model-f32.gguf", DType::f16},
    {"tiny/qwen2_sharded_f16", DType::f32},
    {"tiny/qwen3/model-f32.gguf", DType::bf16},
    {"tiny/mistral_swa", DType::f16},
    {"tiny/gemma3/model-f32.gguf", DType::f16},
    {"quantmodel/llama256/model-Q4_1.gguf", DType::f16},
    {"quantmodel/llama256/model-Q4_K_M.gguf", DType::f32},
    {"tiny/llama_mha/model-bf16.gguf", DType::int4},
    {"tiny/llama_gqa/model-f16.gguf", DType::int8},
    {"tiny/qwen2/model-f32.gguf", {DType::f16, DType::int4}},
    {"tiny/mistral_swa", {DType::int8, DType::int4}},
    {"tiny/gemma3/model-f32.gguf", DType::int8},
    {"quantmodel/llama256/model-Q4_K_M.gguf", {DType::int4, DType::bf16}},
};

const std::vector<TinyModel> models = [] {
  auto wanted = all_models;
  std::erase_if(wanted, [](const TinyModel& tiny) { return !is_wanted(tiny.path); });
  return wanted;
}();

constexpr std::int64_t n_steps = 16;

// Greedy steps by one thread, and by as many as each of `counts` says.
void compare_threads(const TinyModel& tiny, std::initializer_list<int> counts) {
  INFO(tiny.path << ", cache " << tiny.kv_type.name());
  const auto shared = model(data(tiny.path));
  const auto prompt = spread_tokens(*shared, 40);
  const auto one = run(shared, prompt, n_steps, {.n_threads = 1, .kv_type = tiny.kv_type});
  for (const int n_threads : counts) {
    INFO(n_threads << " threads");
    // That many threads really run here, and the session was given them.
    std::set<std::thread::id> ran;
    Team team(n_threads);
    team.run([&](Worker& worker) {
      for (int id = 0; id < worker.n_threads(); ++id) {
        if (worker.id() == id) ran.insert(std::this_thread::get_id());
        worker.sync();
      }
    });
    CHECK(ran.size() == std::size_t(n_threads));
    const auto several = run(shared, prompt, n_steps, {.n_threads = n_threads, .kv_type = tiny.kv_type});
    CHECK(several.n_threads == n_threads);
    CHECK(first_difference(one, several) == -1);
  }
}

}  // namespace

TEST_CASE("every tiny model is among those that are compared", "[control]") {
  std::vector<std::string> paths;
  for (const auto& tiny : all_models) paths.push_back(tiny.path);
  CHECK(tiny_folders_not_in(paths) == std::vector<std::string>{});
}

TEST_CASE("chunks: any chunk size from 1 to 40 gives the bits of one pass") {
  const auto& tiny = GENERATE(from_range(models));
  INFO(tiny.path << ", cache " << tiny.kv_type.name());
  const auto shared = model(data(tiny.path));
  const auto prompt = spread_tokens(*shared, 40);
  const auto whole = run(shared, prompt, 2, {.n_threads = 1, .kv_type = tiny.kv_type, .chunk = 40});
  CHECK(whole.n_passes == 1 + 2);
  for (std::int64_t chunk = 1; chunk < 40; ++chunk) {
    INFO("chunk " << chunk);
    const auto chunked = run(shared, prompt, 2, {.n_threads = 1, .kv_type = tiny.kv_type, .chunk = chunk});
    CHECK(chunked.n_passes == (40 + chunk - 1) / chunk + 2);  // the two sides did take different ways
    CHECK(first_difference(whole, chunked) == -1);
  }
}

TEST_CASE("chunks: 20 random splits give the bits of one pass") {
  const auto& tiny = GENERATE(from_range(models));
  INFO(tiny.path << ", cache " << tiny.kv_type.name());
  const auto shared = model(data(tiny.path));
  const auto prompt = spread_tokens(*shared, 40);
  const auto whole = run(shared, prompt, 1, {.n_threads = 1, .kv_type = tiny.kv_type});
  std::mt19937 random(7);
  for (int split = 0; split < 20; ++split) {
    std::vector<std::int64_t> pieces;
    for (std::int64_t left = 40; left > 0; left -= pieces.back())
      pieces.push_back(1 + std::int64_t(random() % std::uint64_t(std::min<std::int64_t>(left, 15))));
    INFO("split " << split << " into " << pieces.size());
    const auto pieced = run(shared, prompt, 1, {.n_threads = 1, .kv_type = tiny.kv_type}, pieces);
    CHECK(pieced.n_passes == std::int64_t(pieces.size()) + 1);
    CHECK(first_difference(whole, pieced) == -1);
  }
}

TEST_CASE("cache: recomputing everything gives the same bits at each of 16 steps") {
  const auto& tiny = GENERATE(from_range(models));
  INFO(tiny.path << ", cache " << tiny.kv_type.name());
  const auto shared = model(data(tiny.path));
  const auto prompt = spread_tokens(*shared, 40);
  const auto cached = run(shared, prompt, n_steps, {.n_threads = 1, .kv_type = tiny.kv_type});
  const auto uncached = run(shared, prompt, n_steps, {.n_threads = 1, .kv_type = tiny.kv_type, .use_cache = false});
  CHECK(cached.n_pass_tokens == 40 + n_steps);
  CHECK(uncached.n_pass_tokens == 40 + n_steps * 40 + n_steps * (n_steps + 1) / 2);
  CHECK(first_difference(cached, uncached) == -1);
}

TEST_CASE("threads: 1, 2 and 3 threads give the same bits") { compare_threads(GENERATE(from_range(models)), {2, 3}); }

// More threads than heads, than most machines of the suite have processors, and no divisor of any size.
TEST_CASE("threads: 7 and 16 threads give the bits of one") {
  compare_threads({"tiny/llama_gqa/model-f16.gguf", DType::f16}, {7, 16});
}

TEST_CASE("instruction sets: each one of this machine gives the bits of the scalar kernels") {
  const auto& tiny = GENERATE(from_range(models));
  INFO(tiny.path << ", cache " << tiny.kv_type.name());
  const auto shared = model(data(tiny.path));
  const auto prompt = spread_tokens(*shared, 40);
  SessionOptions options{.n_threads = 1, .kv_type = tiny.kv_type};
  options.isa = Isa::scalar;
  const auto scalar = run(shared, prompt, 8, options);
  CHECK(scalar.isa == "scalar");
  for (const auto isa : available_isas()) {
    INFO(isa_name(isa));
    options.isa = isa;
    const auto other = run(shared, prompt, 8, options);
    CHECK(other.isa == isa_name(isa));
    CHECK(first_difference(scalar, other) == -1);
  }
}

TEST_CASE("trace: being watched changes nothing") {
  const auto& tiny = GENERATE(from_range(models));
  INFO(tiny.path << ", cache " << tiny.kv_type.name());
  const auto shared = model(data(tiny.path));
  const auto prompt = spread_tokens(*shared, 40);
  SessionOptions options{.n_threads = 2, .kv_type = tiny.kv_type};
  const auto plain = run(shared, prompt, n_steps, options);
  std::int64_t n_events = 0;
  options.trace = [&](const TraceEvent&) { ++n_events; };
  const auto traced = run(shared, prompt, n_steps, options);
  CHECK(n_events >= (1 + n_steps) * (3 + 9 * shared->config().n_layer));
  CHECK(first_difference(plain, traced) == -1);
}

TEST_CASE("batch: sequences in one pass get the bits that each gets alone, whoever keeps their keys and values") {
  const auto& tiny = GENERATE(from_range(models));
  const bool paged = GENERATE(false, true);
  INFO(tiny.path << ", cache " << tiny.kv_type.name() << (paged ? ", paged" : ", contiguous"));
  const auto shared = model(data(tiny.path));
  const auto& transformer = shared->transformer();
  const auto all = spread_tokens(*shared, 40);
  // Four sequences of unequal lengths in one pass, in an order that is not theirs.
  const std::vector<std::vector<Token>> prompts = {{all.begin(), all.begin() + 12},
                                                   {all.begin() + 5, all.begin() + 8},
                                                   {all.begin(), all.end()},
                                                   {all.begin() + 20, all.begin() + 21}};
  std::vector<ContiguousCache> contiguous;
  std::vector<PagedCache> pages;
  const auto pool = std::make_shared<BlockPool>(transformer.kv_layout(tiny.kv_type), 4);
  std::vector<SequenceSlice> slices;
  std::vector<Token> batch_tokens;
  std::vector<std::int64_t> last_rows;
  contiguous.reserve(prompts.size());
  pages.reserve(prompts.size());
  for (const auto& prompt : prompts) {
    if (paged)
      pages.emplace_back(pool, 64).prepare(std::int64_t(prompt.size()));
    else
      contiguous.emplace_back(transformer.kv_layout(tiny.kv_type), 64);
    const auto& tables = paged ? pages.back().tables() : contiguous.back().tables();
    slices.push_back({&tables, 0, std::int64_t(batch_tokens.size()), std::int64_t(prompt.size())});
    batch_tokens.insert(batch_tokens.end(), prompt.begin(), prompt.end());
    last_rows.push_back(std::int64_t(batch_tokens.size()) - 1);
  }
  auto scratch = transformer.make_scratch(std::int64_t(batch_tokens.size()), 64, 2);
  Tensor<float, 2> logits({std::int64_t(prompts.size()), shared->config().n_vocab});
  Team team(2);
  std::int64_t n_ops = 0;
  const TraceObserver count = [&](const TraceEvent&) { ++n_ops; };
  REQUIRE(transformer.forward(team, kernels(), {batch_tokens, slices, last_rows}, scratch, logits.view(), &count, {}));
  std::int64_t n_ops_alone = 0;
  Session watched(shared, {.n_threads = 1, .trace = [&](const TraceEvent&) { ++n_ops_alone; }});
  watched.prefill(prompts[0]);
  CHECK(n_ops == n_ops_alone);  // so each weight is read once for all four
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    INFO("sequence " << i);
    const auto alone = run(shared, prompts[i], 0, {.n_threads = 1, .kv_type = tiny.kv_type});
    CHECK(same_bits(alone.logits[0], logits.view().row(std::int64_t(i))));
  }
}
