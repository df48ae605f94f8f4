// Walks a template's tree and writes what it prints. For bodies only.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "vitrine/text/jinja/library.inl.hpp"

VITRINE_NAMESPACE_BEGIN

namespace jinja {

inline constexpr int deepest_rendering = 400;  // expressions, statements and macros that are under way at a time

class Interpreter final : public Runtime {
 public:
  Interpreter(const Names& names, std::shared_ptr<Scope> globals)
      : names_(names), loop_id_(names.find("loop")), scope_(std::move(globals)) {
    open_scope();
  }

  MarkedText run(const Node& root) {
    return buffered([&] { execute(root); });
  }
  std::size_t at() const { return at_; }  // where in the template it is

  Value call(const Value& callee, const Arguments& arguments) override;
  Value loop_attribute(Loop& loop, std::string_view name, bool& found) override;

 private:
  using Kind = NodeKind;
  enum class Flow { on, leave_loop, next_round };

  // A bound on the machine's stack, whatever nests: expressions, statements, macros.
  class Level {
   public:
    explicit Level(Interpreter& self) : self_(self) {
      if (++self_.level_ > deepest_rendering || self_.stack_.too_much())
        fail_limit("macros, loops or expressions nest too deeply");
      self_.budget.step();
    }
    ~Level() { --self_.level_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Interpreter& self_;
  };

  template <class Action>
  MarkedText buffered(Action&& action) {
    printing::Writer buffer(budget);
    auto* const outside = std::exchange(out_, &buffer);
    action();
    out_ = outside;
    return buffer.take();
  }
  void open_scope() {
    budget.allocate(sizeof(Scope));
    scope_ = std::make_shared<Scope>(Scope{scope_});
  }
  template <class Action>
  void scoped(Action&& action) {
    const auto outer = scope_;
    open_scope();
    action();
    scope_ = outer;
  }

  Value look_up(int id) {
    for (Scope* scope = scope_.get(); scope != nullptr; scope = scope->parent.get())
      if (const Value* value = scope->find_here(id, budget)) return *value;
    return Value::undefined(concat("'", names_.name(id), "' is undefined"));
  }
  void assign(const Node& target, const Value& value);

  Value evaluate(const Node& node) {
    const Level level(*this);
    at_ = node.at;
    switch (node.kind) {
      case Kind::constant: return node.value;
      case Kind::name: return look_up(node.id);
      case Kind::attribute: return evaluate_attribute(node);
      case Kind::item: return evaluate_item(node);
      case Kind::call: return evaluate_call(node, {});
      case Kind::filter: return evaluate_filter(node);
      case Kind::test: return evaluate_test(node);
      case Kind::negation: return !is_true(evaluate(*node.kids[0]));
      case Kind::conjunction:
      case Kind::disjunction: return evaluate_logic(node);
      case Kind::comparison: return evaluate_comparison(node);
      case Kind::arithmetic: return evaluate_arithmetic(node);
      case Kind::concatenation: return evaluate_concatenation(node);
      case Kind::conditional: return evaluate_conditional(node);
      case Kind::minus:
      case Kind::plus: return evaluate_sign(node);
      case Kind::slice: return evaluate_slice(node);
      case Kind::dict: return evaluate_dict(node);
      default: return evaluate_list(node);  // list, tuple
    }
  }

  Value evaluate_attribute(const Node& node) {
    const Value of = evaluate(*node.kids[0]);
    at_ = node.at;
    return attribute(of, node.value.string()->text.bytes());
  }
  Value evaluate_item(const Node& node) {
    const Value of = evaluate(*node.kids[0]), which = evaluate(*node.kids[1]);
    at_ = node.at;
    return item(of, which);
  }
  Value evaluate_slice(const Node& node) {
    Value parts[4];
    for (std::size_t i = 0; i < 4; ++i) parts[i] = node.kids[i] ? evaluate(*node.kids[i]) : Value(None{});
    at_ = node.at;
    return strings::slice(*this, parts[0], parts[1], parts[2], parts[3]);
  }
  Value evaluate_logic(const Node& node) {
    const bool stops = node.kind == Kind::disjunction;
    Value value = evaluate(*node.kids[0]);
    for (std::size_t i = 1; i < node.kids.size() && is_true(value) != stops; ++i) value = evaluate(*node.kids[i]);
    return value;
  }
  Value evaluate_comparison(const Node& node) {
    Value left = evaluate(*node.kids[0]);
    for (std::size_t i = 1; i < node.kids.size(); ++i) {
      Value right = evaluate(*node.kids[i]);
      at_ = node.at;
      if (!arithmetic::compare(*this, node.signs[i - 1], left, right)) return false;
      left = std::move(right);
    }
    return true;
  }
  Value evaluate_arithmetic(const Node& node) {
    Value value = evaluate(*node.kids[0]);
    for (std::size_t i = 1; i < node.kids.size(); ++i) {
      const Value right = evaluate(*node.kids[i]);
      at_ = node.at;
      value = arithmetic::apply(*this, node.signs[i - 1], value, right);
    }
    return value;
  }
  Value evaluate_sign(const Node& node) {
    const Value value = evaluate(*node.kids[0]);
    at_ = node.at;
    double ignored;
    check_defined(value);
    if (!as_real(value, ignored)) fail("a sign before a value of type '", type_name(value), "'");
    if (const double* real = value.get_if<double>()) return node.kind == Kind::minus ? -*real : *real;
    return arithmetic::apply(*this, node.kind == Kind::minus ? '-' : '+', 0, value);
  }
  Value evaluate_concatenation(const Node& node) {
    auto out = writer();
    for (const auto& kid : node.kids) {
      const Value value = evaluate(*kid);
      if (const String* string = value.string())
        out.put(string->text);
      else
        out.put(text(value));
    }
    return make_text(out.take());
  }
  Value evaluate_conditional(const Node& node) {
    if (is_true(evaluate(*node.kids[0]))) return evaluate(*node.kids[1]);
    if (node.kids[2]) return evaluate(*node.kids[2]);
    return Value::undefined("an inline 'if' without 'else' was false");
  }
  Value evaluate_list(const Node& node) {
    Value::Items items;
    items.reserve(node.kids.size());
    for (const auto& kid : node.kids) items.push_back(evaluate(*kid));
    return make_list(std::move(items), node.kind == Kind::tuple);
  }
  Value evaluate_dict(const Node& node) {
    Value::Pairs pairs;
    for (std::size_t i = 0; i + 1 < node.kids.size(); i += 2) {
      Value key = evaluate(*node.kids[i]);
      pairs.emplace_back(std::move(key), evaluate(*node.kids[i + 1]));
    }
    at_ = node.at;
    return make_dict(std::move(pairs));
  }

