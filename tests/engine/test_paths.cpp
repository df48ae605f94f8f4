// One rule says what a path means, for weights and tokenizer alike.
#include "model/gguf_writer.hpp"
#include "support/bits.hpp"
#include "vitrine/text/load_tokenizer.hpp"

using namespace support;

namespace {

struct Seen {
  std::vector<Token> tokens;
  std::vector<float> logits;
};

Seen see(const Model& model) {
  Seen seen{model.tokenizer().encode("One rule for both, 1 + 1."), {}};
  Session session(std::shared_ptr<const Model>(std::shared_ptr<void>(), &model), {.n_threads = 1});
  seen.logits = copy(session.prefill(seen.tokens));
  return seen;
}

// The message of the Error of a kind that `path` gives.
std::string refusal(const fs::path& path, ErrorKind kind, const LoadOptions& options = {}) {
  try {
    Model::load(path, options);
  } catch (const Error& error) {
    CHECK(error.kind() == kind);
    return error.what();
  }
  FAIL("expected an Error, got none");
  return {};
}

using Catch::Matchers::Contains;

}  // namespace

TEST_CASE("a folder may be named by itself or by a file in it") {
  for (const char* name : {"tiny/llama_gqa", "tiny/qwen2_sharded_f16", "tiny/mistral_swa"}) {
    const auto expected = see(*Model::load(data(name)));
    for (const auto& entry : fs::directory_iterator(data(name))) {
      const auto& path = entry.path();
      if (path.extension() != ".safetensors" && path.extension() != ".json") continue;
      INFO(path);
      const auto seen = see(*Model::load(path));
      CHECK(seen.tokens == expected.tokens);
      CHECK(same_bits(seen.logits, expected.logits));
      if (path.extension() == ".safetensors" || path.filename() == "config.json" || path.stem().extension() == ".index")
        CHECK(load_tokenizer(path).encode("One rule for both, 1 + 1.") == expected.tokens);
    }
  }
}

TEST_CASE("a GGUF file may have any name") {
  const testing::TemporaryFolder folder;
  const auto original = data("tiny/llama_gqa/model-f32.gguf");
  const auto expected = see(*Model::load(original));
  for (const char* name : {"MODEL.GGUF", "sha256-0123abcd", "model.gguf.part", "model.bin"}) {
    INFO(name);
    const auto path = folder.path / name;
    fs::copy_file(original, path);
    const auto seen = see(*Model::load(path));
    CHECK(seen.tokens == expected.tokens);
    CHECK(same_bits(seen.logits, expected.logits));
    CHECK(load_tokenizer(path).encode("One rule for both, 1 + 1.") == expected.tokens);
  }
}

TEST_CASE("a tokenizer's file by itself is that tokenizer") {
  for (const char* name : {"tokenizers/bpe_gpt2/tokenizer.json", "tokenizers/spm_llama/tokenizer.model"}) {
    INFO(name);
    const auto path = data(name);
    const EncodeOptions plain{.add_special = false};
    CHECK(load_tokenizer(path).encode("by itself", plain) ==
          load_tokenizer(path.parent_path()).encode("by itself", plain));
  }
}

TEST_CASE("what is no model, or lacks its tokenizer, is refused before weights are read") {
  const testing::TemporaryFolder folder;
  bool weights_were_read = false;
  const LoadOptions options{.n_threads = 1, .progress = [&](const ProgressEvent&) { weights_were_read = true; }};
  testing::write_file(folder.path / "notes.txt", "no model at all, but a few words that somebody wrote");
  CHECK_THAT(refusal(folder.path / "notes.txt", ErrorKind::bad_file, options), Contains("not a GGUF file"));
  CHECK_THAT(refusal(folder.path / "absent", ErrorKind::io, options), Contains("absent"));
  for (const char* name : {"config.json", "model.safetensors"})
    fs::copy_file(data("tiny/llama_gqa") / name, folder.path / name);
  CHECK_THAT(refusal(folder.path, ErrorKind::io, options), Contains("neither tokenizer.json nor tokenizer.model"));
  CHECK_THAT(refusal(folder.path / "model.safetensors", ErrorKind::io, options), Contains("neither tokenizer.json"));
  testing::write_file(folder.path / "tokenizer.json", "{");
  CHECK_THAT(refusal(folder.path, ErrorKind::bad_file, options), Contains("tokenizer.json"));
  CHECK_FALSE(weights_were_read);
  fs::copy_file(data("tiny/llama_gqa/tokenizer.json"), folder.path / "tokenizer.json",
                fs::copy_options::overwrite_existing);
  Model::load(folder.path, options);
  CHECK(weights_were_read);
}
