// Configurations: the same from both forms of config.json and from GGUF; what is wrong or not understood is refused by
// name.
#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tiny_llama.hpp"
#include "vitrine/core/error.hpp"
#include "vitrine/model/architecture.hpp"

using namespace testing;
using vitrine::Error;
using vitrine::ErrorKind;
using vitrine::HfConfig;
using vitrine::ModelConfig;
using vitrine::RopeScaling;

namespace {

ModelConfig from_json(const std::string& folder, const char* file) {
  return vitrine::config_from_hf(HfConfig::open(tiny / folder / file));
}

void check_equal(const ModelConfig& a, const ModelConfig& b) {
  CHECK(a.architecture == b.architecture);
  CHECK(a.n_layer == b.n_layer);
  CHECK(a.n_head == b.n_head);
  CHECK(a.n_kv_head == b.n_kv_head);
  CHECK(a.head_dim == b.head_dim);
  CHECK(a.d_model == b.d_model);
  CHECK(a.d_ff == b.d_ff);
  CHECK(a.n_vocab == b.n_vocab);
  CHECK(a.n_context == b.n_context);
  CHECK(a.norm_eps == b.norm_eps);
  CHECK(a.attention_scale == b.attention_scale);
  CHECK(a.embedding_scale == b.embedding_scale);
  CHECK(a.tied_head == b.tied_head);
  CHECK(a.activation == b.activation);
  REQUIRE(a.rope.size() == b.rope.size());
  for (std::size_t i = 0; i < a.rope.size(); ++i) CHECK(a.rope[i].theta == b.rope[i].theta);
  REQUIRE(a.layers.size() == b.layers.size());
  for (std::size_t i = 0; i < a.layers.size(); ++i) {
    CHECK(a.layers[i].window == b.layers[i].window);
    CHECK(a.layers[i].rope == b.layers[i].rope);
  }
}

std::string gguf_refusal(const GgufWriter& writer) {
  return refusal([&] { vitrine::config_from_gguf(parse_gguf(writer.file())); });
}

}  // namespace

TEST_CASE("Both forms of config.json say the same, and GGUF as well") {
  const std::string folder = GENERATE(as<std::string>(), "llama_mha", "llama_gqa", "llama_rope_llama3", "qwen2",
                                      "qwen2_sharded_f16", "qwen3", "mistral_swa", "gemma3");
  INFO(folder);
  const ModelConfig v5 = from_json(folder, "config.json"), v4 = from_json(folder, "config_v4.json");
  check_equal(v5, v4);
  for (std::size_t i = 0; i < v5.rope.size(); ++i) {
    CHECK(v5.rope[i].scaling == v4.rope[i].scaling);
    CHECK(v5.rope[i].factor == v4.rope[i].factor);
  }
  if (std::filesystem::exists(tiny / folder / "model-f32.gguf"))
    check_equal(v5, vitrine::read_config(tiny / folder / "model-f32.gguf"));
}

TEST_CASE("The tiny models are what they are said to be") {
  const auto mha = from_json("llama_mha", "config.json");
  CHECK(mha.n_head == 4);
  CHECK(mha.n_kv_head == 4);
  CHECK(mha.norm_eps == 0.02f);
  CHECK_FALSE(mha.tied_head);
  CHECK(mha.attention_scale == 0.25f);
  const auto gqa = from_json("llama_gqa", "config.json");
  CHECK(gqa.n_kv_head == 2);
  CHECK(gqa.tied_head);
  CHECK(gqa.rope[0].theta == 1e5f);
  const auto scaled = from_json("llama_rope_llama3", "config_v4.json");
  CHECK(scaled.rope[0].scaling == RopeScaling::llama3);
  CHECK(scaled.rope[0].factor == 8.0f);
  CHECK(scaled.rope[0].high_freq_factor == 4.0f);
  CHECK(scaled.rope[0].original_context == 32);
  CHECK(vitrine::read_config(tiny / "llama_rope_llama3" / "model-f32.gguf").rope[0].frequency_divisors.size() == 8);
  CHECK(from_json("qwen3", "config.json").head_dim == 32);
  const auto mistral = from_json("mistral_swa", "config.json");
  for (const auto& layer : mistral.layers) CHECK(layer.window == 8);
  const auto gemma = from_json("gemma3", "config_v4.json");
  CHECK(gemma.embedding_scale == float(std::sqrt(48.0)));
  CHECK(gemma.activation == vitrine::GateActivation::gelu_tanh);
  CHECK(gemma.rope[std::size_t(gemma.layers[5].rope)].theta == 1e6f);
  CHECK(gemma.rope[std::size_t(gemma.layers[6].rope)].theta == 1e4f);
  CHECK(gemma.layers[5].window == 0);
  CHECK(gemma.layers[6].window == 8);
}

