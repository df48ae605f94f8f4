// What is wrong in a template or went wrong while it was rendered, and where: line and column, both from 1.
//
//   "chat template, line 3, column 14: ..."
//
// Thrown by jinja::Template, and through it by ChatTemplate. The kind says whose fault it is: bad_file (no template),
// unsupported (nothing this interpreter knows), refused (the template's own raise_exception), limit_exceeded (more
// work, memory or nesting than allowed). Columns count characters, not bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "vitrine/core/config.hpp"
#include "vitrine/core/error.hpp"

VITRINE_NAMESPACE_BEGIN

namespace jinja {

class TemplateError : public Error {
 public:
  TemplateError(ErrorKind kind, std::string message, std::size_t line, std::size_t column)
      : Error(kind, concat("chat template, line ", line, ", column ", column, ": ", message)),
        message_(std::move(message)),
        line_(line),
        column_(column) {}

  const std::string& message() const { return message_; }  // without the place; of raise_exception: the template's own
  std::size_t line() const { return line_; }
  std::size_t column() const { return column_; }  // in characters

 private:
  std::string message_;
  std::size_t line_, column_;
};

// The same for a byte of the template's text.
inline TemplateError error_at(ErrorKind kind, std::string message, std::string_view source, std::size_t at) {
  const std::string_view before = source.substr(0, (std::min)(at, source.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const auto start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  const auto is_first_byte = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
  const auto column = 1 + std::count_if(before.begin() + std::ptrdiff_t(start), before.end(), is_first_byte);
  return TemplateError(kind, std::move(message), std::size_t(line), std::size_t(column));
}

}  // namespace jinja

VITRINE_NAMESPACE_END
