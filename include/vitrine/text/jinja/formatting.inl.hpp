// Python's two ways to put values into a text: "%s of %d" % (a, b), and "{} of {n:02d}".format(a, n=b). For
// bodies only.
#pragma once

#include <string>
#include <string_view>

#include "vitrine/text/jinja/strings.inl.hpp"

VITRINE_NAMESPACE_BEGIN

namespace jinja::formatting {

struct Style {
  char align = 0, sign = '-', grouping = 0, type = 0;
  std::string fill = " ";
  bool alternate = false, zeros = false;
  std::int64_t width = 0, precision = -1;
};

inline std::string rounded(double value, std::int64_t precision) {
  if (std::isnan(value) || std::isinf(value)) return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
  if (precision > 400) fail("format: more than 400 digits behind the point");
  char buffer[800];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed, int(precision)).ptr;
  return {buffer, end};
}

inline std::string in_base(Integer value, int base) {
  std::string digits;
  const bool negative = value < 0;
  do {
    const int digit = int(value % base);
    digits.insert(digits.begin(), "0123456789abcdef"[digit < 0 ? -digit : digit]);
    value /= base;
  } while (value != 0);
  return negative ? "-" + digits : digits;
}

inline std::string grouped(const std::string& digits, char separator) {
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += separator;
    out += digits[i];
  }
  return out;
}

// The digits of a number in a style, with its sign in front.
inline std::string number(const Value& value, const Style& style) {
  Integer integer;
  double real = 0;
  std::string text;
  const char type = style.type;
  if (type != 'f' && type != 'F' && type != 'e' && type != '%' && type != 'g' && as_integer(value, integer)) {
    const char lower = char(type | 0x20);
    if (lower == 'x' || type == 'o' || type == 'b') {
      text = in_base(integer, lower == 'x' ? 16 : type == 'o' ? 8 : 2);
      if (type == 'X')
        for (char& c : text) c = c >= 'a' ? char(c - 0x20) : c;
      if (style.alternate) text.insert(text.starts_with('-') ? 1 : 0, std::string("0") + type);
    } else {
      text = printing::integer_text(integer);
    }
  } else if (as_real(value, real)) {
    if (type == 'f' || type == 'F' || type == '%') {
      text = rounded(type == '%' ? real * 100 : real, style.precision < 0 ? 6 : style.precision);
      if (type == '%') text += '%';
    } else if (type == 0 && style.precision < 0) {
      text = printing::real_text(real);
    } else {
      fail("format: numbers of type '", type ? std::string(1, type) : "none with a precision", "' are not supported");
    }
  } else {
    fail("format: expected a number, got a value of type '", type_name(value), "'");
  }
  if (style.grouping != 0) {
    const std::size_t sign = text.starts_with('-');
    std::size_t whole = sign;
    while (whole < text.size() && characters::is_digit(text[whole])) ++whole;
    text = text.substr(0, sign) + grouped(text.substr(sign, whole - sign), style.grouping) + text.substr(whole);
  }
  if (style.sign != '-' && !text.starts_with('-')) text.insert(0, 1, style.sign);
  return text;
}

// Puts the text into its width. Numbers are aligned to the right, zeros go behind their sign.
inline void put_aligned(printing::Writer& out, const MarkedText& text, const Style& style, bool is_number) {
  const std::int64_t missing = style.width - characters::count(text.bytes());
  char align = style.align != 0 ? style.align : is_number ? '>' : '<';
  if (missing <= 0) return out.put(text);
  if (style.zeros && is_number && style.align == 0) {
    const bool has_sign = !text.empty() && (text.bytes()[0] == '-' || text.bytes()[0] == '+' || text.bytes()[0] == ' ');
    out.put(text, 0, has_sign);
    out.repeat("0", missing);
    return out.put(text, has_sign, text.size());
  }
  const std::int64_t before = align == '>' ? missing : align == '^' ? missing / 2 : 0;
  out.repeat(style.fill, before);
  out.put(text);
  out.repeat(style.fill, missing - before);
}

