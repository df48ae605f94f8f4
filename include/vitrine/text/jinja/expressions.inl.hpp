// Tokens to expressions, by the grammar of Jinja 3.1. For bodies only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vitrine/text/jinja/literals.inl.hpp"
#include "vitrine/text/jinja/token_reader.inl.hpp"

VITRINE_NAMESPACE_BEGIN

namespace jinja {

// Index of a filter or test by its name, -1 for an unknown one (library.inl.hpp).
int find_filter(std::string_view name);
int find_test(std::string_view name);

class ExpressionParser : protected TokenReader {
 public:
  using TokenReader::TokenReader;

 protected:
  NodePtr parse_expression(bool with_conditional = true) {
    const Level level(*this);
    auto value = parse_operators(0);
    while (with_conditional && at_name("if")) {
      const auto at = take().at;
      auto test = parse_operators(0);
      NodePtr otherwise;
      if (skip_name("else")) otherwise = parse_expression();
      value = make(Kind::conditional, at, std::move(test), std::move(value), std::move(otherwise));
    }
    return value;
  }

  // Strength of the operator that comes next: 0 or, 1 and, (2 not), 3 comparisons, 4 + -, 5 ~, 6 * / // %, 7 **; or -1.
  int strength() const {
    const std::string_view text = current().text;
    if (current().type == Type::name) {
      if (text == "or") return 0;
      if (text == "and") return 1;
      return text == "in" || (text == "not" && is(after(), Type::name, "in")) ? 3 : -1;
    }
    if (current().type != Type::sign) return -1;
    if (text == "==" || text == "!=" || text == "<" || text == "<=" || text == ">" || text == ">=") return 3;
    if (text == "+" || text == "-") return 4;
    if (text == "~") return 5;
    if (text == "*" || text == "/" || text == "//" || text == "%") return 6;
    return text == "**" ? 7 : -1;
  }
  char take_sign() {
    const std::string_view text = take().text;
    if (text == "not") return ++next_, 'n';
    if (text == "in") return 'i';
    if (text == "//") return 'f';
    if (text == "**") return 'p';
    if (text == "<=") return 'l';
    if (text == ">=") return 'g';
    return text[0];
  }

  // Operators of at least this strength, those of one strength from the left.
  NodePtr parse_operators(int weakest) {
    const Level level(*this);
    NodePtr left;
    if (weakest <= 2 && at_name("not")) {
      const auto at = take().at;
      left = make(Kind::negation, at, parse_operators(2));
    } else {
      left = parse_unary(true);
    }
    static constexpr Kind kinds[] = {Kind::disjunction, Kind::conjunction,   Kind::negation,   Kind::comparison,
                                     Kind::arithmetic,  Kind::concatenation, Kind::arithmetic, Kind::arithmetic};
    for (int here; (here = strength()) >= weakest && here >= 0;) {
      auto chain = make(kinds[here], current().at);
      chain->kids.push_back(std::move(left));
      while (strength() == here) {
        chain->signs += take_sign();
        chain->kids.push_back(parse_operators(here + 1));
      }
      left = finish(std::move(chain));
    }
    return left;
  }

  NodePtr parse_unary(bool with_filters) {
    const Level level(*this);
    NodePtr node;
    if (at_sign("-") || at_sign("+")) {
      const Token sign = take();
      node = make(sign.text == "-" ? Kind::minus : Kind::plus, sign.at, parse_unary(false));
    } else {
      node = parse_primary(false);
    }
    node = parse_postfix(std::move(node));
    return with_filters ? parse_filters(std::move(node)) : std::move(node);
  }

  NodePtr parse_name(const Token& token) {
    auto node = make(Kind::name, token.at);
    node->id = names_.id(token.text);
    for (Node* macro : open_macros_) {
      macro->uses_caller |= token.text == "caller";
      macro->uses_kwargs |= token.text == "kwargs";
      macro->uses_varargs |= token.text == "varargs";
    }
    return node;
  }
  NodePtr make_constant(Value value, std::uint32_t at) const {
    auto node = make(Kind::constant, at);
    node->value = std::move(value);
    return node;
  }

