// Strings as Python sees them, as sequences of characters: lengths, places, white space, searches. A byte that is part
// of no character counts as one. For bodies only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "vitrine/text/jinja/budget.inl.hpp"
#include "vitrine/text/unicode.inl.hpp"
#include "vitrine/text/utf8.hpp"

VITRINE_NAMESPACE_BEGIN

namespace jinja::characters {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_hex_digit(char c) { return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); }

// The first character's bytes, 0 for an empty text; `code` is U+FFFD for what is no character.
inline std::size_t first(std::string_view text, std::uint32_t& code) {
  const auto unit = utf8::first_unit(text);
  code = unit.valid ? utf8::code_point(text.substr(0, unit.n_bytes)) : 0xFFFD;
  return unit.n_bytes;
}
inline std::size_t last(std::string_view text, std::uint32_t& code) {
  for (std::size_t n = (std::min)(text.size(), std::size_t(4)); n > 0; --n) {
    const auto tail = text.substr(text.size() - n);
    const auto unit = utf8::first_unit(tail);
    if (unit.n_bytes == n && (unit.valid || n == 1)) return first(tail, code);
  }
  return 0;
}

inline bool is_space(std::uint32_t code) { return utf8::is_white_space(code) || (code >= 0x1C && code <= 0x1F); }

// Bytes of the characters that the text begins with and belongs() says yes to.
template <class Belongs>
std::size_t leading(std::string_view text, Belongs belongs) {
  std::size_t n = 0;
  std::uint32_t code;
  for (std::size_t k; (k = first(text.substr(n), code)) > 0 && belongs(code);) n += k;
  return n;
}
inline std::size_t leading_space(std::string_view text) { return leading(text, is_space); }
inline std::size_t trailing_space(std::string_view text) {
  std::size_t n = 0;
  std::uint32_t code;
  for (std::size_t k; (k = last(text.substr(0, text.size() - n), code)) > 0 && is_space(code);) n += k;
  return n;
}

inline bool is_word(std::uint32_t code) {  // \w
  if (code < 0x80) return is_digit(char(code)) || (code | 0x20) - 'a' < 26 || code == '_';
  return unicode::class_of(code) != unicode::Class::other;
}
inline std::size_t word(std::string_view text) { return leading(text, is_word); }

inline std::int64_t count(std::string_view text) {
  if (utf8::is_ascii(text)) return std::int64_t(text.size());
  std::int64_t n = 0;
  for (std::size_t at = 0; at < text.size(); ++n) at += utf8::first_unit(text.substr(at)).n_bytes;
  return n;
}
// The byte at which character number `index` begins; the size for one beyond the end.
inline std::size_t offset(std::string_view text, std::int64_t index) {
  std::size_t at = 0;
  while (index-- > 0 && at < text.size()) at += utf8::first_unit(text.substr(at)).n_bytes;
  return at;
}

// Where `wanted` begins in text from `from` on, or npos; in linear time.
inline std::size_t find(Budget& budget, std::string_view text, std::string_view wanted, std::size_t from = 0) {
  if (from > text.size()) return std::string_view::npos;
  if (wanted.size() <= 64) {
    const std::size_t found = text.find(wanted, from);
    budget.step(1 + ((found == std::string_view::npos ? text.size() : found) - from) / 32);
    return found;
  }
  if (wanted.size() > text.size() - from) return std::string_view::npos;
  budget.step(1 + (text.size() - from + wanted.size()) / 16);
  std::vector<std::uint32_t> border(wanted.size() + 1);  // of each prefix: its longest end that is also its start
  for (std::size_t i = 1, k = 0; i < wanted.size(); border[++i] = std::uint32_t(k)) {
    while (k > 0 && wanted[k] != wanted[i]) k = border[k];
    k += wanted[k] == wanted[i];
  }
  for (std::size_t i = from, k = 0; i < text.size(); ++i) {
    while (k > 0 && wanted[k] != text[i]) k = border[k];
    k += wanted[k] == text[i];
    if (k == wanted.size()) return i + 1 - k;
  }
  return std::string_view::npos;
}

// The characters at which str.splitlines() ends a line; \r\n is one end.
inline bool ends_line(std::uint32_t code) {
  return (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) || code == 0x85 || code == 0x2028 ||
         code == 0x2029;
}

}  // namespace jinja::characters

VITRINE_NAMESPACE_END