inline std::int64_t take_number(std::string_view text, std::size_t& at) {
  std::int64_t value = 0;
  for (; at < text.size() && characters::is_digit(text[at]); ++at)
    if ((value = value * 10 + (text[at] - '0')) > 1000000000) fail("format: a width beyond 1000000000");
  return value;
}

// "..." % values
inline MarkedText percent(Runtime& runtime, const MarkedText& format, const Value& values) {
  auto out = runtime.writer();
  const std::string_view text = format.bytes();
  const List* list = values.list() && values.list()->is_tuple ? values.list() : nullptr;
  std::size_t next = 0;
  const auto take_value = [&]() -> Value {
    const std::size_t n = list ? list->items.size() : 1;
    if (next >= n) fail("%: not enough values for the format");
    ++next;
    return list ? list->items[next - 1] : values;
  };
  for (std::size_t at = 0; at < text.size();) {
    runtime.budget.step();
    const std::size_t hit = (std::min)(text.find('%', at), text.size());
    out.put(format, at, hit);
    if (hit == text.size()) break;
    at = hit + 1;
    Style style;
    Value value;
    bool by_name = false;
    if (text.substr(at, 1) == "(") {
      const std::size_t end = text.find(')', at);
      if (end == strings::npos) fail("%: a name without end");
      value = runtime.item(values, Value(text.substr(at + 1, end - at - 1)));
      check_defined(value);
      by_name = true;
      next = 1;
      at = end + 1;
    }
    for (; at < text.size() && std::string_view("-+ 0#").find(text[at]) != strings::npos; ++at) {
      if (text[at] == '-')
        style.align = '<';
      else if (text[at] == '0')
        style.zeros = true;
      else if (text[at] == '#')
        style.alternate = true;
      else
        style.sign = text[at];
    }
    style.width = take_number(text, at);
    if (text.substr(at, 1) == ".") style.precision = take_number(text, ++at);
    if (at == text.size()) fail("%: the format ends inside of a place for a value");
    style.type = text[at++];
    if (style.type == '%') {
      out.put("%", format.origin_at(at - 1));
      continue;
    }
    if (!by_name) value = take_value();
    const Origin origin = printing::origin_of(value);
    if (style.type == 's' || style.type == 'r') {
      MarkedText shown;
      if (style.type == 's') {
        shown = runtime.text(value);
      } else {
        auto repr = runtime.writer(origin);
        printing::write_repr(repr, value);
        shown = repr.take();
      }
      if (style.precision >= 0) shown = shown.slice(0, characters::offset(shown.bytes(), style.precision));
      if (style.align == 0) style.align = '>';
      put_aligned(out, shown, style, false);
    } else if (std::string_view("diufFxXo").find(style.type) != strings::npos) {
      const bool whole = style.type == 'd' || style.type == 'i' || style.type == 'u';
      if (const double* real = value.get_if<double>(); real && whole) {
        if (!(std::fabs(*real) < 1e37)) fail("%: a number without a whole part");
        value = Value(Integer(*real));
      }
      if (whole) style.type = 'd';
      put_aligned(out, MarkedText(number(value, style), origin), style, true);
    } else {
      fail("%: '", style.type, "' is not supported");
    }
  }
  if (list && next < list->items.size()) fail("%: not all values are used by the format");
  if (!list && next == 0 && !values.dict()) fail("%: not all values are used by the format");
  return out.take();
}

inline Style read_style(std::string_view text) {
  Style style;
  std::size_t at = 0;
  const auto is_align = [](std::string_view c) { return c == "<" || c == ">" || c == "^"; };
  const std::size_t n = utf8::first_unit(text).n_bytes;
  if (n < text.size() && is_align(text.substr(n, 1))) {
    style.fill = text.substr(0, n);
    style.align = text[n];
    at = n + 1;
  } else if (is_align(text.substr(0, 1))) {
    style.align = text[at++];
  }
  if (at < text.size() && (text[at] == '+' || text[at] == '-' || text[at] == ' ')) style.sign = text[at++];
  if (at < text.size() && text[at] == '#') style.alternate = true, ++at;
  if (at < text.size() && text[at] == '0') style.zeros = true, ++at;
  style.width = take_number(text, at);
  if (at < text.size() && (text[at] == ',' || text[at] == '_')) style.grouping = text[at++];
  if (at < text.size() && text[at] == '.') style.precision = take_number(text, ++at);
  if (at < text.size()) style.type = text[at++];
  if (at != text.size() || std::string_view("\0sdfFxXob%", 10).find(style.type) == strings::npos)
    fail("format: '", text, "' is not supported");
  return style;
}

