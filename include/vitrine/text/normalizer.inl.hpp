// What is done to a text before it is cut into pieces. For bodies only.
#pragma once

#include <utf8proc.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "vitrine/core/error.hpp"
#include "vitrine/text/tokenizer_spec.hpp"
#include "vitrine/text/utf8.hpp"

VITRINE_NAMESPACE_BEGIN

namespace normalizer_detail {

inline std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  out.reserve(text.size());
  std::size_t at = 0;
  for (std::size_t hit; (hit = text.find(from, at)) != std::string_view::npos; at = hit + from.size()) {
    out += text.substr(at, hit - at);
    out += to;
  }
  return out += text.substr(at);
}

// SentencePiece's way: no space at either end, one where there were several.
inline std::string collapse_spaces(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text)
    if (c != ' ' || (!out.empty() && out.back() != ' ')) out += c;
  if (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

// NFC and its kin, on valid UTF-8; bytes that are none stay as they are.
inline std::string unicode_form(std::string_view text, std::string_view form) {
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

// Applies the steps; the result is `text` itself or a view of `buffer`.
inline std::string_view normalize(const std::vector<NormalizeStep>& steps, std::string_view text, std::string& buffer) {
  for (const NormalizeStep& step : steps) {
    std::string next;
    switch (step.kind) {
      case NormalizeStep::Kind::unicode:
        if (utf8::is_ascii(text)) continue;
        next = unicode_form(text, step.from);
        break;
      case NormalizeStep::Kind::replace:
        if (text.find(step.from) == std::string_view::npos) continue;
        next = replace_all(text, step.from, step.to);
        break;
      case NormalizeStep::Kind::collapse_spaces: next = collapse_spaces(text); break;
    }
    buffer.swap(next);
    text = buffer;
  }
  return text;
}

}  // namespace normalizer_detail

VITRINE_NAMESPACE_END
