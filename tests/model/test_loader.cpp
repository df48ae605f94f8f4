// Weights: both file formats give the same numbers in the same rows; missing, surplus and misshapen tensors are
// refused.
#include <catch2/catch.hpp>
#include <cmath>
#include <thread>

#include "tiny_llama.hpp"
#include "vitrine/core/block_decode.hpp"
#include "vitrine/core/error.hpp"
#include "vitrine/model/architecture.hpp"
#include "vitrine/model/loader.hpp"

using namespace testing;
using vitrine::Error;
using vitrine::LoadedModel;
using vitrine::LoadOptions;
using vitrine::PackedMatrix;

namespace {

std::vector<float> rows_of(const PackedMatrix& matrix) {
  std::vector<float> out(std::size_t(matrix.n_rows() * matrix.n_cols()));
  for (std::int64_t row = 0; row < matrix.n_rows(); ++row) matrix.decode_row(row, out.data() + row * matrix.n_cols());
  return out;
}

// Every value of a model by the name of its member.
std::vector<std::pair<std::string, std::vector<float>>> values_of(const LoadedModel& model) {
  const auto& weights = model.weights;
  std::vector<std::pair<std::string, std::vector<float>>> out = {{"token_embedding", rows_of(weights.token_embedding)},
                                                                 {"head", rows_of(weights.head())},
                                                                 {"final_norm", weights.final_norm}};
  for (std::size_t i = 0; i < weights.layers.size(); ++i) {
    const auto& layer = weights.layers[i];
    const auto add = [&](const char* name, std::vector<float> values) {
      out.emplace_back(std::to_string(i) + "." + name, std::move(values));
    };
    add("attention_norm", layer.attention_norm);
    add("attention_post_norm", layer.attention_post_norm);
    add("feed_forward_norm", layer.feed_forward_norm);
    add("feed_forward_post_norm", layer.feed_forward_post_norm);
    add("q_norm", layer.q_norm);
    add("k_norm", layer.k_norm);
    add("q_bias", layer.q_bias);
    add("k_bias", layer.k_bias);
    add("v_bias", layer.v_bias);
    add("wq", rows_of(layer.wq));
    add("wk", rows_of(layer.wk));
    add("wv", rows_of(layer.wv));
    add("wo", rows_of(layer.wo));
    add("w_gate", rows_of(layer.w_gate));
    add("w_up", rows_of(layer.w_up));
    add("w_down", rows_of(layer.w_down));
  }
  return out;
}

void check_equal(const LoadedModel& a, const LoadedModel& b) {
  const auto values_a = values_of(a), values_b = values_of(b);
  REQUIRE(values_a.size() == values_b.size());
  for (std::size_t i = 0; i < values_a.size(); ++i) {
    INFO(values_a[i].first);
    CHECK(values_a[i].second == values_b[i].second);
  }
}

std::string load_refusal(const GgufWriter& writer) {
  return refusal([&] { vitrine::load_gguf(parse_gguf(writer.file()), {.n_threads = 1}); });
}

}  // namespace

TEST_CASE("A model from safetensors and from GGUF has the same weights, row by row") {
  const std::string folder =
      GENERATE(as<std::string>(), "llama_mha", "llama_gqa", "llama_rope_llama3", "qwen2", "qwen3", "gemma3");
  INFO(folder);
  const auto a = vitrine::load_model_files(tiny / folder),
             b = vitrine::load_model_files(tiny / folder / "model-f32.gguf");
  check_equal(a, b);
  CHECK(a.weights.lm_head.empty() == a.config.tied_head);
  CHECK(a.weights.layers[0].q_norm.empty() == (folder != "qwen3" && folder != "gemma3"));
  CHECK(a.weights.layers[0].q_bias.empty() == (folder != "qwen2"));
  CHECK(a.weights.layers[0].attention_post_norm.empty() == (folder != "gemma3"));
  CHECK(a.weights.bytes() >= a.weights.token_embedding.bytes() + a.weights.lm_head.bytes());
}