  NodePtr parse_primary(bool as_target) {
    const Token token = current();
    switch (token.type) {
      case Type::name: {
        take();
        if (token.text == "true" || token.text == "True") return make_constant(true, token.at);
        if (token.text == "false" || token.text == "False") return make_constant(false, token.at);
        if (token.text == "none" || token.text == "None") return make_constant(None{}, token.at);
        if (!as_target || !at_sign(".")) return parse_name(token);
        take();
        auto node = make(Kind::attribute, token.at);
        node->id = names_.id(token.text);
        node->value = Value(expect_name("the name of an attribute").text);
        return node;
      }
      case Type::string: {
        std::string text;
        while (current().type == Type::string) {
          const auto part = literals::unescape(current().text.substr(1, current().text.size() - 2));
          if (!part) fail_as(ErrorKind::bad_file, "a string with a malformed escape");
          text += *part;
          take();
        }
        return make_constant(Value(std::move(text)), token.at);
      }
      case Type::integer: {
        const auto value = literals::integer(token.text, 0);
        if (!value) fail_as(ErrorKind::limit_exceeded, "a number that is too large");
        take();
        return make_constant(*value, token.at);
      }
      case Type::real: take(); return make_constant(literals::real(token.text).value_or(0), token.at);
      default: break;
    }
    if (skip_sign("(")) {
      auto node = parse_tuple({.in_parentheses = true});
      expect_sign(")");
      return node;
    }
    if (at_sign("[")) return parse_list();
    if (at_sign("{")) return parse_dict();
    expected("an expression");
  }

  struct TupleRules {
    bool only_targets = false, with_conditional = true, in_parentheses = false;
    std::string_view end{};  // a name that ends it
  };
  // One expression, or several with commas between: a tuple.
  NodePtr parse_tuple(const TupleRules& rules) {
    auto tuple = make(Kind::tuple, current().at);
    bool is_tuple = false;
    for (;;) {
      if (!tuple->kids.empty()) expect_sign(",");
      if (current().type == Type::print_end || current().type == Type::block_end || at_sign(")") ||
          (!rules.end.empty() && at_name(rules.end)))
        break;
      tuple->kids.push_back(rules.only_targets ? parse_primary(true) : parse_expression(rules.with_conditional));
      if (!at_sign(",")) break;
      is_tuple = true;
    }
    if (!is_tuple && !tuple->kids.empty()) return std::move(tuple->kids[0]);
    if (!is_tuple && !rules.in_parentheses) expected("an expression");
    return finish(std::move(tuple));
  }

  NodePtr parse_list() {
    auto list = make(Kind::list, take().at);
    while (!at_sign("]")) {
      if (!list->kids.empty()) expect_sign(",");
      if (at_sign("]")) break;
      list->kids.push_back(parse_expression());
    }
    take();
    return finish(std::move(list));
  }
  NodePtr parse_dict() {
    auto dict = make(Kind::dict, take().at);
    while (!at_sign("}")) {
      if (!dict->kids.empty()) expect_sign(",");
      if (at_sign("}")) break;
      dict->kids.push_back(parse_expression());
      expect_sign(":");
      dict->kids.push_back(parse_expression());
    }
    take();
    return finish(std::move(dict));
  }

  NodePtr parse_postfix(NodePtr node) {
    for (;;) {
      if (at_sign(".")) {
        node = parse_attribute(std::move(node));
      } else if (at_sign("[")) {
        node = parse_item(std::move(node));
      } else if (at_sign("(")) {
        node = parse_call(std::move(node));
      } else {
        return node;
      }
    }
  }
  NodePtr parse_attribute(NodePtr of) {
    take();
    const Token token = current();
    if (token.type == Type::integer) return make(Kind::item, token.at, std::move(of), parse_primary(false));
    expect_name("the name of an attribute");
    auto node = make(Kind::attribute, token.at, std::move(of));
    node->value = Value(token.text);
    return node;
  }
  NodePtr parse_item(NodePtr of) {
    const auto at = take().at;
    NodePtr start, stop, step;
    if (!at_sign(":")) {
      start = parse_expression();
      if (at_sign(",")) fail_as(ErrorKind::unsupported, "several subscripts at once are not supported");
      if (skip_sign("]")) return make(Kind::item, at, std::move(of), std::move(start));
    }
    expect_sign(":");
    if (!at_sign(":") && !at_sign("]")) stop = parse_expression();
    if (skip_sign(":") && !at_sign("]")) step = parse_expression();
    expect_sign("]");
    return make(Kind::slice, at, std::move(of), std::move(start), std::move(stop), std::move(step));
  }
  NodePtr parse_call(NodePtr callee) {
    auto node = make(Kind::call, current().at);
    node->kids.push_back(std::move(callee));
    node->arguments = parse_arguments();
    return finish(std::move(node));
  }

