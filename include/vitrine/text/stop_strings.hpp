// Strings that end a text, found in it as it comes, piece by piece.
//
//   StopMatcher matcher({"\nUser:", "END"});
//   if (matcher.push(piece, shown)) ...         // found: `shown` has all before it, nothing of it
//   matcher.finish(shown);                      // the text ended otherwise: what was held back comes
//
// The string that begins earliest counts, of those the longest that the text at hand holds. What could be the beginning
// of one waits, and nothing else: the bytes that wait are always the longest end of the text with which one begins.
// One pass over the bytes, whatever the strings are (Aho and Corasick 1975). Pieces may end inside a character.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

class StopMatcher {
 public:
  // Throws Error(bad_argument) naming the index of a string that is empty or no UTF-8, which no text could hold.
  explicit StopMatcher(const std::vector<std::string>& strings = {});

  // Takes the next piece of the text and appends to `out` what is certainly no part of a stop string. True when one was
  // found; further text is ignored then. Allocates only where a string must grow.
  bool push(std::string_view text, std::string& out);

  // The text ends here: what waited is appended to `out`. True if it held a stop string after all, which had to wait
  // for a longer one that began before it.
  bool finish(std::string& out);

  const std::string& held() const { return held_; }
  std::optional<std::size_t> found() const;  // the index of the string

 private:
  struct Node {  // of the tree of the strings' beginnings
    std::int32_t child = -1, sibling = -1;
    std::int32_t fallback = 0;  // the longest proper end of this beginning that is a beginning, too
    std::int32_t depth = 0;
    std::int32_t whole = -1;  // the longest string that ends here, by its index
    std::int32_t length = 0;  // and its length
    char byte = 0;
  };
  std::int32_t child(std::int32_t node, char byte) const;
  void add(const std::string& string, std::int32_t index);
  void link();
  std::int32_t next(std::int32_t node, char byte) const;
  bool take(std::string& out);
  void give(std::size_t n, std::string& out);

  std::vector<Node> nodes_;
  std::int32_t node_ = 0;
  std::string held_;
  // The best match so far, its beginning counted from that of held_.
  std::int32_t match_ = -1, match_length_ = 0;
  std::size_t match_begin_ = 0;
  bool done_ = false;
};

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/text/stop_strings.inl.hpp"
#endif
