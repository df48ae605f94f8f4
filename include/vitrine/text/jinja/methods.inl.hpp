// The methods of strings, lists and dicts that templates may call. For bodies only.
#pragma once

#include <string_view>

#include "vitrine/text/jinja/formatting.inl.hpp"

VITRINE_NAMESPACE_BEGIN

namespace jinja {

namespace methods {

inline const MarkedText& of(const Value& self) { return self.string()->text; }
inline Value same_kind(Runtime& runtime, const Value& self, MarkedText text) {
  return runtime.make_text(std::move(text), self.string()->safe);
}
inline const MarkedText* optional_text(const Bound& args, std::size_t i) {
  return args.given(i) ? &args.text(i) : nullptr;
}

template <bool left, bool right>
Value strip(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound args("strip", given, {"chars"});
  return same_kind(runtime, self, strings::strip(runtime, of(self), optional_text(args, 0), left, right));
}

inline Value split(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound args("split", given, {"sep", "maxsplit"});
  return runtime.make_list(strings::split(runtime, of(self), optional_text(args, 0), args.integer(1, -1)));
}
inline Value rsplit(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound args("rsplit", given, {"sep", "maxsplit"});
  return runtime.make_list(strings::split_right(runtime, of(self), optional_text(args, 0), args.integer(1, -1)));
}
inline Value splitlines(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound args("splitlines", given, {"keepends"});
  return runtime.make_list(strings::split_lines(runtime, of(self), args.flag(0, false)));
}

// The bytes [begin, end) that optional character numbers i and i + 1 name.
inline std::pair<std::size_t, std::size_t> window(Runtime& runtime, std::string_view bytes, const Bound& args,
                                                  std::size_t i) {
  if (!args.given(i) && !args.given(i + 1)) return {0, bytes.size()};
  runtime.budget.step(bytes.size() / 16);
  const auto number = [&](std::size_t k) { return args.given(k) ? Value(args.integer(k)) : Value(None{}); };
  const auto taken = strings::stride(characters::count(bytes), number(i), number(i + 1), None{});
  const std::size_t begin = characters::offset(bytes, taken.first);
  return {begin, begin + characters::offset(bytes.substr(begin), taken.count)};
}

template <bool at_start>
Value has_affix(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound args(at_start ? "startswith" : "endswith", given, {"prefix", "start", "end"});
  const std::string_view bytes = of(self).bytes();
  const auto [begin, end] = window(runtime, bytes, args, 1);
  const std::string_view text = bytes.substr(begin, end - begin);
  const auto test = [&](const std::string& affix) {
    return at_start ? text.starts_with(affix) : text.ends_with(affix);
  };
  const List* several = args.need(0).list();
  if (several == nullptr) return test(args.text(0).bytes());
  for (const Value& each : several->items)
    if (each.string() && test(each.string()->text.bytes())) return true;
  return false;
}

enum class Side { first, last };
template <Side side, bool must>
Value find(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound args("find", given, {"sub", "start", "end"});
  const std::string_view bytes = of(self).bytes();
  const auto [begin, end] = window(runtime, bytes, args, 1);
  const std::string_view text = bytes.substr(begin, end - begin), wanted = args.text(0).bytes();
  runtime.budget.step(text.size() / 8 + (side == Side::last ? wanted.size() : 0));
  const std::size_t hit = side == Side::first ? characters::find(runtime.budget, text, wanted) : text.rfind(wanted);
  if (hit == strings::npos && must) fail("index: the substring is not in the string");
  return hit == strings::npos ? Value(-1) : Value(characters::count(bytes.substr(0, begin + hit)));
}

inline Value count(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound args("count", given, {"sub", "start", "end"});
  const std::string_view bytes = of(self).bytes();
  const auto [begin, end] = window(runtime, bytes, args, 1);
  const std::string_view text = bytes.substr(begin, end - begin), wanted = args.text(0).bytes();
  if (wanted.empty()) return characters::count(text) + 1;
  std::int64_t n = 0;
  for (std::size_t at = 0; (at = characters::find(runtime.budget, text, wanted, at)) != strings::npos;
       at += wanted.size())
    ++n;
  return n;
}

inline Value replace(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound args("replace", given, {"old", "new", "count"});
  return same_kind(runtime, self, strings::replace(runtime, of(self), args.text(0), args.text(1), args.integer(2, -1)));
}
inline Value join(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound args("join", given, {"iterable"});
  const auto items = runtime.items_of(args.need(0));
  for (const Value& item : items)
    if (item.string() == nullptr) fail("join: expected strings, got a value of type '", type_name(item), "'");
  return same_kind(runtime, self, strings::join(runtime, of(self), items));
}

template <MarkedText (*change)(Runtime&, const MarkedText&)>
Value changed(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound args("method of a string", given, {});
  return same_kind(runtime, self, change(runtime, of(self)));
}
inline MarkedText swap_case(Runtime& runtime, const MarkedText& text) {
  return strings::each_character(runtime, text, [&](std::string& out, std::uint32_t code, std::size_t at) {
    if (unicode::is_upper(code))
      strings::append_lower(out, text.bytes(), code, at);
    else
      unicode::append_upper(out, code);
  });
}

template <char align>
Value pad(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound args("ljust", given, {"width", "fillchar"});
  auto out = runtime.writer();
  const std::string fill = args.given(1) ? args.text(1).bytes() : " ";
  if (characters::count(fill) != 1) fail("ljust: expected one character to fill with");
  const std::int64_t width = args.integer(0),
                     missing = (std::max)(width - characters::count(of(self).bytes()), std::int64_t(0));
  // Python's center() puts the odd one to the left where the width is odd.
  const std::int64_t left = align == '<' ? 0 : align == '>' ? missing : missing / 2 + (missing & width & 1);
  out.repeat(fill, left);
  out.put(of(self));
  out.repeat(fill, missing - left);
  return same_kind(runtime, self, out.take());
}
inline Value zfill(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound args("zfill", given, {"width"});
  auto out = runtime.writer();
  const auto& text = of(self);
  const std::size_t sign = text.bytes().starts_with('-') || text.bytes().starts_with('+');
  out.put(text, 0, sign);
  out.repeat("0", args.integer(0) - characters::count(text.bytes()));
  out.put(text, sign, text.size());
  return same_kind(runtime, self, out.take());
}

template <bool from_right>
Value partition(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound args("partition", given, {"sep"});
  const auto& text = of(self);
  const std::string& separator = args.text(0).bytes();
  if (separator.empty()) fail("partition: the separator is empty");
  runtime.budget.step(text.size() / 8 + separator.size());
  const std::size_t hit =
      from_right ? text.bytes().rfind(separator) : characters::find(runtime.budget, text.bytes(), separator);
  const auto part = [&](std::size_t begin, std::size_t end) { return strings::part(runtime, text, begin, end); };
  if (hit != strings::npos)
    return runtime.make_list(
        {part(0, hit), part(hit, hit + separator.size()), part(hit + separator.size(), text.size())}, true);
  if (from_right) return runtime.make_list({"", "", self}, true);
  return runtime.make_list({self, "", ""}, true);
}
template <bool at_start>
Value remove_affix(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound args("removeprefix", given, {"affix"});
  const auto& text = of(self);
  const std::string& affix = args.text(0).bytes();
  const bool there = at_start ? text.bytes().starts_with(affix) : text.bytes().ends_with(affix);
  if (!there) return self;
  const std::size_t begin = at_start ? affix.size() : 0;
  return strings::part(runtime, text, begin, begin + text.size() - affix.size());
}

// Is every character (and there is one) of this kind?
template <bool (*is)(std::uint32_t)>
Value all_are(Runtime& runtime, const Value& self, const Arguments&) {
  const std::string_view bytes = of(self).bytes();
  runtime.budget.step(bytes.size() / 8);
  std::uint32_t code;
  for (std::size_t at = 0; at < bytes.size();) {
    at += characters::first(bytes.substr(at), code);
    if (!is(code)) return false;
  }
  return !bytes.empty();
}
inline bool is_alphabetic(std::uint32_t code) { return unicode::class_of(code) == unicode::Class::letter; }
inline bool is_alphanumeric(std::uint32_t code) { return unicode::class_of(code) != unicode::Class::other; }
inline bool is_decimal(std::uint32_t code) { return unicode::class_of(code) == unicode::Class::decimal; }
inline bool is_numeric(std::uint32_t code) {
  return is_decimal(code) || unicode::class_of(code) == unicode::Class::number;
}

// Is there a letter with case, and are all such of this one?
template <bool upper>
bool has_case(std::string_view bytes) {
  bool any = false;
  std::uint32_t code;
  for (std::size_t at = 0; at < bytes.size();) {
    at += characters::first(bytes.substr(at), code);
    if (upper ? unicode::is_lower(code) : unicode::is_upper(code)) return false;
    any |= upper ? unicode::is_upper(code) : unicode::is_lower(code);
  }
  return any;
}
template <bool upper>
Value is_case(Runtime& runtime, const Value& self, const Arguments&) {
  runtime.budget.step(of(self).size() / 8);
  return has_case<upper>(of(self).bytes());
}
inline Value is_ascii(Runtime&, const Value& self, const Arguments&) { return utf8::is_ascii(of(self).bytes()); }

inline Value format(Runtime& runtime, const Value& self, const Arguments& given) {
  return same_kind(runtime, self, formatting::braces(runtime, of(self), given));
}

inline Value index_in_list(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound args("index", given, {"value"});
  for (std::size_t i = 0; i < self.list()->items.size(); ++i)
    if (equal(runtime.budget, self.list()->items[i], args.need(0))) return i;
  fail("index: the value is not in the list");
}
inline Value count_in_list(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound args("count", given, {"value"});
  std::int64_t n = 0;
  for (const Value& item : self.list()->items) n += equal(runtime.budget, item, args.need(0));
  return n;
}
inline Value copy(Runtime&, const Value& self, const Arguments&) { return self; }

inline Value get(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound args("get", given, {"key", "default"});
  runtime.check_key(args.need(0));
  for (const auto& [key, value] : self.dict()->pairs)
    if (equal(runtime.budget, key, args.need(0))) return value;
  return args[1] ? *args[1] : Value(None{});
}
template <View::What what>
Value view(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound args("method of a dict", given, {});
  return runtime.make<View>(self, what);
}

inline Value cycler_next(Runtime&, const Value& self, const Arguments&) {
  auto& cycler = static_cast<Cycler&>(*self.object());
  const Value now = cycler.items[cycler.position];
  cycler.position = (cycler.position + 1) % cycler.items.size();
  return now;
}
inline Value cycler_reset(Runtime&, const Value& self, const Arguments&) {
  static_cast<Cycler&>(*self.object()).position = 0;
  return None{};
}

inline Value loop_cycle(Runtime&, const Value& self, const Arguments& given) {
  if (given.positional.empty()) fail("cycle: expected at least one item");
  return given.positional[std::size_t(static_cast<Loop&>(*self.object()).index0) % given.positional.size()];
}
inline Value loop_changed(Runtime& runtime, const Value& self, const Arguments& given) {
  auto& last = static_cast<Loop&>(*self.object()).last_changed;
  const auto& now = given.positional;
  const auto same = [&](const Value& a, const Value& b) { return equal(runtime.budget, a, b); };
  if (last && std::equal(last->begin(), last->end(), now.begin(), now.end(), same)) return false;
  last = now;
  return true;
}

struct Entry {
  std::string_view name;
  Filter call;
};

inline constexpr Entry of_strings[] = {{"strip", strip<true, true>},
                                       {"lstrip", strip<true, false>},
                                       {"rstrip", strip<false, true>},
                                       {"split", split},
                                       {"rsplit", rsplit},
                                       {"splitlines", splitlines},
                                       {"startswith", has_affix<true>},
                                       {"endswith", has_affix<false>},
                                       {"find", find<Side::first, false>},
                                       {"rfind", find<Side::last, false>},
                                       {"index", find<Side::first, true>},
                                       {"rindex", find<Side::last, true>},
                                       {"count", count},
                                       {"replace", replace},
                                       {"join", join},
                                       {"upper", changed<strings::upper>},
                                       {"lower", changed<strings::lower>},
                                       {"casefold", changed<strings::lower>},
                                       {"title", changed<strings::title>},
                                       {"capitalize", changed<strings::capitalize>},
                                       {"swapcase", changed<swap_case>},
                                       {"ljust", pad<'<'>},
                                       {"rjust", pad<'>'>},
                                       {"center", pad<'^'>},
                                       {"zfill", zfill},
                                       {"partition", partition<false>},
                                       {"rpartition", partition<true>},
                                       {"removeprefix", remove_affix<true>},
                                       {"removesuffix", remove_affix<false>},
                                       {"isspace", all_are<characters::is_space>},
                                       {"isalpha", all_are<is_alphabetic>},
                                       {"isalnum", all_are<is_alphanumeric>},
                                       {"isdigit", all_are<is_decimal>},
                                       {"isdecimal", all_are<is_decimal>},
                                       {"isnumeric", all_are<is_numeric>},
                                       {"isupper", is_case<true>},
                                       {"islower", is_case<false>},
                                       {"isascii", is_ascii},
                                       {"format", format}};
inline constexpr Entry of_lists[] = {{"index", index_in_list}, {"count", count_in_list}, {"copy", copy}};
inline constexpr Entry of_dicts[] = {{"get", get},
                                     {"items", view<View::What::items>},
                                     {"keys", view<View::What::keys>},
                                     {"values", view<View::What::values>},
                                     {"copy", copy}};
inline constexpr Entry of_cyclers[] = {{"next", cycler_next}, {"reset", cycler_reset}};
inline constexpr Entry of_loops[] = {{"cycle", loop_cycle}, {"changed", loop_changed}};

template <std::size_t n>
Filter look_up(const Entry (&entries)[n], std::string_view name) {
  for (const Entry& entry : entries)
    if (entry.name == name) return entry.call;
  return nullptr;
}

}  // namespace methods

inline Filter find_method(const Value& of, std::string_view name) {
  if (of.string()) return methods::look_up(methods::of_strings, name);
  if (of.dict()) return methods::look_up(methods::of_dicts, name);
  if (const List* list = of.list())
    return list->is_tuple && name == "copy" ? nullptr : methods::look_up(methods::of_lists, name);
  const Object* object = of.object();
  if (object && object->type == Object::Type::cycler) return methods::look_up(methods::of_cyclers, name);
  return object && object->type == Object::Type::loop ? methods::look_up(methods::of_loops, name) : nullptr;
}

inline bool changes(const Value& of, std::string_view name) {
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (of.dict()) return is_one_of({"clear", "pop", "popitem", "setdefault", "update"});
  return of.list() && !of.list()->is_tuple &&
         is_one_of({"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"});
}

}  // namespace jinja

VITRINE_NAMESPACE_END
