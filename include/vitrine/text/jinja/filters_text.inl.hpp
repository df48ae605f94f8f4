// Filters on strings and numbers. For bodies only.
#pragma once

#include <cmath>
#include <string>

#include "vitrine/text/jinja/arithmetic.inl.hpp"
#include "vitrine/text/jinja/literals.inl.hpp"

VITRINE_NAMESPACE_BEGIN

namespace jinja::filters {

// soft_str(): a string as it is, with its mark of safety; anything else as str() gives it.
inline bool is_safe(const Value& value) { return value.string() && value.string()->safe; }

template <MarkedText (*change)(Runtime&, const MarkedText&)>
Value changed(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound args("filter", given, {});
  return runtime.make_text(change(runtime, runtime.text(value)), is_safe(value));
}

// Words begin behind white space, hyphens and opening brackets.
inline MarkedText title(Runtime& runtime, const MarkedText& text) {
  bool inside = false;
  return strings::each_character(runtime, text, [&](std::string& out, std::uint32_t code, std::size_t at) {
    const bool between =
        characters::is_space(code) || (code < 0x80 && std::string_view("-({[<").find(char(code)) != strings::npos);
    if (inside)
      strings::append_lower(out, text.bytes(), code, at);
    else
      unicode::append_upper(out, code);
    inside = !between;
  });
}

inline Value trim(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound args("trim", given, {"chars"});
  const MarkedText* set = args.given(0) ? &args.text(0) : nullptr;
  return runtime.make_text(strings::strip(runtime, runtime.text(value), set, true, true), is_safe(value));
}

inline Value replace(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound args("replace", given, {"old", "new", "count"});
  return runtime.make_text(strings::replace(runtime, runtime.text(value), runtime.text(args.need(0)),
                                            runtime.text(args.need(1)), args.given(2) ? args.integer(2) : -1));
}

inline Value string(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound args("string", given, {});
  return runtime.make_text(runtime.text(value), is_safe(value));
}
inline Value safe(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound args("safe", given, {});
  return runtime.make_text(runtime.text(value), true);
}
inline Value escape(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound args("escape", given, {});
  if (is_safe(value)) return value;
  return runtime.make_text(strings::escape(runtime, runtime.text(value)), true);
}
inline Value force_escape(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound args("forceescape", given, {});
  return runtime.make_text(strings::escape(runtime, runtime.text(value)), true);
}

inline Value indent(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound args("indent", given, {"width", "first", "blank"});
  if (value.string() == nullptr)
    check_defined(value), fail("indent: expected a string, got a value of type '", type_name(value), "'");
  const MarkedText& text = value.string()->text;
  const Origin origin = text.origin_at(0);
  const bool first = args.flag(1, false), blank = args.flag(2, false);
  auto indention = runtime.writer(origin);
  if (args[0] && args[0]->string())
    indention.put(args[0]->string()->text);
  else
    indention.repeat(" ", args.integer(0, 4));
  const MarkedText margin = indention.take();
  auto lines = strings::split_lines(runtime, text, false);
  // As there: a line end was added before the text was split.
  if (text.empty() || [&] {
        std::uint32_t code;
        characters::last(text.bytes(), code);
        return characters::ends_line(code) && !(code == '\r');
      }())
    lines.push_back("");
  auto out = runtime.writer(origin);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const MarkedText& line = lines[i].string()->text;
    if (i > 0) out.put("\n");
    if (i == 0 ? first : blank || !line.empty()) out.put(margin);
    out.put(line);
  }
  return runtime.make_text(out.take(), value.string()->safe);
}

