// What exists within one rendering only: scopes, macros, namespaces, loops, iterators. All but scopes belong to the
// rendering and end with it, so that no circle of references outlives it. For bodies only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vitrine/text/jinja/characters.inl.hpp"
#include "vitrine/text/jinja/printing.inl.hpp"
#include "vitrine/text/jinja/tree.inl.hpp"

VITRINE_NAMESPACE_BEGIN

namespace jinja {

class Runtime;

struct Object {
  enum class Type { builtin, method, macro, name_space, generator, view, range, loop, cycler, joiner };
  explicit Object(Type what) : type(what) {}
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;
  Type type;
};

struct Scope {
  std::shared_ptr<Scope> parent;
  std::vector<std::pair<int, Value>> variables{};

  Value* find_here(int id, Budget& budget) {
    budget.step(variables.size() / 32);
    for (auto& [name, value] : variables)
      if (name == id) return &value;
    return nullptr;
  }
  void set(int id, Value value, Budget& budget) {
    if (Value* here = find_here(id, budget)) {
      *here = std::move(value);
    } else {
      variables.emplace_back(id, std::move(value));
    }
  }
};

struct Arguments {
  std::vector<Value> positional{};
  std::vector<std::pair<std::string, Value>> named{};
};

using Function = Value (*)(Runtime&, const Arguments&);
using Filter = Value (*)(Runtime&, const Value&, const Arguments&);  // methods, too

struct Builtin : Object {
  Builtin(const char* what, Function function) : Object(Type::builtin), name(what), call(function) {}
  const char* name;
  Function call;
};
struct Method : Object {
  Method(Value object, Filter function) : Object(Type::method), self(std::move(object)), call(function) {}
  Value self;
  Filter call;
};
struct Macro : Object {
  Macro(const Node& definition, std::shared_ptr<Scope> around, std::string called)
      : Object(Type::macro), node(definition), scope(std::move(around)), name(std::move(called)) {}
  const Node& node;
  std::shared_ptr<Scope> scope;  // that it was defined in
  std::string name;
};
struct Namespace : Object {
  Namespace() : Object(Type::name_space) {}
  std::vector<std::pair<std::string, Value>> attributes{};
  const Value* find(std::string_view name, Budget& budget) const {
    budget.step(attributes.size() / 16);
    for (const auto& [key, value] : attributes)
      if (key == name) return &value;
    return nullptr;
  }
  void set(std::string_view name, Value value, Budget& budget) {
    budget.step(attributes.size() / 16);
    for (auto& [key, old] : attributes)
      if (key == name) return void(old = std::move(value));
    attributes.emplace_back(name, std::move(value));
  }
};
// What Python's generators are here: gone through once, and true whatever they hold.
struct Generator : Object {
  explicit Generator(Value::Items values) : Object(Type::generator), items(std::move(values)) {}
  Value::Items items;
  std::size_t next = 0;
};
struct View : Object {  // dict.keys() and its kin
  enum class What { keys, values, items };
  View(Value of, What which) : Object(Type::view), dict(std::move(of)), what(which) {}
  Value dict;
  What what;
};
struct Range : Object {
  Range(std::int64_t from, std::int64_t to, std::int64_t by) : Object(Type::range), start(from), stop(to), step(by) {}
  std::int64_t start, stop, step;
  std::int64_t size() const {
    if (step > 0) return start < stop ? (stop - start - 1) / step + 1 : 0;
    return start > stop ? (start - stop - 1) / -step + 1 : 0;
  }
};
struct Cycler : Object {
  explicit Cycler(Value::Items values) : Object(Type::cycler), items(std::move(values)) {}
  Value::Items items;
  std::size_t position = 0;
};
struct Joiner : Object {
  explicit Joiner(Value text) : Object(Type::joiner), separator(std::move(text)) {}
  Value separator;
  bool used = false;
};

inline const char* object_type(const Object& object) {
  switch (object.type) {
    case Object::Type::builtin: return "function";
    case Object::Type::method: return "builtin_function_or_method";
    case Object::Type::macro: return "Macro";
    case Object::Type::name_space: return "Namespace";
    case Object::Type::generator: return "generator";
    case Object::Type::view: return "dict view";
    case Object::Type::range: return "range";
    case Object::Type::loop: return "LoopContext";
    case Object::Type::cycler: return "Cycler";
    case Object::Type::joiner: return "Joiner";
  }
  return "";
}

// What Python prints with an address has none here.
inline void write_object(printing::Writer& out, const Object& object) {
  if (object.type == Object::Type::range) {
    const auto& range = static_cast<const Range&>(object);
    out.put(concat("range(", range.start, ", ", range.stop));
    out.put(range.step == 1 ? ")" : concat(", ", range.step, ")"));
  } else if (object.type == Object::Type::view) {
    const auto& view = static_cast<const View&>(object);
    const bool keys = view.what == View::What::keys, items = view.what == View::What::items;
    out.put(keys ? "dict_keys([" : items ? "dict_items([" : "dict_values([");
    bool first = true;
    for (const auto& [key, value] : view.dict.dict()->pairs) {
      if (!first) out.put(", ");
      first = false;
      if (items) out.put("(");
      if (keys || items) printing::write_repr(out, key);
      if (items) out.put(", ");
      if (!keys) printing::write_repr(out, value);
      if (items) out.put(")");
    }
    out.put("])");
  } else if (object.type == Object::Type::name_space) {
    out.put("<Namespace {");
    bool first = true;
    for (const auto& [name, value] : static_cast<const Namespace&>(object).attributes) {
      if (!first) out.put(", ");
      first = false;
      printing::write_quoted(out, MarkedText(name));
      out.put(": ");
      if (value.object())
        out.put(concat("<", object_type(*value.object()), ">"));  // perhaps itself
      else
        printing::write_repr(out, value);
    }
    out.put("}>");
  } else if (object.type == Object::Type::macro) {
    out.put("<Macro ");
    printing::write_quoted(out, MarkedText(static_cast<const Macro&>(object).name));
    out.put(">");
  } else {
    out.put(concat("<", object_type(object), ">"));
  }
}

// One pass over what a value holds: items, keys, characters.
class Pass {
 public:
  explicit Pass(Value value) : value_(std::move(value)) {
    if (const Object* object = value_.object()) {
      using Type = Object::Type;
      if (object->type != Type::generator && object->type != Type::view && object->type != Type::range) refuse();
    } else if (!value_.list() && !value_.dict() && !value_.string() && !value_.is_undefined()) {
      refuse();
    }
  }

