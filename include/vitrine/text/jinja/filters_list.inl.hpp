// Filters on lists and dicts. Those that are generators in Python go through their input at once here; what they give
// can be gone through once all the same. For bodies only.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "vitrine/text/jinja/arithmetic.inl.hpp"

VITRINE_NAMESPACE_BEGIN

namespace jinja {

Value call_filter(Runtime& runtime, std::string_view name, const Value& value, const Arguments& arguments);
bool call_test(Runtime& runtime, std::string_view name, const Value& value, const Arguments& arguments);

namespace filters {

inline Value fold_case(Runtime& runtime, const Value& value) {
  return value.string() ? runtime.make_text(strings::lower(runtime, value.string()->text)) : value;
}

// "a.b.0" as a path of names and numbers.
class Path {
 public:
  Path() = default;
  explicit Path(const Value& path) {
    if (path.is_none()) return;
    if (path.string() == nullptr) {
      parts_.push_back(path);
      return;
    }
    const std::string_view text = path.string()->text.bytes();
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = (std::min)(text.find('.', at), text.size());
      const std::string_view part = text.substr(at, end - at);
      const bool number = !part.empty() && std::all_of(part.begin(), part.end(), characters::is_digit);
      const auto index = number ? literals::digits(part, 10) : std::nullopt;
      parts_.push_back(index ? Value(*index) : Value(part));
      at = end + 1;
    }
  }
  Value get(Runtime& runtime, Value value, const Value& by_default = {}) const {
    for (const Value& part : parts_) {
      value = runtime.item(value, part);
      if (value.is_undefined() && !by_default.is_undefined() && !by_default.is_none()) value = by_default;
    }
    return value;
  }

 private:
  std::vector<Value> parts_;
};

inline Value default_value(Runtime&, const Value& value, const Arguments& given) {
  const Bound args("default", given, {"default_value", "boolean"});
  const bool replaced = value.is_undefined() || (args.flag(1, false) && !is_true(value));
  return replaced ? (args[0] ? *args[0] : Value("")) : value;
}

inline Value length(Runtime& runtime, const Value& value, const Arguments&) {
  if (value.string()) runtime.budget.step(value.string()->text.size() / 16);
  const bool sized = value.string() || value.list() || value.dict() || value.is_undefined() || value.object();
  const std::int64_t n = sized ? Pass(value).size() : -1;
  if (n < 0) fail("length: a value of type '", type_name(value), "' has none");
  return n;
}

inline Value list(Runtime& runtime, const Value& value, const Arguments&) {
  return runtime.make_list(runtime.items_of(value));
}

inline Value first(Runtime&, const Value& value, const Arguments&) {
  Value item;
  return Pass(value).next(item) ? item : Value::undefined("there is no first item");
}

// What Python's reversed() goes through; strings, lists, dicts and ranges.
inline Value::Items reversed(Runtime& runtime, const Value& value) {
  if (Pass(value).size() < 0) fail("a value of type '", type_name(value), "' cannot be gone through backwards");
  auto items = runtime.items_of(value);
  std::reverse(items.begin(), items.end());
  return items;
}
inline Value last(Runtime& runtime, const Value& value, const Arguments&) {
  if (const List* items = value.list())
    return items->items.empty() ? Value::undefined("there is no last item") : items->items.back();
  const auto items = reversed(runtime, value);
  return items.empty() ? Value::undefined("there is no last item") : items.front();
}
inline Value reverse(Runtime& runtime, const Value& value, const Arguments&) {
  if (value.string()) return strings::slice(runtime, value, None{}, None{}, -1);
  auto items = runtime.items_of(value);
  std::reverse(items.begin(), items.end());
  return runtime.make_generator(std::move(items));
}

inline Value join(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound args("join", given, {"d", "attribute"});
  auto items = runtime.items_of(value);
  if (args.given(1)) {
    const Path path(*args[1]);
    for (Value& item : items) item = path.get(runtime, item);
  }
  return runtime.make_text(strings::join(runtime, args[0] ? runtime.text(*args[0]) : MarkedText(), items));
}

inline Arguments rest(const Arguments& given, std::size_t n) {
  Arguments out = given;
  out.positional.erase(out.positional.begin(), out.positional.begin() + std::ptrdiff_t(n));
  return out;
}
inline std::string function_name(const Value& value) {
  if (value.string() == nullptr)
    fail("expected the name of a filter or test, got a value of type '", type_name(value), "'");
  return value.string()->text.bytes();
}

inline Value map(Runtime& runtime, const Value& value, const Arguments& given) {
  Value::Items out;
  if (!is_true(value)) return runtime.make_generator({});
  if (given.positional.empty()) {
    const Bound args("map", given, {"attribute", "default"});
    const Path path(args.need(0));
    for (const Value& item : runtime.items_of(value))
      out.push_back(path.get(runtime, item, args[1] ? *args[1] : Value()));
  } else {
    const std::string name = function_name(given.positional[0]);
    const Arguments arguments = rest(given, 1);
    for (const Value& item : runtime.items_of(value)) out.push_back(call_filter(runtime, name, item, arguments));
  }
  return runtime.make_generator(std::move(out));
}

template <bool wanted, bool by_attribute>
Value select(Runtime& runtime, const Value& value, const Arguments& given) {
  if (!is_true(value)) return runtime.make_generator({});
  Path path;
  const std::size_t n = by_attribute;
  if (by_attribute) {
    if (given.positional.empty()) fail("selectattr: the name of the attribute is missing");
    path = Path(given.positional[0]);
  }
  const bool with_test = given.positional.size() > n;
  const std::string name = with_test ? function_name(given.positional[n]) : "";
  const Arguments arguments = rest(given, n + with_test);
  Value::Items out;
  for (const Value& item : runtime.items_of(value)) {
    const Value tested = path.get(runtime, item);
    if ((with_test ? call_test(runtime, name, tested, arguments) : is_true(tested)) == wanted) out.push_back(item);
  }
  return runtime.make_generator(std::move(out));
}

// Sorted by what `key` gives of each item; equal ones stay in order, backwards too.
template <class Key>
Value::Items sorted(Runtime& runtime, Value::Items items, bool backwards, Key&& key) {
  std::vector<std::pair<Value, Value>> keyed;
  runtime.budget.allocate(2 * items.size() * sizeof(Value));
  for (Value& item : items) keyed.emplace_back(key(item), item);
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return backwards ? less(runtime.budget, b.first, a.first) : less(runtime.budget, a.first, b.first);
  });
  for (std::size_t i = 0; i < items.size(); ++i) items[i] = std::move(keyed[i].second);
  return items;
}

