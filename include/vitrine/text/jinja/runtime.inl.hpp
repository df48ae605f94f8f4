// One rendering, as filters, tests and methods see it: its budget, the values it makes, attributes and calls. For
// bodies only.
#pragma once

#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vitrine/text/jinja/objects.inl.hpp"

VITRINE_NAMESPACE_BEGIN

namespace jinja {

inline void check_defined(const Value& value) {
  if (const Undefined* undefined = value.get_if<Undefined>()) fail(undefined->why ? *undefined->why : "undefined");
}

class Runtime {
 public:
  Budget budget;
  std::function<std::tm()> clock;
  bool used_clock = false;

  Runtime() = default;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  virtual ~Runtime() = default;

  template <class T, class... Parts>
  T* make(Parts&&... parts) {
    budget.allocate(sizeof(T) + 2 * sizeof(void*));
    auto object = std::make_unique<T>(std::forward<Parts>(parts)...);
    T* raw = object.get();
    objects_.push_back(std::move(object));
    return raw;
  }
  Value make_list(Value::Items items, bool tuple = false) {
    budget.allocate(64 + items.size() * sizeof(Value));
    return tuple ? Value::tuple(std::move(items)) : Value::list(std::move(items));
  }
  Value make_generator(Value::Items items) {
    budget.allocate(items.size() * sizeof(Value));
    return make<Generator>(std::move(items));
  }
  // Equal keys become one, which takes a search per key.
  Value make_dict(Value::Pairs pairs) {
    const std::uint64_t n = pairs.size();
    budget.allocate(64 + 2 * n * sizeof(Value));
    budget.step(n * n / 8);
    for (const auto& [key, value] : pairs) check_key(key);
    return Value::dict(std::move(pairs));
  }
  void check_key(const Value& key) {
    if ((key.list() && !key.list()->is_tuple) || key.dict()) fail("a ", type_name(key), " cannot be the key of a dict");
  }
  Value make_text(MarkedText text, bool safe = false) {
    budget.allocate(64);
    return Value(std::move(text), safe);
  }
  printing::Writer writer(Origin origin = scaffold) { return printing::Writer(budget, origin); }
  MarkedText text(const Value& value) { return printing::text_of(budget, value); }

  Value::Items items_of(const Value& value) {
    Value::Items items;
    Value item;
    for (Pass pass(value); pass.next(item);) {
      budget.allocate(sizeof(Value));
      budget.step();
      items.push_back(item);
    }
    return items;
  }

  // a.name, and a[which]; undefined where there is none. Throw for an undefined `of`.
  Value attribute(const Value& of, std::string_view name);
  Value item(const Value& of, const Value& which);
  virtual Value call(const Value& callee, const Arguments& arguments) = 0;
  virtual Value loop_attribute(Loop& loop, std::string_view name, bool& found) = 0;

 private:
  Value own_attribute(const Value& of, std::string_view name, bool& found);
  const Value* find_item(const Value& of, const Value& which, Value& made);

