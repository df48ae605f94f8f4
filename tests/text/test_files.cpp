// Files that lie, and files that ask for what is not there: refused by name, never obeyed in part, never a crash.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "model/gguf_writer.hpp"
#include "spec_tools.hpp"
#include "text_tools.hpp"

using namespace vitrine;
using namespace text_tools;
using nlohmann::json;

namespace {

json gpt2_json() { return json::parse(read_text("tokenizers/bpe_gpt2/tokenizer.json")); }

std::string refusal(const json& file) {
  return error_of([&] { Tokenizer(tokenizer_spec_from_json(file.dump(), "tokenizer.json")); });
}
bool has(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return true;
  UNSCOPED_INFO(text);
  return false;
}

// The smallest complete description, with a vocabulary and merges to fill in.
json small_json(json vocab, json merges = json::array()) {
  return {{"added_tokens", json::array()},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
          {"post_processor", nullptr},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model", {{"type", "BPE"}, {"vocab", std::move(vocab)}, {"merges", std::move(merges)}}}};
}

std::filesystem::path folder_with(const std::vector<std::pair<std::string, std::string>>& files) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("vitrine_text_" + std::to_string(std::random_device{}()));
  std::filesystem::create_directories(folder);
  for (const auto& [name, content] : files) testing::write_file(folder / name, content);
  return folder;
}

}  // namespace

TEST_CASE("ids in tokenizer.json are integers within reach") {
  const std::string start = R"({"model":{"type":"BPE","vocab":{"a":)", end = R"(,"b":0},"merges":[]}})";
  const auto with_id = [&](const std::string& id) {
    return error_of([&] { tokenizer_spec_from_json(start + id + end, "tokenizer.json"); });
  };
  CHECK(has(with_id("-1"), "the id of 'a' is -1"));
  CHECK(has(with_id("1.5"), "the id of 'a' is 1.5"));
  CHECK(has(with_id("1e12"), "the id of 'a' is 1000000000000.0"));
  CHECK(has(with_id("2147483647"), "2147483647"));
  CHECK(has(with_id("18446744073709551615"), "18446744073709551615"));
  CHECK(has(with_id("1e999"), "out of range"));
  CHECK(has(with_id("\"1\""), "the string '1'"));
  CHECK(has(with_id("null"), "null"));
  CHECK(has(with_id("0"), "belongs to both"));
  CHECK(has(with_id("1,\"a\":2"), "duplicate key"));
  CHECK(has(
      error_of([] {
        tokenizer_spec_from_json(
            R"({"model":{"type":"BPE","vocab":{"a":-1,"b":0},"merges":[]},"added_tokens":[{"id":-7,"content":"<x>"}]})",
            "tokenizer.json");
      }),
      "-1"));
  json file = gpt2_json();
  file["added_tokens"][0]["id"] = -7;
  CHECK(has(refusal(file), "-7"));
  file["added_tokens"][0]["id"] = 0;
  CHECK(has(refusal(file), "id 0 belongs to both"));
  file["added_tokens"][0]["id"] = 100'000'000;
  CHECK(has(refusal(file), "100000000"));
  // With the embedding's rows known, ids far above them are no use either.
  file["added_tokens"][0]["id"] = 4800;
  CHECK(has(error_of([&] { tokenizer_spec_from_json(file.dump(), "tokenizer.json", 384); }), "4800"));
}

TEST_CASE("merges name tokens of the vocabulary") {
  const json vocab = {{"a", 0}, {"b", 1}, {"ab", 2}};
  const auto merge = [&](json merges) { return refusal(small_json(vocab, std::move(merges))); };
  CHECK(has(merge({"a c"}), "merge 0 names 'c'"));
  CHECK(has(merge({"a b", "b a"}), "merge 1 names 'ba'"));
  CHECK(has(merge(json::array({json::array({"a", "c"})})), "merge 0 names 'c'"));
  CHECK(has(merge({"ab"}), "'ab'"));
  CHECK(has(merge({"a b b"}), "'a b b'"));
  CHECK(has(merge({json::array({"a"})}), "array"));
  CHECK(has(merge({5}), "merge 0 is 5"));
  CHECK(has(merge(json::object()), "model.merges"));
  for (const json& good : {json::array({"a b"}), json::array({json::array({"a", "b"})})}) {
    const Tokenizer tokenizer{tokenizer_spec_from_json(small_json(vocab, good).dump(), "tokenizer.json")};
    CHECK(plain(tokenizer, "aab") == std::vector<Token>{0, 2});
    CHECK(has(error_of([&] { tokenizer.encode("c"); }), "'c'"));
  }
}

