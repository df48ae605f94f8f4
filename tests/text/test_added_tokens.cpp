// The search for added tokens: the longest ones, wherever they may be, in time that no file can make long.
#include <algorithm>
#include <optional>
#include <random>

#include "spec_tools.hpp"
#include "text_tools.hpp"
#include "vitrine/text/added_tokens.inl.hpp"

using namespace vitrine;
using namespace text_tools;
using added_detail::Matcher;

namespace {

using Places = std::vector<TextRange>;

// The rules as they are told: of the tokens that begin here and are allowed, the longest.
struct Naive {
  std::vector<AddedToken> tokens;
  std::string text;
  const Places* places;

  const AddedToken* longest(std::size_t at) const {
    const AddedToken* best = nullptr;
    for (const auto& token : tokens)
      if (text.compare(at, token.text.size(), token.text) == 0 && may_match(token, at) &&
          (!best || best->text.size() < token.text.size()))
        best = &token;
    return best;
  }
  bool may_match(const AddedToken& token, std::size_t at) const {
    if (!places) return true;
    const std::size_t end = at + token.text.size();
    if (token.special)
      return std::any_of(places->begin(), places->end(),
                         [&](const TextRange& place) { return place.begin <= at && end <= place.end; });
    return std::none_of(places->begin(), places->end(), [&](const TextRange& place) {
      if (place.begin <= at || place.begin >= end || place.begin == place.end) return false;
      const AddedToken* inside = longest(place.begin);
      return inside && inside->special;
    });
  }
};

std::size_t n_steps_in(const std::vector<std::string>& words, const std::string& text, bool special) {
  Matcher matcher;
  for (std::size_t i = 0; i < words.size(); ++i) matcher.add({Token(i), words[i], special});
  matcher.finish();
  std::vector<Matcher::Match> found;
  return matcher.find(text, nullptr, found);
}

}  // namespace

TEST_CASE("added tokens are the longest ones that may be there, in random texts and places") {
  std::mt19937 random(4);
  const auto letters = [&](std::size_t most) {
    std::string out;
    for (std::size_t n = 1 + random() % most; n > 0; --n) out += char('a' + random() % (1 + random() % 3));
    return out;
  };
  std::size_t n_found = 0, n_special = 0;
  for (int round = 0; round < 4000; ++round) {
    Naive naive;
    Matcher matcher;
    for (std::size_t i = 0; i < 1 + random() % 9; ++i) {
      const AddedToken token{Token(i), letters(5), random() % 2 == 0};
      const bool is_new = std::none_of(naive.tokens.begin(), naive.tokens.end(),
                                       [&](const AddedToken& other) { return other.text == token.text; });
      if (is_new) naive.tokens.push_back(token);
      matcher.add(token);  // of equal ones the first stays
    }
    matcher.finish();
    naive.text = letters(16);
    Places places;
    for (std::size_t at = random() % 4; at < naive.text.size(); at += random() % 3) {
      const std::size_t end = std::min(naive.text.size(), at + random() % 5);
      places.push_back({at, end});
      at = end;
    }
    for (const Places* given : {static_cast<const Places*>(nullptr), static_cast<const Places*>(&places)}) {
      naive.places = given;
      std::vector<Matcher::Match> found;
      CHECK(matcher.find(naive.text, given, found) <= 4 * naive.text.size());
      for (std::size_t at = 0; at < naive.text.size(); ++at) {
        const AddedToken* expected = naive.longest(at);
        const bool is_there = !found.empty() && found.back().begin == at;
        REQUIRE(is_there == (expected != nullptr));
        if (!is_there) continue;
        REQUIRE(found.back().token->text == expected->text);
        REQUIRE(found.back().token->id == expected->id);
        found.pop_back();
        ++n_found;
        n_special += expected->special;
      }
      CHECK(found.empty());
    }
  }
  CHECK(n_found > 10000);
  CHECK(n_special > 1000);
}

TEST_CASE("no added tokens make a text take more than two steps for each of its bytes") {
  const std::size_t n = 200000;
  std::vector<std::string> growing, with_end, with_start;
  for (std::size_t i = 1; i <= 400; ++i) {
    growing.push_back(std::string(i, 'a'));
    with_end.push_back(std::string(i, 'a') + "b");  // begins like the text at each of its places
    with_start.push_back(with_end.back());          // ends like it
    std::swap(with_start.back().front(), with_start.back().back());
  }
  std::string mixed;
  for (std::size_t i = 0; i < n; ++i) mixed += i % 401 == 400 ? 'b' : 'a';
  for (const auto& words : {growing, with_end, with_start})
    for (const auto& text : {std::string(n, 'a'), mixed})
      for (const bool special : {false, true}) CHECK(n_steps_in(words, text, special) <= 4 * n);
  CHECK(n_steps_in(with_end, std::string(n, 'a'), false) >= n);
  // Places change nothing about that, be they ever so many.
  Matcher matcher;
  for (const auto& words : {growing, with_end, with_start})
    for (const auto& word : words) matcher.add({1, word, word.size() % 3 == 0});
  matcher.finish();
  Places places;
  for (std::size_t at = 0; at + 3 <= n; at += 3) places.push_back({at, at + 3});
  std::vector<Matcher::Match> found;
  CHECK(matcher.find(mixed, &places, found) <= 4 * n);
}

TEST_CASE("tokens of white space that take white space along look at a long run of it once") {
  auto spec = byte_level({}, "gpt-2");
  const Token space = add_token(spec, " ", TokenKind::user_defined);
  const std::size_t n = 500000;  // its square would not come to an end
  std::string text(n + 2, ' ');
  text.front() = 'x';
  text.back() = 'y';
  for (const bool left : {false, true}) {
    spec.added.back().left_strip = left;
    spec.added.back().right_strip = true;
    const auto ids = plain(Tokenizer(spec), text);
    // As the tokenizers library has it: each space is a token, though the first took all; not if it looks back, too.
    CHECK(std::count(ids.begin(), ids.end(), space) == std::ptrdiff_t(left ? 1 : n));
    CHECK(ids.front() == 'x');
    CHECK(ids.back() == 'y');
  }
}
