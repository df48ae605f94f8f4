// The tiny models against Hugging Face transformers: logits at every given position, hidden states, greedy
// continuation.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "support/json.hpp"
#include "support/models.hpp"

using namespace support;

namespace {

struct Case {
  std::string folder;
  std::string file;       // within the folder; "" is the folder itself (safetensors)
  std::string reference;  // JSON with the expected numbers
};

// Every file of tests/data/tiny. F16 and BF16 files are compared with a reference made of the same weights, which
// stands beside them; all others with the folder's.
const std::vector<Case> cases = [] {
  std::vector<Case> found;
  for (const auto& folder : tiny_folders()) {
    found.push_back({folder, "", "reference.json"});
    for (const auto& entry : fs::directory_iterator(data("tiny/" + folder))) {
      if (entry.path().extension() != ".gguf") continue;
      const auto own = entry.path().stem().string() + ".reference.json";
      const bool has_own = fs::exists(entry.path().parent_path() / own);
      found.push_back({folder, entry.path().filename().string(), has_own ? own : "reference.json"});
    }
  }
  return found;
}();
constexpr double tolerance = 1e-4;  // of max |logit|

fs::path path_of(const Case& c) {
  const auto folder = data("tiny/" + c.folder);
  return c.file.empty() ? folder : folder / c.file;
}

}  // namespace

TEST_CASE("the files of tiny models are found") {
  CHECK(cases.size() >= 16);
  for (const char* file : {"model-f16.gguf", "model-bf16.gguf"})
    CHECK(std::any_of(cases.begin(), cases.end(),
                      [&](const Case& c) { return c.file == file && c.reference != "reference.json"; }));
}

TEST_CASE("logits of tiny models equal the reference at every position") {
  const auto& c = GENERATE(from_range(cases));
  INFO(c.folder << "/" << c.file);
  const auto reference = read_json(data("tiny/" + c.folder) / c.reference);
  const auto shared = model(path_of(c));
  for (const auto& prompt : reference["prompts"]) {
    const auto ids = tokens(prompt["input_ids"]);
    INFO("prompt of " << ids.size() << " tokens");
    Session session(shared, {.n_threads = 2, .kv_type = DType::f32});
    session.prefill_logits(ids, [&](std::int64_t position, std::span<const float> logits) {
      INFO("position " << position);
      const auto best = std::max_element(logits.begin(), logits.end());
      const auto top_ids = tokens(prompt["top5_ids"][std::size_t(position)]);
      const auto top_logits = floats(prompt["top5_logits"][std::size_t(position)]);
      const auto largest = std::abs(
          *std::max_element(logits.begin(), logits.end(), [](float a, float b) { return std::abs(a) < std::abs(b); }));
      CHECK(best - logits.begin() == prompt["argmax"][std::size_t(position)].get<std::int64_t>());
      for (std::size_t i = 0; i < top_ids.size(); ++i)
        CHECK(std::abs(logits[std::size_t(top_ids[i])] - top_logits[i]) <= tolerance * largest);
      if (position + 1 < std::int64_t(ids.size())) return;
      const auto expected = floats(prompt["last_logits"]);
      REQUIRE(expected.size() == logits.size());
      float worst = 0;
      for (std::size_t i = 0; i < expected.size(); ++i) worst = std::max(worst, std::abs(logits[i] - expected[i]));
      CHECK(worst <= tolerance * largest);
    });
  }
}

TEST_CASE("greedy continuation of tiny models equals the reference") {
  const auto& c = GENERATE(from_range(cases));
  INFO(c.folder << "/" << c.file);
  const auto reference = read_json(data("tiny/" + c.folder) / c.reference);
  for (const auto& prompt : reference["prompts"]) {
    Session session(model(path_of(c)), {.n_threads = 1, .kv_type = DType::f32});
    const auto result = generate(session, tokens(prompt["input_ids"]),
                                 {.sampling = {.temperature = 0}, .max_new_tokens = 16, .ignore_end = true},
                                 [](const GeneratedToken&) { return true; });
    const auto expected = tokens(prompt["greedy_16"]);
    const auto margins = floats(prompt["greedy_margins"]);
    REQUIRE(result.tokens.size() == expected.size());
    for (std::size_t i = 0; i < expected.size() && margins[i] >= 1e-3f; ++i) CHECK(result.tokens[i] == expected[i]);
  }
}

