// Golden hashes of logits: the bits that every machine and every instruction set must give, recorded once.
//
// A run is a prompt of 40 tokens and 8 greedy steps; keys that end in 600 are runs of 600 tokens and 3 steps, where
// attention adds up three spans of keys. To record anew after a change of the arithmetic version
// (and only then): VITRINE_RECORD_GOLDEN=1 test_invariant "golden*", which writes the file instead of comparing.
#include "support/bits.hpp"
#include "support/json.hpp"

using namespace support;

namespace {

constexpr const char* files[] = {
    "tiny/llama_mha/model-f32.gguf",       "tiny/llama_mha/model-bf16.gguf",
    "tiny/llama_gqa/model-f16.gguf",       "tiny/llama_rope_llama3/model-f32.gguf",
    "tiny/qwen2/model-f32.gguf",           "tiny/qwen2_sharded_f16",
    "tiny/qwen3/model-f32.gguf",           "tiny/mistral_swa",
    "tiny/gemma3/model-f32.gguf",          "quantmodel/llama256/model-Q4_0.gguf",
    "quantmodel/llama256/model-Q4_1.gguf", "quantmodel/llama256/model-Q4_K_M.gguf",
};

std::string hex(std::uint64_t value) {
  std::ostringstream out;
  out << std::hex << value;
  return out.str();
}

// One run for each model and type of the cache; keys are "<file> <type><suffix>".
void compare_all(std::int64_t n_prompt, std::int64_t n_steps, const std::vector<DType>& types,
                 const std::string& suffix) {
  const auto path = data("golden/tiny.json");
  const bool record = std::getenv("VITRINE_RECORD_GOLDEN") != nullptr;
  nlohmann::json golden = record && !fs::exists(path) ? nlohmann::json::object() : read_json(path);
  int n_compared = 0;
  for (const char* file : files) {
    if (!is_wanted(file)) continue;
    ++n_compared;
    const auto shared = model(data(file));
    std::vector<Token> prompt;
    for (std::int64_t i = 0; i < n_prompt; ++i) prompt.push_back(Token((i * 104729 + 7) % shared->config().n_vocab));
    for (const auto type : types) {
      const auto key = std::string(file) + " " + kv_type_name(type) + suffix;
      INFO(key);
      const auto value = hex(hash(run(shared, prompt, n_steps, {.n_threads = 2, .kv_type = type})));
      if (record)
        golden[key] = value;
      else
        CHECK(golden.value(key, "not recorded") == value);
    }
  }
  CHECK(n_compared > 0);
  if (record) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << golden.dump(1) << "\n";
  }
}

}  // namespace

TEST_CASE("every tiny model has golden hashes", "[control]") {
  CHECK(tiny_folders_not_in({std::begin(files), std::end(files)}) == std::vector<std::string>{});
}

TEST_CASE("golden hashes of the logits of tiny models") {
  compare_all(40, 8, {DType::f32, DType::f16, DType::bf16, DType::int8, DType::int4}, "");
}

TEST_CASE("golden hashes of the logits of tiny models after 600 tokens") {
  compare_all(600, 3, {DType::f16, DType::int8}, " 600");
}