  std::unique_ptr<CallArguments> parse_arguments() {
    auto arguments = std::make_unique<CallArguments>();
    take();
    const auto ensure = [&](bool in_order) {
      if (!in_order) fail_as(ErrorKind::bad_file, "arguments in the wrong order");
    };
    for (bool first = true; !at_sign(")"); first = false) {
      if (!first) expect_sign(",");
      if (at_sign(")")) break;
      if (skip_sign("*")) {
        ensure(!arguments->star && !arguments->double_star);
        arguments->star = parse_expression();
      } else if (skip_sign("**")) {
        ensure(!arguments->double_star);
        arguments->double_star = parse_expression();
      } else if (current().type == Type::name && is(after(), Type::sign, "=")) {
        ensure(!arguments->double_star);
        const std::string name(take().text);
        take();
        if (arguments->named.size() == most_named_arguments)
          fail_as(ErrorKind::limit_exceeded, concat("more than ", most_named_arguments, " named arguments"));
        for (const auto& [other, value] : arguments->named)
          if (other == name) fail_as(ErrorKind::bad_file, concat("argument '", name, "' is given twice"));
        arguments->named.emplace_back(name, parse_expression());
      } else {
        ensure(!arguments->star && !arguments->double_star && arguments->named.empty());
        arguments->positional.push_back(parse_expression());
      }
    }
    take();
    return arguments;
  }

  NodePtr parse_filters(NodePtr node) {
    for (;;) {
      if (skip_sign("|")) {
        node = parse_filter(std::move(node));
      } else if (at_name("is")) {
        node = parse_test(std::move(node));
      } else if (at_sign("(")) {
        node = parse_call(std::move(node));
      } else {
        return node;
      }
    }
  }
  // The rest of a filter, behind its bar. `of` may be null.
  NodePtr parse_filter(NodePtr of) {
    auto node = make(Kind::filter, current().at);
    node->function = parse_function("filter", find_filter);
    node->kids.push_back(std::move(of));
    if (at_sign("(")) node->arguments = parse_arguments();
    return finish(std::move(node));
  }
  NodePtr parse_test(NodePtr of) {
    take();
    const auto at = current().at;
    const bool negated = skip_name("not");
    auto node = make(Kind::test, current().at);
    node->function = parse_function("test", find_test);
    node->kids.push_back(std::move(of));
    const Token& token = current();
    const bool takes_value =
        (token.type == Type::name && token.text != "else" && token.text != "or" && token.text != "and") ||
        token.type == Type::string || token.type == Type::integer || token.type == Type::real || at_sign("[") ||
        at_sign("{");
    if (at_sign("(")) {
      node->arguments = parse_arguments();
    } else if (takes_value) {
      if (at_name("is")) fail_as(ErrorKind::bad_file, "tests cannot be chained with 'is'");
      node->arguments = std::make_unique<CallArguments>();
      node->arguments->positional.push_back(parse_postfix(parse_primary(false)));
    }
    auto test = finish(std::move(node));
    return negated ? make(Kind::negation, at, std::move(test)) : std::move(test);
  }
  int parse_function(const char* what, int (*find)(std::string_view)) {
    const Token first = expect_name(concat("the name of a ", what));
    const int index = find(first.text);
    if (index < 0 || at_sign("."))
      throw error_at(ErrorKind::unsupported, concat("there is no ", what, " '", first.text, "'"), source_, first.at);
    return index;
  }

  std::vector<Node*> open_macros_;
};

}  // namespace jinja

VITRINE_NAMESPACE_END
