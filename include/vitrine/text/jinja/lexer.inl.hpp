// A template's text as tokens, by the rules of Jinja 3.1 with trim_blocks and lstrip_blocks, as transformers sets them:
//
//   {% if x %}\n      the line end behind a block tag goes        {%- ... -%}   strips white space on that side
//      {% if x %}     the spaces before one that begins its line  {%+ ... +%}   keeps what would go by these rules
//
// For bodies only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "vitrine/text/jinja/characters.inl.hpp"
#include "vitrine/text/jinja/template_error.hpp"

VITRINE_NAMESPACE_BEGIN

namespace jinja {

struct Token {
  enum class Type : std::uint8_t {
    data,
    print_begin,
    print_end,
    block_begin,
    block_end,
    name,
    string,
    integer,
    real,
    sign,
    end
  } type = Type::end;
  std::uint32_t at = 0;     // byte in the template
  std::string_view text{};  // of the template
};

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) read_data();
    add(Token::Type::end, source_.size(), source_.size());
    return std::move(tokens_);
  }

 private:
  using Type = Token::Type;

  void add(Type type, std::size_t begin, std::size_t end) {
    tokens_.push_back({type, std::uint32_t(begin), source_.substr(begin, end - begin)});
  }
  [[noreturn]] void fail_at(std::size_t at, const std::string& message) const {
    throw error_at(ErrorKind::bad_file, message, source_, at);
  }
  char peek(std::size_t at) const { return at < source_.size() ? source_[at] : '\0'; }
  bool starts(std::size_t at, std::string_view text) const { return source_.substr(at, text.size()) == text; }
  std::size_t skip_space(std::size_t at) const { return at + characters::leading_space(source_.substr(at)); }

  // Text up to the next tag, and the tag.
  void read_data() {
    const std::size_t begin = at_;
    std::size_t tag = begin;
    do {
      tag = source_.find('{', tag);
      if (tag == std::string_view::npos) return at_ = source_.size(), add(Type::data, begin, at_);
      const char next = peek(tag + 1);
      if (next == '{' || next == '%' || next == '#') break;
      ++tag;
    } while (true);
    const char kind = source_[tag + 1];
    std::size_t inside = tag + 2;
    const char control = peek(inside);
    inside += control == '-' || control == '+';
    add_text(begin, tag, control, kind != '{');
    line_starts_ = false;
    at_ = inside;
    if (kind == '#') return read_comment(inside);
    if (kind == '{') return read_tag(tag, true);
    std::size_t at = skip_space(inside);
    if (starts(at, "raw") && (at = skip_space(at + 3), starts(at, "%}") || starts(at, "-%}"))) {
      at_ = starts(at, "%}") ? at + 2 : skip_space(at + 3);
      return read_raw();
    }
    read_tag(tag, false);
  }

  // The text before a tag, stripped as the tag wants it.
  void add_text(std::size_t begin, std::size_t end, char control, bool is_block) {
    const std::string_view text = source_.substr(begin, end - begin);
    std::size_t kept = text.size();
    if (control == '-') {
      kept -= characters::trailing_space(text);
    } else if (control != '+' && is_block) {
      const std::size_t line_end = text.rfind('\n');
      const std::size_t line = line_end == std::string_view::npos ? 0 : line_end + 1;
      const bool begins_line = line > 0 || line_starts_;
      if (begins_line && characters::leading_space(text.substr(line)) == text.size() - line) kept = line;
    }
    if (kept > 0) add(Type::data, begin, begin + kept);
  }

  void set_position(std::size_t at) {
    at_ = at;
    line_starts_ = at > 0 && source_[at - 1] == '\n';
  }
  // Behind a tag's end at `at`, "-%}", "+%}" or "%}".
  void close_block(std::size_t at) {
    if (source_[at] == '-') return set_position(skip_space(at + 3));
    if (source_[at] == '+') return set_position(at + 3);
    set_position(at + 2 + (peek(at + 2) == '\n'));
  }

  void read_comment(std::size_t body) {
    const std::size_t end = source_.find("#}", body);
    if (end == std::string_view::npos) fail_at(body, "this comment has no end");
    const bool controlled = end > body && (source_[end - 1] == '-' || source_[end - 1] == '+');
    close_block(controlled ? end - 1 : end);
  }

  void read_raw() {
    const std::size_t begin = at_;
    line_starts_ = source_[at_ - 1] == '\n';
    for (std::size_t tag = source_.find("{%", begin); tag != std::string_view::npos;
         tag = source_.find("{%", tag + 1)) {
      const char control = peek(tag + 2);
      std::size_t at = skip_space(tag + 2 + (control == '-' || control == '+'));
      if (!starts(at, "endraw")) continue;
      at = skip_space(at + 6);
      if (!starts(at, "%}") && !starts(at, "-%}") && !starts(at, "+%}")) continue;
      add_text(begin, tag, control, true);
      return close_block(at);
    }
    fail_at(begin, "this raw block has no end");
  }

  // The inside of {{ }} or {% %}.
  void read_tag(std::size_t tag, bool prints) {
    add(prints ? Type::print_begin : Type::block_begin, tag, at_);
    std::string open;  // brackets that wait for their closing ones
    while (at_ < source_.size()) {
      if (open.empty()) {
        if (prints && (starts(at_, "}}") || starts(at_, "-}}"))) {
          add(Type::print_end, at_, at_ + 2);
          return set_position(source_[at_] == '-' ? skip_space(at_ + 3) : at_ + 2);
        }
        if (!prints && (starts(at_, "%}") || starts(at_, "-%}") || starts(at_, "+%}"))) {
          add(Type::block_end, at_, at_ + 2);
          return close_block(at_);
        }
      }
      if (const std::size_t space = characters::leading_space(source_.substr(at_))) {
        at_ += space;
        continue;
      }
      const std::size_t begin = at_;
      const Type type = read_token(open);
      add(type, begin, at_);
    }
  }

  Type read_token(std::string& open) {
    const char c = source_[at_];
    if (characters::is_digit(c)) return read_number();
    if (const std::size_t n = characters::word(source_.substr(at_))) return at_ += n, Type::name;
    if (c == '\'' || c == '"') {
      for (std::size_t i = at_ + 1; i < source_.size(); ++i) {
        if (source_[i] == '\\')
          ++i;
        else if (source_[i] == c)
          return at_ = i + 1, Type::string;
      }
      fail_at(at_, "this string has no end");
    }
    for (const std::string_view two : {"//", "**", "==", "!=", ">=", "<="})
      if (starts(at_, two)) return at_ += 2, Type::sign;
    if (std::string_view("+-/*%~[](){}><=.:|,;").find(c) == std::string_view::npos || c == '\0')
      fail_at(at_, concat("unexpected character ", printable_character()));
    if (c == '(') open += ')';
    if (c == '[') open += ']';
    if (c == '{') open += '}';
    if (c == ')' || c == ']' || c == '}') {
      if (open.empty()) fail_at(at_, concat("unexpected '", c, "'"));
      if (open.back() != c) fail_at(at_, concat("unexpected '", c, "', expected '", open.back(), "'"));
      open.pop_back();
    }
    ++at_;
    return Type::sign;
  }
  std::string printable_character() const {
    const auto unit = utf8::first_unit(source_.substr(at_));
    return unit.valid && source_[at_] != '\0' ? concat("'", source_.substr(at_, unit.n_bytes), "'") : "that is none";
  }

  // Digits with single underscores between them.
  std::size_t digits(std::size_t at, bool (*is_wanted)(char) = characters::is_digit) const {
    std::size_t n = 0;
    while (is_wanted(peek(at + n)) || (n > 0 && peek(at + n) == '_' && is_wanted(peek(at + n + 1)))) ++n;
    return n;
  }
  Type read_number() {
    const std::size_t whole = at_ + digits(at_);
    if (at_ == 0 || source_[at_ - 1] != '.') {
      std::size_t end = whole;
      if (peek(end) == '.' && digits(end + 1) > 0) end += 1 + digits(end + 1);
      std::size_t exponent = end;
      if ((peek(exponent) | 0x20) == 'e') {
        ++exponent;
        exponent += peek(exponent) == '+' || peek(exponent) == '-';
        if (const std::size_t n = digits(exponent)) end = exponent + n;
      }
      if (end > whole) return at_ = end, Type::real;
    }
    if (source_[at_] == '0') {
      const char base = char(peek(at_ + 1) | 0x20);
      const auto in_base = base == 'x'   ? characters::is_hex_digit
                           : base == 'o' ? +[](char c) { return c >= '0' && c <= '7'; }
                           : base == 'b' ? +[](char c) { return c == '0' || c == '1'; }
                                         : nullptr;
      const std::size_t first = at_ + 2 + (peek(at_ + 2) == '_');
      if (in_base != nullptr && digits(first, in_base) > 0) return at_ = first + digits(first, in_base), Type::integer;
      at_ += digits(at_, [](char c) { return c == '0'; });
      return Type::integer;
    }
    at_ = whole;
    return Type::integer;
  }

  std::string_view source_;
  std::size_t at_ = 0;
  bool line_starts_ = true;  // what was read last ended with a line
  std::vector<Token> tokens_;
};

}  // namespace jinja

VITRINE_NAMESPACE_END