  bool next(Value& out) {
    if (const List* list = value_.list()) {
      if (at_ >= list->items.size()) return false;
      out = list->items[at_++];
    } else if (const Dict* dict = value_.dict()) {
      if (at_ >= dict->pairs.size()) return false;
      out = dict->pairs[at_++].first;
    } else if (const String* text = value_.string()) {
      if (at_ >= text->text.size()) return false;
      const auto n = utf8::first_unit(std::string_view(text->text.bytes()).substr(at_)).n_bytes;
      out = Value(text->text.slice(at_, at_ + n));
      at_ += n;
    } else if (Object* object = value_.object()) {
      return next_of(*object, out);
    } else {
      return false;
    }
    return true;
  }

  // How many there are in all, -1 where Python could not say.
  std::int64_t size() const {
    if (const List* list = value_.list()) return std::int64_t(list->items.size());
    if (const Dict* dict = value_.dict()) return std::int64_t(dict->pairs.size());
    if (const String* text = value_.string()) return characters::count(text->text.bytes());
    const Object* object = value_.object();
    if (object == nullptr) return 0;
    if (object->type == Object::Type::view)
      return std::int64_t(static_cast<const View*>(object)->dict.dict()->pairs.size());
    return object->type == Object::Type::range ? static_cast<const Range*>(object)->size() : -1;
  }

 private:
  [[noreturn]] void refuse() const { fail("a value of type '", type_name(value_), "' holds nothing to go through"); }

  bool next_of(Object& object, Value& out) {
    if (object.type == Object::Type::generator) {
      auto& generator = static_cast<Generator&>(object);
      if (generator.next >= generator.items.size()) return false;
      out = std::move(generator.items[generator.next++]);
    } else if (object.type == Object::Type::range) {
      const auto& range = static_cast<const Range&>(object);
      if (std::int64_t(at_) >= range.size()) return false;
      out = Value(range.start + std::int64_t(at_++) * range.step);
    } else {
      const auto& view = static_cast<const View&>(object);
      const auto& pairs = view.dict.dict()->pairs;
      if (at_ >= pairs.size()) return false;
      const auto& [key, value] = pairs[at_++];
      if (view.what == View::What::items)
        out = Value::tuple({key, value});
      else
        out = view.what == View::What::keys ? key : value;
    }
    return true;
  }

  Value value_;
  std::size_t at_ = 0;
};

// A loop while it runs: what templates see as `loop`.
struct Loop : Object {
  Loop(const Node& statement, Value iterable, std::shared_ptr<Scope> around, std::int64_t how_deep)
      : Object(Type::loop), node(statement), source(std::move(iterable)), outer(std::move(around)), depth0(how_deep) {}
  const Node& node;
  Pass source;
  std::shared_ptr<Scope> outer;
  std::int64_t depth0, index0 = -1;
  std::optional<std::int64_t> length{};
  std::optional<Value::Items> rest{};  // what was gone through ahead of time, to count it
  std::size_t next_of_rest = 0;
  std::optional<Value> before{}, current{}, after{};
  std::optional<Value::Items> last_changed{};
};

inline bool is_true(const Value& value) {
  if (value.is_undefined() || value.is_none()) return false;
  if (const bool* flag = value.get_if<bool>()) return *flag;
  if (const Integer* integer = value.get_if<Integer>()) return *integer != 0;
  if (const double* real = value.get_if<double>()) return *real != 0;
  if (const String* text = value.string()) return !text->text.empty();
  if (const List* list = value.list()) return !list->items.empty();
  if (const Dict* dict = value.dict()) return !dict->pairs.empty();
  const Object& object = *value.object();
  if (object.type == Object::Type::range || object.type == Object::Type::view) return Pass(value).size() > 0;
  return true;
}

}  // namespace jinja

VITRINE_NAMESPACE_END
