// The two real models: what their headers say, that their weights load, and what that costs in memory.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <string>

#include "support/real_models.hpp"
#include "vitrine/core/block_decode.hpp"
#include "vitrine/model/architecture.hpp"
#include "vitrine/model/loader.hpp"

using namespace testing;

namespace {

// A line such as "VmHWM:  123 kB" of /proc/self/status, in bytes.
double status_bytes(const std::string& key) {
  std::ifstream in("/proc/self/status");
  for (std::string word; in >> word;) {
    double kilobytes = 0;
    if (word == key + ":" && in >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

// Rows of a packed matrix against the plain decoder over the file.
void check_rows(const vitrine::GgufFile& file, const char* name, const vitrine::PackedMatrix& matrix, bool interleaved,
                std::int64_t head_dim) {
  const auto* tensor = file.find_tensor(name);
  REQUIRE(tensor != nullptr);
  const auto n_cols = tensor->dims[0], n_rows = tensor->dims[1];
  std::vector<float> expected(static_cast<std::size_t>(n_cols)), got(static_cast<std::size_t>(n_cols));
  for (std::int64_t row = 0; row < n_rows; row += row < 64 ? 1 : 97) {
    vitrine::decode_block_row(*tensor->dtype(),
                              file.bytes(*tensor).data() + row * (std::int64_t(tensor->n_bytes) / n_rows), n_cols,
                              expected.data());
    const auto within = row % head_dim;
    const auto packed = interleaved ? row - within + within / 2 + within % 2 * (head_dim / 2) : row;
    matrix.decode_row(packed, got.data());
    REQUIRE(got == expected);
  }
}

}  // namespace

TEST_CASE("SmolLM2's header") {
  const auto path = real_model(smollm2);
  if (!path) return;
  const auto config = vitrine::read_config(*path);
  CHECK(config.architecture == "llama");
  CHECK(config.n_layer == 30);
  CHECK(config.n_head == 9);
  CHECK(config.n_kv_head == 3);
  CHECK(config.head_dim == 64);
  CHECK(config.d_model == 576);
  CHECK(config.d_ff == 1536);
  CHECK(config.n_vocab == 49152);
  CHECK(config.n_context == 8192);
  CHECK(config.rope[0].theta == 1e5f);
  CHECK(config.attention_scale == 0.125f);
  CHECK(config.tied_head);
}

TEST_CASE("Gemma 3's header") {
  const auto path = real_model(gemma3);
  if (!path) return;
  const auto config = vitrine::read_config(*path);
  CHECK(config.architecture == "gemma3");
  CHECK(config.n_layer == 18);
  CHECK(config.n_kv_head == 1);
  CHECK(config.head_dim == 256);
  CHECK(config.n_vocab == 262144);
  CHECK(config.embedding_scale == float(std::sqrt(640.0)));
  CHECK(config.attention_scale == 0.0625f);
  for (std::size_t i = 0; i < 18; ++i) {
    const bool is_global = i == 5 || i == 11 || i == 17;
    CHECK(config.layers[i].window == (is_global ? 0 : 512));
    CHECK(config.rope[std::size_t(config.layers[i].rope)].theta == (is_global ? 1e6f : 1e4f));
  }
}

TEST_CASE("The real models load within the memory of file and weights, and keep only the weights") {
  const std::string name = GENERATE(as<std::string>(), smollm2, gemma3);
  INFO(name);
  const auto path = real_model(name);
  if (!path) return;
  const double before = status_bytes("VmRSS");
  reset_peak();
  const auto model = vitrine::load_model_files(*path);
  const double peak = status_bytes("VmHWM") - before, after = status_bytes("VmRSS") - before;
  const double file = double(model.n_file_bytes), weights = double(model.weights.bytes());
  CHECK(weights <= 1.02 * file);
  CHECK(peak <= file + weights);
  CHECK(after <= 1.15 * file);
  CHECK(model.notices.empty());

  const auto gguf = vitrine::GgufFile::open(*path);
  const bool interleaved = model.config.architecture == "llama";
  check_rows(gguf, "token_embd.weight", model.weights.token_embedding, false, 1);
  check_rows(gguf, "blk.7.attn_q.weight", model.weights.layers[7].wq, interleaved, model.config.head_dim);
  check_rows(gguf, "blk.7.attn_k.weight", model.weights.layers[7].wk, interleaved, model.config.head_dim);
  check_rows(gguf, "blk.7.attn_v.weight", model.weights.layers[7].wv, false, 1);
  check_rows(gguf, "blk.7.ffn_down.weight", model.weights.layers[7].w_down, false, 1);
}

TEST_CASE("Reading a header does not read the weights") {
  const auto path = real_model(gemma3);
  if (!path) return;
  const double before = status_bytes("VmRSS");
  const auto file = vitrine::GgufFile::open(*path);
  vitrine::check_model_tensors(file);
  CHECK(file.strings("tokenizer.ggml.tokens").size() == 262144);
  CHECK(status_bytes("VmRSS") - before < 48e6);  // tokens and scores are in the header; the weights are 240 MB
}
