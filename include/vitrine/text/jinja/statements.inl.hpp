// What statements do: the second half of the interpreter. For bodies only.
#pragma once

#include "vitrine/text/jinja/interpreter.inl.hpp"

VITRINE_NAMESPACE_BEGIN

namespace jinja {

inline void Interpreter::assign(const Node& target, const Value& value) {
  at_ = target.at;
  if (target.kind == Kind::name) {
    budget.allocate(sizeof(Value));
    scope_->set(target.id, value, budget);
  } else if (target.kind == Kind::tuple) {
    const auto items = items_of(value);
    if (items.size() != target.kids.size())
      fail("expected ", target.kids.size(), " values to assign, got ", items.size());
    for (std::size_t i = 0; i < items.size(); ++i) assign(*target.kids[i], items[i]);
  } else {
    const Value of = look_up(target.id);
    Object* object = of.object();
    if (object == nullptr || object->type != Object::Type::name_space)
      fail("'", names_.name(target.id), "' is no namespace, so its attributes cannot be assigned to");
    budget.allocate(sizeof(Value));
    static_cast<Namespace*>(object)->set(target.value.string()->text.bytes(), value, budget);
  }
}

inline Interpreter::Flow Interpreter::execute(const Node& node) {
  const Level level(*this);
  at_ = node.at;
  switch (node.kind) {
    case Kind::block:
      for (const auto& kid : node.kids)
        if (const Flow flow = execute(*kid); flow != Flow::on) return flow;
      break;
    case Kind::output:
      for (const auto& kid : node.kids) print(evaluate(*kid));
      break;
    case Kind::branches: return execute_branches(node);
    case Kind::loop: {
      const Value iterable = evaluate(*node.kids[1]);
      at_ = node.at;
      return execute_loop(node, *make<Loop>(node, iterable, scope_, 0));
    }
    case Kind::assign: assign(*node.kids[0], evaluate(*node.kids[1])); break;
    case Kind::assign_block: {
      Flow flow = Flow::on;
      auto text = buffered([&] { scoped([&] { flow = execute(*node.kids[2]); }); });
      if (flow != Flow::on) return flow;
      assign(*node.kids[0], node.kids[1] ? filter_block(*node.kids[1], std::move(text)) : make_text(std::move(text)));
      break;
    }
    case Kind::with: {
      Flow flow = Flow::on;
      const std::size_t n = node.kids.size() - 1;
      Value::Items values;
      for (std::size_t i = 1; i < n; i += 2) values.push_back(evaluate(*node.kids[i]));
      scoped([&] {
        for (std::size_t i = 0; i < n; i += 2) assign(*node.kids[i], values[i / 2]);
        flow = execute(*node.kids[n]);
      });
      return flow;
    }
    case Kind::macro: scope_->set(node.id, make<Macro>(node, scope_, names_.name(node.id)), budget); break;
    case Kind::call_block: print(evaluate_call(*node.kids[0], make<Macro>(*node.kids[1], scope_, "caller"))); break;
    case Kind::filter_block: {
      Flow flow = Flow::on;
      auto text = buffered([&] { scoped([&] { flow = execute(*node.kids[1]); }); });
      if (flow != Flow::on) return flow;
      print(filter_block(*node.kids[0], std::move(text)));
      break;
    }
    case Kind::scope: {
      Flow flow = Flow::on;
      scoped([&] { flow = execute(*node.kids[0]); });
      return flow;
    }
    case Kind::loop_break: return Flow::leave_loop;
    case Kind::loop_continue: return Flow::next_round;
    default: break;
  }
  return Flow::on;
}

inline Interpreter::Flow Interpreter::execute_branches(const Node& node) {
  for (std::size_t i = 0; i < node.kids.size(); i += 2)
    if (!node.kids[i] || is_true(evaluate(*node.kids[i]))) return execute(*node.kids[i + 1]);
  return Flow::on;
}

// The next item that the loop's filter lets through.
inline bool Interpreter::pull(Loop& loop, Value& out) {
  if (loop.rest) {
    if (loop.next_of_rest == loop.rest->size()) return false;
    out = (*loop.rest)[loop.next_of_rest++];
    return true;
  }
  const Node* filter = loop.node.kids[2].get();
  while (loop.source.next(out)) {
    budget.step();
    if (filter == nullptr) return true;
    const auto outside = std::exchange(scope_, loop.outer);
    bool passes = false;
    scoped([&] {
      assign(*loop.node.kids[0], out);
      passes = is_true(evaluate(*filter));
    });
    scope_ = outside;
    if (passes) return true;
  }
  return false;
}

inline const Value* Interpreter::peek(Loop& loop) {
  Value next;
  if (!loop.after && pull(loop, next)) loop.after = std::move(next);
  return loop.after ? &*loop.after : nullptr;
}

inline std::int64_t Interpreter::length(Loop& loop) {
  if (!loop.length && loop.node.kids[2] == nullptr && loop.source.size() >= 0) loop.length = loop.source.size();
  if (!loop.length) {
    Value::Items rest;
    for (Value value; pull(loop, value);) {
      budget.allocate(sizeof(Value));
      rest.push_back(value);
    }
    loop.length = std::int64_t(rest.size()) + loop.index0 + 1 + loop.after.has_value();
    loop.rest = std::move(rest);
    loop.next_of_rest = 0;
  }
  return *loop.length;
}

inline Interpreter::Flow Interpreter::execute_loop(const Node& node, Loop& loop) {
  const auto outer = loop.outer;
  bool completed = false;  // a round to its end; as in Jinja, rounds that `continue` do not count
  for (;;) {
    Value value;
    if (loop.after) {
      value = *std::exchange(loop.after, std::nullopt);
    } else if (!pull(loop, value)) {
      break;
    }
    ++loop.index0;
    loop.before = std::exchange(loop.current, value);
    scope_ = outer;
    open_scope();
    if (loop_id_ >= 0) scope_->set(loop_id_, &loop, budget);
    assign(*node.kids[0], value);
    const Flow flow = execute(*node.kids[3]);
    if (flow == Flow::leave_loop) break;
    completed |= flow == Flow::on;
  }
  scope_ = outer;
  Flow flow = Flow::on;
  if (!completed && node.kids[4]) scoped([&] { flow = execute(*node.kids[4]); });
  return flow;
}

inline Value Interpreter::loop_attribute(Loop& loop, std::string_view name, bool& found) {
  found = true;
  if (name == "index") return loop.index0 + 1;
  if (name == "index0") return loop.index0;
  if (name == "first") return loop.index0 == 0;
  if (name == "last") return peek(loop) == nullptr;
  if (name == "length") return length(loop);
  if (name == "revindex") return length(loop) - loop.index0;
  if (name == "revindex0") return length(loop) - loop.index0 - 1;
  if (name == "depth") return loop.depth0 + 1;
  if (name == "depth0") return loop.depth0;
  if (name == "previtem") return loop.index0 > 0 ? *loop.before : Value::undefined("there is no previous item");
  if (name == "nextitem") {
    const Value* next = peek(loop);
    return next ? *next : Value::undefined("there is no next item");
  }
  found = false;
  return {};
}

inline Value Interpreter::call_macro(const Macro& macro, const Arguments& arguments) {
  const Level level(*this);
  const Node& node = macro.node;
  const std::size_t n = node.parameters.size();
  const auto calling = std::exchange(scope_, macro.scope);
  open_scope();
  Scope& scope = *scope_;
  std::vector<bool> taken(arguments.named.size());
  const auto take_named = [&](std::string_view name) -> const Value* {
    budget.step(taken.size() / 16);
    for (std::size_t i = 0; i < taken.size(); ++i)
      if (!taken[i] && arguments.named[i].first == name) return taken[i] = true, &arguments.named[i].second;
    return nullptr;
  };
  bool has_caller = false, has_kwargs = false, has_varargs = false;
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < n; ++i) {
    const std::string& name = names_.name(node.parameters[i]);
    has_caller |= name == "caller";
    has_kwargs |= name == "kwargs";
    has_varargs |= name == "varargs";
    if (i < arguments.positional.size())
      scope.set(node.parameters[i], arguments.positional[i], budget);
    else if (const Value* value = take_named(name))
      scope.set(node.parameters[i], *value, budget);
    else
      missing.push_back(i);
  }
  if (node.uses_caller && !has_caller) {
    const Value* caller = take_named("caller");
    scope.set(names_.find("caller"), caller ? *caller : Value::undefined("no caller is defined"), budget);
  }
  Value::Pairs more;
  for (std::size_t i = 0; i < taken.size(); ++i)
    if (!taken[i]) more.emplace_back(arguments.named[i].first, arguments.named[i].second);
  if (node.uses_kwargs && !has_kwargs) {
    scope.set(names_.find("kwargs"), make_dict(std::move(more)), budget);
  } else if (!more.empty()) {
    fail("macro '", macro.name, "' takes no argument '", more[0].first.string()->text.bytes(), "'");
  }
  if (node.uses_varargs && !has_varargs) {
    const auto begin = arguments.positional.begin() + std::ptrdiff_t((std::min)(n, arguments.positional.size()));
    scope.set(names_.find("varargs"), make_list(Value::Items(begin, arguments.positional.end()), true), budget);
  } else if (arguments.positional.size() > n) {
    fail("macro '", macro.name, "' takes not more than ", n, " arguments");
  }
  for (const std::size_t i : missing) {
    const Node* by_default = node.kids[i + 1].get();
    const int id = node.parameters[i];
    scope.set(id,
              by_default ? evaluate(*by_default)
                         : Value::undefined(concat("parameter '", names_.name(id), "' was not provided")),
              budget);
  }
  auto text = buffered([&] { execute(*node.kids[0]); });
  scope_ = calling;
  return make_text(std::move(text));
}