TEST_CASE("parts of tokenizer.json that are not supported are refused by name") {
  const auto refused = [](const char* pointer, const json& value, const char* named) {
    json file = gpt2_json();
    file[json::json_pointer(pointer)] = value;
    INFO(pointer << " " << value);
    CHECK(has(refusal(file), named));
  };
  refused("/model/type", "Unigram", "'Unigram'");
  refused("/model/type", "WordPiece", "'WordPiece'");
  refused("/model/dropout", 0.1, "model.dropout");
  refused("/model/continuing_subword_prefix", "##", "continuing_subword_prefix");
  refused("/model/end_of_word_suffix", "</w>", "end_of_word_suffix");
  refused("/model/unk_token", "<none>", "'<none>'");
  refused("/model/vocab", 5, "model.vocab");
  refused("/model/byte_fallback", true, "byte_fallback");
  refused("/normalizer", {{"type", "Lowercase"}}, "'Lowercase'");
  refused("/normalizer", {{"type", "Precompiled"}}, "'Precompiled'");
  refused("/normalizer", {{"type", "Sequence"}, {"normalizers", {{{"type", "StripAccents"}}}}}, "'StripAccents'");
  refused("/normalizer", {{"type", "Replace"}, {"pattern", {{"Regex", "a+"}}}, {"content", "b"}}, "Regex");
  refused("/pre_tokenizer", {{"type", "Whitespace"}}, "'Whitespace'");
  refused("/pre_tokenizer", {{"type", "BertPreTokenizer"}}, "'BertPreTokenizer'");
  refused("/pre_tokenizer", nullptr, "pre_tokenizer");
  refused("/pre_tokenizer/type", 7, "pre_tokenizer.type");
  refused("/decoder", nullptr, "decoder");
  refused("/decoder", {{"type", "WordPiece"}}, "'WordPiece'");
  refused("/decoder", {{"type", "CTC"}}, "'CTC'");
  refused("/post_processor", {{"type", "BertProcessing"}}, "'BertProcessing'");
  refused("/post_processor",
          {{"type", "TemplateProcessing"}, {"single", json::array()}, {"special_tokens", json::object()}}, "single");
  refused("/something", 1, "something");
  refused("/added_tokens/0/content", 5, "content");
  refused("/added_tokens/0/content", "", "no text");
  refused("/added_tokens/0/special", "yes", "special");
  refused("/added_tokens", 5, "added_tokens");
  json file = gpt2_json();
  file["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"Regex", "[a&&b]"}}}, {"behavior", "Isolated"}};
  CHECK(has(refusal(file), "intersection"));
  file["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"String", "a"}}}, {"behavior", "Sideways"}};
  CHECK(has(refusal(file), "'Sideways'"));
}

TEST_CASE("JSON that is none, or nests without end, is an error") {
  const auto refused = [](const std::string& text) {
    return error_of([&] { tokenizer_spec_from_json(text, "tokenizer.json"); });
  };
  CHECK(has(refused(""), "tokenizer.json"));
  CHECK(has(refused("[]"), "expected an object"));
  CHECK(has(refused("{\"model\":"), "tokenizer.json"));
  CHECK(has(refused(std::string(100'000, '[')), "deeper"));
  std::string deep = "{\"normalizer\":";
  for (int i = 0; i < 50'000; ++i) deep += R"({"type":"Sequence","normalizers":[)";
  CHECK(has(refused(deep), "deeper"));
  CHECK(has(refused("{\"model\":{\"vocab\":{\"\xFF\":0}}}"), "tokenizer.json"));

  // Cut anywhere: an error, never a crash or a tokenizer.
  const std::string whole = read_text("tokenizers/bpe_gpt2/tokenizer.json");
  const std::size_t closed = whole.rfind('}');
  for (std::size_t n = 0; n < closed; n += 97)
    CHECK_THROWS_AS(tokenizer_spec_from_json(std::string_view(whole).substr(0, n), "cut"), Error);
}

TEST_CASE("tokenizer.json changed anywhere is an error or a tokenizer, never a crash") {
  std::mt19937 random(4);
  int n_errors = 0, n_good = 0;
  for (const char* name : {"bpe_gpt2", "bpe_llama3"}) {
    // Away from the long lists of tokens and merges, where the structure is.
    json file = json::parse(read_text(std::string("tokenizers/") + name + "/tokenizer.json"));
    file["model"]["merges"] = json::array({json::array({"t", "h"}), "th e"});
    file["model"]["vocab"] = {{"t", 0}, {"h", 1}, {"e", 2}, {"th", 3}, {"the", 4}};
    for (std::size_t i = 0; i < file["added_tokens"].size(); ++i) file["added_tokens"][i]["id"] = 5 + i;
    if (file["post_processor"].is_object()) file["post_processor"]["special_tokens"]["<|begin_of_text|>"]["ids"] = {5};
    const std::string whole = file.dump();
    CHECK(Tokenizer(tokenizer_spec_from_json(whole, "whole")).encode("the").back() == 4);
    for (int round = 0; round < 3000; ++round) {
      std::string text = whole;
      const char* parts[] = {"null", "-1", "[]", "{}", "\"\"", "1e9", "true", "[[0]]", "\"type\"", ",", "}", "\xff"};
      const std::size_t at = random() % text.size();
      if (round % 3 == 0) {
        text[at] = char(random());
      } else if (round % 3 == 1) {
        text.replace(at, 1 + random() % 8, parts[random() % 12]);
      } else {  // another value where one stands
        const std::size_t colon = text.find(':', at), end = text.find_first_of(",}", colon);
        if (end == std::string::npos) continue;
        text.replace(colon + 1, end - colon - 1, parts[random() % 9]);
      }
      try {
        const Tokenizer tokenizer{tokenizer_spec_from_json(text, "changed")};
        ++n_good;
        tokenizer.decode(tokenizer.encode("the <|eot_id|>", {.parse_special = true}), false);
      } catch (const Error&) {
        ++n_errors;
      }
    }
  }
  CHECK(n_errors > 1000);
  CHECK(n_good > 100);
}

TEST_CASE("turn markers are control tokens whatever their entry says") {
  json file = gpt2_json();
  file["added_tokens"][0]["special"] = false;
  const Tokenizer tokenizer{tokenizer_spec_from_json(file.dump(), "tokenizer.json")};
  CHECK(tokenizer.is_special(383));
  CHECK(plain(tokenizer, "<|endoftext|>").size() > 1);
  CHECK(parsed(tokenizer, "<|endoftext|>") == std::vector<Token>{383});
}

TEST_CASE("tokenizer.model cut or changed anywhere is an error or a tokenizer, never a crash") {
  const std::string whole = read_text("tokenizers/spm_llama/tokenizer.model");
  const auto load = [](const std::string& bytes) {
    return Tokenizer(tokenizer_spec_from_sentencepiece(std::as_bytes(std::span<const char>(bytes)), "tokenizer.model"));
  };
  CHECK(load(whole).n_vocab() == 400);
  int n_errors = 0;
  for (std::size_t n = 0; n < whole.size(); n += 7) {
    try {
      load(whole.substr(0, n));
    } catch (const Error&) {
      ++n_errors;
    }
  }
  CHECK(n_errors > 700);
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = whole;
    for (int k = 0; k < 1 + round % 3; ++k) bytes[random() % bytes.size()] = char(random());
    try {
      const auto tokenizer = load(bytes);
      tokenizer.decode(tokenizer.encode("Hello <s> w\xFForld"), false);
    } catch (const Error&) {
    }
  }
  CHECK(has(error_of([&] { load(""); }), "no pieces"));
  CHECK(has(error_of([&] { load("\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"); }), "truncated"));
  CHECK(has(error_of([&] { load(std::string(20, '\xFF')); }), "longer than 10 bytes"));
  // A trainer_spec that says UNIGRAM, and a normaliser that does something.
  const auto piece = std::string("\x0A\x05\x0A\x03") + "abc";
  CHECK(has(error_of([&] { load(piece); }), "UNIGRAM"));
  CHECK(has(error_of([&] { load(piece + "\x12\x02\x18\x02" + "\x1A\x09\x0A\x04nfkc\x12\x01x"); }), "'nfkc'"));
  CHECK(has(error_of([&] { load(piece + piece + "\x12\x02\x18\x02"); }), "tokens 0 and 1 are both 'abc'"));
}

TEST_CASE("tokenizer_config.json adds what it says") {
  const std::string tokenizer = read_text("tokenizers/bpe_qwen2/tokenizer.json");
  const auto load = [&](const std::vector<std::pair<std::string, std::string>>& files) {
    const auto folder = folder_with(files);
    try {
      const auto loaded = load_tokenizer(folder);
      std::filesystem::remove_all(folder);
      return loaded;
    } catch (...) {
      std::filesystem::remove_all(folder);
      throw;
    }
  };
  const auto configured = load({{"tokenizer.json", tokenizer},
                                {"tokenizer_config.json", R"({
               "bos_token":{"content":"<|endoftext|>"},"eos_token":"<|im_end|>","add_bos_token":true,
               "chat_template":[{"name":"other","template":"o"},{"name":"default","template":"d"}],
               "added_tokens_decoder":{
                 "416":{"content":"<x>","special":true},"413":{"content":"<|endoftext|>"}}})"},
                                {"generation_config.json", R"({"eos_token_id":[413,415]})"},
                                {"config.json", R"({"vocab_size":512,"eos_token_id":415})"}});
  CHECK(configured.bos() == Token(413));
  CHECK(configured.encode("").size() == 1);
  CHECK(configured.end_tokens() == std::vector<Token>{413, 415});
  CHECK(configured.n_vocab() == 512);  // as many as the embedding has rows
  CHECK(configured.decode(std::vector<Token>{500}, false).empty());
  CHECK(configured.find("<x>") == Token(416));
  CHECK(parsed(configured, "<x>") == std::vector<Token>{416});
  CHECK(configured.chat_template() == "d");
  CHECK_FALSE(configured.find("").has_value());

  // Special tokens without a row in the embedding cannot be asked for; ordinary ones must have one.
  const auto cut = load({{"tokenizer.json", tokenizer}, {"config.json", R"({"vocab_size":415})"}});
  CHECK(cut.n_vocab() == 415);
  CHECK(parsed(cut, "<|im_end|>").size() > 1);
  CHECK(has(error_of([&] { load({{"tokenizer.json", tokenizer}, {"config.json", R"({"vocab_size":300})"}}); }), "300"));
  CHECK(has(error_of([&] {
              load({{"tokenizer.json", tokenizer}, {"generation_config.json", R"({"eos_token_id":9999})"}});
            }),
            "9999"));
  CHECK(has(error_of([&] {
              load({{"tokenizer.json", tokenizer}, {"tokenizer_config.json", R"({"eos_token":"<none>"})"}});
            }),
            "'<none>'"));
  CHECK(has(error_of([&] { load({{"config.json", "{}"}}); }), "tokenizer.json"));

  // SentencePiece models: the configuration's flags rule.
  const std::string model = read_text("tokenizers/spm_llama/tokenizer.model");
  const auto legacy = load({{"tokenizer.model", model}, {"tokenizer_config.json", R"({"add_bos_token":false})"}});
  CHECK(legacy.encode("").empty());
  const auto no_prefix = load({{"tokenizer.model", model}, {"tokenizer_config.json", R"({"add_prefix_space":false})"}});
  CHECK(no_prefix.encode("a").size() == 2);  // BOS and a letter
  const auto both = load(
      {{"tokenizer.model", model}, {"tokenizer_config.json", R"({"add_eos_token":true,"eos_token":"</s>","legacy":false,
                            "added_tokens_decoder":{"400":{"content":"<x>","special":false,"rstrip":true}}})"}});
  CHECK(both.encode("").front() == 1);
  CHECK(both.encode("").back() == 2);
  CHECK(plain(both, "<x> a") == std::vector<Token>{400, plain(no_prefix, "a").front()});
}

namespace {

// GGUF metadata with a tokenizer of a few tokens.
struct GgufTokenizer {
  std::string model = "gpt2", pre = "gpt-2";
  std::vector<std::string> tokens = {"a", "b", "ab", "<|eot_id|>"};
  std::vector<std::int32_t> types = {1, 1, 1, 3};
  std::vector<std::string> merges = {"a b"};
  std::vector<float> scores;
  std::vector<std::pair<std::string, std::uint32_t>> ids;
  std::vector<std::pair<std::string, bool>> flags;

  GgufFile file() const {
    testing::Bytes body;
    std::uint64_t n_keys = 0;
    const auto key = [&](const std::string& name, GgufType type) {
      ++n_keys;
      body.text("tokenizer.ggml." + name).number(std::uint32_t(type));
    };
    const auto strings = [&](const std::string& name, const std::vector<std::string>& values) {
      key(name, GgufType::array);
      body.number(std::uint32_t(GgufType::string)).number(std::uint64_t(values.size()));
      for (const auto& value : values) body.text(value);
    };
    key("model", GgufType::string), body.text(model);
    if (!pre.empty()) key("pre", GgufType::string), body.text(pre);
    strings("tokens", tokens);
    if (!merges.empty()) strings("merges", merges);
    key("token_type", GgufType::array), body.number(std::uint32_t(GgufType::i32)).number(std::uint64_t(types.size()));
    for (const auto type : types) body.number(type);
    if (!scores.empty()) {
      key("scores", GgufType::array), body.number(std::uint32_t(GgufType::f32)).number(std::uint64_t(scores.size()));
      for (const auto score : scores) body.number(score);
    }
    for (const auto& [name, id] : ids) key(name, GgufType::u32), body.number(id);
    for (const auto& [name, flag] : flags) key(name, GgufType::boolean), body.number(std::uint8_t(flag));
    testing::Bytes whole;
    whole.raw("GGUF").number(std::uint32_t(3)).number(std::uint64_t(0)).number(n_keys).raw(body.data);
    whole.data.resize((whole.data.size() + 31) / 32 * 32);
    return testing::parse_gguf(whole.data);
  }
  Tokenizer load() const { return tokenizer_from_gguf(file()); }
  std::string refused() const {
    return error_of([&] { load(); });
  }
};

}  // namespace

TEST_CASE("GGUF metadata that contradicts itself is refused by key") {
  const GgufTokenizer good;
  CHECK(plain(good.load(), "aab") == std::vector<Token>{0, 2});
  CHECK(good.load().end_tokens() == std::vector<Token>{3});
  const auto with = [&](auto&& change) {
    GgufTokenizer changed = good;
    change(changed);
    return changed.refused();
  };
  CHECK(has(with([](auto& t) { t.model = "bert"; }), "'bert'"));
  CHECK(has(with([](auto& t) { t.pre = "nonsense"; }), "'nonsense'"));
  CHECK(has(with([](auto& t) { t.pre = ""; }), "tokenizer.ggml.pre"));
  CHECK(has(with([](auto& t) { t.pre = "llama"; }), "test.gguf: tokenizer.ggml.pre: expected one of a.x-4.0, "));
  CHECK(has(with([](auto& t) { t.types.pop_back(); }), "token_type"));
  CHECK(has(with([](auto& t) { t.types[1] = 9; }), "token_type[1] is 9"));
  CHECK(has(with([](auto& t) { t.types[1] = -1; }), "token_type[1] is -1"));
  CHECK(has(with([](auto& t) { t.merges = {"ab"}; }), "merges[0] is 'ab'"));
  CHECK(has(with([](auto& t) { t.merges = {"a x"}; }), "names 'x'"));
  CHECK(has(with([](auto& t) { t.merges.clear(); }), "merges"));
  CHECK(has(with([](auto& t) { t.tokens[1] = "a"; }), "tokens 0 and 1 are both 'a'"));
  CHECK(has(with([](auto& t) { t.tokens.clear(), t.types.clear(); }), "names 'a'"));
  CHECK(has(with([](auto& t) { t.ids = {{"bos_token_id", 4}}; }), "bos_token_id is 4"));
  CHECK(has(with([](auto& t) { t.ids = {{"eot_token_id", 0xFFFFFFFF}}; }), "eot_token_id is 4294967295"));
  CHECK(has(with([](auto& t) { t.flags = {{"add_bos_token", true}}; }), "add_bos_token is true"));
  CHECK(has(with([](auto& t) { t.model = "llama"; }), "scores"));
  CHECK(has(with([](auto& t) { t.model = "llama", t.scores = {0, 0}; }), "scores"));
  CHECK(has(with([](auto& t) { t.model = "llama", t.scores = {0, 0, 0, std::nanf("")}; }), "score of token 3"));
  CHECK(has(with([](auto& t) { t.model = "llama", t.scores = {0, 0, 0, 0}, t.types[0] = 6; }), "byte token 0 is 'a'"));
}

TEST_CASE("GGUF end tokens and flags") {
  GgufTokenizer file;
  file.tokens = {"a", "<|im_end|>", "<|eom_id|>", "x", "y"};
  file.types = {1, 4, 3, 1, 1};
  file.merges = {"a x"};
  file.tokens.push_back("ax");
  file.types.push_back(1);
  file.ids = {{"eos_token_id", 3}, {"eot_token_id", 4}, {"bos_token_id", 0}};
  const Tokenizer tokenizer = file.load();
  CHECK(tokenizer.end_tokens() == std::vector<Token>{1, 2, 3, 4});
  CHECK(tokenizer.encode("x") == std::vector<Token>{3});
  // A turn marker that the converter took for user-defined text is a control token all the same.
  CHECK(tokenizer.is_special(1));
  file.flags = {{"add_bos_token", true}, {"add_eos_token", true}};
  CHECK(file.load().encode("x") == std::vector<Token>{0, 3, 3});
  file.flags = {};
  file.pre = "llama-bpe";  // whose models want BOS unless they say otherwise
  CHECK(file.load().encode("x") == std::vector<Token>{0, 3});
}