TEST_CASE("Hyper-parameters that are zero, absurd or contradictory are refused by key") {
  REQUIRE(gguf_refusal(tiny_llama()).empty());
  const auto with = [](const char* key, std::uint32_t value) { return gguf_refusal(tiny_llama().set_u32(key, value)); };
  CHECK_THAT(with("llama.attention.head_count", 0), Catch::Contains("llama.attention.head_count is 0"));
  CHECK_THAT(with("llama.attention.head_count_kv", 0), Catch::Contains("llama.attention.head_count_kv is 0"));
  CHECK_THAT(with("llama.block_count", 0), Catch::Contains("llama.block_count is 0"));
  CHECK_THAT(with("llama.block_count", 1u << 31), Catch::Contains("llama.block_count is 2147483648"));
  CHECK_THAT(with("llama.context_length", 0), Catch::Contains("llama.context_length is 0"));
  CHECK_THAT(with("llama.embedding_length", 0), Catch::Contains("llama.embedding_length is 0"));
  CHECK_THAT(with("llama.feed_forward_length", 0), Catch::Contains("llama.feed_forward_length is 0"));
  CHECK_THAT(with("llama.attention.head_count_kv", 3), Catch::Contains("head_count_kv is 3"));
  CHECK_THAT(with("llama.attention.head_count", 7), Catch::Contains("llama.attention.head_count is 7"));
  CHECK_THAT(with("llama.attention.key_length", 5), Catch::Contains("value_length") || Catch::Contains("even"));
  CHECK_THAT(with("llama.attention.value_length", 8), Catch::Contains("llama.attention.value_length is 8"));
  CHECK_THAT(with("llama.rope.dimension_count", 2), Catch::Contains("rope.dimension_count is 2"));
  CHECK_THAT(with("llama.vocab_size", 11), Catch::Contains("llama.vocab_size is 11"));
  auto writer = tiny_llama();
  CHECK_THAT(gguf_refusal(writer.u32("llama.embedding_length2", 1)), Catch::Contains("llama.embedding_length2"));
  CHECK_THAT(gguf_refusal(tiny_llama().remove("llama.block_count").text("llama.block_count", "1")),
             Catch::Contains("llama.block_count") && Catch::Contains("expected an integer, got STRING"));
  CHECK_THAT(gguf_refusal(tiny_llama().remove("llama.context_length")),
             Catch::Contains("'llama.context_length' is missing"));
  CHECK_THAT(gguf_refusal(tiny_llama().strings("tokenizer.ggml.tokens", {"a", "b"})),
             Catch::Contains("tokenizer.ggml.tokens has 2 entries"));
  CHECK_THAT(gguf_refusal(tiny_llama().remove_tensor("token_embd.weight")),
             Catch::Contains("'token_embd.weight' is missing"));
  CHECK_THAT(gguf_refusal(GgufWriter()), Catch::Contains("'general.architecture' is missing"));
  CHECK_THAT(gguf_refusal(tiny_llama().f32("llama.rope.freq_base", -1)), Catch::Contains("rope.freq_base is -1"));
  CHECK_THAT(gguf_refusal(tiny_llama().f32("llama.rope.freq_base", 1e-40f)), Catch::Contains("expected at least 1"));
  CHECK_THAT(gguf_refusal(tiny_llama().f32("llama.rope.freq_base", NAN)), Catch::Contains("rope.freq_base is nan"));
}

