// What is done to a text before it is cut into pieces. For bodies only.
#pragma once

#include <string>
#include <string_view>

#include "vitrine/core/config.hpp"
#include "vitrine/core/error.hpp"
#include "vitrine/text/tokenizer_spec.hpp"
#include "vitrine/text/unicode.inl.hpp"
#include "vitrine/text/utf8.hpp"

VITRINE_NAMESPACE_BEGIN

namespace normalizer_detail {

// Ends early once there are more than `most` bytes.
inline std::string replace_all(std::string_view text, std::string_view from, std::string_view to,
                               std::size_t most = std::string::npos) {
  std::string out;
  out.reserve(text.size());
  std::size_t at = 0;
  for (std::size_t hit; (hit = text.find(from, at)) != std::string_view::npos; at = hit + from.size()) {
    out += text.substr(at, hit - at);
    out += to;
    if (out.size() > most) return out;
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

// Applies the steps; the result is `text` itself or a view of `buffer`. Throws Error::limit_exceeded where steps blow a
// text up: what Unicode does is at most eighteenfold, and a file may list replacements of replacements.
inline std::string_view normalize(const std::vector<NormalizeStep>& steps, std::string_view text, std::string& buffer) {
  const std::size_t n_bytes = text.size(), most = 64 * n_bytes + 65536;
  for (const NormalizeStep& step : steps) {
    std::string next;
    switch (step.kind) {
      case NormalizeStep::Kind::unicode:
        if (utf8::is_ascii(text)) continue;
        next = unicode::normal_form(text, step.from);
        break;
      case NormalizeStep::Kind::replace:
        if (text.find(step.from) == std::string_view::npos) continue;
        next = replace_all(text, step.from, step.to, most);
        break;
      case NormalizeStep::Kind::collapse_spaces: next = collapse_spaces(text); break;
    }
    check(next.size() <= most, ErrorKind::limit_exceeded, "the tokenizer's normalizer makes more than ", most,
          " bytes of a text of ", n_bytes);
    buffer.swap(next);
    text = buffer;
  }
  return text;
}

}  // namespace normalizer_detail

VITRINE_NAMESPACE_END
