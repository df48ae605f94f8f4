// What a model must be given: special tokens only when asked for, the spaces it was trained with, stable round trips,
// every end token, checked ids.
#include <algorithm>
#include <thread>

#include "spec_tools.hpp"
#include "text_tools.hpp"

using namespace vitrine;
using namespace text_tools;

namespace {

Tokenizer chatml_tokenizer() {
  auto spec = byte_level({{"i", "m"}}, "qwen2");
  spec.end.push_back(add_token(spec, "<|im_end|>", TokenKind::control));
  add_token(spec, "<|im_start|>", TokenKind::control);
  add_token(spec, "<tool>", TokenKind::user_defined);
  return Tokenizer(spec);
}

int count_special(const Tokenizer& tokenizer, const std::vector<Token>& ids) {
  return int(std::count_if(ids.begin(), ids.end(), [&](Token id) { return tokenizer.is_special(id); }));
}

// The pieces of Llama 2 that "This is ....cpp" needs, at their real ids, and intermediate ones at invented ids.
const std::vector<std::pair<Token, std::string>> llama_pieces = {
    {910, " This"},   {338, " is"}, {29871, " "}, {29889, "."},    {8223, "cpp"},    {4013, "This"},  {259, "  "},
    {29877, "T"},     {29882, "h"}, {29875, "i"}, {29879, "s"},    {29883, "c"},     {29886, "p"},    {29884, "u"},
    {29872, "e"},     {29878, "r"}, {260, "Th"},  {275, "is"},     {3001, "cp"},     {2188, " user"}, {1838, "user"},
    {375, "us"},      {261, "er"},  {1404, " u"}, {502, " us"},    {263, " T"},      {264, " Th"},    {22172, " hello"},
    {12199, "hello"}, {354, "he"},  {645, "ll"},  {31000, "hell"}, {31001, " hell"}, {31002, " he"},  {29880, "l"},
    {29876, "o"},     {299, " h"}};

}  // namespace

TEST_CASE("special tokens in a text are found only when asked for") {
  const Tokenizer tokenizer = chatml_tokenizer();
  const Token start = *tokenizer.find("<|im_start|>");
  CHECK(parsed(tokenizer, "<|im_start|>") == std::vector<Token>{start});
  const auto ids = plain(tokenizer, "<|im_start|>");
  CHECK(count_special(tokenizer, ids) == 0);
  CHECK(bytes_of(tokenizer, ids) == "<|im_start|>");
  CHECK(std::count(ids.begin(), ids.end(), Token(256)) == 1);                                // "im", an ordinary piece
  CHECK(plain(tokenizer, "a<tool>") == std::vector<Token>{'a', *tokenizer.find("<tool>")});  // user-defined: always
  CHECK(tokenizer.decode(std::vector<Token>{'a', start, 'b'}, false) == "a<|im_start|>b");
  CHECK(tokenizer.decode(std::vector<Token>{'a', start, 'b'}, true) == "ab");

  // Special tokens that merges could spell out are not spelled out either.
  const Tokenizer spm = load_tokenizer(data("tokenizers/spm_llama/tokenizer.model"));
  CHECK(count_special(spm, plain(spm, "<s></s><unk> <s>")) == 0);
  CHECK(count_special(spm, parsed(spm, "<s></s><unk>")) == 3);
}

