// The invariant on the two real models, and their golden hashes.
#include <sstream>

#include "support/bits.hpp"
#include "support/json.hpp"
#include "vitrine/engine/engine.hpp"

using namespace support;

namespace {

std::vector<Token> prompt_of(const char* file, const char* name) {
  const auto reference = read_json(data(std::string("real/") + file));
  for (const auto& prompt : reference["prompts"])
    if (prompt["name"] == name) return tokens(prompt["input_ids"]);
  FAIL("no prompt " << name << " in " << file);
  return {};
}

struct Real {
  const char* file;
  const char* fixture;
};
const std::vector<Real> reals = {{smollm2_file, "smollm2.json"}, {gemma3_file, "gemma3.json"}};

}  // namespace

TEST_CASE("real models: chunks of 1, 7, 16 and all, 1 and 2 threads, each instruction set: the same bits") {
  const auto& real = GENERATE(from_range(reals));
  INFO(real.file);
  const auto shared = real_model(real.file);
  if (!shared) return;
  const auto prompt = prompt_of(real.fixture, "korean");
  const auto n_prompt = std::int64_t(prompt.size());
  REQUIRE(n_prompt > 16);
  REQUIRE(n_prompt <= 256);
  const Isa widest = available_isas().back();
  const auto whole = run(shared, prompt, 4, {.n_threads = 2, .chunk = 256, .isa = widest});
  CHECK(whole.n_passes == 1 + 4);
  for (const auto isa : available_isas()) {
    if (isa == Isa::scalar) continue;  // below
    for (const std::int64_t chunk : {1, 7, 16, 256}) {
      for (const int n_threads : {1, 2}) {
        if (isa == widest && chunk == 256 && n_threads == 2) continue;  // `whole` itself
        INFO(isa_name(isa) << ", chunk " << chunk << ", threads " << n_threads);
        const auto other = run(shared, prompt, 4, {.n_threads = n_threads, .chunk = chunk, .isa = isa});
        CHECK(other.isa == isa_name(isa));
        CHECK(other.n_threads == n_threads);
        CHECK(other.n_passes == (n_prompt + chunk - 1) / chunk + 4);
        CHECK(first_difference(whole, other) == -1);
      }
    }
  }
}

TEST_CASE("real models: a prompt of three spans of keys, chunks of 100 and 256, 1 and 2 threads: the same bits") {
  const auto& real = GENERATE(from_range(reals));
  INFO(real.file);
  const auto shared = real_model(real.file);
  if (!shared) return;
  const auto prompt = prompt_of(real.fixture, "long_english");
  const auto n_prompt = std::int64_t(prompt.size());
  REQUIRE(n_prompt > 2 * attention_span);
  const auto alone = run(shared, prompt, 4, {.n_threads = 1, .chunk = 256});
  const auto chunked = run(shared, prompt, 4, {.n_threads = 2, .chunk = 100});
  CHECK(alone.n_passes == (n_prompt + 255) / 256 + 4);
  CHECK(chunked.n_passes == (n_prompt + 99) / 100 + 4);
  CHECK(alone.n_threads != chunked.n_threads);
  CHECK(first_difference(alone, chunked) == -1);
}

TEST_CASE("real models: every type of cache, with chunks, threads, instruction sets and recomputing: the same bits") {
  const auto& real = GENERATE(from_range(reals));
  INFO(real.file);
  const auto shared = real_model(real.file);
  if (!shared) return;
  const auto prompt = prompt_of(real.fixture, "korean");
  const auto n_prompt = std::int64_t(prompt.size());
  const DType types[] = {DType::f32, DType::f16, DType::bf16, DType::int8, DType::int4};
  std::int64_t chunk = 5;  // each pair of types meets another way of running
  std::size_t n_runs = 0;
  for (const auto k : types) {
    for (const auto v : types) {
      const KvTypes kv_type(k, v);
      if (kv_type == KvTypes(DType::f16)) continue;  // above and below
      const auto isa = available_isas()[available_isas().size() - 1 - n_runs % (available_isas().size() - 1)];
      const int n_threads = 1 + int(n_runs % 2);
      INFO("cache " << kv_type.name() << ", chunk " << chunk << ", " << n_threads << " threads, " << isa_name(isa));
      const auto whole = run(shared, prompt, 3, {.n_threads = 2, .kv_type = kv_type, .chunk = 256});
      const auto other =
          run(shared, prompt, 3, {.n_threads = n_threads, .kv_type = kv_type, .chunk = chunk, .isa = isa});
      CHECK(other.n_passes == (n_prompt + chunk - 1) / chunk + 3);
      CHECK(first_difference(whole, other) == -1);
      if (n_runs % 4 == 0) {
        const auto uncached = run(shared, prompt, 3, {.n_threads = 2, .kv_type = kv_type, .use_cache = false});
        CHECK(uncached.n_pass_tokens == 4 * n_prompt + 6);
        CHECK(first_difference(whole, uncached) == -1);
      }
      chunk = chunk * 3 % 37 + 1;
      ++n_runs;
    }
  }
  CHECK(n_runs == 24);
}

