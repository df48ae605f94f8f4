// Values as text, byte for byte as Python prints them: str(), repr(), json.dumps(). For bodies only.
#pragma once

#include <charconv>
#include <cmath>
#include <string>
#include <string_view>

#include "vitrine/text/jinja/budget.inl.hpp"
#include "vitrine/text/jinja/comparing.inl.hpp"
#include "vitrine/text/jinja/value.hpp"
#include "vitrine/text/unicode.inl.hpp"
#include "vitrine/text/utf8.hpp"

VITRINE_NAMESPACE_BEGIN

namespace jinja {

namespace printing {
class Writer;
}
void write_object(printing::Writer& out, const Object& object);  // objects.inl.hpp

namespace printing {

// Text in the making; what is no string's own is marked with one origin.
class Writer {
 public:
  explicit Writer(Budget& budget, Origin origin = scaffold) : budget_(budget), origin_(origin) {}

  void put(std::string_view bytes) { put(bytes, origin_); }
  void put(std::string_view bytes, Origin origin) {
    budget_.allocate(bytes.size());
    text_.append(bytes, origin);
  }
  void put(const MarkedText& text) { put(text, 0, text.size()); }
  void put(const MarkedText& text, std::size_t begin, std::size_t end) {
    if (begin >= end) return;
    budget_.allocate(end - begin);
    text_.append(text, begin, end);
  }
  void repeat(std::string_view bytes, std::int64_t n) {
    if (n > 0 && std::uint64_t(n) > budget_.bytes) budget_.allocate(std::uint64_t(n));
    for (std::int64_t i = 0; i < n; ++i) put(bytes);
  }
  std::size_t size() const { return text_.size(); }
  MarkedText take() { return std::move(text_); }
  Budget& budget() { return budget_; }