TEST_CASE("GGUF features that would change the results are refused by name") {
  CHECK_THAT(gguf_refusal(GgufWriter().text("general.architecture", "mamba")),
             Catch::Contains("architecture 'mamba'") && Catch::Contains("llama, qwen2, qwen3, gemma3"));
  CHECK_THAT(gguf_refusal(tiny_llama().text("llama.rope.scaling.type", "yarn")), Catch::Contains("RoPE type 'yarn'"));
  CHECK_THAT(gguf_refusal(tiny_llama().u32("llama.attention.sliding_window", 8)),
             Catch::Contains("llama.attention.sliding_window"));
  CHECK_THAT(gguf_refusal(tiny_llama().u32("llama.expert_count", 4)), Catch::Contains("llama.expert_count"));
  CHECK_THAT(gguf_refusal(tiny_llama().f32("llama.final_logit_softcapping", 30)),
             Catch::Contains("llama.final_logit_softcapping"));
  CHECK_THAT(gguf_refusal(tiny_llama().f32("llama.logit_scale", 2)), Catch::Contains("llama.logit_scale"));
  CHECK_THAT(gguf_refusal(tiny_llama().boolean("llama.attention.causal", false)), Catch::Contains("causal"));
  CHECK_THAT(gguf_refusal(tiny_llama().tensor("rope_freqs.weight", {3})), Catch::Contains("rope_freqs.weight"));
  CHECK(gguf_refusal(tiny_llama().u32("llama.expert_count", 0)).empty());
  CHECK(gguf_refusal(tiny_llama().text("llama.rope.scaling.type", "none")).empty());
}

TEST_CASE("Linear RoPE scaling is read from GGUF in its three spellings") {
  auto stated = tiny_llama();
  stated.text("llama.rope.scaling.type", "linear").f32("llama.rope.scaling.factor", 4);
  for (const auto& writer :
       {stated, tiny_llama().f32("llama.rope.scaling.factor", 4), tiny_llama().f32("llama.rope.scale_linear", 4)}) {
    const auto config = vitrine::config_from_gguf(parse_gguf(writer.file()));
    CHECK(config.rope[0].scaling == RopeScaling::linear);
    CHECK(config.rope[0].factor == 4.0f);
  }
}

