// What the tables of Unicode say, by utf8proc: normal forms and general categories. For bodies only.
#pragma once

#include <utf8proc.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "vitrine/core/error.hpp"
#include "vitrine/text/utf8.hpp"

VITRINE_NAMESPACE_BEGIN

namespace unicode {

// Categories L, M, Nd, Nl and Pc.
inline bool is_letter_mark_digit_or_connector(std::uint32_t code) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC: return true;
    default: return false;
  }
}

// What Python's repr() shows as it is.
inline bool is_printable(std::uint32_t code) {
  if (code < 0x7F) return code >= 0x20;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return false;
    default: return true;
  }
}

enum class Class { letter, decimal, number, other };
inline Class class_of(std::uint32_t code) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return Class::letter;
    case UTF8PROC_CATEGORY_ND: return Class::decimal;
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return Class::number;
    default: return Class::other;
  }
}

// Letter by letter; the few that become several letters (SpecialCasing) are there as far as texts have them.
inline void append_upper(std::string& out, std::uint32_t code) {
  switch (code) {
    case 0xDF: out += "SS"; return;
    case 0x149: out += "\xCA\xBCN"; return;
    case 0x1F0: out += "J\xCC\x8C"; return;
    case 0x587: out += "\xD4\xB5\xD5\x92"; return;
    case 0xFB00: out += "FF"; return;
    case 0xFB01: out += "FI"; return;
    case 0xFB02: out += "FL"; return;
    case 0xFB03: out += "FFI"; return;
    case 0xFB04: out += "FFL"; return;
    case 0xFB05:
    case 0xFB06: out += "ST"; return;
    default: utf8::append(out, std::uint32_t(utf8proc_toupper(utf8proc_int32_t(code))));
  }
}
inline void append_title(std::string& out, std::uint32_t code) {
  std::string upper;
  append_upper(upper, code);
  if (upper.size() > 1 && static_cast<unsigned char>(upper[0]) < 0x80) {  // "Ss", "Ffi"
    out += upper[0];
    for (const char c : upper.substr(1)) out += c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
  } else {
    utf8::append(out, std::uint32_t(utf8proc_totitle(utf8proc_int32_t(code))));
  }
}
inline std::uint32_t lower(std::uint32_t code) {
  return std::uint32_t(utf8proc_tolower(static_cast<utf8proc_int32_t>(code)));
}
inline bool is_lower(std::uint32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code)) == UTF8PROC_CATEGORY_LL;
}
inline bool is_upper(std::uint32_t code) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LT;
}
// Letters that have or are another case.
inline bool is_cased(std::uint32_t code) {
  return is_lower(code) || is_upper(code) || lower(code) != code ||
         utf8proc_toupper(static_cast<utf8proc_int32_t>(code)) != utf8proc_int32_t(code);
}

// NFC and its kin, on valid UTF-8; bytes that are none stay as they are.
inline std::string normal_form(std::string_view text, std::string_view form) {
  int options = UTF8PROC_STABLE;
  options |= form.back() == 'C' ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form.find('K') != std::string_view::npos) options |= UTF8PROC_COMPAT;
  std::string out;
  while (!text.empty()) {
    const std::size_t n_valid = utf8::valid_prefix(text);
    if (utf8::is_ascii(text.substr(0, n_valid))) {
      out += text.substr(0, n_valid);
    } else {
      utf8proc_uint8_t* result = nullptr;
      const auto n = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                  static_cast<utf8proc_ssize_t>(n_valid), &result, utf8proc_option_t(options));
      const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owned(result, &std::free);
      check(n >= 0, ErrorKind::out_of_memory, "no memory for the ", form, " form of ", n_valid, " bytes");
      out.append(reinterpret_cast<const char*>(result), static_cast<std::size_t>(n));
    }
    text.remove_prefix(n_valid);
    if (text.empty()) break;
    const auto unit = utf8::first_unit(text);
    if (!unit.valid) {
      out += text.substr(0, unit.n_bytes);
      text.remove_prefix(unit.n_bytes);
    }
  }
  return out;
}

}  // namespace unicode

VITRINE_NAMESPACE_END