  Arguments evaluate_arguments(const CallArguments* given) {
    Arguments out;
    if (given == nullptr) return out;
    for (const auto& node : given->positional) out.positional.push_back(evaluate(*node));
    for (const auto& [name, node] : given->named) out.named.emplace_back(name, evaluate(*node));
    if (given->star)
      for (Value& value : items_of(evaluate(*given->star))) out.positional.push_back(std::move(value));
    if (given->double_star) {
      const Value more = evaluate(*given->double_star);
      if (!more.dict())
        check_defined(more), fail("expected a dict behind **, got a value of type '", type_name(more), "'");
      for (const auto& [key, value] : more.dict()->pairs) {
        if (!key.string()) fail("expected strings as keys behind **");
        budget.step(out.named.size() / 16);
        for (const auto& [name, other] : out.named)
          if (name == key.string()->text.bytes()) fail("argument '", name, "' is given twice");
        out.named.emplace_back(key.string()->text.bytes(), value);
      }
    }
    return out;
  }

  // `caller`: the body of a call block.
  Value evaluate_call(const Node& node, const Value& caller) {
    const Node& callee = *node.kids[0];
    // A method called where it is looked up needs no object of its own.
    if (callee.kind == Kind::attribute) {
      const Value self = evaluate(*callee.kids[0]);
      if (const Filter method = find_method(self, callee.value.string()->text.bytes())) {
        const Arguments arguments = evaluate_arguments(node.arguments.get());
        at_ = node.at;
        return method(*this, self, arguments);
      }
      at_ = callee.at;
      return finish_call(node, attribute(self, callee.value.string()->text.bytes()), caller);
    }
    return finish_call(node, evaluate(callee), caller);
  }
  Value finish_call(const Node& node, const Value& callee, const Value& caller) {
    Arguments arguments = evaluate_arguments(node.arguments.get());
    if (!caller.is_undefined()) arguments.named.emplace_back("caller", caller);
    at_ = node.at;
    return call(callee, arguments);
  }
  Value evaluate_filter(const Node& node) {
    const Value of = node.kids[0] ? evaluate(*node.kids[0]) : block_;
    const Arguments arguments = evaluate_arguments(node.arguments.get());
    at_ = node.at;
    return filter_table[node.function].call(*this, of, arguments);
  }
  Value evaluate_test(const Node& node) {
    const Value of = evaluate(*node.kids[0]);
    const Arguments arguments = evaluate_arguments(node.arguments.get());
    at_ = node.at;
    return test_table[node.function].call(*this, of, arguments);
  }
  // The filters of a block, on its text.
  Value filter_block(const Node& filter, MarkedText text) {
    const Value outside = std::exchange(block_, make_text(std::move(text)));
    Value value = evaluate(filter);
    block_ = outside;
    return value;
  }

  Flow execute(const Node& node);
  void print(const Value& value) {
    if (const String* string = value.string())
      out_->put(string->text);
    else
      out_->put(text(value));
  }
  Flow execute_branches(const Node& node);
  Flow execute_loop(const Node& node, Loop& loop);
  Value call_macro(const Macro& macro, const Arguments& arguments);
  bool pull(Loop& loop, Value& out);
  const Value* peek(Loop& loop);
  std::int64_t length(Loop& loop);

  const Names& names_;
  int loop_id_;
  std::shared_ptr<Scope> scope_;
  printing::Writer* out_ = nullptr;
  Value block_;  // the text that a block's filters work on
  std::size_t at_ = 0;
  int level_ = 0;
  StackUse stack_;
};

}  // namespace jinja

VITRINE_NAMESPACE_END
