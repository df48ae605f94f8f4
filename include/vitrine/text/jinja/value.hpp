// The values of the template language, which are Python's: None, numbers, strings, lists, tuples, dicts. What a caller
// hands to a template is made of them; a value never changes once it is made, copies share it.
//
//   Value message = Value::dict({{"role", "user"}, {"content", "Hi"}});
//   Value tools = Value::from_json(R"([{"type": "function", "function": {"name": "now"}}])");
//
// Dicts keep the order of their keys, as JSON objects of tools must reach the model as they were written.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/text/jinja/marked_text.hpp"

VITRINE_NAMESPACE_BEGIN

namespace jinja {

struct Object;  // functions, macros, namespaces: they exist within one rendering only
struct List;
struct Dict;

struct None {};
struct Undefined {
  std::shared_ptr<const std::string> why;  // what is said when it is used
};
struct String {
  MarkedText text;
  bool safe = false;  // Python's Markup: `+` escapes what is joined to it
};
__extension__ using Integer = __int128;

inline constexpr int deepest_value = 100;  // lists in lists in lists ...

class Value {
 public:
  using Items = std::vector<Value>;
  using Pairs = std::vector<std::pair<Value, Value>>;

  Value() = default;  // undefined
  Value(None) : data_(None{}) {}
  Value(Undefined undefined) : data_(std::move(undefined)) {}
  template <std::integral T>
  Value(T value) : data_(Integer(value)) {
    if constexpr (std::same_as<T, bool>) data_ = value;
  }
  Value(Integer value) : data_(value) {}
  Value(std::floating_point auto value) : data_(double(value)) {}
  Value(std::string text) : Value(MarkedText(std::move(text))) {}
  Value(std::string_view text) : Value(std::string(text)) {}
  Value(const char* text) : Value(std::string(text)) {}
  Value(MarkedText text, bool safe = false) : data_(std::make_shared<const String>(String{std::move(text), safe})) {}
  Value(std::shared_ptr<const List> list) : data_(std::move(list)) {}
  Value(std::shared_ptr<const Dict> dict) : data_(std::move(dict)) {}
  Value(Object* object) : data_(object) {}

  // Throw Error::limit_exceeded if they nest deeper than deepest_value. Of equal keys the last value stays.
  static Value list(Items items);
  static Value tuple(Items items);
  static Value group(Items items);  // a tuple whose elements are also called grouper and list
  static Value dict(Pairs pairs);
  static Value undefined(std::string why);

  // Throws Error::bad_argument naming `name` and the byte; integers beyond 64 bits become reals.
  static Value from_json(std::string_view text, std::string_view name = "JSON");
  std::string to_json() const;  // as Python's json.dumps(value, ensure_ascii=False); undefined parts are null

  // The same with every string in it, keys too, marked as coming from `origin`.
  Value marked(Origin origin) const;

  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&data_);
  }
  bool is_undefined() const { return get_if<Undefined>() != nullptr; }
  bool is_none() const { return get_if<None>() != nullptr; }
  const String* string() const;  // null for other types, and so the next ones
  const List* list() const;      // lists and tuples
  const Dict* dict() const;
  Object* object() const;
  const Value* find(std::string_view key) const;  // in a dict; null if it is none or lacks the key

  const auto& data() const { return data_; }

 private:
  using Data = std::variant<Undefined, None, bool, Integer, double, std::shared_ptr<const String>,
                            std::shared_ptr<const List>, std::shared_ptr<const Dict>, Object*>;
  static Value make_list(Items items, int kind);
  Data data_;
};

struct List {
  Value::Items items;
  bool is_tuple = false, is_group = false;
  int depth = 1;
};

struct Dict {
  Value::Pairs pairs;
  int depth = 1;
  const Value* find(std::string_view key) const;
};

inline const String* Value::string() const {
  const auto* p = get_if<std::shared_ptr<const String>>();
  return p ? p->get() : nullptr;
}
inline const List* Value::list() const {
  const auto* p = get_if<std::shared_ptr<const List>>();
  return p ? p->get() : nullptr;
}
inline const Dict* Value::dict() const {
  const auto* p = get_if<std::shared_ptr<const Dict>>();
  return p ? p->get() : nullptr;
}
inline Object* Value::object() const {
  const auto* p = get_if<Object*>();
  return p ? *p : nullptr;
}
inline const Value* Value::find(std::string_view key) const { return dict() ? dict()->find(key) : nullptr; }

inline const Value* Dict::find(std::string_view key) const {
  for (const auto& [name, value] : pairs)
    if (const String* text = name.string(); text && text->text.bytes() == key) return &value;
  return nullptr;
}

}  // namespace jinja

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/text/jinja/value.inl.hpp"
#endif