TEST_CASE("real models: the scalar kernels give the same bits for 8 tokens") {
  const auto& real = GENERATE(from_range(reals));
  INFO(real.file);
  const auto shared = real_model(real.file);
  if (!shared) return;
  auto prompt = prompt_of(real.fixture, "korean");
  prompt.resize(6);
  const auto scalar = run(shared, prompt, 2, {.n_threads = 2, .isa = Isa::scalar});
  CHECK(scalar.isa == "scalar");
  CHECK(scalar.n_passes == 1 + 2);
  for (const auto isa : available_isas()) {
    if (isa == Isa::scalar) continue;
    INFO(isa_name(isa));
    const auto other = run(shared, prompt, 2, {.n_threads = 2, .isa = isa});
    CHECK(other.isa == isa_name(isa));
    CHECK(first_difference(scalar, other) == -1);
  }
}

TEST_CASE("real models: recomputing everything gives the same bits at each step, on each instruction set") {
  const auto& real = GENERATE(from_range(reals));
  INFO(real.file);
  const auto shared = real_model(real.file);
  if (!shared) return;
  const auto prompt = prompt_of(real.fixture, "chat_english");
  const auto n_prompt = std::int64_t(prompt.size());
  const auto cached = run(shared, prompt, 6, {.n_threads = 2, .isa = available_isas().back()});
  CHECK(cached.n_pass_tokens == n_prompt + 6);
  for (const auto isa : available_isas()) {
    if (isa == Isa::scalar) continue;  // slow; above, and with tiny models
    INFO(isa_name(isa));
    const auto uncached = run(shared, prompt, 6, {.n_threads = 2, .use_cache = false, .isa = isa});
    CHECK(uncached.isa == isa_name(isa));
    CHECK(uncached.n_pass_tokens == 7 * n_prompt + 6 * 7 / 2);
    CHECK(first_difference(cached, uncached) == -1);
  }
}

TEST_CASE("real models: kinds of storage, types of the cache, chunks and threads, in pairs: the same bits") {
  const auto& real = GENERATE(from_range(reals));
  INFO(real.file);
  const auto shared = real_model(real.file);
  if (!shared) return;
  const auto prompt = prompt_of(real.fixture, "long_english");
  struct Way {
    KvTypes kv_type;
    CacheKind cache;
    std::int64_t chunk;
    int n_threads;
  };
  constexpr auto contiguous = CacheKind::contiguous, paged = CacheKind::paged, ring = CacheKind::ring;
  const KvTypes f32 = DType::f32, f16 = DType::f16, bf16 = DType::bf16, int8 = DType::int8, int4 = DType::int4;
  // Every two values of two columns stand in a row together, but for the first of each type.
  const std::vector<Way> ways = {{f32, paged, 256, 2}, {f32, ring, 33, 1},   {f16, paged, 33, 1},   {f16, ring, 256, 2},
                                 {bf16, paged, 33, 2}, {bf16, ring, 256, 1}, {int8, paged, 256, 1}, {int8, ring, 33, 2},
                                 {int4, paged, 33, 2}, {int4, ring, 256, 1}};
  for (const auto& type : {f32, f16, bf16, int8, int4}) {
    const auto expected = run(shared, prompt, 3, {.n_threads = 2, .kv_type = type, .cache = contiguous, .chunk = 100});
    for (const auto& way : ways) {
      if (way.kv_type != type) continue;
      INFO(type.name() << ", " << cache_kind_name(way.cache) << ", chunk " << way.chunk << ", " << way.n_threads
                       << " threads");
      const auto other =
          run(shared, prompt, 3, {.n_threads = way.n_threads, .kv_type = type, .cache = way.cache, .chunk = way.chunk});
      CHECK(first_difference(expected, other) == -1);
    }
  }
}

TEST_CASE("real models: a prefix that was kept, and a session that was saved, give the same bits") {
  const auto& real = GENERATE(from_range(reals));
  INFO(real.file);
  const auto shared = real_model(real.file);
  if (!shared) return;
  const auto prompt = prompt_of(real.fixture, "long_english");
  Session plain(shared, {.n_context = 2048, .n_threads = 2});
  const auto expected = copy(plain.prefill(prompt));
  const auto prefixes = std::make_shared<PrefixCache>(*shared, PrefixOptions{});
  for (int request = 0; request < 2; ++request) {
    Session session(shared,
                    {.n_context = 2048, .n_threads = 2, .cache = CacheKind::paged, .prefixes = prefixes, .chunk = 100});
    CHECK(same_bits(session.prefill(prompt), expected));
    const auto whole_blocks = std::int64_t(prompt.size()) / 64 * 64;
    CHECK(session.n_cached_tokens() == (request == 0 ? 0 : std::min(whole_blocks, std::int64_t(prompt.size()) - 1)));
  }
  std::stringstream file;
  plain.save(file);
  Session restored(shared, {.n_context = 2048, .n_threads = 1});
  restored.load(file);
  CHECK(same_bits(restored.decode(11), plain.decode(11)));
}