inline Value sort(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound args("sort", given, {"reverse", "case_sensitive", "attribute"});
  const bool fold = !args.flag(1, false);
  const MarkedText comma(std::string(","));
  std::vector<Path> paths;
  if (args.given(2) && args[2]->string()) {
    for (const Value& part : strings::split(runtime, args.text(2), &comma, -1)) paths.emplace_back(part);
  } else {
    paths.emplace_back(args[2] ? *args[2] : Value(None{}));
  }
  return runtime.make_list(sorted(runtime, runtime.items_of(value), args.flag(0, false), [&](const Value& item) {
    Value::Items keys;
    for (const Path& path : paths) {
      Value key = path.get(runtime, item);
      keys.push_back(fold ? fold_case(runtime, key) : std::move(key));
    }
    return runtime.make_list(std::move(keys));  // a list even of one: equal keys are never ordered
  }));
}

inline Value dict_sort(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound args("dictsort", given, {"case_sensitive", "by", "reverse"});
  const std::string by = args[1] ? args.text(1).bytes() : "key";
  if (by != "key" && by != "value") fail("dictsort: expected by='key' or by='value', got '", by, "'");
  check_defined(value);
  if (!value.dict()) fail("dictsort: expected a dict, got a value of type '", type_name(value), "'");
  auto pairs = runtime.items_of(runtime.make<View>(value, View::What::items));
  return runtime.make_list(sorted(runtime, std::move(pairs), args.flag(2, false), [&](const Value& pair) {
    const Value& key = pair.list()->items[by == "value"];
    return args.flag(0, false) ? key : fold_case(runtime, key);
  }));
}

inline Value unique(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound args("unique", given, {"case_sensitive", "attribute"});
  const Path path(args[1] ? *args[1] : Value(None{}));
  Value::Items seen, out;
  for (const Value& item : runtime.items_of(value)) {
    Value key = path.get(runtime, item);
    if (!args.flag(0, false)) key = fold_case(runtime, key);
    runtime.check_key(key);
    if (std::any_of(seen.begin(), seen.end(), [&](const Value& other) { return equal(runtime.budget, other, key); }))
      continue;
    seen.push_back(key);
    out.push_back(item);
  }
  return runtime.make_generator(std::move(out));
}