TEST_CASE("Loaded rows are the file's own numbers") {
  // Straight from the safetensors file, without permutation: rows 0 and 3 of a key matrix, and Gemma's 1 + w.
  const auto file = vitrine::SafetensorsFile::open_folder(tiny / "llama_gqa");
  const auto* tensor = file.find_tensor("model.layers.1.self_attn.k_proj.weight");
  REQUIRE(tensor != nullptr);
  const auto model = vitrine::load_model_files(tiny / "llama_gqa" / "model-f32.gguf");
  for (const std::int64_t row : {0, 3, 31}) {
    std::vector<float> expected(64), got(64);
    std::memcpy(expected.data(), file.bytes(*tensor).data() + row * 64 * 4, 64 * 4);
    model.weights.layers[1].wk.decode_row(row, got.data());
    CHECK(got == expected);
  }
  const auto gemma_file = vitrine::SafetensorsFile::open_folder(tiny / "gemma3");
  const auto* norm = gemma_file.find_tensor("model.layers.2.self_attn.q_norm.weight");
  REQUIRE(norm != nullptr);
  std::vector<float> weights(16);
  std::memcpy(weights.data(), gemma_file.bytes(*norm).data(), 64);
  const auto gemma = vitrine::load_model_files(tiny / "gemma3");
  for (std::size_t i = 0; i < 16; ++i) CHECK(gemma.weights.layers[2].q_norm[i] == 1.0f + weights[i]);
}

TEST_CASE("Sharded F16 safetensors load, and hold the rounded numbers of the F32 model") {
  const auto half = vitrine::load_model_files(tiny / "qwen2_sharded_f16");
  const auto full = vitrine::load_model_files(tiny / "qwen2");
  CHECK(half.weights.layers[0].wq.type() == vitrine::DType::f16);
  const auto a = values_of(half), b = values_of(full);
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    INFO(a[i].first);
    REQUIRE(a[i].second.size() == b[i].second.size());
    for (std::size_t j = 0; j < a[i].second.size(); ++j)
      REQUIRE(std::abs(a[i].second[j] - b[i].second[j]) <= 1e-3f * std::abs(b[i].second[j]) + 1e-7f);
  }
}

TEST_CASE("Every GGUF of the test data loads, with any number of threads and by map or copy") {
  const auto file = GENERATE(as<std::string>(), "tiny/llama_gqa/model-f16.gguf", "tiny/llama_mha/model-bf16.gguf",
                             "quantmodel/llama256/model-Q4_0.gguf", "quantmodel/llama256/model-Q4_1.gguf",
                             "quantmodel/llama256/model-Q4_K_M.gguf");
  INFO(file);
  const auto path = std::filesystem::path(VITRINE_TEST_DATA) / file;
  const auto one = vitrine::load_model_files(path, {.n_threads = 1});
  check_equal(one, vitrine::load_model_files(path, {.n_threads = 3}));
  check_equal(one, vitrine::load_model_files(path, {.n_threads = 2, .try_map = false}));
  CHECK(one.n_file_bytes == std::filesystem::file_size(path));

  // Against the plain decoder over the file's rows, un-permuted here by a formula of its own.
  const auto gguf = vitrine::GgufFile::open(path);
  const auto* tensor = gguf.find_tensor("blk.1.attn_q.weight");
  REQUIRE(tensor != nullptr);
  const auto n_cols = tensor->dims[0], head_dim = one.config.head_dim;
  const auto row_bytes = std::int64_t(tensor->n_bytes) / tensor->dims[1];
  std::vector<float> expected(static_cast<std::size_t>(n_cols)), got(static_cast<std::size_t>(n_cols));
  for (std::int64_t in_file = 0; in_file < tensor->dims[1]; ++in_file) {
    vitrine::decode_block_row(*tensor->dtype(), gguf.bytes(*tensor).data() + in_file * row_bytes, n_cols,
                              expected.data());
    const auto head = in_file / head_dim, pair = in_file % head_dim / 2, part = in_file % 2;
    one.weights.layers[1].wq.decode_row(head * head_dim + part * head_dim / 2 + pair, got.data());
    REQUIRE(got == expected);
  }
}