inline Value truncate(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound args("truncate", given, {"length", "killwords", "end", "leeway"});
  const std::int64_t leeway = args.given(3) ? args.integer(3) : 5;
  if (value.string() == nullptr) {
    if (Pass(value).size() <= args.integer(0, 255) + leeway && !value.object()) return value;
    fail("truncate: expected a string, got a value of type '", type_name(value), "'");
  }
  const MarkedText &text = value.string()->text, dots(std::string("..."));
  const MarkedText& end = args[2] ? args.text(2) : dots;
  const std::int64_t length = args.integer(0, 255), n_end = characters::count(end.bytes());
  if (length < n_end) fail("truncate: expected a length of at least ", n_end, ", got ", length);
  runtime.budget.step(text.size() / 16);
  if (characters::count(text.bytes()) <= length + leeway) return value;
  std::size_t stop = characters::offset(text.bytes(), length - n_end);
  if (!args.flag(1, false)) {
    const std::size_t space = text.bytes().substr(0, stop).rfind(' ');
    if (space != strings::npos) stop = space;
  }
  auto out = runtime.writer();
  out.put(text, 0, stop);
  out.put(end);
  return runtime.make_text(out.take());
}

inline Value center(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound args("center", given, {"width"});
  const Value text = runtime.make_text(runtime.text(value));
  return find_method(text, "center")(runtime, text, {.positional = {args.integer(0, 80)}});
}

inline Value word_count(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound args("wordcount", given, {});
  const MarkedText text = runtime.text(value);
  const std::string_view bytes = text.bytes();
  runtime.budget.step(bytes.size() / 8);
  std::int64_t n = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t word = characters::word(bytes.substr(at));
    n += word > 0;
    at += word > 0 ? word : utf8::first_unit(bytes.substr(at)).n_bytes;
  }
  return n;
}

inline MarkedText url_quote(Runtime& runtime, const MarkedText& text, bool in_query) {
  auto out = runtime.writer();
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text.bytes()[i];
    const bool kept = characters::is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
                      std::string_view("_.-~").find(c) != strings::npos || (c == '/' && !in_query);
    static constexpr char digits[] = "0123456789ABCDEF";
    const auto byte = static_cast<unsigned char>(c);
    const char code[] = {'%', digits[byte >> 4], digits[byte & 15]};
    if (kept)
      out.put(std::string_view(&c, 1), text.origin_at(i));
    else if (c == ' ' && in_query)
      out.put("+", text.origin_at(i));
    else
      out.put(std::string_view(code, 3), text.origin_at(i));
  }
  return out.take();
}
inline Value url_encode(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound args("urlencode", given, {});
  if (!value.list() && !value.dict()) return runtime.make_text(url_quote(runtime, runtime.text(value), false));
  auto out = runtime.writer();
  bool first = true;
  const auto pairs =
      value.dict() ? runtime.items_of(runtime.make<View>(value, View::What::items)) : value.list()->items;
  for (const Value& pair : pairs) {
    if (!pair.list() || pair.list()->items.size() != 2) fail("urlencode: expected pairs");
    if (!first) out.put("&");
    first = false;
    out.put(url_quote(runtime, runtime.text(pair.list()->items[0]), true));
    out.put("=");
    out.put(url_quote(runtime, runtime.text(pair.list()->items[1]), true));
  }
  return runtime.make_text(out.take());
}

inline Value format(Runtime& runtime, const Value& value, const Arguments& given) {
  if (!given.positional.empty() && !given.named.empty()) fail("format: expected positional or named values, got both");
  Value::Pairs named;
  for (const auto& [name, item] : given.named) named.emplace_back(name, item);
  const Value values = named.empty() ? runtime.make_list(given.positional, true) : runtime.make_dict(std::move(named));
  return runtime.make_text(formatting::percent(runtime, runtime.text(value), values), is_safe(value));
}

