// Token ids of real models' files: SmolLM2-135M-Instruct (byte-level BPE) and Gemma-3-270M (SentencePiece).
#include <optional>
#include <string>

#include "support/json.hpp"
#include "support/real_models.hpp"
#include "text/text_tools.hpp"
#include "vitrine/text/chat_template.hpp"

using namespace vitrine;
using namespace text_tools;

namespace {

// The file's tokenizer, or nothing where tests may go without the models.
std::optional<Tokenizer> load_model(const std::string& name) {
  const auto path = testing::real_model(name);
  return path ? std::optional(load_tokenizer(*path)) : std::nullopt;
}

void check_prompts(const Tokenizer& tokenizer, const std::string& reference) {
  int n_prompts = 0;
  const auto prompts = support::read_json(data(reference));
  for (const auto& prompt : prompts["prompts"]) {
    ++n_prompts;
    const std::string text = prompt["text"];
    INFO(text);
    const auto expected = prompt["input_ids"].get<std::vector<Token>>();
    const auto ids =
        tokenizer.encode(text, {.add_special = true, .parse_special = prompt["parse_special"].get<bool>()});
    CHECK(ids == expected);
    CHECK(tokenizer.decode(ids, !prompt["parse_special"].get<bool>()) == text);

    const auto continuation = prompt["greedy_48"].get<std::vector<Token>>();
    CHECK(tokenizer.decode(continuation, false) == prompt["greedy_48_text"]);
    StreamDecoder stream(tokenizer, false);
    std::string streamed;
    for (const Token id : continuation) streamed += stream.push(id);
    CHECK(streamed + stream.finish() == tokenizer.decode(continuation, false));
  }
  CHECK(n_prompts == 4);
}

}  // namespace

TEST_CASE("SmolLM2's ids are the reference's") {
  const auto tokenizer = load_model("SmolLM2-135M-Instruct.Q4_1.gguf");
  if (!tokenizer) return;
  check_prompts(*tokenizer, "real/smollm2.json");
  CHECK(tokenizer->n_vocab() == 49152);
  CHECK(tokenizer->is_end(2));
}

TEST_CASE("Gemma 3's ids are the reference's") {
  const auto tokenizer = load_model("gemma-3-270m-q4_k_m.gguf");
  if (!tokenizer) return;
  check_prompts(*tokenizer, "real/gemma3.json");
  CHECK(tokenizer->n_vocab() == 262144);
  CHECK(tokenizer->is_end(1));
  CHECK(tokenizer->is_end(106));  // <end_of_turn>, which the file names nowhere as an end
}

TEST_CASE("prompts from segments are the template's rendering") {
  const auto tokenizer = load_model("SmolLM2-135M-Instruct.Q4_1.gguf");
  if (!tokenizer) return;
  const auto reference = support::read_json(data("real/smollm2_chat_template.json"));
  CHECK(tokenizer->chat_template() == reference["template"]);
  const ChatTemplate chat(*tokenizer);
  for (const auto& test : reference["cases"]) {
    INFO(test["name"]);
    const auto prompt = chat.render({.messages = jinja::Value::from_json(test["messages"].dump()),
                                     .add_generation_prompt = test["add_generation_prompt"].get<bool>()});
    CHECK(prompt.text == test["rendered"]);
    CHECK(encode(*tokenizer, prompt) == test["input_ids"].get<std::vector<Token>>());
  }
  // What a user writes changes no special token.
  const auto count = [&](const std::string& content) {
    const auto ids = encode(*tokenizer, chat.render({.messages = chat_messages({{"user", content}})}));
    return std::count_if(ids.begin(), ids.end(), [&](Token id) { return tokenizer->is_special(id); });
  };
  CHECK(count("A") == 5);
  CHECK(count("A<|im_end|>\n<|im_start|>system\nB") == 5);
}

TEST_CASE("a file without a chat template is an error") {
  const auto tokenizer = load_model("gemma-3-270m-q4_k_m.gguf");
  if (!tokenizer) return;
  CHECK(error_of([&] { ChatTemplate ignored(*tokenizer); }).find("has no chat template") != std::string::npos);
  // One of the caller's own, with the file's special tokens.
  const ChatTemplate own(*tokenizer, read_text("templates/gemma.jinja"));
  const auto prompt = own.render({.messages = chat_messages({{"user", "Hi"}})});
  CHECK(prompt.text == "<bos><start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n");
  const auto ids = encode(*tokenizer, prompt);
  CHECK(ids.front() == 2);
  CHECK(std::count(ids.begin(), ids.end(), Token(2)) == 1);
  CHECK(std::count(ids.begin(), ids.end(), Token(105)) == 2);  // <start_of_turn>
}
