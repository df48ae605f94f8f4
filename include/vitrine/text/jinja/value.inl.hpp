#pragma once

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "vitrine/core/error.hpp"
#include "vitrine/text/jinja/printing.inl.hpp"
#include "vitrine/text/jinja/value.hpp"

VITRINE_NAMESPACE_BEGIN

namespace jinja {

namespace value_detail {

inline int depth_of(const Value& value) {
  return value.list() ? value.list()->depth : value.dict() ? value.dict()->depth : 0;
}

inline void check_depth(int depth) {
  check(depth <= deepest_value, ErrorKind::limit_exceeded, "values nest deeper than ", deepest_value);
}

// Builds a Value from the events of nlohmann's parser, which does not recurse.
class Builder {
 public:
  using Real = nlohmann::json::number_float_t;
  Value result;
  std::string error;
  std::size_t error_byte = 0;

  bool null() { return put(None{}); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(std::int64_t value) { return put(value); }
  bool number_unsigned(std::uint64_t value) { return put(value); }
  bool number_float(Real value, const std::string&) { return put(double(value)); }
  bool string(std::string& value) { return put(Value(std::move(value))); }
  bool binary(nlohmann::json::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(true); }
  bool start_array(std::size_t) { return open(false); }
  bool key(std::string& name) {
    open_.back().key = std::move(name);
    return true;
  }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool parse_error(std::size_t byte, const std::string&, const nlohmann::json::exception& exception) {
    error_byte = byte;
    error = dynamic_cast<const nlohmann::json::out_of_range*>(&exception) ? "a number that is out of range"
                                                                          : "no valid JSON";
    return false;
  }

 private:
  struct Open {
    bool is_object = false;
    std::string key{};
    Value::Items items{};
    Value::Pairs pairs{};
    std::unordered_map<std::string, std::size_t> places{};
  };

  bool open(bool is_object) {
    check_depth(int(open_.size()) + 1);
    open_.push_back({.is_object = is_object});
    return true;
  }
  bool close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    if (!done.is_object) return put(Value::list(std::move(done.items)));
    // Keys are known to differ: no search for equal ones.
    auto dict = std::make_shared<Dict>();
    for (const auto& pair : done.pairs) dict->depth = (std::max)(dict->depth, 1 + depth_of(pair.second));
    dict->pairs = std::move(done.pairs);
    return put(Value(std::shared_ptr<const Dict>(std::move(dict))));
  }
  bool put(Value value) {
    if (open_.empty()) {
      result = std::move(value);
    } else if (Open& top = open_.back(); !top.is_object) {
      top.items.push_back(std::move(value));
    } else if (const auto [place, is_new] = top.places.emplace(top.key, top.pairs.size()); is_new) {
      top.pairs.emplace_back(Value(std::move(top.key)), std::move(value));
    } else {
      top.pairs[place->second].second = std::move(value);
    }
    return true;
  }

  std::vector<Open> open_;
};

}  // namespace value_detail

VITRINE_INLINE Value Value::make_list(Items items, int kind) {
  auto list = std::make_shared<List>();
  for (const Value& item : items) list->depth = (std::max)(list->depth, 1 + value_detail::depth_of(item));
  value_detail::check_depth(list->depth);
  list->items = std::move(items);
  list->is_tuple = kind > 0;
  list->is_group = kind > 1;
  return Value(std::shared_ptr<const List>(std::move(list)));
}

VITRINE_INLINE Value Value::list(Items items) { return make_list(std::move(items), 0); }
VITRINE_INLINE Value Value::tuple(Items items) { return make_list(std::move(items), 1); }
VITRINE_INLINE Value Value::group(Items items) { return make_list(std::move(items), 2); }

VITRINE_INLINE Value Value::dict(Pairs pairs) {
  auto dict = std::make_shared<Dict>();
  Budget unlimited;
  dict->pairs.reserve(pairs.size());
  for (auto& [key, value] : pairs) {
    dict->depth = (std::max)(dict->depth, 1 + value_detail::depth_of(value));
    auto at = dict->pairs.begin();
    while (at != dict->pairs.end() && !equal(unlimited, at->first, key)) ++at;
    if (at == dict->pairs.end()) {
      dict->pairs.emplace_back(std::move(key), std::move(value));
    } else {
      at->second = std::move(value);
    }
  }
  value_detail::check_depth(dict->depth);
  return Value(std::shared_ptr<const Dict>(std::move(dict)));
}

VITRINE_INLINE Value Value::undefined(std::string why) {
  return Undefined{std::make_shared<const std::string>(std::move(why))};
}

VITRINE_INLINE Value Value::from_json(std::string_view text, std::string_view name) {
  value_detail::Builder builder;
  const bool whole = nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  check(whole, ErrorKind::bad_argument, name, ": ", builder.error, " at byte ", builder.error_byte, " of ",
        text.size());
  return std::move(builder.result);
}

VITRINE_INLINE std::string Value::to_json() const {
  printing::JsonStyle style;
  style.undefined_is_null = true;
  Budget unlimited;
  printing::Writer out(unlimited, printing::origin_of(*this));
  printing::write_json(out, *this, style, 0);
  return out.take().bytes();
}

VITRINE_INLINE Value Value::marked(Origin origin) const {
  if (const String* text = string()) return Value(MarkedText(text->text.bytes(), origin), text->safe);
  if (const List* items = list()) {
    Items copies;
    copies.reserve(items->items.size());
    for (const Value& item : items->items) copies.push_back(item.marked(origin));
    return make_list(std::move(copies), items->is_group ? 2 : items->is_tuple ? 1 : 0);
  }
  if (const Dict* entries = dict()) {
    auto copy = std::make_shared<Dict>();
    copy->depth = entries->depth;
    copy->pairs.reserve(entries->pairs.size());
    for (const auto& [key, value] : entries->pairs) copy->pairs.emplace_back(key.marked(origin), value.marked(origin));
    return Value(std::shared_ptr<const Dict>(std::move(copy)));
  }
  return *this;
}

}  // namespace jinja

VITRINE_NAMESPACE_END
