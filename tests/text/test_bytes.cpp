// Any bytes can be encoded, and come back: invalid UTF-8, NUL, long runs; streaming never emits half a character.
#include <random>

#include "spec_tools.hpp"
#include "text_tools.hpp"
#include "vitrine/text/utf8.hpp"

using namespace vitrine;
using namespace text_tools;
using namespace std::string_literals;

namespace {

const std::vector<std::string> malformed = {"\xE6\xAD"s,
                                            "\xE2\x80"s,
                                            "\xFF"s,
                                            "\xC0\x80"s,
                                            "\xED\xA0\x80"s,
                                            "\xF4\x90\x80\x80"s,
                                            "a\xE6\xADz \xFF\xFE 1"s,
                                            "\x80\x80\x80"s,
                                            "\xF0\x9F\x98"s,
                                            "caf\xE9 \xE9t\xE9"s};

}  // namespace

TEST_CASE("malformed UTF-8 loses nothing") {
  // As in Llama 3's vocabulary, one token is the first two bytes of a character.
  const Tokenizer bpe{byte_level({{"\xE6", "\xAD"}, {"\xE6\xAD", "\xAA"}, {"a", "b"}})};
  CHECK(plain(bpe, "\xE6\xAD") == std::vector<Token>{256});
  CHECK(plain(bpe, "\xE6\xAD\xAA") == std::vector<Token>{257});
  const Tokenizer spm = load_tokenizer(data("tokenizers/spm_llama/tokenizer.model"));
  const Tokenizer gguf = load_tokenizer(data("tiny/llama_rope_llama3/model-f32.gguf"));
  for (const Tokenizer& tokenizer : {bpe, spm, gguf})
    for (const auto& text : malformed) {
      std::size_t n_replaced = 1;
      const auto ids = tokenizer.encode(text, {.add_special = false, .n_replaced = &n_replaced});
      CHECK(tokenizer.decode_bytes(ids) == text);
      CHECK(n_replaced == 0);
      CHECK(tokenizer.decode(ids, false) == utf8::to_valid(text));
    }
  // What a vocabulary cannot say at all is counted.
  auto without = byte_level({});
  without.tokens[0xFF] = {"unlike a byte"};
  std::size_t n_replaced = 0;
  const Tokenizer lacking(without);
  CHECK(lacking.decode_bytes(lacking.encode("a\xFF\xFF", {.n_replaced = &n_replaced})) == "a\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(n_replaced == 2);
  for (const int byte : {0xEF, 0xBF, 0xBD})
    without.tokens[std::size_t(byte)] = {"unlike a byte, too" + byte_name(byte)};
  CHECK(error_of([&] { Tokenizer(without).encode("\xFF"); }).find("'\\xff'") != std::string::npos);
}

TEST_CASE("random bytes come back") {
  const Tokenizer tokenizers[] = {load_tokenizer(data("tokenizers/bpe_gpt2/tokenizer.json")),
                                  load_tokenizer(data("tokenizers/bpe_llama3/tokenizer.json")),
                                  load_tokenizer(data("tokenizers/spm_gemma/tokenizer.model"))};
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (std::size_t n = random() % 60; n > 0; --n) text += char(random() % (round % 2 == 0 ? 256 : 0x7F));
    for (const auto& tokenizer : tokenizers) {
      const auto ids = plain(tokenizer, text);
      REQUIRE(tokenizer.decode_bytes(ids) == text);
      StreamDecoder stream(tokenizer, false);
      std::string streamed;
      for (const Token id : ids) {
        const std::string now = stream.push(id);
        REQUIRE(utf8::valid_prefix(now) == now.size());
        streamed += now;
      }
      REQUIRE(streamed + stream.finish() == tokenizer.decode(ids, false));
    }
  }
}

TEST_CASE("a NUL is a byte like any other") {
  const std::string text = "ab\0cd"s;
  for (const char* name : {"bpe_gpt2/tokenizer.json", "bpe_llama3/tokenizer.json", "spm_llama/tokenizer.model"}) {
    const Tokenizer tokenizer = load_tokenizer(data("tokenizers/"s + name));
    const auto ids = plain(tokenizer, text);
    CHECK(tokenizer.decode(ids, false) == text);
    CHECK(tokenizer.decode(ids, false).size() == 5);
  }
  const Tokenizer bytes{byte_level({})};
  CHECK(bytes.find("\0"s) == Token(0));
  CHECK(bytes.piece(0) == "\0"s);
}