  std::vector<std::unique_ptr<Object>> objects_;
};

// The arguments of a call, by the names of its parameters.
class Bound {
 public:
  Bound(std::string_view function, const Arguments& arguments, std::initializer_list<std::string_view> names) {
    if (arguments.positional.size() > names.size())
      fail(function, ": expected at most ", names.size(), " arguments, got ", arguments.positional.size());
    values_.resize(names.size());
    for (std::size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = &arguments.positional[i];
    for (const auto& [name, value] : arguments.named) {
      std::size_t i = 0;
      while (i < names.size() && std::data(names)[i] != name) ++i;
      if (i == names.size()) fail(function, ": there is no argument '", name, "'");
      if (values_[i] != nullptr) fail(function, ": argument '", name, "' is given twice");
      values_[i] = &value;
    }
    function_ = function;
  }

  const Value* operator[](std::size_t i) const { return values_[i]; }
  const Value& need(std::size_t i) const {
    if (values_[i] == nullptr) fail(function_, ": argument ", i + 1, " is missing");
    return *values_[i];
  }
  bool flag(std::size_t i, bool by_default) const { return values_[i] ? is_true(*values_[i]) : by_default; }
  bool given(std::size_t i) const { return values_[i] != nullptr && !values_[i]->is_none(); }
  std::int64_t integer(std::size_t i) const {
    Integer value;
    check_defined(need(i));
    if (!as_integer(need(i), value))
      fail(function_, ": expected a whole number as argument ", i + 1, ", got a value of type '", type_name(need(i)),
           "'");
    constexpr Integer most = (std::numeric_limits<std::int64_t>::max)();
    return std::int64_t(value > most ? most : value < -most ? -most : value);
  }
  std::int64_t integer(std::size_t i, std::int64_t by_default) const { return values_[i] ? integer(i) : by_default; }
  const MarkedText& text(std::size_t i) const {
    check_defined(need(i));
    const String* string = need(i).string();
    if (string == nullptr)
      fail(function_, ": expected a string as argument ", i + 1, ", got a value of type '", type_name(need(i)), "'");
    return string->text;
  }

 private:
  std::string_view function_;
  std::vector<const Value*> values_;
};

// Methods of strings, lists and dicts by name; null if there is none (methods.inl.hpp).
Filter find_method(const Value& of, std::string_view name);
// Methods that would change a list or a dict, which the sandbox forbids.
bool changes(const Value& of, std::string_view name);

// What Python's getattr finds.
inline Value Runtime::own_attribute(const Value& of, std::string_view name, bool& found) {
  found = true;
  if (const Filter method = find_method(of, name)) return make<Method>(of, method);
  if (name.starts_with("__") || changes(of, name)) {
    const auto why = concat("access to attribute '", name, "' of '", type_name(of), "' object is unsafe");
    if (name.starts_with("__")) fail(why);
    return Value::undefined(why);
  }
  if (const List* list = of.list(); list && list->is_group) {
    if (name == "grouper") return list->items[0];
    if (name == "list") return list->items[1];
  }
  if (Object* object = of.object()) {
    if (object->type == Object::Type::name_space)
      if (const Value* value = static_cast<Namespace*>(object)->find(name, budget)) return *value;
    if (object->type == Object::Type::loop) return loop_attribute(static_cast<Loop&>(*object), name, found);
    if (object->type == Object::Type::cycler && name == "current") {
      const auto& cycler = static_cast<const Cycler&>(*object);
      return cycler.items[cycler.position];
    }
    if (object->type == Object::Type::macro && name == "name") return Value(static_cast<Macro*>(object)->name);
    if (object->type == Object::Type::range) {
      const auto& range = static_cast<const Range&>(*object);
      if (name == "start") return range.start;
      if (name == "stop") return range.stop;
      if (name == "step") return range.step;
    }
  }
  found = false;
  return {};
}

inline Value Runtime::attribute(const Value& of, std::string_view name) {
  check_defined(of);
  if (const Dict* dict = of.dict()) budget.step(dict->pairs.size() / 16);
  bool found = of.dict() != nullptr && name.starts_with("__") && of.find(name) != nullptr;
  if (!found)
    if (Value value = own_attribute(of, name, found); found) return value;
  if (const Value* value = of.find(name)) return *value;
  std::string why =
      concat(of.is_none() ? "none" : concat("'", type_name(of), " object'"), " has no attribute '", name, "'");
  return Value::undefined(std::move(why));
}

inline const Value* Runtime::find_item(const Value& of, const Value& which, Value& made) {
  Integer index;
  if (const Dict* dict = of.dict()) {
    budget.step(dict->pairs.size() / 16);
    if (const String* key = which.string()) return dict->find(key->text.bytes());
    for (const auto& [key, value] : dict->pairs)
      if (equal(budget, key, which)) return &value;
    return nullptr;
  }
  if (!as_integer(which, index)) return nullptr;
  const auto place = [&](std::int64_t size) { return index < 0 ? index + size : index; };
  if (const List* list = of.list()) {
    const Integer at = place(std::int64_t(list->items.size()));
    return at >= 0 && at < Integer(list->items.size()) ? &list->items[std::size_t(at)] : nullptr;
  }
  if (const String* text = of.string()) {
    const std::string_view bytes = text->text.bytes();
    budget.step(bytes.size() / 64);
    const Integer at = place(index < 0 ? characters::count(bytes) : 0);
    if (at < 0 || at >= Integer(bytes.size())) return nullptr;
    const std::size_t begin = characters::offset(bytes, std::int64_t(at));
    if (begin >= bytes.size()) return nullptr;
    made = make_text(text->text.slice(begin, begin + utf8::first_unit(bytes.substr(begin)).n_bytes), text->safe);
    return &made;
  }
  if (const Object* object = of.object(); object && object->type == Object::Type::range) {
    const auto& range = static_cast<const Range&>(*object);
    const Integer at = place(range.size());
    if (at < 0 || at >= range.size()) return nullptr;
    made = Value(range.start + std::int64_t(at) * range.step);
    return &made;
  }
  return nullptr;
}

inline Value Runtime::item(const Value& of, const Value& which) {
  check_defined(of);
  Value made;
  if (const Value* value = find_item(of, which, made)) return *value;
  const String* name = which.string();
  if (name != nullptr) {
    bool found = false;
    if (Value value = own_attribute(of, name->text.bytes(), found); found) return value;
  }
  const std::string object = of.is_none() ? "none" : concat(type_name(of), " object");
  if (name != nullptr) return Value::undefined(concat("'", object, "' has no attribute '", name->text.bytes(), "'"));
  auto out = writer();
  printing::write_repr(out, which);
  return Value::undefined(concat(object, " has no element ", out.take().bytes()));
}

}  // namespace jinja

VITRINE_NAMESPACE_END
