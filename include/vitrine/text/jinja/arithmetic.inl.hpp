// The operators of Python on values: + - * / // % **, in, and the comparisons. For bodies only.
#pragma once

#include <cmath>

#include "vitrine/core/exact_math.hpp"
#include "vitrine/text/jinja/formatting.inl.hpp"

VITRINE_NAMESPACE_BEGIN

namespace jinja::arithmetic {

[[noreturn]] inline void refuse(const char* sign, const Value& a, const Value& b) {
  fail("'", sign, "' is not supported between '", type_name(a), "' and '", type_name(b), "'");
}
inline Integer fits(bool overflow, Integer value) {
  if (overflow) fail_limit("a number beyond 127 bits");
  return value;
}
inline Integer product(Integer a, Integer b) {
  Integer out;
  const bool overflow = __builtin_mul_overflow(a, b, &out);
  return fits(overflow, out);
}
inline void check_divisor(bool is_zero) {
  if (is_zero) fail("division by zero");
}

// As Python rounds: the quotient down, the rest with the divisor's sign.
inline Integer floor_quotient(Integer a, Integer b) {
  check_divisor(b == 0);
  if (b == -1) return product(a, -1);
  const Integer quotient = a / b;
  return quotient - ((a % b != 0) && ((a < 0) != (b < 0)));
}
inline double floor_rest(double a, double b, double& quotient) {
  check_divisor(b == 0);
  double rest = std::fmod(a, b);
  double exact_quotient = (a - rest) / b;
  if (rest != 0) {
    if ((b < 0) != (rest < 0)) rest += b, exact_quotient -= 1;
  } else {
    rest = std::copysign(0.0, b);
  }
  quotient = std::copysign(0.0, a / b);
  if (exact_quotient != 0) {
    quotient = std::floor(exact_quotient);
    if (exact_quotient - quotient > 0.5) quotient += 1;
  }
  return rest;
}

inline Value power(const Value& a, const Value& b) {
  Integer base, exponent;
  double x, y;
  if (as_integer(a, base) && as_integer(b, exponent) && exponent >= 0) {
    Integer result = 1;
    while (exponent > 0) {
      if (exponent & 1) result = product(result, base);
      exponent >>= 1;
      if (exponent > 0) base = product(base, base);
    }
    return result;
  }
  if (!as_real(a, x) || !as_real(b, y)) refuse("**", a, b);
  check_divisor(x == 0 && y < 0);
  if (x < 0 && y != std::floor(y)) fail("a complex number: a negative one to the power of a fraction");
  if (y == std::floor(y) && std::fabs(y) <= 64) {  // exact where the result is
    double result = 1;
    for (int i = 0; i < int(std::fabs(y)); ++i) result *= x;
    return y < 0 ? 1 / result : result;
  }
  const double result = exact::pow(x, y);
  if (std::isinf(result) && !std::isinf(x) && !std::isinf(y)) fail("the result of ** is too large");
  return result;
}

inline Value add(Runtime& runtime, const Value& a, const Value& b) {
  const String *left = a.string(), *right = b.string();
  if (left && right) {
    const bool safe = left->safe || right->safe;
    auto out = runtime.writer();
    out.put(safe && !left->safe ? strings::escape(runtime, left->text) : left->text);
    out.put(safe && !right->safe ? strings::escape(runtime, right->text) : right->text);
    return runtime.make_text(out.take(), safe);
  }
  const List *first = a.list(), *second = b.list();
  if (!first || !second || first->is_tuple != second->is_tuple) refuse("+", a, b);
  runtime.budget.step(first->items.size() + second->items.size());
  Value::Items items = first->items;
  items.insert(items.end(), second->items.begin(), second->items.end());
  return runtime.make_list(std::move(items), first->is_tuple);
}

inline Value multiply(Runtime& runtime, const Value& a, const Value& b) {
  Integer n;
  const bool a_is_number = as_integer(a, n);
  const Value& of = a_is_number ? b : a;
  if (!a_is_number && !as_integer(b, n)) refuse("*", a, b);
  if (const String* text = of.string()) return runtime.make_text(strings::repeat(runtime, text->text, n), text->safe);
  const List* list = of.list();
  if (list == nullptr) refuse("*", a, b);
  Value::Items items;
  if (n > 0 && !list->items.empty()) {
    if (n > Integer(runtime.budget.bytes / (sizeof(Value) * list->items.size())))
      runtime.budget.allocate(runtime.budget.bytes + 1);
    for (; n > 0; --n) items.insert(items.end(), list->items.begin(), list->items.end());
  }
  return runtime.make_list(std::move(items), list->is_tuple);
}

// `sign` as in Node::signs.
inline Value apply(Runtime& runtime, char sign, const Value& a, const Value& b) {
  if (sign == '%' && a.string()) {
    return runtime.make_text(formatting::percent(runtime, a.string()->text, b), a.string()->safe);
  }
  check_defined(a);
  check_defined(b);
  Integer x, y, out;
  if (as_integer(a, x) && as_integer(b, y)) switch (sign) {
      case '+': {
        const bool overflow = __builtin_add_overflow(x, y, &out);
        return fits(overflow, out);
      }
      case '-': {
        const bool overflow = __builtin_sub_overflow(x, y, &out);
        return fits(overflow, out);
      }
      case '*': return product(x, y);
      case 'f': return floor_quotient(x, y);
      case '%': return x - product(floor_quotient(x, y), y);
      case 'p': return power(a, b);
      default: check_divisor(y == 0); return double(x) / double(y);
    }
  double p, q, quotient;
  if (as_real(a, p) && as_real(b, q)) switch (sign) {
      case '+': return p + q;
      case '-': return p - q;
      case '*': return p * q;
      case 'f': floor_rest(p, q, quotient); return quotient;
      case '%': return floor_rest(p, q, quotient);
      case 'p': return power(a, b);
      default: check_divisor(q == 0); return p / q;
    }
  if (sign == '+') return add(runtime, a, b);
  if (sign == '*') return multiply(runtime, a, b);
  refuse(sign == 'f' ? "//" : sign == 'p' ? "**" : sign == '/' ? "/" : sign == '%' ? "%" : "-", a, b);
}

inline bool contains(Runtime& runtime, const Value& whole, const Value& part) {
  if (const String* text = whole.string()) {
    if (part.string() == nullptr) fail("'in' a string: expected a string, got a value of type '", type_name(part), "'");
    return characters::find(runtime.budget, text->text.bytes(), part.string()->text.bytes()) != strings::npos;
  }
  if (whole.dict()) runtime.check_key(part);
  Value item;
  for (Pass pass(whole); pass.next(item);)
    if (equal(runtime.budget, item, part)) return true;
  return false;
}

inline bool compare(Runtime& runtime, char sign, const Value& a, const Value& b) {
  switch (sign) {
    case '=': return equal(runtime.budget, a, b);
    case '!': return !equal(runtime.budget, a, b);
    case '<': return less(runtime.budget, a, b, "<");
    case '>': return less(runtime.budget, b, a, ">");
    case 'l': return less(runtime.budget, a, b, "<=") || equal(runtime.budget, a, b);
    case 'g': return less(runtime.budget, b, a, ">=") || equal(runtime.budget, a, b);
    case 'i': return contains(runtime, b, a);
    default: return !contains(runtime, b, a);
  }
}

}  // namespace jinja::arithmetic

VITRINE_NAMESPACE_END