inline Value Interpreter::call(const Value& callee, const Arguments& arguments) {
  check_defined(callee);
  Object* object = callee.object();
  if (object != nullptr) switch (object->type) {
      case Object::Type::builtin: return static_cast<Builtin*>(object)->call(*this, arguments);
      case Object::Type::method: {
        const auto& method = static_cast<const Method&>(*object);
        return method.call(*this, method.self, arguments);
      }
      case Object::Type::macro: return call_macro(static_cast<const Macro&>(*object), arguments);
      case Object::Type::joiner: {
        auto& joiner = static_cast<Joiner&>(*object);
        return std::exchange(joiner.used, true) ? joiner.separator : Value("");
      }
      case Object::Type::loop: {
        const auto& loop = static_cast<const Loop&>(*object);
        if (!loop.node.flag) fail("a loop must be marked 'recursive' to be called");
        if (arguments.positional.size() != 1 || !arguments.named.empty()) fail("loop: expected one argument");
        auto* inner = make<Loop>(loop.node, arguments.positional[0], loop.outer, loop.depth0 + 1);
        const auto calling = scope_;
        auto text = buffered([&] { execute_loop(loop.node, *inner); });
        scope_ = calling;
        return make_text(std::move(text));
      }
      default: break;
    }
  fail("a value of type '", type_name(callee), "' cannot be called");
}

}  // namespace jinja

VITRINE_NAMESPACE_END