 private:
  Budget& budget_;
  Origin origin_;
  MarkedText text_;
};

// Of the first string within.
inline Origin origin_of(const Value& value) {
  const auto* found = value.string();
  if (found) return found->text.origin_at(0);
  if (const List* list = value.list())
    for (const Value& item : list->items)
      if (const Origin origin = origin_of(item)) return origin;
  if (const Dict* dict = value.dict())
    for (const auto& [key, item] : dict->pairs) {
      if (const Origin origin = origin_of(key)) return origin;
      if (const Origin origin = origin_of(item)) return origin;
    }
  return scaffold;
}

inline std::string integer_text(Integer value) {
  std::string digits;
  const bool negative = value < 0;
  do {
    const int digit = int(value % 10);
    digits.insert(digits.begin(), char('0' + (digit < 0 ? -digit : digit)));
    value /= 10;
  } while (value != 0);
  return negative ? "-" + digits : digits;
}

// repr() of a float: the fewest digits that give it back, an exponent below 1e-4 and from 1e16 on.
inline std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string_view text(buffer, std::size_t(end - buffer));
  const std::size_t e = text.find('e');
  int exponent = 0;
  const std::string_view written = text.substr(e + (text[e + 1] == '+' ? 2 : 1));
  std::from_chars(written.data(), written.data() + written.size(), exponent);
  if (exponent < -4 || exponent >= 16) return std::string(text);  // both write at least two digits of exponent
  const bool negative = text[0] == '-';
  std::string digits;
  for (const char c : text.substr(negative, e - negative))
    if (c != '.') digits += c;
  std::string out;
  if (exponent < 0) {
    out = "0." + std::string(std::size_t(-exponent - 1), '0') + digits;
  } else {
    const auto n_whole = std::size_t(exponent) + 1;
    if (digits.size() <= n_whole) digits.append(n_whole + 1 - digits.size(), '0');
    out = digits.substr(0, n_whole) + "." + digits.substr(n_whole);
  }
  return negative ? "-" + out : out;
}

inline std::string hex(std::uint32_t value, int n_digits) {
  std::string out(std::size_t(n_digits), '0');
  for (int i = n_digits - 1; i >= 0; --i, value >>= 4) out[std::size_t(i)] = "0123456789abcdef"[value & 15];
  return out;
}

// The text between two quotes. escaped(code): what stands for a character, empty for itself. An escape is from where
// its character was, a quote from where the character beside it was.
template <class Escaped>
void write_between(Writer& out, const MarkedText& text, char quote, Escaped escaped) {
  const std::string_view bytes = text.bytes();
  out.put(std::string_view(&quote, 1), text.origin_at(0));
  std::size_t plain = 0;  // from here on nothing had to be changed
  for (std::size_t at = 0; at < bytes.size();) {
    const auto unit = utf8::first_unit(bytes.substr(at));
    const auto instead = escaped(unit.valid ? utf8::code_point(bytes.substr(at, unit.n_bytes)) : 0xFFFD);
    if (!instead.empty()) {
      out.put(text, plain, at);
      out.put(instead, text.origin_at(at));
      plain = at + unit.n_bytes;
    }
    at += unit.n_bytes;
  }
  out.put(text, plain, bytes.size());
  out.put(std::string_view(&quote, 1), text.origin_at(bytes.empty() ? 0 : bytes.size() - 1));
}

inline void write_quoted(Writer& out, const MarkedText& text) {
  const std::string_view bytes = text.bytes();
  const bool double_quotes = bytes.find('\'') != std::string_view::npos && bytes.find('"') == std::string_view::npos;
  const char quote = double_quotes ? '"' : '\'';
  write_between(out, text, quote, [&](std::uint32_t code) -> std::string {
    if (code == '\\' || code == std::uint32_t(quote)) return std::string("\\") + char(code);
    if (code == '\n' || code == '\r' || code == '\t') return code == '\n' ? "\\n" : code == '\r' ? "\\r" : "\\t";
    if (unicode::is_printable(code)) return {};
    return code < 0x100 ? "\\x" + hex(code, 2) : code < 0x10000 ? "\\u" + hex(code, 4) : "\\U" + hex(code, 8);
  });
}

inline void write_repr(Writer& out, const Value& value);

inline void write_items(Writer& out, const Value::Items& items) {
  bool first = true;
  for (const Value& item : items) {
    if (!first) out.put(", ");
    first = false;
    write_repr(out, item);
  }
}

inline void write_repr(Writer& out, const Value& value) {
  out.budget().step();
  if (value.is_undefined()) return out.put("Undefined");
  if (value.is_none()) return out.put("None");
  if (const bool* flag = value.get_if<bool>()) return out.put(*flag ? "True" : "False");
  if (const Integer* integer = value.get_if<Integer>()) return out.put(integer_text(*integer));
  if (const double* real = value.get_if<double>()) return out.put(real_text(*real));
  if (const Object* object = value.object()) return write_object(out, *object);
  if (const String* text = value.string()) {
    if (text->safe) out.put("Markup(");
    write_quoted(out, text->text);
    if (text->safe) out.put(")");
  } else if (const List* list = value.list()) {
    out.put(list->is_tuple ? "(" : "[");
    write_items(out, list->items);
    out.put(list->is_tuple ? (list->items.size() == 1 ? ",)" : ")") : "]");
  } else if (const Dict* dict = value.dict()) {
    out.put("{");
    bool first = true;
    for (const auto& [key, item] : dict->pairs) {
      if (!first) out.put(", ");
      first = false;
      write_repr(out, key);
      out.put(": ");
      write_repr(out, item);
    }
    out.put("}");
  }
}

// str(): strings as they are, nothing for what is undefined.
inline MarkedText text_of(Budget& budget, const Value& value) {
  if (const String* text = value.string()) return text->text;
  if (value.is_undefined()) return {};
  Writer out(budget, origin_of(value));
  write_repr(out, value);
  return out.take();
}

struct JsonStyle {
  bool ensure_ascii = false, sort_keys = false, undefined_is_null = false;
  bool multi_line = false;
  std::string indent{};  // of one level
  std::string between_items = ", ", behind_key = ": ";
};

inline void write_json_string(Writer& out, const MarkedText& text, bool ensure_ascii) {
  write_between(out, text, '"', [&](std::uint32_t code) -> std::string {
    if (code == '"' || code == '\\') return std::string("\\") + char(code);
    if (code >= 0x20 && !(ensure_ascii && code >= 0x7F)) return {};
    static constexpr std::string_view letters = "btn fr";  // of 8 to 13
    if (code >= 8 && code <= 13 && code != 11) return std::string("\\") + letters[code - 8];
    if (code < 0x10000) return "\\u" + hex(code, 4);
    return "\\u" + hex(0xD800 + ((code - 0x10000) >> 10), 4) + "\\u" + hex(0xDC00 + ((code - 0x10000) & 0x3FF), 4);
  });
}

inline std::string json_number(double value) {
  return std::isnan(value) ? "NaN" : std::isinf(value) ? (value < 0 ? "-Infinity" : "Infinity") : real_text(value);
}

inline void write_json_key(Writer& out, const Value& key, const JsonStyle& style) {
  if (const String* text = key.string()) return write_json_string(out, text->text, style.ensure_ascii);
  std::string name;
  if (const bool* flag = key.get_if<bool>()) {
    name = *flag ? "true" : "false";
  } else if (key.is_none()) {
    name = "null";
  } else if (const Integer* integer = key.get_if<Integer>()) {
    name = integer_text(*integer);
  } else if (const double* real = key.get_if<double>()) {
    name = json_number(*real);
  } else {
    fail("tojson: a key must be a string, a number, a boolean or none");
  }
  out.put("\"" + name + "\"");
}

inline void write_json(Writer& out, const Value& value, const JsonStyle& style, int level) {
  out.budget().step();
  const auto new_line = [&](int depth) {
    if (!style.multi_line) return;
    out.put("\n");
    for (int i = 0; i < depth; ++i) out.put(style.indent);
  };
  if (const String* text = value.string()) return write_json_string(out, text->text, style.ensure_ascii);
  if (value.is_none() || (value.is_undefined() && style.undefined_is_null)) return out.put("null");
  if (const bool* flag = value.get_if<bool>()) return out.put(*flag ? "true" : "false");
  if (const Integer* integer = value.get_if<Integer>()) return out.put(integer_text(*integer));
  if (const double* real = value.get_if<double>()) return out.put(json_number(*real));
  if (const List* list = value.list()) {
    if (list->items.empty()) return out.put("[]");
    out.put("[");
    for (std::size_t i = 0; i < list->items.size(); ++i) {
      if (i > 0) out.put(style.between_items);
      new_line(level + 1);
      write_json(out, list->items[i], style, level + 1);
    }
    new_line(level);
    return out.put("]");
  }
  const Dict* dict = value.dict();
  if (dict == nullptr)
    fail("tojson: a value that is ", value.is_undefined() ? "undefined" : "a function", " is no JSON");
  if (dict->pairs.empty()) return out.put("{}");
  std::vector<const std::pair<Value, Value>*> pairs;
  for (const auto& pair : dict->pairs) pairs.push_back(&pair);
  if (style.sort_keys)
    std::stable_sort(pairs.begin(), pairs.end(),
                     [&](const auto* a, const auto* b) { return less(out.budget(), a->first, b->first); });
  out.put("{");
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (i > 0) out.put(style.between_items);
    new_line(level + 1);
    write_json_key(out, pairs[i]->first, style);
    out.put(style.behind_key);
    write_json(out, pairs[i]->second, style, level + 1);
  }
  new_line(level);
  out.put("}");
}

}  // namespace printing

}  // namespace jinja

VITRINE_NAMESPACE_END
