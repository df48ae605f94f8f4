// Pieces against the tokenizers library, and patterns that mean the same in both dialects or are refused.
#include <set>

#include "support/json.hpp"
#include "text_tools.hpp"
#include "vitrine/text/pretokenizer.hpp"

using namespace vitrine;
using namespace text_tools;

namespace {

std::vector<std::string> pieces_of(const PreTokenizer& pre_tokenizer, std::string_view text) {
  PreTokenizer::Scratch scratch;
  std::vector<TextRange> ranges;
  pre_tokenizer.split(text, scratch, ranges);
  std::vector<std::string> pieces;
  for (const auto& range : ranges) pieces.emplace_back(text.substr(range.begin, range.end - range.begin));
  return pieces;
}

std::vector<std::string> split(const char* pattern, std::string_view text) {
  return pieces_of(PreTokenizer({{Pattern::from_oniguruma(pattern)}}), text);
}

using Pieces = std::vector<std::string>;

}  // namespace

TEST_CASE("every named pre-tokenizer cuts as the reference does") {
  std::set<std::string> seen;
  const auto reference = support::read_json(data("tokenizers/pieces.json"));
  for (const auto& test : reference["cases"])
    for (const auto& result : test["results"])
      for (const std::string name : result["names"]) {
        INFO(name << ": " << test["text"]);
        seen.insert(name);
        CHECK(pieces_of(pre_tokenizer_by_name(name).steps, test["text"].get<std::string>()) == result["pieces"]);
      }
  const auto names = pre_tokenizer_names();
  CHECK(seen == std::set<std::string>(names.begin(), names.end()));
  CHECK(seen.size() == 80);
}

TEST_CASE("families differ where they should") {
  const auto pieces = [](const char* name, const char* text) {
    return pieces_of(pre_tokenizer_by_name(name).steps, text);
  };
  CHECK(pieces("llama-bpe", "12345 IT'S") == Pieces{"123", "45", " IT", "'S"});
  CHECK(pieces("qwen2", "123") == Pieces{"1", "2", "3"});
  CHECK(pieces("gpt-2", "12345 IT'S") == Pieces{"12345", " IT", "'", "S"});
  CHECK(pieces("smollm", "a 12") == Pieces{"a", " ", "1", "2"});
  CHECK(pieces("gpt-4o", "camelCaseX") == Pieces{"camel", "Case", "X"});
  CHECK(pre_tokenizer_by_name("llama-bpe").ignore_merges);
  CHECK_FALSE(pre_tokenizer_by_name("qwen2").ignore_merges);
}

TEST_CASE("an unknown name is refused by name") {
  const auto message = error_of([] { pre_tokenizer_by_name("llama-bpe2"); });
  CHECK(message.find("got 'llama-bpe2'") != std::string::npos);
  for (const auto name : pre_tokenizer_names()) CHECK(message.find(name) != std::string::npos);
  CHECK_THROWS_AS(pre_tokenizer_by_name(""), Error);
}

TEST_CASE("white space, words and digits are Unicode's, as Oniguruma has them") {
  CHECK(split(R"(\s+)", "a\u00A0\u3000\u0085\u180Eb") == Pieces{"a", "\u00A0\u3000\u0085",
                                                                "\u180E"
                                                                "b"});
  CHECK(split(R"(\w+)", "e\u0301\u203Fb\u24B6-c") == Pieces{"e\u0301\u203Fb\u24B6", "-", "c"});
  CHECK(split(R"(\d)", "1\u0663\u00BD") == Pieces{"1", "\u0663", "\u00BD"});
  CHECK(split(R"(\b)", "ab, c") == Pieces{"ab", ", ", "c"});
  CHECK(split(R"([\s,]+$)", "a, \nb ,") == Pieces{"a", ", ", "\nb", " ,"});
  CHECK(split(R"((?i:'s))", "it'S'\u017F") == Pieces{"it", "'S", "'\u017F"});
  CHECK(split(R"((?=(\d{3})+(?!\d)))", "1234567") == Pieces{"1", "234", "567"});
  CHECK(split(R"(\v)", "a\x0B\n") == Pieces{"a", "\x0B", "\n"});
  CHECK(split("\\u4e00", "x\u4E00") == Pieces{"x", "\u4E00"});
  CHECK(pieces_of(PreTokenizer({{Pattern::literal("(i.")}}), "a(i.(ii") == Pieces{"a", "(i.", "(ii"});
}

TEST_CASE("patterns that would mean something else are refused") {
  for (const char* pattern : {R"(\h)",     R"(\R)",   R"(\X)",   R"(\G)",  R"(\K)", R"(\1)", R"([a[b]])",
                              R"([a&&b])", "(?m:.)",  "(?#x)",   "(*UTF)", "a{,2}", "a{2}+", "a{2}?",
                              "a(?i)b",    R"([\W])", R"(\xE4)", R"(\pL)", "{",     "[]",    "[a"})
    CHECK(error_of([&] { Pattern::from_oniguruma(pattern); }).find("not supported") != std::string::npos);
  for (const char* pattern : {"(", "a**+*", R"(\p{Nonsense})", "(?<=a+)"}) {
    INFO(pattern);
    CHECK_THROWS_AS(Pattern::from_oniguruma(pattern), Error);
  }
}

TEST_CASE("a pattern that would never end is an error") {
  const Pattern evil = Pattern::from_oniguruma("(a+)+c");
  Pattern::Scratch scratch;
  std::vector<TextRange> matches;
  const std::string text = std::string(64, 'a').append("-c");
  CHECK(error_of([&] { evil.find_all(text, scratch, matches); }).find("(a+)+c") != std::string::npos);
}

TEST_CASE("what becomes of matches") {
  const auto with = [](SplitBehavior behavior, bool invert = false) {
    return pieces_of(PreTokenizer({{Pattern("-"), behavior, invert}}), "a--b-c-");
  };
  CHECK(with(SplitBehavior::isolated) == Pieces{"a", "-", "-", "b", "-", "c", "-"});
  CHECK(with(SplitBehavior::removed) == Pieces{"a", "b", "c"});
  CHECK(with(SplitBehavior::merged_with_previous) == Pieces{"a-", "-", "b-", "c-"});
  CHECK(with(SplitBehavior::merged_with_next) == Pieces{"a", "-", "-b", "-c", "-"});
  CHECK(with(SplitBehavior::contiguous) == Pieces{"a", "--", "b", "-", "c", "-"});
  CHECK(with(SplitBehavior::removed, true) == Pieces{"-", "-", "-", "-"});
}