TEST_CASE("Gemma 3's windows, bases and scale as GGUF states them") {
  const auto gemma = [](std::uint32_t n_layer) {
    GgufWriter writer;
    writer.text("general.architecture", "gemma3").u32("gemma3.block_count", n_layer).u32("gemma3.context_length", 64);
    writer.u32("gemma3.embedding_length", 64)
        .u32("gemma3.feed_forward_length", 8)
        .u32("gemma3.attention.head_count", 4);
    writer.u32("gemma3.attention.key_length", 8).u32("gemma3.attention.value_length", 8);
    writer.f32("gemma3.attention.layer_norm_rms_epsilon", 1e-6f).f32("gemma3.rope.freq_base", 1e6f);
    return writer.u32("gemma3.attention.sliding_window", 16).tensor("token_embd.weight", {64, 10});
  };
  const auto config_of = [](const GgufWriter& writer) { return vitrine::config_from_gguf(parse_gguf(writer.file())); };
  const auto windows = [&](const GgufWriter& writer) {
    std::string text;
    for (const auto& layer : config_of(writer).layers) text += layer.window == 16 ? 'w' : layer.window == 0 ? '-' : '?';
    return text;
  };
  CHECK(windows(gemma(13)) == "wwwww-wwwww-w");
  CHECK(windows(gemma(7).u32("gemma3.attention.sliding_window_pattern", 3)) == "ww-ww-w");
  const auto pattern = Bytes().number(7u).number(std::uint64_t{3}).raw(std::string_view("\1\0\1", 3)).data;
  CHECK(windows(gemma(3).value("gemma3.attention.sliding_window_pattern", vitrine::GgufType::array, pattern)) == "w-w");
  CHECK_THAT(gguf_refusal(gemma(4).value("gemma3.attention.sliding_window_pattern", vitrine::GgufType::array, pattern)),
             Catch::Contains("expected 4 BOOL, got 3"));
  CHECK_THAT(gguf_refusal(gemma(4).remove("gemma3.attention.sliding_window")),
             Catch::Contains("sliding_window' is missing"));

  auto scaled = config_of(gemma(7).text("gemma3.rope.scaling.type", "linear").f32("gemma3.rope.scaling.factor", 8));
  CHECK(scaled.rope[std::size_t(scaled.layers[5].rope)].factor == 8.0f);
  CHECK(scaled.rope[std::size_t(scaled.layers[5].rope)].theta == 1e6f);
  CHECK(scaled.rope[std::size_t(scaled.layers[4].rope)].scaling == RopeScaling::none);
  CHECK(scaled.rope[std::size_t(scaled.layers[4].rope)].theta == 1e4f);
  const auto other_base = config_of(gemma(7).f32("gemma3.rope.freq_base_swa", 500));
  CHECK(other_base.rope[std::size_t(other_base.layers[0].rope)].theta == 500.0f);
  CHECK(config_of(gemma(7)).attention_scale == float(1 / std::sqrt(8.0)));
  CHECK(config_of(gemma(62)).attention_scale == 0.25f);  // the 27B: d_model / n_head, not the size of a head
  CHECK(config_of(gemma(7)).embedding_scale == 8.0f);
}

TEST_CASE("config.json that is wrong or not understood is refused by key") {
  struct Case {
    const char *folder, *key, *value, *message;
  };
  const Case cases[] = {
      {"llama_mha", "model_type", "\"mamba\"", "architecture 'mamba' (model_type)"},
      {"llama_mha", "attention_bias", "true", "attention_bias"},
      {"llama_mha", "mlp_bias", "true", "mlp_bias"},
      {"llama_mha", "hidden_act", "\"relu\"", "'relu' is not supported"},
      {"llama_mha", "quantization_config", R"({"bits": 4})", "quantization_config"},
      {"llama_mha", "architectures", R"(["LlamaForSequenceClassification"])", "LlamaForSequenceClassification"},
      {"llama_mha", "num_hidden_layers", "0", "num_hidden_layers is 0"},
      {"llama_mha", "num_hidden_layers", "1e300", "expected an integer"},
      {"llama_mha", "num_attention_heads", "\"4\"", "expected an integer, got the string '4'"},
      {"llama_mha", "num_key_value_heads", "3", "num_key_value_heads is 3"},
      {"llama_mha", "hidden_size", "null", "'hidden_size' is missing"},
      {"llama_mha", "rms_norm_eps", "0", "rms_norm_eps is 0"},
      {"llama_mha", "vocab_size", "-5", "vocab_size is -5"},
      {"llama_mha", "rope_parameters", R"({"rope_type": "yarn", "factor": 2})", "RoPE type 'yarn'"},
      {"llama_mha", "rope_parameters", R"({"type": "dynamic", "factor": 2})", "RoPE type 'dynamic'"},
      {"llama_mha", "rope_parameters", R"({"factor": 2})", "rope_parameters.rope_type"},
      {"llama_mha", "rope_parameters", R"({"rope_type": "linear"})", "'rope_parameters.factor' is missing"},
      {"llama_mha", "rope_parameters", R"({"rope_type": "default", "mrope_section": [1]})", "mrope_section"},
      {"llama_mha", "rope_parameters", R"({"rope_type": "default", "partial_rotary_factor": 0.5})", "partial_rotary"},
      {"llama_mha", "partial_rotary_factor", "0.5", "partial_rotary_factor"},
      {"qwen2", "layer_types", R"(["full_attention"])", "layer_types has 1 entries"},
      {"qwen2", "layer_types", R"(["full_attention", "linear_attention", "full_attention"])", "linear_attention"},
      {"qwen2", "layer_types", R"(["full_attention", "sliding_attention", "full_attention"])", "no sliding_window"},
      {"qwen3", "attention_bias", "true", "attention_bias"},
      {"gemma3", "final_logit_softcapping", "30.0", "final_logit_softcapping"},
      {"gemma3", "attn_logit_softcapping", "30.0", "attn_logit_softcapping"},
      {"gemma3", "use_bidirectional_attention", "true", "use_bidirectional_attention"},
      {"gemma3", "hidden_activation", "\"gelu\"", "'gelu' is not supported"},
      {"gemma3", "model_type", "\"gemma3\"", "architecture 'gemma3'"},
  };
  for (const auto& wrong : cases) {
    INFO(wrong.folder << ": " << wrong.key << " = " << wrong.value);
    auto json = nlohmann::json::parse(read_file(tiny / wrong.folder / "config.json"));
    json[wrong.key] = nlohmann::json::parse(wrong.value);
    const auto message = refusal([&] { vitrine::config_from_hf(HfConfig::parse(json.dump(), "config.json")); });
    CHECK_THAT(message, Catch::Contains(wrong.message));
  }
}

