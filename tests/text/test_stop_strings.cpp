// Stop strings in text that comes in pieces: what is shown, what waits, and which string counts.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "vitrine/core/error.hpp"
#include "vitrine/sample/random.hpp"
#include "vitrine/text/stop_strings.hpp"

using namespace vitrine;

namespace {

struct Shown {
  std::string text;
  int n_pieces = 0;  // read until it was found
  bool found = false;
  std::size_t index = 99;
};

Shown show(const std::vector<std::string>& stops, const std::vector<std::string>& pieces) {
  StopMatcher matcher(stops);
  Shown shown;
  for (const auto& piece : pieces) {
    ++shown.n_pieces;
    shown.found = matcher.push(piece, shown.text);
    if (shown.found) break;
  }
  if (!shown.found) shown.found = matcher.finish(shown.text);
  if (matcher.found()) shown.index = *matcher.found();
  CHECK(matcher.found().has_value() == shown.found);
  CHECK(matcher.held().empty());
  return shown;
}

}  // namespace

TEST_CASE("a stop string ends the text before it, wherever pieces divide it") {
  CHECK(show({"DEFGHIJ"}, {"ABC", "DEF", "G", "HI", "J"}).text == "ABC");
  CHECK(show({"\nUser:"}, {"x", "\nUser", ":"}).text == "x");
  CHECK(show({"STOP"}, {"foo STOP bar"}).text == "foo ");
  CHECK(show({"aab"}, {"a", "a", "a", "b"}).text == "a");
  const auto longest = show({"ab", "abc"}, {"xabcd"});
  CHECK(longest.text == "x");
  CHECK(longest.index == 1);
  const auto nothing = show({"END"}, {"the E", "N"});
  CHECK(nothing.text == "the EN");  // nothing is lost
  CHECK_FALSE(nothing.found);
  CHECK(show({}, {"a", "b"}).text == "ab");
  const std::string long_one(10000, 'x');
  CHECK(show({long_one + "y"}, {long_one, "x", "y", "z"}).text == "x");
  // Divided inside a character.
  CHECK(show({"é!"}, {"caf\xC3", "\xA9", "! no"}).text == "caf");
  CHECK(show({"€"}, {"5 \xE2", "\x82", "\xAC"}).text == "5 ");
}

TEST_CASE("nothing waits longer than it must") {
  StopMatcher matcher({"ababc", "xyz"});
  std::string out;
  const auto held = [&](const std::string& piece) {
    CHECK_FALSE(matcher.push(piece, out));
    return matcher.held();
  };
  CHECK(held("hello a") == "a");
  CHECK(out == "hello ");
  CHECK(held("bab") == "abab");
  CHECK(held("ab") == "abab");  // the first two cannot be a part any more
  CHECK(out == "hello ab");
  CHECK(held("x") == "x");
  CHECK(out == "hello ababab");
  CHECK(held("!") == "");
  CHECK(out == "hello abababx!");
  // Found at once: a longer one that begins at the same place would show no other text.
  CHECK(show({"ab", "abc"}, {"ab", "c"}).n_pieces == 1);
  // A longer one that began before it must be waited for, until it fails or is there.
  CHECK(show({"abcd", "bc"}, {"abc", "d"}).text == "");
  CHECK(show({"abcd", "bc"}, {"abc", "d"}).index == 0);
  CHECK(show({"abcd", "bc"}, {"abc", "x"}).text == "a");
  CHECK(show({"abcd", "bc"}, {"abc", "x"}).index == 1);
  const auto at_the_end = show({"abcd", "bc"}, {"abc"});
  CHECK(at_the_end.text == "a");
  CHECK(at_the_end.found);
}

TEST_CASE("random texts and strings, in random pieces, against a search of the whole text") {
  std::uint64_t n = 0;
  const auto random = [&](std::uint64_t below) { return std::uint64_t(random_uniform(1, n++) * double(below)); };
  const auto letters = [&](std::uint64_t length) {
    std::string text;
    for (std::uint64_t i = 0; i < length; ++i) text += char('a' + random(2 + length % 2));
    return text;
  };
  int n_found = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::string> stops;
    for (std::uint64_t i = 0; i < 1 + random(4); ++i) stops.push_back(letters(1 + random(6)));
    const std::string text = letters(random(24));
    std::size_t first = std::string::npos;
    for (const auto& stop : stops) first = std::min(first, text.find(stop));

    StopMatcher matcher(stops);
    std::string out;
    bool found = false;
    std::size_t at = 0;
    while (!found && at < text.size()) {
      const std::size_t length = 1 + random(4);
      found = matcher.push(std::string_view(text).substr(at, length), out);
      at = std::min(at + length, text.size());
      if (found) break;
      // What waits: the longest end of the text so far with which a string begins, or a match that may be overtaken.
      const std::string so_far = text.substr(0, at);
      std::size_t waits = 0;
      for (const auto& stop : stops)
        for (std::size_t k = 1; k < stop.size() && k <= at; ++k)
          if (so_far.ends_with(stop.substr(0, k))) waits = std::max(waits, k);
      INFO(so_far << ": " << out);
      REQUIRE(matcher.held().size() == waits);
      REQUIRE(out + matcher.held() == so_far);
    }
    if (!found) found = matcher.finish(out);
    INFO(text);
    REQUIRE(found == (first != std::string::npos));
    REQUIRE(out == text.substr(0, first));
    if (found) {
      ++n_found;
      REQUIRE(text.compare(first, stops[*matcher.found()].size(), stops[*matcher.found()]) == 0);
    }
  }
  CHECK(n_found > 5000);
}

TEST_CASE("stop strings that no text could hold are refused") {
  const auto refused = [](const std::vector<std::string>& stops, const std::string& words) {
    try {
      StopMatcher matcher(stops);
      FAIL("expected an error");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::bad_argument);
      CHECK_THAT(error.what(), Catch::Contains(words));
    }
  };
  refused({"a", ""}, "stop string 1: expected at least 1 byte");
  refused({"a\xC3"}, "stop string 0: expected UTF-8, got another byte at 1");
}