TEST_CASE("Progress is told in order, to the calling thread, up to the total, and can end the loading") {
  const auto caller = std::this_thread::get_id();
  std::int64_t last = -1, total = 0;
  LoadOptions options;
  options.progress = [&](const vitrine::ProgressEvent& event) {
    CHECK(std::this_thread::get_id() == caller);
    CHECK(event.phase == "load");
    CHECK(event.unit == "bytes");
    CHECK(event.done >= last);
    last = event.done;
    total = event.total;
  };
  vitrine::load_model_files(tiny / "qwen2", options);
  CHECK(last == total);
  CHECK(total > 400000);
  options.progress = [](const vitrine::ProgressEvent& event) {
    if (event.done > 0) throw std::runtime_error("enough");
  };
  CHECK_THROWS_WITH(vitrine::load_model_files(tiny / "qwen2", options), "enough");
}

TEST_CASE("Missing, surplus and misshapen tensors are refused by name") {
  REQUIRE(load_refusal(tiny_llama()).empty());
  for (const char* name :
       {"output_norm.weight", "blk.0.attn_q.weight", "blk.0.ffn_down.weight", "blk.0.attn_norm.weight"}) {
    CHECK_THAT(load_refusal(tiny_llama().remove_tensor(name)), Catch::Contains(name) && Catch::Contains("is missing"));
    CHECK_THAT(load_refusal(tiny_llama().remove_tensor(name).tensor(name, {48})),
               Catch::Contains(name) && Catch::Contains("expected shape [") && Catch::Contains("got [48]"));
  }
  CHECK_THAT(load_refusal(tiny_llama().remove_tensor("blk.0.ffn_up.weight").tensor("blk.0.ffn_up.weight", {24, 16})),
             Catch::Contains("expected shape [24, 16], got [16, 24]"));
  CHECK_THAT(load_refusal(tiny_llama().remove_tensor("blk.0.ffn_up.weight").tensor("blk.0.ffn_up.weight", {16, 24, 1})),
             Catch::Contains("got [1, 24, 16]"));
  CHECK_THAT(load_refusal(tiny_llama().tensor("blk.0.attn_q.bias", {16})),
             Catch::Contains("'blk.0.attn_q.bias'") && Catch::Contains("not expected"));
  CHECK_THAT(load_refusal(tiny_llama().tensor("blk.1.attn_norm.weight", {16})),
             Catch::Contains("'blk.1.attn_norm.weight'"));
  CHECK_THAT(load_refusal(tiny_llama().tensor("rope_factors_long.weight", {2})),
             Catch::Contains("'rope_factors_long.weight'"));
  CHECK_THAT(load_refusal(tiny_llama()
                              .remove_tensor("output_norm.weight")
                              .tensor("output_norm.weight", {16}, 24, std::string(16, 'x'))),
             Catch::Contains("'output_norm.weight'") && Catch::Contains("type I8 is not supported"));
  CHECK_THAT(load_refusal(tiny_llama().set_u32("llama.block_count", 4096)),
             Catch::Contains("'blk.1.attn_norm.weight' is missing"));
  CHECK_NOTHROW(vitrine::check_model_tensors(parse_gguf(tiny_llama().file())));
}

TEST_CASE("A folder without a model is refused by what is missing") {
  const TemporaryFolder folder;
  const auto refused = [&] {
    try {
      vitrine::load_model_files(folder.path);
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  CHECK_THAT(refused(), Catch::Contains("config.json: cannot open"));
  std::filesystem::copy(tiny / "llama_gqa" / "config.json", folder.path / "config.json");
  CHECK_THAT(refused(), Catch::Contains("expected *.safetensors files"));
  std::filesystem::copy(tiny / "llama_gqa" / "model.safetensors", folder.path / "any-name.safetensors");
  CHECK(refused().empty());
  CHECK_NOTHROW(vitrine::load_model_files(folder.path / "any-name.safetensors"));
  std::filesystem::resize_file(folder.path / "any-name.safetensors", 4000);
  CHECK_THAT(refused(), Catch::Contains("truncated"));
  for (const int n : {-1, 1025})
    CHECK_THROWS_WITH(vitrine::load_model_files(tiny / "llama_gqa", {.n_threads = n}),
                      Catch::Contains("n_threads: expected 1 to 1024, or 0 for all, got " + std::to_string(n)));
}