TEST_CASE("spaces before the first word, as Llama 2 wants them") {
  auto spec = llama2_like(llama_pieces);
  const Token marker = 32001;
  spec.tokens[32001] = {"<|im_start|>", TokenKind::user_defined};
  spec.added.push_back({marker, "<|im_start|>"});
  const Tokenizer tokenizer(spec);
  using Ids = std::vector<Token>;
  CHECK(tokenizer.encode("This is \U0001F999.cpp") == Ids{1, 910, 338, 29871, 243, 162, 169, 156, 29889, 8223});
  CHECK(tokenizer.encode("<|im_start|>") == Ids{1, 32001});
  CHECK(tokenizer.encode("user") == Ids{1, 2188});
  CHECK(tokenizer.encode("<|im_start|>user") == Ids{1, 32001, 2188});
  CHECK(tokenizer.encode("") == Ids{1});
  CHECK(parsed(tokenizer, "<s> hello") == Ids{1, 259, 12199});  // the text's own space and the model's

  // The other rules, from the model or from the caller.
  const EncodeOptions first = {.add_special = false, .space_prefix = SpacePrefix::first};
  CHECK(tokenizer.encode("user", first) == Ids{2188});
  CHECK(tokenizer.encode("<|im_start|>user", first) == Ids{32001, 1838});
  const EncodeOptions never = {.add_special = false, .space_prefix = SpacePrefix::never};
  CHECK(tokenizer.encode("This", never) == Ids{4013});
  CHECK(tokenizer.encode("<|im_start|> user", never) == Ids{32001, 2188});
  spec.space_prefix = SpacePrefix::never;
  CHECK(plain(Tokenizer(spec), "This") == Ids{4013});

  CHECK(tokenizer.decode(Ids{1, 910, 338}, false) == "<s>This is");
  CHECK(tokenizer.decode(Ids{910, 338}, false) == "This is");
  CHECK(tokenizer.decode(Ids{29871, 910}, false) == " This");
  CHECK(tokenizer.decode(parsed(tokenizer, "<s> user</s> user"), false) == "<s> user</s> user");
  // A continuation keeps its space, unless the tokenizer put it there.
  StreamDecoder decoder(tokenizer);
  decoder.continue_after(910);
  CHECK(decoder.push(338) == " is");
  decoder = StreamDecoder(tokenizer);
  decoder.continue_after(1);
  CHECK(decoder.push(910) == "This");
}

TEST_CASE("encoding and decoding in turn comes to rest") {
  auto spec = llama2_like(llama_pieces, 32010);
  const char* names[] = {"<|user|>", "<|end|>", "<|assistant|>"};
  for (int i = 0; i < 3; ++i) {
    spec.tokens[std::size_t(32003 + i)] = {names[i], TokenKind::control};
    spec.added.push_back({32003 + i, names[i], true, false, true});  // takes white space behind it, like Phi-3's
  }
  auto without_strip = spec;
  for (auto& token : without_strip.added) token.right_strip = false;
  auto first = without_strip;
  first.space_prefix = SpacePrefix::first;
  auto never = without_strip;
  never.space_prefix = SpacePrefix::never;
  for (const auto& variant : {spec, without_strip, first, never}) {
    const Tokenizer tokenizer(variant);
    for (const char* start : {"<s><|user|>\nHi<|end|>", "<s><|user|> hello<|end|>\n<|assistant|>", "  hello", " ", "",
                              "hello</s> user", "a \n b"}) {
      INFO(start);
      const auto ids = parsed(tokenizer, start);
      std::string text = tokenizer.decode(ids, false);
      const auto ids_1 = parsed(tokenizer, text);
      for (int round = 0; round < 5; ++round) {
        const auto again = parsed(tokenizer, text);
        REQUIRE(again == ids_1);
        REQUIRE(tokenizer.decode(again, false) == text);
        text = tokenizer.decode(again, false);
      }
    }
  }
  // The models' own files.
  for (const char* name : {"spm_llama/tokenizer.model", "spm_gemma/tokenizer.model", "bpe_llama3/tokenizer.json"}) {
    const Tokenizer tokenizer = load_tokenizer(data(std::string("tokenizers/") + name));
    const auto with_defaults = tokenizer.encode("so it goes");
    CHECK(tokenizer.decode(with_defaults) == "so it goes");  // a BOS gives no text, so none is added in the next round
    CHECK(tokenizer.encode(tokenizer.decode(with_defaults)) == with_defaults);
    const std::string text = tokenizer.decode(parsed(tokenizer, "<s><|eot_id|>\n Hi </s>  there"), false);
    CHECK(tokenizer.decode(parsed(tokenizer, text), false) == text);
  }
}