TEST_CASE("golden hashes of the logits of the real models") {
  const auto path = data("golden/real.json");
  const bool record = std::getenv("VITRINE_RECORD_GOLDEN") != nullptr;
  nlohmann::json golden = record ? nlohmann::json::object() : read_json(path);
  for (const auto& real : reals) {
    const auto shared = real_model(real.file);
    if (!shared) return;
    struct Kept {
      const char *name, *suffix;
      DType kv_type = DType::f16;
    };
    for (const auto& [name, suffix, kv_type] :
         {Kept{"chat_english", ""}, Kept{"korean", ""}, Kept{"long_english", ""},
          Kept{"long_english", " INT8", DType::int8}, Kept{"long_english", " INT4", DType::int4}}) {
      const auto key = std::string(real.file) + " " + name + suffix;
      INFO(key);
      std::ostringstream value;
      value << std::hex << hash(run(shared, prompt_of(real.fixture, name), 8, {.n_threads = 2, .kv_type = kv_type}));
      if (record)
        golden[key] = value.str();
      else
        CHECK(golden.value(key, "not recorded") == value.str());
    }
  }
  if (record) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << golden.dump(1) << "\n";
  }
}

// The model with its head in planes, or null as real_model() gives it.
static std::shared_ptr<const Model> model_in_planes(const std::string& file) {
  const auto path = testing::real_model(file);
  return path ? Model::load(*path, {.head_in_planes = true}) : nullptr;
}

TEST_CASE("real models: the largest logits alone are those of all, and the low plane of the head stays unread") {
  const auto& real = GENERATE(from_range(reals));
  INFO(real.file);
  const auto shared = model_in_planes(real.file);
  if (!shared) return;
  REQUIRE(shared->weights().head().in_planes());
  const auto whole = real_model(real.file);
  REQUIRE(!whole->weights().head().in_planes());
  const bool gemma = real.file == gemma3_file;
  for (const auto isa : available_isas())
    for (const std::int64_t n_top : {1, 40}) {
      const std::int64_t n_steps = isa == Isa::scalar ? 3 : 24;  // that one takes its time
      auto prompt = prompt_of(real.fixture, "korean");
      if (isa == Isa::scalar) prompt.resize(5);
      SessionOptions options{
          .n_context = std::int64_t(prompt.size()) + 32, .n_threads = 1, .crowding = Crowding::ignore};
      options.isa = isa;
      Session all(whole, options);
      options.n_threads = 2 + int(n_top > 1);
      Session few(shared, options);
      INFO(isa_name(isa) << ", the " << n_top << " largest");
      auto expected = copy(all.prefill(prompt));
      CHECK(same_bits(expected, few.prefill(prompt)));
      for (std::int64_t step = 0; step < n_steps; ++step) {
        const auto token = best(expected);
        const auto got = few.decode_top(token, n_top);
        expected = copy(all.decode(token));
        auto sorted = expected;
        std::nth_element(sorted.begin(), sorted.begin() + (n_top - 1), sorted.end(), std::greater<>());
        std::vector<float> kept = expected, found = copy(got);
        for (std::size_t i = 0; i < kept.size(); ++i)
          if (kept[i] < sorted[std::size_t(n_top - 1)]) kept[i] = found[i] = 0;
        CHECK(same_bits(kept, found));
        CHECK(best(got) == best(expected));
        CHECK(all_finite(kernels(isa), got));
      }
      const auto counts = few.top_counts();
      CHECK(all.top_counts().n_steps == 0);
      CHECK(counts.n_steps + counts.n_left_out == n_steps);
      if (gemma || n_top == 1) CHECK(5 * counts.n_panels_completed < counts.n_panels);
      if (gemma) CHECK(counts.n_steps == n_steps);
    }
}

// Of tokens, not of bits: the deliberate fault may leave them alone.
TEST_CASE("real models: generated tokens are the same with and without the short way to the largest logits",
          "[control]") {
  const auto& real = GENERATE(from_range(reals));
  INFO(real.file);
  const auto shared = model_in_planes(real.file);
  if (!shared) return;
  const auto prompt = prompt_of(real.fixture, "korean");
  for (const SamplingOptions& sampling : {SamplingOptions{.temperature = 0},
                                          SamplingOptions{.temperature = 0.9, .top_k = 40, .top_p = 0.95, .seed = 3}}) {
    const GenerateOptions options{.sampling = sampling, .max_new_tokens = 32};
    Session with(shared, {.n_context = 512, .n_threads = 2}), without(shared, {.n_context = 512, .top_logits = false});
    const auto expected = generate(without, prompt, options, go_on);
    CHECK(generate(with, prompt, options, go_on).tokens == expected.tokens);
    CHECK(with.top_counts().n_steps > 0);
    CHECK(without.top_counts().n_steps == 0);
    auto asked = options;
    asked.log_probabilities = 2;
    Session logs(shared, {.n_context = 512, .n_threads = 2});
    CHECK(generate(logs, prompt, asked, go_on).tokens == expected.tokens);
    CHECK(logs.top_counts().n_steps == 0);
    Engine engine(shared, {.n_context = 512});
    CHECK(engine.submit(prompt, options).wait().tokens == expected.tokens);
  }
}