// "...".format(values)
inline MarkedText braces(Runtime& runtime, const MarkedText& format, const Arguments& values) {
  auto out = runtime.writer();
  const std::string_view text = format.bytes();
  std::size_t next = 0;
  bool numbered = false;
  for (std::size_t at = 0; at < text.size();) {
    runtime.budget.step();
    const std::size_t hit = (std::min)(text.find_first_of("{}", at), text.size());
    out.put(format, at, hit);
    if (hit == text.size()) break;
    if (text.substr(hit + 1, 1) == text.substr(hit, 1)) {  // {{ and }}
      out.put(format, hit, hit + 1);
      at = hit + 2;
      continue;
    }
    const std::size_t end = text.find('}', hit);
    if (text[hit] == '}' || end == strings::npos) fail("format: a single '", text[hit], "'");
    std::string_view field = text.substr(hit + 1, end - hit - 1), style_text;
    if (field.find('{') != strings::npos) fail("format: a place for a value within another is not supported");
    if (const auto colon = field.find(':'); colon != strings::npos) {
      style_text = field.substr(colon + 1);
      field = field.substr(0, colon);
    }
    char conversion = 0;
    if (const auto mark = field.find('!'); mark != strings::npos) {
      if (mark + 2 != field.size()) fail("format: a malformed conversion");
      conversion = field[mark + 1];
      field = field.substr(0, mark);
    }
    std::size_t name_end = (std::min)(field.find_first_of(".["), field.size());
    const std::string_view name = field.substr(0, name_end);
    Value value;
    if (name.empty() || characters::is_digit(name[0])) {
      std::size_t digits = 0;
      numbered |= !name.empty();
      if (numbered && (name.empty() || next > 0)) fail("format: some places have numbers and some have none");
      const auto index = name.empty() ? next++ : std::size_t(take_number(name, digits));
      if (index >= values.positional.size()) fail("format: there is no value ", index);
      value = values.positional[index];
    } else {
      bool found = false;
      runtime.budget.step(values.named.size() / 16);
      for (const auto& [key, named] : values.named)
        if (key == name) value = named, found = true;
      if (!found) fail("format: there is no value '", name, "'");
    }
    while (name_end < field.size()) {
      const bool by_dot = field[name_end] == '.';
      const std::size_t stop = by_dot ? (std::min)(field.find_first_of(".[", name_end + 1), field.size())
                                      : (std::min)(field.find(']', name_end), field.size());
      const std::string_view key = field.substr(name_end + 1, stop - name_end - 1);
      const auto index = literals::digits(key, 10);
      value = by_dot ? runtime.attribute(value, key) : runtime.item(value, index ? Value(*index) : Value(key));
      name_end = by_dot ? stop : (std::min)(stop + 1, field.size());
    }
    at = end + 1;
    const Style style = read_style(style_text);
    const Origin origin = printing::origin_of(value);
    double ignored;
    const bool is_number = conversion == 0 && as_real(value, ignored) && !(value.get_if<bool>() && style_text.empty());
    if (is_number) {
      put_aligned(out, MarkedText(number(value, style), origin), style, true);
      continue;
    }
    if (style.type != 0 && style.type != 's')
      fail("format: '", style_text, "' does not fit a value of type '", type_name(value), "'");
    MarkedText shown;
    if (conversion == 'r') {
      auto repr = runtime.writer(origin);
      printing::write_repr(repr, value);
      shown = repr.take();
    } else {
      shown = runtime.text(value);
    }
    if (style.precision >= 0) shown = shown.slice(0, characters::offset(shown.bytes(), style.precision));
    put_aligned(out, shown, style, false);
  }
  return out.take();
}

}  // namespace jinja::formatting

VITRINE_NAMESPACE_END
