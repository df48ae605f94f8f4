// UTF-8 as tokenizers meet it: text from people and from half-finished token streams, so never assumed to be valid.
//
// Strict as the Unicode standard (table 3-7): overlong forms, surrogates and values above U+10FFFF are invalid. What is
// invalid is replaced piece by piece as the standard recommends ("maximal subparts"): one U+FFFD for the longest
// beginning of a character that is there, e.g. one for F0 9F at the end of a text, one for a lone FF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

namespace utf8 {

inline constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

// What stands at the start of a text: a whole character, or else the longest part of one.
struct Unit {
  std::size_t n_bytes = 0;  // at least 1 unless the text is empty
  bool valid = false;       // a whole character
  bool open = false;        // not valid, but more bytes could complete it: the text ends inside a character
};

inline Unit first_unit(std::string_view text) {
  if (text.empty()) return {};
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {1, true, false};
  if (lead < 0xC2 || lead > 0xF4) return {1, false, false};
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // Only the second byte has a range of its own; it excludes overlong forms, surrogates and too large values.
  const unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (std::size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {i, false, true};
    if (byte(i) < (i == 1 ? low : 0x80) || byte(i) > (i == 1 ? high : 0xBF)) return {i, false, false};
  }
  return {length, true, false};
}

// Bytes from the start on that are valid UTF-8.
inline std::size_t valid_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    std::uint64_t eight;
    while (at + sizeof eight <= text.size()) {  // most text is ASCII
      std::memcpy(&eight, text.data() + at, sizeof eight);
      if (eight & 0x8080808080808080u) break;
      at += sizeof eight;
    }
    const Unit unit = first_unit(text.substr(at));
    if (!unit.valid) break;
    at += unit.n_bytes;
  }
  return at;
}

inline bool is_ascii(std::string_view text) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) >= 0x80) return false;
  return true;
}

// The code point of a valid character of n bytes.
inline std::uint32_t code_point(std::string_view character) {
  const auto byte = [&](std::size_t i) { return std::uint32_t(static_cast<unsigned char>(character[i])); };
  switch (character.size()) {
    case 1: return byte(0);
    case 2: return (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
    case 3: return (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    default: return (byte(0) & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
  }
}

inline void append(std::string& out, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6), put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18), put(0x80 | (code >> 12 & 0x3F)), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
  }
}

// Moves from the front of `pending` to `out` what can be said already: whole characters, and U+FFFD for what no later
// byte can repair. At most 3 bytes, the beginning of one character, stay; with `at_end` they become one U+FFFD.
inline void flush_whole_characters(std::string& pending, std::string& out, bool at_end) {
  std::size_t at = 0;
  const std::string_view text = pending;
  while (at < text.size()) {
    const std::size_t n_valid = valid_prefix(text.substr(at));
    out.append(text, at, n_valid);
    at += n_valid;
    const Unit unit = first_unit(text.substr(at));
    if (unit.n_bytes == 0 || (unit.open && !at_end)) break;
    out += replacement;
    at += unit.n_bytes;
  }
  pending.erase(0, at);
}

// The text with every invalid part replaced.
inline std::string to_valid(std::string_view text) {
  std::string pending(text), out;
  flush_whole_characters(pending, out, true);
  return out;
}

// Members of Unicode's White_Space, which is what \s means in the patterns of tokenizers.
inline bool is_white_space(std::uint32_t c) {
  return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

}  // namespace utf8

VITRINE_NAMESPACE_END