inline Value to_json(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound args("tojson", given, {"ensure_ascii", "indent", "separators", "sort_keys"});
  printing::JsonStyle style;
  style.ensure_ascii = args.flag(0, false);
  style.sort_keys = args.flag(3, false);
  if (args.given(1)) {
    style.multi_line = true;
    style.between_items = ",";
    if (args[1]->string()) {
      style.indent = args.text(1).bytes();
    } else {
      const std::int64_t width = args.integer(1);
      runtime.budget.allocate(std::uint64_t((std::max)(width, std::int64_t(0))));
      style.indent = std::string(std::size_t((std::max)(width, std::int64_t(0))), ' ');
    }
  }
  if (args.given(2)) {
    const List* pair = args[2]->list();
    if (!pair || pair->items.size() != 2 || !pair->items[0].string() || !pair->items[1].string())
      fail("tojson: expected two strings as separators");
    style.between_items = pair->items[0].string()->text.bytes();
    style.behind_key = pair->items[1].string()->text.bytes();
  }
  auto out = runtime.writer(printing::origin_of(value));
  printing::write_json(out, value, style, 0);
  return runtime.make_text(out.take());
}

inline Value absolute(Runtime& runtime, const Value& value, const Arguments&) {
  Integer integer;
  double real;
  check_defined(value);
  if (as_integer(value, integer)) return integer < 0 ? arithmetic::apply(runtime, '-', 0, value) : Value(integer);
  if (!as_real(value, real)) fail("abs: expected a number, got a value of type '", type_name(value), "'");
  return std::fabs(real);
}

inline Value whole(double real) {
  if (std::isnan(real)) fail("int: expected a number, got nan");
  if (std::isinf(real)) fail("int: expected a finite number");
  if (!(std::fabs(real) < 1.7e38)) fail_limit("a number beyond 127 bits");
  return Integer(real);
}

inline Value to_integer(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound args("int", given, {"default", "base"});
  const Value by_default = args[0] ? *args[0] : Value(0);
  Integer integer;
  check_defined(value);
  if (as_integer(value, integer)) return integer;
  if (const double* real = value.get_if<double>())
    return std::isnan(*real) || std::isinf(*real) ? by_default : whole(*real);
  const String* text = value.string();
  if (text == nullptr) return by_default;
  runtime.budget.step(text->text.size() / 8);
  if (const auto number = literals::integer(text->text.bytes(), int(args.integer(1, 10)))) return *number;
  const auto real = literals::real(text->text.bytes());
  return real && !std::isnan(*real) && !std::isinf(*real) ? whole(*real) : by_default;
}

inline Value to_real(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound args("float", given, {"default"});
  double real;
  check_defined(value);
  if (as_real(value, real)) return real;
  if (const String* text = value.string()) {
    runtime.budget.step(text->text.size() / 8);
    if (const auto number = literals::real(text->text.bytes())) return *number;
  }
  return args[0] ? *args[0] : Value(0.0);
}

inline double power_of_ten(std::int64_t exponent) { return literals::real(concat("1e", exponent)).value_or(1); }

inline Value round(Runtime&, const Value& value, const Arguments& given) {
  const Bound args("round", given, {"precision", "method"});
  const std::int64_t precision = args.integer(0, 0);
  const std::string method = args[1] ? args.text(1).bytes() : "common";
  Integer integer;
  double real;
  check_defined(value);
  if (!as_real(value, real)) fail("round: expected a number, got a value of type '", type_name(value), "'");
  if (std::abs(precision) > 300) fail("round: expected a precision of at most 300, got ", precision);
  if (method == "common") {
    if (as_integer(value, integer) && precision >= 0) return integer;
    if (precision < 0) {
      const double unit = power_of_ten(-precision);
      const double rounded = std::nearbyint(real / unit) * unit;
      return value.get_if<double>() ? Value(rounded) : whole(rounded);
    }
    const auto rounded = literals::real(formatting::rounded(real, precision));  // exact, halves to even
    return rounded ? *rounded : real;
  }
  if (method != "ceil" && method != "floor") fail("round: expected method common, ceil or floor, got '", method, "'");
  const double unit = power_of_ten(precision);
  return (method == "ceil" ? std::ceil(real * unit) : std::floor(real * unit)) / unit;
}

}  // namespace jinja::filters

VITRINE_NAMESPACE_END
