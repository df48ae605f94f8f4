// What a model's folder says about special tokens is checked wherever it stands; chat templates are found wherever they
// are kept.
#include <filesystem>
#include <random>

#include "model/gguf_writer.hpp"
#include "text_tools.hpp"
#include "vitrine/text/chat_template.hpp"

using namespace vitrine;
using namespace text_tools;

namespace {

// What `use` makes of a folder with a good tokenizer and these files.
template <class Use>
auto with_folder(const std::vector<std::pair<std::string, std::string>>& files, const Use& use) {
  namespace fs = std::filesystem;
  const auto folder = fs::temp_directory_path() / ("vitrine_folder_" + std::to_string(std::random_device{}()));
  const struct Remove {
    ~Remove() { fs::remove_all(folder); }
    const fs::path& folder;
  } remove{folder};
  fs::create_directories(folder / "additional_chat_templates");
  testing::write_file(folder / "tokenizer.json", read_text("tokenizers/bpe_qwen2/tokenizer.json"));
  for (const auto& [name, content] : files) testing::write_file(folder / name, content);
  return use(folder);
}

// What is said of a folder with a good tokenizer and this config.json or generation_config.json.
std::string refused(const std::string& file, const std::string& content) {
  return with_folder({{file, content}}, [](const auto& folder) -> std::string {
    try {
      load_tokenizer(folder);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  });
}

// Metadata with a tokenizer of one token and these texts by key.
Tokenizer gguf_tokenizer(const std::vector<std::pair<std::string, std::string>>& texts) {
  testing::Bytes body;
  const auto key = [&](const std::string& name, GgufType type) -> testing::Bytes& {
    return body.text(name).number(std::uint32_t(type));
  };
  key("tokenizer.ggml.model", GgufType::string).text("gpt2");
  key("tokenizer.ggml.pre", GgufType::string).text("gpt-2");
  key("tokenizer.ggml.tokens", GgufType::array)
      .number(std::uint32_t(GgufType::string))
      .number(std::uint64_t(1))
      .text("a");
  key("tokenizer.ggml.merges", GgufType::array).number(std::uint32_t(GgufType::string)).number(std::uint64_t(0));
  for (const auto& [name, value] : texts) key(name, GgufType::string).text(value);
  testing::Bytes whole;
  whole.raw("GGUF").number(std::uint32_t(3)).number(std::uint64_t(0)).number(std::uint64_t(4 + texts.size()));
  whole.raw(body.data);
  whole.data.resize((whole.data.size() + 31) / 32 * 32);
  return tokenizer_from_gguf(testing::parse_gguf(whole.data));
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

TEST_CASE("chat templates are found wherever a model keeps them") {
  const std::string one = R"({"chat_template": "one {{ eos_token }}", "eos_token": "<|im_end|>"})",
                    several = R"({"chat_template": [{"name": "tool_use", "template": "tools"},
                                                    {"name": "default", "template": "default"}]})";
  using Files = std::vector<std::pair<std::string, std::string>>;
  const auto told = [](const Files& files, const std::string& name = {}) {
    return with_folder(files, [&](const auto& folder) {
      const ChatTemplate chat(load_tokenizer(folder));
      std::string names;
      for (const auto& each : chat.names()) names += each + ": ";
      return names + chat.render({.messages = chat_messages({}), .template_name = name}).text;
    });
  };
  CHECK(told({{"tokenizer_config.json", one}}) == "one <|im_end|>");
  CHECK(told({{"tokenizer_config.json", several}}) == "tool_use: default");
  CHECK(told({{"tokenizer_config.json", several}}, "tool_use") == "tool_use: tools");
  // The file of its own is newer than the one in the configuration, and is what transformers takes.
  CHECK(told({{"tokenizer_config.json", one}, {"chat_template.jinja", "own\n"}}) == "own");
  CHECK(told({{"chat_template.jinja", "own"}, {"additional_chat_templates/rag.jinja", "of rag"}}, "rag") ==
        "rag: of rag");
  const std::string none = error_of([&] { told({}); });
  CHECK_THAT(none, Catch::Contains("has no chat template"));
  CHECK_THAT(error_of([&] { told({{"chat_template.jinja", "{% nonsense %}"}}); }), Catch::Contains("nonsense"));
  CHECK_THAT(error_of([&] {
               told({{"tokenizer_config.json", R"({"chat_template": 7})"}});
             }),
             Catch::Contains("tokenizer_config.json: chat_template"));

  const std::string key = "tokenizer.chat_template";
  const ChatTemplate named(gguf_tokenizer({{key, "plain"}, {key + ".tool_use", "tools"}, {key + ".rag", "rag"}}));
  CHECK(named.names() == std::vector<std::string>{"tool_use", "rag"});
  CHECK(named.source() == "plain");
  CHECK(named.source("rag") == "rag");
  CHECK(named.render({.messages = chat_messages({}), .tools = jinja::Value::list({1})}).text == "tools");
  CHECK_THAT(error_of([&] { ChatTemplate ignored(gguf_tokenizer({})); }), Catch::Contains("has no chat template"));
}
