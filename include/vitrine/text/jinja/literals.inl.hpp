// Numbers and strings as templates write them. For bodies only.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "vitrine/text/jinja/characters.inl.hpp"
#include "vitrine/text/jinja/value.hpp"

VITRINE_NAMESPACE_BEGIN

namespace jinja::literals {

inline int digit_value(char c) {
  return characters::is_digit(c) ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'z' ? (c | 0x20) - 'a' + 10 : 99;
}

// Digits with single underscores between; nothing for what is none or does not fit 127 bits.
inline std::optional<Integer> digits(std::string_view text, int base) {
  Integer value = 0;
  bool after_digit = false;
  for (const char c : text) {
    if (c == '_' && after_digit) {
      after_digit = false;
      continue;
    }
    const int digit = digit_value(c);
    if (digit >= base || __builtin_mul_overflow(value, Integer(base), &value) ||
        __builtin_add_overflow(value, Integer(digit), &value))
      return std::nullopt;
    after_digit = true;
  }
  return after_digit ? std::optional(value) : std::nullopt;
}

// int(text, base) of Python; base 0 and prefixes 0x, 0o, 0b as there.
inline std::optional<Integer> integer(std::string_view text, int base = 10) {
  text.remove_prefix(characters::leading_space(text));
  text.remove_suffix(characters::trailing_space(text));
  const bool negative = text.substr(0, 1) == "-";
  if (negative || text.substr(0, 1) == "+") text.remove_prefix(1);
  const std::string_view prefix = text.substr(0, 2);
  const int named = prefix == "0x" || prefix == "0X"   ? 16
                    : prefix == "0o" || prefix == "0O" ? 8
                    : prefix == "0b" || prefix == "0B" ? 2
                                                       : 0;
  if (named != 0 && (base == 0 || base == named)) {
    text.remove_prefix(2);
    if (text.substr(0, 1) == "_") text.remove_prefix(1);
    base = named;
  }
  const auto value = digits(text, base == 0 ? 10 : base);
  if (!value) return std::nullopt;
  return negative ? -*value : *value;
}

// float(text) of Python.
inline std::optional<double> real(std::string_view text) {
  text.remove_prefix(characters::leading_space(text));
  text.remove_suffix(characters::trailing_space(text));
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      plain += text[i];
    } else if (i == 0 || i + 1 == text.size() || !characters::is_digit(text[i - 1]) ||
               !characters::is_digit(text[i + 1])) {
      return std::nullopt;
    }
  }
  const bool negative = plain.starts_with('-');
  std::string_view rest = plain;
  if (negative || plain.starts_with('+')) rest.remove_prefix(1);
  if (rest.empty() || rest[0] == '-' || rest[0] == '+') return std::nullopt;
  std::string lower(rest);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? char(c | 0x20) : c;
  double value = 0;
  const auto [end, error] = std::from_chars(lower.data(), lower.data() + lower.size(), value);
  if (error == std::errc::result_out_of_range) {  // too large, or too close to zero
    const std::size_t e = lower.find('e');
    const bool tiny = e != std::string::npos && lower.substr(e + 1).starts_with('-');
    value = tiny ? 0 : std::numeric_limits<double>::infinity();
  } else if (error != std::errc() || end != lower.data() + lower.size() || lower.find('(') != std::string::npos) {
    return std::nullopt;
  }
  return negative ? -value : value;
}

// The text between a string literal's quotes, with its escapes resolved as Python does; nothing if one is malformed.
inline std::optional<std::string> unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char c = text[++i];
    static constexpr std::string_view letters = "\\'\"abfnrtv", meanings = "\\'\"\a\b\f\n\r\t\v";
    if (const auto known = letters.find(c); known != std::string_view::npos) {
      out += meanings[known];
    } else if (c == '\n') {  // the literal goes on in the next line
    } else if (c >= '0' && c <= '7') {
      std::size_t n = 1;
      while (n < 3 && i + n < text.size() && text[i + n] >= '0' && text[i + n] <= '7') ++n;
      utf8::append(out, std::uint32_t(*digits(text.substr(i, n), 8)));
      i += n - 1;
    } else if (c == 'x' || c == 'u' || c == 'U') {
      const std::size_t n = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      const auto hex = text.substr(i + 1, n);
      const auto code = hex.size() == n && hex.find('_') == std::string_view::npos ? digits(hex, 16) : std::nullopt;
      if (!code || *code > 0x10FFFF || (*code >= 0xD800 && *code <= 0xDFFF)) return std::nullopt;
      utf8::append(out, std::uint32_t(*code));
      i += n;
    } else if (c == 'N') {
      return std::nullopt;
    } else {
      out += '\\';
      out += c;
    }
  }
  return out;
}

}  // namespace jinja::literals

VITRINE_NAMESPACE_END