TEST_CASE("streaming holds back half a character and nothing else") {
  auto spec = byte_level({});
  const auto token = [&](const std::string& bytes) {
    spec.tokens.push_back({bytes});
    return Token(spec.tokens.size() - 1);
  };
  const Token smile_1 = token("\xF0\x9F"), smile_2 = token("\x98\x8A"), mixed = token("\x8A!\xE6");
  const Token control = add_token(spec, "<|end|>", TokenKind::control);
  const Tokenizer tokenizer(spec);
  const auto stream = [&](const std::vector<Token>& ids) {
    StreamDecoder decoder(tokenizer);
    std::vector<std::string> out;
    for (const Token id : ids) out.push_back(decoder.push(id));
    out.push_back(decoder.finish());
    return out;
  };
  using Texts = std::vector<std::string>;
  CHECK(stream({smile_1, smile_2}) == Texts{"", "\U0001F60A", ""});
  CHECK(stream({0xE6, 0xAD, 0xAA}) == Texts{"", "", "\u6B6A", ""});
  CHECK(stream({smile_1}) == Texts{"", "\uFFFD"});
  CHECK(stream({0xFF, 'A'}) == Texts{"\uFFFD", "A", ""});
  CHECK(stream({smile_1, 'A'}) == Texts{"",
                                        "\uFFFD"
                                        "A",
                                        ""});
  CHECK(stream({smile_1, 0x98, mixed, 0xAD, 0xAA}) == Texts{"", "", "\U0001F60A!", "", "\u6B6A", ""});
  CHECK(stream({'a', control, 'b'}) == Texts{"a", "", "b", ""});
  StreamDecoder decoder(tokenizer);
  decoder.push(smile_1);
  CHECK(decoder.pending() == "\xF0\x9F");
  CHECK(tokenizer.decode(std::vector<Token>{smile_1}, false) == "\uFFFD");
  CHECK(tokenizer.decode_bytes(std::vector<Token>{smile_1}) == "\xF0\x9F");
}

namespace {

std::vector<Token> encoded_on_little_stack(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<Token> ids;
  std::string message;
  on_little_stack(256 << 10, [&] {
    try {
      ids = plain(tokenizer, text);
    } catch (const std::exception& error) {
      message = error.what();
    }
  });
  REQUIRE(message.empty());
  return ids;
}

// Sanitizers take their time.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
constexpr std::size_t shorter = 10;
#else
constexpr std::size_t shorter = 1;
#endif

std::string shortened(const std::string& text, std::size_t n) { return repeated(text, n / shorter); }

}  // namespace

// How long it takes is measured by bench/tokenizer_bench.cpp. What grew with the square of these lengths would not end
// before the suite gives up.
TEST_CASE("long runs need no stack and come to an end") {
  std::string base64;
  std::mt19937 random(2);
  for (std::size_t i = 0; i < 1'000'000 / shorter; ++i)
    base64 += "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[random() % 64];
  const std::vector<std::string> texts = {shortened("A", 100'000),         shortened("Z", 131'072),
                                          shortened("us", 50'000),         shortened("\n", 50'000),
                                          shortened(" ", 1'000'000),       shortened(".", 100'000),
                                          shortened("\u6F22", 100'000),    base64,
                                          shortened(" ", 1'000'000) + "x", shortened("a1 ", 300'000),
                                          shortened("\t\n ", 300'000),     shortened("'s", 400'000),
                                          shortened("\xFF", 300'000),      shortened("1", 1'000'000)};
  std::vector<Tokenizer> tokenizers = {load_tokenizer(data("tokenizers/spm_llama/tokenizer.model")),
                                       load_tokenizer(data("tokenizers/spm_gemma/tokenizer.model"))};
  for (const char* pre : {"llama-bpe", "gpt-2", "qwen2", "smollm", "deepseek-llm", "deepseek-v3", "gpt-4o", "tekken",
                          "default", "bloom", "exaone-moe"})
    tokenizers.emplace_back(byte_level({{"A", "A"}, {"AA", "AA"}, {"u", "s"}, {"us", "us"}, {" ", " "}}, pre));
  for (std::size_t t = 0; t < tokenizers.size(); ++t)
    for (std::size_t i = 0; i < texts.size(); ++i) {
      INFO("tokenizer " << t << ", text " << i);
      const auto ids = encoded_on_little_stack(tokenizers[t], texts[i]);
      REQUIRE(tokenizers[t].decode_bytes(ids) == texts[i]);
    }
}
