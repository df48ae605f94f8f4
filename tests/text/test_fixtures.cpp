// The reference's ids (tokenizers 0.23, sentencepiece 0.2) for every text of the fixtures, from each kind of file.
#include "support/json.hpp"
#include "text_tools.hpp"

using namespace vitrine;
using namespace text_tools;

TEST_CASE("ids and texts are the reference's, from tokenizer.json and tokenizer.model") {
  int n_cases = 0;
  const auto fixtures = support::read_json(data("tokenizers/cases.json"));
  for (const auto& fixture : fixtures["tokenizers"]) {
    const std::string name = fixture["name"], file = fixture["file"];
    const Tokenizer tokenizer = load_tokenizer(data("tokenizers/" + name + "/" + file));
    CHECK(tokenizer.n_vocab() == fixture["vocab_size"]);
    const bool parse_special = file == "tokenizer.json";  // as the fixtures were made
    for (const auto& test : fixture["cases"]) {
      ++n_cases;
      const std::string text = test["text"];
      INFO(name << ": " << text);
      const auto ids = parse_special ? parsed(tokenizer, text) : plain(tokenizer, text);
      CHECK(ids == test["ids"].get<std::vector<Token>>());
      CHECK(tokenizer.decode(ids, false) == test["decoded"]);
    }
  }
  CHECK(n_cases == 210);
}

TEST_CASE("GGUF files of the same tokenizers give the same ids") {
  const std::pair<const char*, const char*> models[] = {{"bpe_gpt2", "llama_gqa"},
                                                        {"bpe_llama3", "llama_rope_llama3"},
                                                        {"bpe_qwen2", "qwen2"},
                                                        {"spm_llama", "llama_mha"},
                                                        {"spm_gemma", "gemma3"}};
  const auto fixtures = support::read_json(data("tokenizers/cases.json"));
  for (const auto& [name, model] : models) {
    const Tokenizer tokenizer = load_tokenizer(data(std::string("tiny/") + model + "/model-f32.gguf"));
    for (const auto& fixture : fixtures["tokenizers"]) {
      if (fixture["name"] != name) continue;
      for (const auto& test : fixture["cases"]) {
        const std::string text = test["text"];
        INFO(model << ": " << text);
        // The converter makes Gemma's turn markers control tokens: found only when asked for.
        const bool marks = text.find("<start_of_turn>") != std::string::npos;
        const bool parse_special = std::string_view(name).substr(0, 3) == "bpe" || marks;
        if (std::string_view(name) == "spm_llama" && parse_special) continue;
        const auto ids = parse_special ? parsed(tokenizer, text) : plain(tokenizer, text);
        CHECK(ids == test["ids"].get<std::vector<Token>>());
        CHECK(tokenizer.decode(ids, false) == test["decoded"]);
      }
    }
  }
}

TEST_CASE("folders give what their files say together") {
  const Tokenizer llama3 = load_tokenizer(data("tiny/llama_rope_llama3"));
  CHECK(llama3.bos() == Token(395));
  CHECK(llama3.encode("").size() == 1);
  CHECK(llama3.encode("Hi").front() == 395);
  CHECK(plain(llama3, "Hi").front() != 395);
  CHECK(llama3.is_end(396));
  CHECK(llama3.is_special(399));
  CHECK(llama3.find("<|eot_id|>") == Token(399));

  const Tokenizer gguf = load_tokenizer(data("tiny/llama_rope_llama3/model-f32.gguf"));
  CHECK(gguf.encode("Hi") == llama3.encode("Hi"));
  CHECK(gguf.n_vocab() == llama3.n_vocab());
  CHECK(gguf.end_tokens() == std::vector<Token>{396, 399});  // the file names only the first

  const Tokenizer llama = load_tokenizer(data("tiny/llama_mha"));
  CHECK(llama.bos() == Token(1));
  CHECK(llama.end_tokens() == std::vector<Token>{2});
  CHECK(llama.encode("Hi").front() == 1);

  const Tokenizer gemma = load_tokenizer(data("tiny/gemma3"));
  CHECK(gemma.bos() == Token(2));
  CHECK(gemma.encode("Hi").front() == 2);

  for (const char* model : {"qwen2", "qwen3", "llama_gqa", "mistral_swa", "qwen2_sharded_f16"}) {
    INFO(model);
    const Tokenizer folder = load_tokenizer(data(std::string("tiny/") + model));
    const auto config = support::read_json(data(std::string("tiny/") + model + "/config.json"));
    CHECK(folder.n_vocab() == config["vocab_size"]);
    CHECK_FALSE(folder.end_tokens().empty());
  }
}