TEST_CASE("added tokens take white space and stand alone as their flags say") {
  auto spec = byte_level({}, "gpt-2");
  const auto id = add_token(spec, "TOK", TokenKind::user_defined);
  const auto encode = [&](bool left, bool right, bool word, const char* text) {
    spec.added.back().left_strip = left;
    spec.added.back().right_strip = right;
    spec.added.back().single_word = word;
    std::string out;
    const Tokenizer tokenizer(spec);
    for (const Token token : plain(tokenizer, text)) out += token == id ? "#" : std::string(tokenizer.piece(token));
    return out;
  };
  CHECK(encode(false, false, false, "a TOK\u3000 b") == "a #\u3000 b");
  CHECK(encode(true, false, false, "a \nTOK b") == "a# b");
  CHECK(encode(false, true, false, "a TOK\u3000 b") == "a #b");
  CHECK(encode(true, true, false, "TOK TOK ") == "##");
  CHECK(encode(false, false, true, "aTOK TOK. TOK_ TOK") == "aTOK #. TOK_ #");
}

TEST_CASE("every end token is one") {
  auto spec = byte_level({});
  spec.end = {Token(spec.tokens.size()), Token(spec.tokens.size() + 1), Token(spec.tokens.size())};
  add_token(spec, "<|end_of_text|>", TokenKind::control);
  add_token(spec, "<|eot_id|>", TokenKind::control);
  const Tokenizer tokenizer(spec);
  CHECK(tokenizer.end_tokens() == std::vector<Token>{256, 257});
  CHECK(tokenizer.is_end(256));
  CHECK(tokenizer.is_end(257));
  CHECK_FALSE(tokenizer.is_end('a'));

  TokenizerOptions options;
  options.extra_end = {5, 396};
  CHECK(load_tokenizer(data("tiny/llama_rope_llama3"), options).end_tokens() == std::vector<Token>{5, 396});
  options.extra_end = {400};
  CHECK_THROWS_AS(load_tokenizer(data("tiny/llama_rope_llama3"), options), Error);
}

TEST_CASE("ids outside the vocabulary are refused with index and value") {
  const Tokenizer tokenizer{byte_level({})};
  for (const std::int64_t bad :
       {std::int64_t(-1), std::int64_t(256), std::int64_t(4294967296), std::int64_t(1) << 40}) {
    const std::string message = error_of([&] { tokenizer.checked(std::vector<std::int64_t>{7, 0, bad}); });
    CHECK(message.find("index 2") != std::string::npos);
    CHECK(message.find(std::to_string(bad)) != std::string::npos);
  }
  CHECK(tokenizer.checked(std::vector<std::int64_t>{0, 255}) == std::vector<Token>{0, 255});
  CHECK(error_of([&] {
          tokenizer.decode(std::vector<Token>{1, -1}, false);
        }).find("index 1 is -1") != std::string::npos);
  CHECK(error_of([&] { tokenizer.decode_bytes(std::vector<Token>{256}); }).find("256") != std::string::npos);
  CHECK_THROWS_AS(tokenizer.piece(256), Error);
  CHECK_THROWS_AS(tokenizer.kind(-1), Error);
  CHECK_THROWS_AS(tokenizer.is_special(1000), Error);
  CHECK_THROWS_AS(StreamDecoder(tokenizer).push(-7), Error);
  CHECK_FALSE(tokenizer.is_end(-1));
}

TEST_CASE("pieces that are tokens are taken whole where the model says so") {
  // "abc" cannot be merged from its parts: only taking it whole finds it.
  auto spec = byte_level({{"a", "b"}}, "llama-bpe");
  spec.tokens.push_back({"abc"});
  CHECK(plain(Tokenizer(spec), "abc") == std::vector<Token>{256, 'c'});
  spec.ignore_merges = true;
  CHECK(plain(Tokenizer(spec), "abc") == std::vector<Token>{257});
  CHECK(plain(Tokenizer(spec), "abcd") == std::vector<Token>{256, 'c', 'd'});
}

