// What a model's folder says about special tokens is checked wherever it stands.
#include <filesystem>
#include <random>

#include "model/gguf_writer.hpp"
#include "text_tools.hpp"

using namespace vitrine;
using namespace text_tools;

namespace {

// What is said of a folder with a good tokenizer and this config.json or generation_config.json.
std::string refused(const std::string& file, const std::string& content) {
  namespace fs = std::filesystem;
  const auto folder = fs::temp_directory_path() / ("vitrine_folder_" + std::to_string(std::random_device{}()));
  fs::create_directories(folder);
  testing::write_file(folder / "tokenizer.json", read_text("tokenizers/bpe_qwen2/tokenizer.json"));
  testing::write_file(folder / file, content);
  std::string message;
  try {
    load_tokenizer(folder);
  } catch (const Error& error) {
    message = error.what();
  }
  fs::remove_all(folder);
  return message;
}

}  // namespace

TEST_CASE("special tokens of config.json and generation_config.json are ids of the vocabulary") {
  const std::string known = std::to_string(load_tokenizer(data("tokenizers/bpe_qwen2")).n_vocab() - 1);
  for (const std::string file : {"config.json", "generation_config.json"})
    for (const std::string key : {"bos_token_id", "eos_token_id"}) {
      CHECK(refused(file, "{\"" + key + "\": 5}").empty());
      CHECK(refused(file, "{\"" + key + "\": null}").empty());
      for (const std::string id : {"-1", "2147483648", "9999"})
        CHECK_THAT(refused(file, "{\"" + key + "\": " + id + "}"),
                   Catch::EndsWith(file + ": " + key + " is " + id + ", expected 0 to " + known));
    }
  // Also where another file has said before which token it is.
  CHECK_THAT(refused("config.json", R"({"bos_token_id": [5, -1]})"), Catch::Contains("bos_token_id is -1"));
}

TEST_CASE("what is wrong with a JSON file is said of that file") {
  CHECK_THAT(refused("config.json", ""), Catch::EndsWith("config.json: expected JSON, got an empty file"));
  CHECK_THAT(refused("config.json", "{} {"), Catch::EndsWith("after the JSON, got more at byte 4 of 4"));
  CHECK_THAT(refused("tokenizer_config.json", "{\"a\": "), Catch::Contains("g.json: the JSON is cut off"));
}

TEST_CASE("rows that no file of this size could fill are refused before memory is taken for them") {
  for (const char* rows : {"268435455", "2000000"})
    CHECK_THAT(refused("config.json", "{\"vocab_size\": " + std::string(rows) + "}"),
               Catch::Contains("too few for an embedding (vocab_size) of " + std::string(rows) + " rows"));
  CHECK(refused("config.json", "{\"vocab_size\": 100000}").empty());
}
