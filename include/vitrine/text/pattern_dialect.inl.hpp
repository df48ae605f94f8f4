// From Oniguruma's regular expressions (Ruby syntax, as the tokenizers library uses them) to PCRE2's. For bodies only.
//
// Both read the greater part of what tokenizers use alike. The rest is rewritten: \s is Unicode's White_Space (PCRE2
// adds U+180E), \w and \b count marks and connectors as parts of words (PCRE2 10.42 does not), \d is \p{Nd}. What else
// differs is refused. (Oniguruma's doc/RE, pcre2pattern(3).)
#pragma once

#include <cctype>
#include <string>
#include <string_view>

#include "vitrine/core/error.hpp"
#include "vitrine/model/byte_reader.hpp"

VITRINE_NAMESPACE_BEGIN

namespace pattern_detail {

inline constexpr std::string_view white_space =
    "\\t-\\r\\x20\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}";
// Alphabetic, marks, digits and connectors; the ranges are letters in circles and squares, alphabetic without being
// \p{L}.
inline constexpr std::string_view word =
    "\\p{L}\\p{M}\\p{Nl}\\p{Nd}\\p{Pc}\\x{24B6}-\\x{24E9}\\x{1F130}-\\x{1F149}\\x{1F150}-\\x{1F169}\\x{1F170}-\\x{"
    "1F189}";

class OnigurumaRewriter {
 public:
  explicit OnigurumaRewriter(std::string_view pattern) : in_(pattern) {}

  std::string run() {
    while (at_ < in_.size()) {
      switch (in_[at_]) {
        case '\\': escape(false); break;
        case '[': character_class(); break;
        case '(': group(); break;
        case '{': interval(); break;
        default: out_ += in_[at_++];
      }
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    throw Error(ErrorKind::unsupported,
                concat("pattern ", printable(in_), ": ", what, " at byte ", at_, " is not supported"));
  }
  char peek(std::size_t ahead) const { return at_ + ahead < in_.size() ? in_[at_ + ahead] : '\0'; }
  void copy(std::size_t n) {
    out_ += in_.substr(at_, n);
    at_ += n;
  }
  void replace(std::size_t n, std::string_view by) {
    out_ += by;
    at_ += n;
  }
  void replace_by_class(std::string_view open, std::string_view members, bool inside) {
    if (inside) return replace(2, members);
    replace(2, open);
    out_ += members;
    out_ += ']';
  }

  void escape(bool inside) {
    const char c = peek(1);
    if (at_ + 1 >= in_.size()) refuse("a lone backslash");
    if (!std::isalnum(static_cast<unsigned char>(c))) return copy(static_cast<unsigned char>(c) < 0x80 ? 2 : 1);
    switch (c) {
      case 's': return replace_by_class("[", white_space, inside);
      case 'w': return replace_by_class("[", word, inside);
      case 'd': return replace(2, "\\p{Nd}");
      case 'D': return replace(2, "\\P{Nd}");
      case 'S':
        if (inside) return copy(2);  // differs for U+180E alone
        return replace_by_class("[^", white_space, false);
      case 'W':
        if (inside) refuse("\\W in a character class");
        return replace_by_class("[^", word, false);
      case 'b':
      case 'B': {
        if (inside) refuse("\\b in a character class");
        const std::string is(word), yes = "(?<=[" + is + "])", no = "(?<![" + is + "])";
        const std::string next = "(?=[" + is + "])", not_next = "(?![" + is + "])";
        return replace(2, c == 'b' ? "(?:" + yes + not_next + "|" + no + next + ")"
                                   : "(?:" + yes + next + "|" + no + not_next + ")");
      }
      case 'p':
      case 'P': {
        const auto end = in_.find('}', at_);
        if (peek(2) != '{' || end == std::string_view::npos) refuse("a property without braces");
        return copy(end + 1 - at_);
      }
      case 't':
      case 'n':
      case 'r':
      case 'f':
      case 'a':
      case 'e': return copy(2);
      case 'v': return replace(2, "\\x{B}");
      case 'A':
      case 'z':
        if (inside) refuse("an anchor in a character class");
        return copy(2);
      case 'x':
      case 'u': return code_point(c);
      default: refuse(concat("\\", c));
    }
  }

  void code_point(char kind) {
    if (kind == 'x' && peek(2) == '{') {
      const auto end = in_.find('}', at_);
      if (end == std::string_view::npos) refuse("an open \\x{");
      return copy(end + 1 - at_);
    }
    const std::size_t n_digits = kind == 'x' ? 2 : 4;
    for (std::size_t i = 0; i < n_digits; ++i)
      if (!std::isxdigit(static_cast<unsigned char>(peek(2 + i)))) refuse("a short code point");
    if (kind == 'x' && peek(2) >= '8') refuse("\\x of a single byte above 7F");
    out_ += "\\x{";
    out_ += in_.substr(at_ + 2, n_digits);
    replace(2 + n_digits, "}");
  }

  void character_class() {
    copy(1);
    if (peek(0) == '^') copy(1);
    if (peek(0) == ']') refuse("an empty character class");
    while (at_ < in_.size() && in_[at_] != ']') {
      if (in_[at_] == '[') refuse("a class within a class");
      if (in_[at_] == '&' && peek(1) == '&') refuse("an intersection of classes");
      if (in_[at_] == '\\') {
        escape(true);
      } else {
        copy(1);
      }
    }
    if (at_ == in_.size()) refuse("an open character class");
    copy(1);
  }

  void group() {
    if (peek(1) == '*') refuse("a verb");
    if (peek(1) != '?') return copy(1);
    // (?i) within an alternation binds differently in the two dialects; at the start it does not.
    if (at_ == 0 && in_.substr(0, 4) == "(?i)") return copy(4);
    for (const std::string_view known : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"})
      if (in_.substr(at_, known.size()) == known) return copy(known.size());
    refuse("this kind of group");
  }

  // {n}, {n,} and {n,m} mean the same in both, but not what may follow them or leave out n.
  void interval() {
    const auto end = in_.find('}', at_);
    if (end == std::string_view::npos || !std::isdigit(static_cast<unsigned char>(peek(1)))) refuse("this brace");
    for (std::size_t i = at_ + 1; i < end; ++i)
      if (!std::isdigit(static_cast<unsigned char>(in_[i])) && in_[i] != ',') refuse("this brace");
    copy(end + 1 - at_);
    if (peek(0) == '+' || peek(0) == '?') refuse("a suffix on a repetition count");
  }

  std::string_view in_;
  std::string out_;
  std::size_t at_ = 0;
};

inline std::string rewrite_oniguruma(std::string_view pattern) { return OnigurumaRewriter(pattern).run(); }

}  // namespace pattern_detail

VITRINE_NAMESPACE_END
