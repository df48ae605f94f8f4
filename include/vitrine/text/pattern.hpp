// Regular expressions over valid UTF-8, by PCRE2: compiled once, then used from any number of threads.
//
// A match needs stack space that grows with the text for some patterns. It never comes from the thread's stack: the
// compiled code has a stack of its own, on the heap and bounded, and where even that does not do, PCRE2's interpreter
// takes over, whose memory is heap memory, too. Steps per match are bounded, so that a pattern from a hostile file ends
// in an error instead of never.
//
// Patterns in tokenizer.json are written for Oniguruma. Where the two dialects differ, from_oniguruma() rewrites (\s,
// \w, \d, \b by Unicode, multi-line anchors) or refuses by name; it never lets a pattern mean something else.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

struct TextRange {
  std::size_t begin = 0, end = 0;
};

class Pattern {
 public:
  // What a thread needs to match; reused over many calls, for any pattern.
  class Scratch {
   public:
    Scratch();
    ~Scratch();
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

   private:
    friend class Pattern;
    struct Parts;
    std::unique_ptr<Parts> parts_;
  };

  // A pattern in PCRE2's syntax, Unicode properties on. Throws Error::bad_file naming the pattern and where it is
  // wrong.
  explicit Pattern(std::string_view pattern);
  // Moving copies, too: what was moved from stays of use.
  Pattern(const Pattern&) = default;
  Pattern& operator=(const Pattern&) = default;
  // A pattern in Oniguruma's (Ruby) syntax. Throws Error::unsupported for what has no equal meaning here.
  static Pattern from_oniguruma(std::string_view pattern);
  // The text itself.
  static Pattern literal(std::string_view text);

  const std::string& text() const { return text_; }

  // Appends every match in `subject`, left to right, not overlapping; matches of no characters count, too, except
  // directly behind a match. `subject` must be valid UTF-8; nothing outside of it is looked at.
  void find_all(std::string_view subject, Scratch& scratch, std::vector<TextRange>& matches) const;

 private:
  std::string text_;
  std::shared_ptr<const void> code_;
};

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/text/pattern.inl.hpp"
#endif