TEST_CASE("unused pieces fall apart, unknown characters are fused") {
  auto spec = llama2_like({{300, "a"}, {301, "b"}, {302, "ab"}, {303, "c"}, {304, "abc"}, {305, " "}}, 310);
  spec.space_prefix = SpacePrefix::never;
  CHECK(plain(Tokenizer(spec), "abc") == std::vector<Token>{304});
  spec.tokens[304].kind = TokenKind::unused;
  CHECK(plain(Tokenizer(spec), "abcabc") == std::vector<Token>{302, 303, 302, 303});
  spec.tokens[302].kind = TokenKind::unused;
  CHECK(plain(Tokenizer(spec), "abc") == std::vector<Token>{300, 301, 303});
  spec.byte_fallback = false;
  CHECK(plain(Tokenizer(spec), "a\u4E00\u4E01b") == std::vector<Token>{300, 0, 301});
  spec.fuse_unknown = false;
  CHECK(plain(Tokenizer(spec), "a\u4E00\u4E01b") == std::vector<Token>{300, 0, 0, 301});
}

TEST_CASE("ranges for special tokens hold while U+2581 becomes a space") {
  const Tokenizer spm = load_tokenizer(data("tokenizers/spm_llama/tokenizer.model"));
  const std::string text = "\u2581<s>\u2581\u2581</s>a\u2581<s></s>\u2581";
  const auto range_of = [&](std::string_view marker, std::size_t from) {
    const std::size_t at = text.find(marker, from);
    return TextRange{at, at + marker.size()};
  };
  const auto special_in = [&](const std::vector<TextRange>& ranges) {
    std::vector<Token> found;
    for (const Token id :
         spm.encode(text, {.add_special = false, .parse_special = true, .special_in = std::span(ranges)}))
      if (spm.is_special(id)) found.push_back(id);
    return found;
  };
  const TextRange second = range_of("</s>", 0), third = range_of("<s>", second.end),
                  fourth = range_of("</s>", third.end);
  CHECK(special_in({}).empty());
  CHECK(special_in({second}) == std::vector<Token>{2});
  CHECK(special_in({second, third}) == std::vector<Token>{2, 1});
  CHECK(special_in({third, fourth}) == std::vector<Token>{1, 2});
  CHECK(special_in({{0, 1000}}) == std::vector<Token>{1, 2, 1, 2});
  CHECK(error_of([&] { special_in({third, second}); }).find("special_in: expected ranges that ascend") == 0);
}

TEST_CASE("a normalizer that blows texts up is stopped") {
  auto spec = byte_level({});
  for (int i = 0; i < 60; ++i) spec.normalizer.push_back({NormalizeStep::Kind::replace, "a", "aa"});
  CHECK(plain(Tokenizer(spec), "b") == std::vector<Token>{'b'});
  CHECK(error_of([&] { plain(Tokenizer(spec), "a"); }).find("normalizer makes more than 65600 bytes") !=
        std::string::npos);
  spec.normalizer = {{NormalizeStep::Kind::replace, "a", std::string(100000, 'x')}};
  CHECK_THROWS_AS(plain(Tokenizer(spec), std::string(100000, 'a')), Error);
  spec.normalizer.clear();
  for (int i = 0; i < 60; ++i) {  // U+FDFA becomes eighteen characters, among them three spaces
    spec.normalizer.push_back({NormalizeStep::Kind::replace, " ", "\uFDFA"});
    spec.normalizer.push_back({NormalizeStep::Kind::unicode, "NFKC", {}});
  }
  CHECK(error_of([&] { plain(Tokenizer(spec), " "); }).find("of a text of 1") != std::string::npos);
}

TEST_CASE("a tokenizer may be used from several threads") {
  const Tokenizer tokenizer = load_tokenizer(data("tokenizers/bpe_llama3/tokenizer.json"));
  const std::string text = read_text("tokenizers/cases.json");
  const auto expected = plain(tokenizer, text);
  std::vector<std::vector<Token>> results(4);
  std::vector<std::thread> threads;
  for (auto& result : results) threads.emplace_back([&] { result = plain(tokenizer, text); });
  for (auto& thread : threads) thread.join();
  for (const auto& result : results) CHECK(result == expected);
}
