// Equality and order of values as Python has them; what their types are called. For bodies only.
#pragma once

#include <cmath>
#include <string_view>

#include "vitrine/text/jinja/budget.inl.hpp"
#include "vitrine/text/jinja/value.hpp"

VITRINE_NAMESPACE_BEGIN

namespace jinja {

const char* object_type(const Object& object);  // objects.inl.hpp

inline const char* type_name(const Value& value) {
  if (value.is_undefined()) return "Undefined";
  if (value.is_none()) return "None";
  if (value.get_if<bool>()) return "bool";
  if (value.get_if<Integer>()) return "int";
  if (value.get_if<double>()) return "float";
  if (value.string()) return "str";
  if (const List* list = value.list()) return list->is_tuple ? "tuple" : "list";
  if (value.dict()) return "dict";
  return object_type(*value.object());
}

// Booleans are integers, too.
inline bool as_integer(const Value& value, Integer& out) {
  if (const bool* flag = value.get_if<bool>()) return out = *flag, true;
  if (const Integer* integer = value.get_if<Integer>()) return out = *integer, true;
  return false;
}
inline bool as_real(const Value& value, double& out) {
  Integer integer;
  if (as_integer(value, integer)) return out = double(integer), true;
  if (const double* real = value.get_if<double>()) return out = *real, true;
  return false;
}

inline bool equal(Budget& budget, const Value& a, const Value& b) {
  budget.step();
  Integer x, y;
  if (as_integer(a, x) && as_integer(b, y)) return x == y;
  double p, q;
  if (as_real(a, p) && as_real(b, q)) return p == q;
  if (a.data().index() != b.data().index()) return false;
  if (a.is_undefined() || a.is_none()) return true;
  if (const String* text = a.string()) {
    const std::string &left = text->text.bytes(), &right = b.string()->text.bytes();
    if (left.size() != right.size()) return false;
    budget.step(left.size() / 64);
    return left == right;
  }
  if (const List* list = a.list()) {
    const List* other = b.list();
    if (list == other) return true;
    if (list->is_tuple != other->is_tuple || list->items.size() != other->items.size()) return false;
    for (std::size_t i = 0; i < list->items.size(); ++i)
      if (!equal(budget, list->items[i], other->items[i])) return false;
    return true;
  }
  if (const Dict* dict = a.dict()) {
    const Dict* other = b.dict();
    if (dict == other) return true;
    if (dict->pairs.size() != other->pairs.size()) return false;
    for (const auto& [key, value] : dict->pairs) {
      const Value* match = nullptr;
      for (const auto& pair : other->pairs)
        if (equal(budget, pair.first, key)) {
          match = &pair.second;
          break;
        }
      if (match == nullptr || !equal(budget, value, *match)) return false;
    }
    return true;
  }
  return a.object() == b.object();
}

// a < b. `sign` is how a failure writes the comparison.
inline bool less(Budget& budget, const Value& a, const Value& b, std::string_view sign = "<") {
  budget.step();
  for (const Value* value : {&a, &b})
    if (const Undefined* undefined = value->get_if<Undefined>()) fail(undefined->why ? *undefined->why : "undefined");
  Integer x, y;
  if (as_integer(a, x) && as_integer(b, y)) return x < y;
  double p, q;
  if (as_real(a, p) && as_real(b, q)) return p < q;
  if (a.string() && b.string()) {
    const std::string &left = a.string()->text.bytes(), &right = b.string()->text.bytes();
    budget.step((std::min)(left.size(), right.size()) / 64);
    return left < right;
  }
  if (const List* list = a.list(), *other = b.list(); list && other && list->is_tuple == other->is_tuple) {
    for (std::size_t i = 0; i < list->items.size() && i < other->items.size(); ++i)
      if (!equal(budget, list->items[i], other->items[i])) return less(budget, list->items[i], other->items[i], sign);
    return list->items.size() < other->items.size();
  }
  fail("'", sign, "' is not supported between '", type_name(a), "' and '", type_name(b), "'");
}

}  // namespace jinja

VITRINE_NAMESPACE_END
