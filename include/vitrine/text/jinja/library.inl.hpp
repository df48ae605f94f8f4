// All filters, tests and functions by name. For bodies only.
#pragma once

#include <iterator>

#include "vitrine/text/jinja/clock.inl.hpp"
#include "vitrine/text/jinja/filters_list.inl.hpp"
#include "vitrine/text/jinja/filters_text.inl.hpp"
#include "vitrine/text/jinja/methods.inl.hpp"

VITRINE_NAMESPACE_BEGIN

namespace jinja {

struct FilterEntry {
  std::string_view name;
  Filter call;
};
inline constexpr FilterEntry filter_table[] = {
    {"abs", filters::absolute},
    {"attr", filters::attribute},
    {"batch", filters::batch},
    {"capitalize", filters::changed<strings::capitalize>},
    {"center", filters::center},
    {"count", filters::length},
    {"d", filters::default_value},
    {"default", filters::default_value},
    {"dictsort", filters::dict_sort},
    {"e", filters::escape},
    {"escape", filters::escape},
    {"first", filters::first},
    {"float", filters::to_real},
    {"forceescape", filters::force_escape},
    {"format", filters::format},
    {"groupby", filters::group_by},
    {"indent", filters::indent},
    {"int", filters::to_integer},
    {"items", filters::items},
    {"join", filters::join},
    {"last", filters::last},
    {"length", filters::length},
    {"list", filters::list},
    {"lower", filters::changed<strings::lower>},
    {"map", filters::map},
    {"max", filters::extreme<true>},
    {"min", filters::extreme<false>},
    {"reject", filters::select<false, false>},
    {"rejectattr", filters::select<false, true>},
    {"replace", filters::replace},
    {"reverse", filters::reverse},
    {"round", filters::round},
    {"safe", filters::safe},
    {"select", filters::select<true, false>},
    {"selectattr", filters::select<true, true>},
    {"slice", filters::slice},
    {"sort", filters::sort},
    {"string", filters::string},
    {"sum", filters::sum},
    {"title", filters::changed<filters::title>},
    {"tojson", filters::to_json},
    {"trim", filters::trim},
    {"truncate", filters::truncate},
    {"unique", filters::unique},
    {"upper", filters::changed<strings::upper>},
    {"urlencode", filters::url_encode},
    {"wordcount", filters::word_count},
};

using Test = bool (*)(Runtime&, const Value&, const Arguments&);

namespace tests {

template <char sign>
bool compare(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound args("test", given, {"other"});
  return arithmetic::compare(runtime, sign, value, args.need(0));
}
inline bool divisible(Runtime& runtime, const Value& value, const Value& by, int rest) {
  return equal(runtime.budget, arithmetic::apply(runtime, '%', value, by), rest);
}
inline bool divisible_by(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound args("divisibleby", given, {"num"});
  return divisible(runtime, value, args.need(0), 0);
}
inline bool same_as(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound args("sameas", given, {"other"});
  return value.data().index() == args.need(0).data().index() && equal(runtime.budget, value, args.need(0));
}
inline bool is_in(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound args("in", given, {"seq"});
  return arithmetic::contains(runtime, args.need(0), value);
}
template <bool upper>
bool case_is(Runtime& runtime, const Value& value, const Arguments&) {
  return methods::has_case<upper>(runtime.text(value).bytes());
}
inline bool is_flag(const Value& value, bool wanted) { return value.get_if<bool>() && *value.get_if<bool>() == wanted; }
inline bool holds_items(const Value& value) {
  return value.list() || value.dict() || value.string() || value.is_undefined();
}
inline bool is_object(const Value& value, std::initializer_list<Object::Type> types) {
  return value.object() && std::find(types.begin(), types.end(), value.object()->type) != types.end();
}
bool exists(std::string_view name, bool filter);

}  // namespace tests

struct TestEntry {
  std::string_view name;
  Test call;
};
inline constexpr TestEntry test_table[] = {
    {"!=", tests::compare<'!'>},
    {"<", tests::compare<'<'>},
    {"<=", tests::compare<'l'>},
    {"==", tests::compare<'='>},
    {">", tests::compare<'>'>},
    {">=", tests::compare<'g'>},
    {"boolean", [](Runtime&, const Value& value, const Arguments&) { return value.get_if<bool>() != nullptr; }},
    {"callable",
     [](Runtime&, const Value& value, const Arguments&) {
       using Type = Object::Type;
       return value.is_undefined() ||
              tests::is_object(value, {Type::builtin, Type::method, Type::macro, Type::loop, Type::joiner});
     }},
    {"defined", [](Runtime&, const Value& value, const Arguments&) { return !value.is_undefined(); }},
    {"divisibleby", tests::divisible_by},
    {"eq", tests::compare<'='>},
    {"equalto", tests::compare<'='>},
    {"escaped", [](Runtime&, const Value& value, const Arguments&) { return filters::is_safe(value); }},
    {"even",
     [](Runtime& runtime, const Value& value, const Arguments&) { return tests::divisible(runtime, value, 2, 0); }},
    {"false", [](Runtime&, const Value& value, const Arguments&) { return tests::is_flag(value, false); }},
    {"filter", [](Runtime&, const Value& value,
                  const Arguments&) { return value.string() && tests::exists(value.string()->text.bytes(), true); }},
    {"float", [](Runtime&, const Value& value, const Arguments&) { return value.get_if<double>() != nullptr; }},
    {"ge", tests::compare<'g'>},
    {"greaterthan", tests::compare<'>'>},
    {"gt", tests::compare<'>'>},
    {"in", tests::is_in},
    {"integer", [](Runtime&, const Value& value, const Arguments&) { return value.get_if<Integer>() != nullptr; }},
    {"iterable",
     [](Runtime&, const Value& value, const Arguments&) {
       return tests::holds_items(value) ||
              tests::is_object(value, {Object::Type::generator, Object::Type::view, Object::Type::range});
     }},
    {"le", tests::compare<'l'>},
    {"lessthan", tests::compare<'<'>},
    {"lower", tests::case_is<false>},
    {"lt", tests::compare<'<'>},
    {"mapping", [](Runtime&, const Value& value, const Arguments&) { return value.dict() != nullptr; }},
    {"ne", tests::compare<'!'>},
    {"none", [](Runtime&, const Value& value, const Arguments&) { return value.is_none(); }},
    {"number",
     [](Runtime&, const Value& value, const Arguments&) {
       double ignored;
       return as_real(value, ignored);
     }},
    {"odd",
     [](Runtime& runtime, const Value& value, const Arguments&) { return tests::divisible(runtime, value, 2, 1); }},
    {"sameas", tests::same_as},
    {"sequence",
     [](Runtime&, const Value& value, const Arguments&) {
       return tests::holds_items(value) || tests::is_object(value, {Object::Type::range});
     }},
    {"string", [](Runtime&, const Value& value, const Arguments&) { return value.string() != nullptr; }},
    {"test", [](Runtime&, const Value& value,
                const Arguments&) { return value.string() && tests::exists(value.string()->text.bytes(), false); }},
    {"true", [](Runtime&, const Value& value, const Arguments&) { return tests::is_flag(value, true); }},
    {"undefined", [](Runtime&, const Value& value, const Arguments&) { return value.is_undefined(); }},
    {"upper", tests::case_is<true>},
};

template <class Entry, std::size_t n>
int index_of(const Entry (&table)[n], std::string_view name) {
  for (std::size_t i = 0; i < n; ++i)
    if (table[i].name == name) return int(i);
  return -1;
}
inline int find_filter(std::string_view name) { return index_of(filter_table, name); }
inline int find_test(std::string_view name) { return index_of(test_table, name); }
inline bool tests::exists(std::string_view name, bool filter) {
  return (filter ? find_filter(name) : find_test(name)) >= 0;
}

inline Value call_filter(Runtime& runtime, std::string_view name, const Value& value, const Arguments& arguments) {
  const int index = find_filter(name);
  if (index < 0) fail("there is no filter '", name, "'");
  runtime.budget.step();
  return filter_table[index].call(runtime, value, arguments);
}
inline bool call_test(Runtime& runtime, std::string_view name, const Value& value, const Arguments& arguments) {
  const int index = find_test(name);
  if (index < 0) fail("there is no test '", name, "'");
  runtime.budget.step();
  return test_table[index].call(runtime, value, arguments);
}

namespace functions {

inline constexpr std::int64_t longest_range = 100000;  // as the sandbox has it

inline Value range(Runtime& runtime, const Arguments& given) {
  const Bound args("range", given, {"start", "stop", "step"});
  const bool one = args[1] == nullptr;
  const std::int64_t start = one ? 0 : args.integer(0), stop = one ? args.integer(0) : args.integer(1);
  const std::int64_t step = args.integer(2, 1);
  if (step == 0) fail("range: the step is zero");
  for (const std::int64_t number : {start, stop, step})
    if (std::abs(number) > std::int64_t(1) << 40) fail_limit("a range of numbers that are too large");
  const auto distance = Integer(stop) - start;
  const Integer n = step > 0 ? (distance + step - 1) / step : (distance + step + 1) / step;
  if (n > longest_range) fail_limit("a range of more than ", longest_range);
  return runtime.make<Range>(start, stop, step);
}

// Pairs from dicts and lists of pairs, then the named arguments.
inline Value::Pairs pairs_of(Runtime& runtime, const Arguments& given) {
  Value::Pairs pairs;
  if (given.positional.size() > 1) fail("dict: expected at most one dict or list of pairs");
  if (given.positional.size() == 1) {
    const Value& from = given.positional[0];
    check_defined(from);
    if (from.dict()) {
      pairs = from.dict()->pairs;
    } else {
      for (const Value& item : runtime.items_of(from)) {
        const auto pair = runtime.items_of(item);
        if (pair.size() != 2) fail("dict: expected pairs");
        pairs.emplace_back(pair[0], pair[1]);
      }
    }
  }
  for (const auto& [name, value] : given.named) pairs.emplace_back(name, value);
  return pairs;
}
inline Value dict(Runtime& runtime, const Arguments& given) { return runtime.make_dict(pairs_of(runtime, given)); }

inline Value name_space(Runtime& runtime, const Arguments& given) {
  auto* made = runtime.make<Namespace>();
  for (auto& [key, value] : pairs_of(runtime, given)) made->set(runtime.text(key).bytes(), value, runtime.budget);
  return made;
}
inline Value cycler(Runtime& runtime, const Arguments& given) {
  if (given.positional.empty()) fail("cycler: expected at least one item");
  return runtime.make<Cycler>(given.positional);
}
inline Value joiner(Runtime& runtime, const Arguments& given) {
  const Bound args("joiner", given, {"sep"});
  return runtime.make<Joiner>(args[0] ? *args[0] : Value(", "));
}
inline Value raise_exception(Runtime& runtime, const Arguments& given) {
  const Bound args("raise_exception", given, {"message"});
  throw Fault{ErrorKind::refused, runtime.text(args.need(0)).bytes()};
}
inline Value strftime_now(Runtime& runtime, const Arguments& given) {
  const Bound args("strftime_now", given, {"format"});
  runtime.used_clock = true;
  return runtime.make_text(MarkedText(clock::format(args.text(0).bytes(), clock::checked(runtime.clock()))));
}

struct Entry {
  const char* name;
  Function call;
};
inline constexpr Entry table[] = {{"range", range},
                                  {"dict", dict},
                                  {"namespace", name_space},
                                  {"cycler", cycler},
                                  {"joiner", joiner},
                                  {"raise_exception", raise_exception},
                                  {"strftime_now", strftime_now}};

}  // namespace functions

}  // namespace jinja

VITRINE_NAMESPACE_END