TEST_CASE("safetensors and GGUF of one model give the same bits") {
  std::size_t n_compared = 0;
  for (const auto& folder : tiny_folders()) {
    const auto root = data("tiny/" + folder);
    if (!fs::exists(root / "model-f32.gguf")) continue;
    INFO(folder);
    ++n_compared;
    const auto ids = tokens(read_json(root / "reference.json")["prompts"][1]["input_ids"]);
    Session from_folder(model(root), {.n_threads = 1}), from_gguf(model(root / "model-f32.gguf"), {.n_threads = 1});
    const auto a = from_folder.prefill(ids), b = from_gguf.prefill(ids);
    REQUIRE(a.size() == b.size());
    CHECK(std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
  }
  CHECK(n_compared >= 6);
}

TEST_CASE("hidden states seen by the observer equal the reference layer by layer") {
  const auto& c = GENERATE(from_range(cases));
  INFO(c.folder << "/" << c.file);
  const auto reference = read_json(data("tiny/" + c.folder) / c.reference);
  const auto& prompt = reference["prompts"][0];
  const auto& expected = prompt["hidden_states"];
  std::size_t n_compared = 0;
  const auto compare = [&](const std::string& name, TensorView<const float, 2> value) {
    const auto entry = std::find_if(expected.begin(), expected.end(), [&](const auto& e) { return e["name"] == name; });
    if (entry == expected.end()) return;
    INFO(name);
    ++n_compared;
    const auto norms = floats((*entry)["l2_per_position"]);
    const auto first8 = floats((*entry)["last_position_first8"]);
    const auto n_rows = value.size(0);
    for (std::int64_t t = 0; t < n_rows; ++t) {
      double sum = 0;
      for (const float v : value.row(t)) sum += double(v) * v;
      const auto norm = norms[norms.size() - std::size_t(n_rows) + std::size_t(t)];
      CHECK(std::abs(std::sqrt(sum) - norm) <= 1e-4 * norm);
    }
    for (std::size_t i = 0; i < first8.size(); ++i)
      CHECK(value(n_rows - 1, std::int64_t(i)) == Approx(first8[i]).margin(1e-4 * norms.back()).epsilon(0));
  };
  SessionOptions options{.n_threads = 2, .kv_type = DType::f32};
  options.trace = [&](const TraceEvent& event) {
    if (event.name == "embedding") compare("embeddings", event.value);
    if (event.name == "layer_output") compare("layer_" + std::to_string(event.layer), event.value);
    if (event.name == "final_norm") compare("final_norm", event.value);
  };
  Session session(model(path_of(c)), options);
  session.prefill(tokens(prompt["input_ids"]));
  CHECK(n_compared == expected.size());
}

TEST_CASE("quantised files stay as near to their own weights as 8-bit activations allow") {
  const auto* type = GENERATE("Q4_0", "Q4_1", "Q4_K_M");
  INFO(type);
  const auto root = data("quantmodel/llama256");
  const auto reference = read_json(root / (std::string("model-") + type + ".reference.json"));
  for (const auto& prompt : reference["prompts"]) {
    Session session(model(root / (std::string("model-") + type + ".gguf")), {.n_threads = 2, .kv_type = DType::f32});
    const auto logits = session.prefill(tokens(prompt["input_ids"]));
    const auto expected = floats(prompt["last_logits"]);
    REQUIRE(expected.size() == logits.size());
    float worst = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) worst = std::max(worst, std::abs(logits[i] - expected[i]));
    CHECK(worst < 0.5f);   // the logits spread by about 3.4; other engines' 8-bit activations move them by up to 0.45
    CHECK(worst > 1e-4f);  // else this file was not computed in 8 bits
  }
}