TEST_CASE("Windows of Qwen follow use_sliding_window and max_window_layers") {
  auto json = nlohmann::json::parse(read_file(tiny / "qwen2" / "config.json"));
  json["use_sliding_window"] = true;
  json["sliding_window"] = 16;
  json["max_window_layers"] = 1;
  json.erase("layer_types");
  const auto config = vitrine::config_from_hf(HfConfig::parse(json.dump(), "config.json"));
  CHECK(config.layers[0].window == 0);
  CHECK(config.layers[1].window == 16);
  CHECK(config.layers[2].window == 16);
  json["use_sliding_window"] = false;
  CHECK(vitrine::config_from_hf(HfConfig::parse(json.dump(), "config.json")).layers[2].window == 0);
}

TEST_CASE("JSON is read strictly") {
  const auto parse = [](const std::string& text) { return refusal([&] { HfConfig::parse(text, "config.json"); }); };
  CHECK_THAT(parse("{\"a\": 1, \"a\": 2}"), Catch::Contains("duplicate key 'a'"));
  CHECK_THAT(parse("{\"a\": 'b'}"), Catch::Contains("no valid JSON at byte 7 of 10"));
  for (const char* cut : {"{\"a\": ", "{\"a\": tru", "{\"a\": \"b", "{\"a\": 1", "[1, "})
    CHECK_THAT(parse(cut), Catch::Contains("cut off after " + std::to_string(std::string(cut).size()) + " bytes"));
  for (const char* more : {"{\"a\": 1} {", "{\"a\": 1} x", "{\"a\": 1} }", "{\"a\": 1} ,", "{\"a\": 1} \x01"})
    CHECK_THAT(parse(more), Catch::Contains("expected nothing after the JSON, got more at byte 10 of 10"));
  CHECK_THAT(parse("[1]"), Catch::Contains("expected a JSON object, got array"));
  for (const char* empty : {"", " \n"}) CHECK_THAT(parse(empty), Catch::Contains("expected JSON, got an empty file"));
  CHECK_THAT(parse(std::string(100000, '[')), Catch::Contains("nests deeper"));
  CHECK_THAT(parse("{\"a\": 1e999}"), Catch::Contains("out of range"));
  CHECK(parse("{\"a\": {\"b\": 1}, \"c\": {\"b\": 1}}").empty());
}
