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
