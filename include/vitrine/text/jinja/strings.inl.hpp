// Python's operations on strings, on texts that remember where their bytes came from. For bodies only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vitrine/text/jinja/runtime.inl.hpp"

VITRINE_NAMESPACE_BEGIN

namespace jinja::strings {

inline constexpr std::size_t npos = std::string_view::npos;

inline bool contains_character(std::string_view set, std::string_view character) {
  for (std::size_t at = 0; at < set.size();) {
    const std::size_t n = utf8::first_unit(set.substr(at)).n_bytes;
    if (set.substr(at, n) == character) return true;
    at += n;
  }
  return false;
}

// str.strip(): white space, or the characters of `set`.
inline MarkedText strip(Runtime& runtime, const MarkedText& text, const MarkedText* set, bool left, bool right) {
  const std::string_view bytes = text.bytes();
  std::size_t begin = 0, end = bytes.size();
  std::uint32_t code;
  const auto goes = [&](std::string_view character) {
    runtime.budget.step(set ? 1 + set->size() / 8 : 0);
    return set ? contains_character(set->bytes(), character) : characters::is_space(code);
  };
  if (left)
    for (std::size_t n;
         begin < end && (n = characters::first(bytes.substr(begin), code), goes(bytes.substr(begin, n)));)
      begin += n;
  if (right)
    for (std::size_t n;
         begin < end && (n = characters::last(bytes.substr(begin, end - begin), code), goes(bytes.substr(end - n, n)));)
      end -= n;
  runtime.budget.allocate(end - begin);
  return text.slice(begin, end);
}

inline Value part(Runtime& runtime, const MarkedText& text, std::size_t begin, std::size_t end) {
  runtime.budget.allocate(end - begin + sizeof(Value));
  return runtime.make_text(text.slice(begin, end));
}

// str.split(separator, most); without separator: at white space. `most` below 0: all.
inline Value::Items split(Runtime& runtime, const MarkedText& text, const MarkedText* separator, std::int64_t most) {
  const std::string_view bytes = text.bytes();
  Value::Items parts;
  std::size_t at = 0;
  if (separator != nullptr) {
    if (separator->empty()) fail("split: the separator is empty");
    for (std::size_t hit; most != 0 && (hit = characters::find(runtime.budget, bytes, separator->bytes(), at)) != npos;
         --most) {
      parts.push_back(part(runtime, text, at, hit));
      at = hit + separator->size();
    }
    parts.push_back(part(runtime, text, at, bytes.size()));
    return parts;
  }
  runtime.budget.step(bytes.size() / 8);
  for (;; --most) {
    at += characters::leading_space(bytes.substr(at));
    if (at == bytes.size()) return parts;
    if (most == 0) break;
    const std::size_t begin = at;
    std::uint32_t code;
    for (std::size_t n; (n = characters::first(bytes.substr(at), code)) > 0 && !characters::is_space(code);) at += n;
    parts.push_back(part(runtime, text, begin, at));
  }
  parts.push_back(part(runtime, text, at, bytes.size() - characters::trailing_space(bytes)));
  return parts;
}

inline Value::Items split_right(Runtime& runtime, const MarkedText& text, const MarkedText* separator,
                                std::int64_t most) {
  if (most < 0) return split(runtime, text, separator, most);
  const std::string_view bytes = text.bytes();
  Value::Items parts;
  std::size_t end = bytes.size();
  runtime.budget.step(bytes.size() / 8);
  if (separator != nullptr) {
    if (separator->empty()) fail("rsplit: the separator is empty");
    for (; most > 0 && end >= separator->size(); --most) {
      runtime.budget.step(1 + separator->size());
      const std::size_t hit = bytes.rfind(separator->bytes(), end - separator->size());
      if (hit == npos) break;
      runtime.budget.step((end - hit) / 8);
      parts.push_back(part(runtime, text, hit + separator->size(), end));
      end = hit;
    }
    parts.push_back(part(runtime, text, 0, end));
  } else {
    for (;; --most) {
      end -= characters::trailing_space(bytes.substr(0, end));
      if (end == 0) break;
      if (most == 0) {
        parts.push_back(part(runtime, text, characters::leading_space(bytes), end));
        break;
      }
      std::size_t begin = end;
      std::uint32_t code;
      for (std::size_t n; (n = characters::last(bytes.substr(0, begin), code)) > 0 && !characters::is_space(code);)
        begin -= n;
      parts.push_back(part(runtime, text, begin, end));
      end = begin;
    }
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

inline Value::Items split_lines(Runtime& runtime, const MarkedText& text, bool keep_ends) {
  const std::string_view bytes = text.bytes();
  Value::Items lines;
  std::size_t begin = 0;
  runtime.budget.step(bytes.size() / 8);
  std::uint32_t code;
  for (std::size_t at = 0, n; at < bytes.size(); at += n) {
    n = characters::first(bytes.substr(at), code);
    if (!characters::ends_line(code)) continue;
    if (code == '\r' && bytes.substr(at + 1, 1) == "\n") n = 2;
    lines.push_back(part(runtime, text, begin, keep_ends ? at + n : at));
    begin = at + n;
  }
  if (begin < bytes.size()) lines.push_back(part(runtime, text, begin, bytes.size()));
  return lines;
}

inline MarkedText replace(Runtime& runtime, const MarkedText& text, const MarkedText& from, const MarkedText& to,
                          std::int64_t most) {
  auto out = runtime.writer();
  const std::string_view bytes = text.bytes();
  std::size_t at = 0;
  if (from.empty()) {  // before each character and at the end
    for (; most != 0; --most) {
      out.put(to);
      if (at == bytes.size()) return out.take();
      const std::size_t n = utf8::first_unit(bytes.substr(at)).n_bytes;
      out.put(text, at, at + n);
      runtime.budget.step();
      at += n;
    }
  } else {
    for (std::size_t hit; most != 0 && (hit = characters::find(runtime.budget, bytes, from.bytes(), at)) != npos;
         --most) {
      out.put(text, at, hit);
      out.put(to);
      at = hit + from.size();
    }
  }
  out.put(text, at, bytes.size());
  return out.take();
}

inline MarkedText join(Runtime& runtime, const MarkedText& separator, const Value::Items& items) {
  auto out = runtime.writer();
  bool first = true;
  for (const Value& item : items) {
    runtime.budget.step();
    if (!first) out.put(separator);
    first = false;
    if (const String* text = item.string())
      out.put(text->text);
    else
      out.put(runtime.text(item));
  }
  return out.take();
}

inline MarkedText repeat(Runtime& runtime, const MarkedText& text, Integer n) {
  auto out = runtime.writer();
  if (n > 0 && !text.empty() && n > Integer(runtime.budget.bytes / text.size()))
    runtime.budget.allocate(runtime.budget.bytes + 1);
  for (; n > 0 && !text.empty(); --n) out.put(text);
  return out.take();
}

// What each character becomes: change(out, code, is it the first?, at which byte).
template <class Change>
MarkedText each_character(Runtime& runtime, const MarkedText& text, Change&& change) {
  auto out = runtime.writer();
  const std::string_view bytes = text.bytes();
  runtime.budget.step(bytes.size() / 8);
  std::uint32_t code;
  std::string changed;
  for (std::size_t at = 0, n; at < bytes.size(); at += n) {
    n = characters::first(bytes.substr(at), code);
    changed.clear();
    if (utf8::first_unit(bytes.substr(at)).valid)
      change(changed, code, at);
    else
      changed = bytes.substr(at, n);
    out.put(changed, text.origin_at(at));
  }
  return out.take();
}

inline void append_lower(std::string& out, std::string_view bytes, std::uint32_t code, std::size_t at) {
  if (code < 0x80) {
    out += code >= 'A' && code <= 'Z' ? char(code | 0x20) : char(code);
  } else if (code == 0x130) {
    out += "i\xCC\x87";
  } else if (code == 0x3A3) {  // sigma is another one at the end of a word
    std::uint32_t before = 0, behind = 0;
    characters::last(bytes.substr(0, at), before);
    characters::first(bytes.substr(at + 2), behind);
    const bool final_one = at > 0 && unicode::is_cased(before) && !(at + 2 < bytes.size() && unicode::is_cased(behind));
    out += final_one ? "\xCF\x82" : "\xCF\x83";
  } else {
    utf8::append(out, unicode::lower(code));
  }
}
inline MarkedText lower(Runtime& runtime, const MarkedText& text) {
  return each_character(runtime, text, [&](std::string& out, std::uint32_t code, std::size_t at) {
    append_lower(out, text.bytes(), code, at);
  });
}
inline MarkedText upper(Runtime& runtime, const MarkedText& text) {
  return each_character(runtime, text,
                        [](std::string& out, std::uint32_t code, std::size_t) { unicode::append_upper(out, code); });
}
inline MarkedText capitalize(Runtime& runtime, const MarkedText& text) {
  return each_character(runtime, text, [&](std::string& out, std::uint32_t code, std::size_t at) {
    if (at == 0)
      unicode::append_title(out, code);
    else
      append_lower(out, text.bytes(), code, at);
  });
}
// str.title(): a letter behind one that has no case begins a word.
inline MarkedText title(Runtime& runtime, const MarkedText& text) {
  bool inside = false;
  return each_character(runtime, text, [&](std::string& out, std::uint32_t code, std::size_t at) {
    if (inside)
      append_lower(out, text.bytes(), code, at);
    else
      unicode::append_title(out, code);
    inside = unicode::is_cased(code);
  });
}

// [start:stop:step] of n things: the first, how many, and the step, as Python's slice.indices() has them.
struct Stride {
  std::int64_t first = 0, count = 0, step = 1;
};
inline Stride stride(std::int64_t n, const Value& start, const Value& stop, const Value& step) {
  const auto number = [](const Value& value, std::int64_t by_default) {
    Integer integer;
    check_defined(value);
    if (value.is_none()) return by_default;
    if (!as_integer(value, integer)) fail("a slice takes whole numbers, got a value of type '", type_name(value), "'");
    constexpr Integer most = std::int64_t(1) << 62;
    return std::int64_t(integer > most ? most : integer < -most ? -most : integer);
  };
  Stride out;
  out.step = number(step, 1);
  if (out.step == 0) fail("the step of a slice is zero");
  const bool forward = out.step > 0;
  const std::int64_t low = forward ? 0 : -1, high = forward ? n : n - 1;
  const auto clamp = [&](std::int64_t at) { return at < 0 ? (std::max)(at + n, low) : (std::min)(at, high); };
  out.first = start.is_none() ? (forward ? low : high) : clamp(number(start, 0));
  const std::int64_t end = stop.is_none() ? (forward ? high : low) : clamp(number(stop, 0));
  if (forward && out.first < end) out.count = (end - out.first - 1) / out.step + 1;
  if (!forward && out.first > end) out.count = (out.first - end - 1) / -out.step + 1;
  return out;
}

inline Value slice(Runtime& runtime, const Value& of, const Value& start, const Value& stop, const Value& step) {
  check_defined(of);
  if (const List* list = of.list()) {
    const Stride taken = stride(std::int64_t(list->items.size()), start, stop, step);
    runtime.budget.step(std::uint64_t(taken.count));
    Value::Items items;
    for (std::int64_t i = 0; i < taken.count; ++i)
      items.push_back(list->items[std::size_t(taken.first + i * taken.step)]);
    return runtime.make_list(std::move(items), list->is_tuple);
  }
  const Object* object = of.object();
  if (object != nullptr && object->type == Object::Type::range) {
    const auto& range = static_cast<const Range&>(*object);
    const Stride taken = stride(range.size(), start, stop, step);
    const std::int64_t first = range.start + taken.first * range.step, by = range.step * taken.step;
    return runtime.make<Range>(first, first + taken.count * by, by);
  }
  const String* string = of.string();
  if (string == nullptr) fail("a value of type '", type_name(of), "' cannot be sliced");
  const std::string_view bytes = string->text.bytes();
  runtime.budget.step(bytes.size() / 16);
  const std::int64_t n = characters::count(bytes);
  const Stride taken = stride(n, start, stop, step);
  if (taken.step == 1) {
    const std::size_t begin = characters::offset(bytes, taken.first);
    const std::size_t end = begin + characters::offset(bytes.substr(begin), taken.count);
    runtime.budget.allocate(end - begin);
    return runtime.make_text(string->text.slice(begin, end), string->safe);
  }
  std::vector<std::size_t> starts;
  runtime.budget.allocate(std::uint64_t(n) * sizeof(std::size_t));
  for (std::size_t at = 0; at < bytes.size(); at += utf8::first_unit(bytes.substr(at)).n_bytes) starts.push_back(at);
  auto out = runtime.writer();
  runtime.budget.step(std::uint64_t(taken.count));
  for (std::int64_t i = 0; i < taken.count; ++i) {
    const std::size_t at = starts[std::size_t(taken.first + i * taken.step)];
    out.put(string->text, at, at + utf8::first_unit(bytes.substr(at)).n_bytes);
  }
  return runtime.make_text(out.take(), string->safe);
}

// HTML's special characters, as markupsafe writes them.
inline MarkedText escape(Runtime& runtime, const MarkedText& text) {
  return each_character(runtime, text, [](std::string& out, std::uint32_t code, std::size_t) {
    if (code == '&')
      out += "&amp;";
    else if (code == '<')
      out += "&lt;";
    else if (code == '>')
      out += "&gt;";
    else if (code == '\'')
      out += "&#39;";
    else if (code == '"')
      out += "&#34;";
    else
      utf8::append(out, code);
  });
}

}  // namespace jinja::strings

VITRINE_NAMESPACE_END