template <bool greatest>
Value extreme(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound args("min", given, {"case_sensitive", "attribute"});
  const Path path(args[1] ? *args[1] : Value(None{}));
  Value best = Value::undefined("there is no item"), best_key;
  bool any = false;
  for (const Value& item : runtime.items_of(value)) {
    Value key = path.get(runtime, item);
    if (!args.flag(0, false)) key = fold_case(runtime, key);
    if (any && !(greatest ? less(runtime.budget, best_key, key) : less(runtime.budget, key, best_key))) continue;
    any = true;
    best = item;
    best_key = key;
  }
  return best;
}

inline Value sum(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound args("sum", given, {"attribute", "start"});
  const Path path(args[0] ? *args[0] : Value(None{}));
  Value total = args[1] ? *args[1] : Value(0);
  if (total.string()) fail("sum: strings cannot be summed");
  for (const Value& item : runtime.items_of(value))
    total = arithmetic::apply(runtime, '+', total, path.get(runtime, item));
  return total;
}

inline Value batch(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound args("batch", given, {"linecount", "fill_with"});
  const std::int64_t n = args.integer(0);
  Value::Items out, line;
  for (const Value& item : runtime.items_of(value)) {
    if (std::int64_t(line.size()) == n) out.push_back(runtime.make_list(std::exchange(line, {})));
    line.push_back(item);
  }
  if (!line.empty()) {
    for (; args.given(1) && std::int64_t(line.size()) < n; line.push_back(*args[1]))
      runtime.budget.allocate(sizeof(Value));
    out.push_back(runtime.make_list(std::move(line)));
  }
  return runtime.make_generator(std::move(out));
}
inline Value slice(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound args("slice", given, {"slices", "fill_with"});
  const auto items = runtime.items_of(value);
  const std::int64_t n = args.integer(0), size = std::int64_t(items.size());
  if (n == 0) fail("slice: division by zero");
  Value::Items out;
  std::int64_t at = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    const std::int64_t count = size / n + (k < size % n);
    Value::Items part(items.begin() + at, items.begin() + at + count);
    at += count;
    if (args.given(1) && k >= size % n) part.push_back(*args[1]);
    out.push_back(runtime.make_list(std::move(part)));
  }
  return runtime.make_generator(std::move(out));
}

inline Value items(Runtime& runtime, const Value& value, const Arguments&) {
  if (value.is_undefined()) return runtime.make_generator({});
  if (!value.dict()) fail("items: expected a dict, got a value of type '", type_name(value), "'");
  return runtime.make_generator(runtime.items_of(runtime.make<View>(value, View::What::items)));
}

inline Value group_by(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound args("groupby", given, {"attribute", "default", "case_sensitive"});
  const Path path(args.need(0));
  const Value by_default = args[1] ? *args[1] : Value();
  const bool fold = !args.flag(2, false);
  const auto key_of = [&](const Value& item) {
    const Value key = path.get(runtime, item, by_default);
    return fold ? fold_case(runtime, key) : key;
  };
  Value::Items groups, group;
  Value last_key;
  const auto close = [&] {
    if (group.empty()) return;
    const Value key = path.get(runtime, group.front(), by_default);
    groups.push_back(Value::group({key, runtime.make_list(std::exchange(group, {}))}));
  };
  for (const Value& item : sorted(runtime, runtime.items_of(value), false, key_of)) {
    const Value key = key_of(item);
    if (!group.empty() && !equal(runtime.budget, key, last_key)) close();
    last_key = key;
    group.push_back(item);
  }
  close();
  return runtime.make_list(std::move(groups));
}

inline Value attribute(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound args("attr", given, {"name"});
  const std::string& name = args.text(0).bytes();
  check_defined(value);
  if (value.dict() && !find_method(value, name) && !name.starts_with("__"))
    return Value::undefined(concat("'dict object' has no attribute '", name, "'"));
  return runtime.attribute(value, name);
}

}  // namespace filters

}  // namespace jinja

VITRINE_NAMESPACE_END
