// Tokens to statements. Whatever is not known here is an error when the template is loaded, never a guess later. For
// bodies only.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "vitrine/text/jinja/expressions.inl.hpp"

VITRINE_NAMESPACE_BEGIN

namespace jinja {

class Parser : ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  NodePtr run() { return parse_block({}); }

 private:
  using Ends = std::initializer_list<std::string_view>;

  bool at_end_tag(Ends ends) const {
    return std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return at_name(end); });
  }

  // Statements up to one of the tags `ends`, whose name is then the current token.
  NodePtr parse_block(Ends ends) {
    const Level level(*this);
    auto block = make(Kind::block, current().at);
    auto output = make(Kind::output, current().at);
    const auto flush = [&] {
      if (!output->kids.empty()) block->kids.push_back(finish(std::move(output)));
      output = make(Kind::output, current().at);
    };
    while (current().type != Type::end) {
      const Token token = take();
      if (token.type == Type::data) {
        output->kids.push_back(make_constant(Value(token.text), token.at));
      } else if (token.type == Type::print_begin) {
        output->kids.push_back(parse_tuple({}));
        if (current().type != Type::print_end) expected("'}}'");
        take();
      } else {
        flush();
        if (at_end_tag(ends)) return finish(std::move(block));
        block->kids.push_back(parse_statement(token.at));
        end_tag();
      }
    }
    flush();
    if (ends.size() > 0) expected(concat("'{% ", std::data(ends)[ends.size() - 1], " %}'"));
    return finish(std::move(block));
  }
  void end_tag() {
    if (current().type != Type::block_end) expected("'%}'");
    take();
  }
  // The body behind an opening tag.
  NodePtr parse_body(Ends ends) {
    skip_sign(":");
    end_tag();
    return parse_block(ends);
  }
  NodePtr parse_whole_body(std::string_view end) {
    auto body = parse_body({end});
    take();
    return body;
  }

  NodePtr parse_statement(std::uint32_t at) {
    const Token tag = expect_name("the name of a tag");
    const std::string_view name = tag.text;
    if (name == "if") return parse_if(at);
    if (name == "for") return parse_for(at);
    if (name == "set") return parse_set(at);
    if (name == "macro") return parse_macro(at);
    if (name == "call") return parse_call_block(at);
    if (name == "filter") return parse_filter_block(at);
    if (name == "with") return parse_with(at);
    if (name == "print") return parse_print(at);
    if (name == "generation") return make(Kind::scope, at, parse_whole_body("endgeneration"));
    if (name == "break" || name == "continue") {
      if (loops_ == 0) throw error_at(ErrorKind::bad_file, concat("'", name, "' outside of a loop"), source_, tag.at);
      return make(name == "break" ? Kind::loop_break : Kind::loop_continue, at);
    }
    for (const std::string_view other :
         {"else", "elif", "endif", "endfor", "endset", "endmacro", "endcall", "endfilter", "endwith", "endgeneration"})
      if (name == other)
        throw error_at(ErrorKind::bad_file, concat("tag '", name, "' without what it belongs to"), source_, tag.at);
    for (const std::string_view other : {"include", "import", "from", "extends", "block", "autoescape"})
      if (name == other)
        throw error_at(ErrorKind::unsupported, concat("tag '", name, "' is not supported: a template stands by itself"),
                       source_, tag.at);
    throw error_at(ErrorKind::unsupported, concat("unknown tag '", name, "'"), source_, tag.at);
  }

  NodePtr parse_if(std::uint32_t at) {
    auto node = make(Kind::branches, at);
    for (bool more = true; more;) {
      node->kids.push_back(parse_tuple({.with_conditional = false}));
      node->kids.push_back(parse_body({"elif", "else", "endif"}));
      const Token next = take();
      more = next.text == "elif";
      if (next.text != "else") continue;
      node->kids.push_back(nullptr);
      node->kids.push_back(parse_whole_body("endif"));
    }
    return finish(std::move(node));
  }

  void check_target(const Node& node, bool namespaces) const {
    if (node.kind == Kind::tuple) {
      for (const auto& kid : node.kids) check_target(*kid, namespaces);
    } else if (node.kind != Kind::name && !(namespaces && node.kind == Kind::attribute)) {
      throw error_at(ErrorKind::bad_file, "this cannot be assigned to", source_, node.at);
    }
    const bool is_loop = node.kind == Kind::name && names_.name(node.id) == "loop";
    if (is_loop && loops_ > 0) throw error_at(ErrorKind::bad_file, "'loop' cannot be assigned to", source_, node.at);
  }
  NodePtr parse_target(std::string_view end, bool namespaces) {
    auto target = parse_tuple({.only_targets = true, .end = end});
    check_target(*target, namespaces);
    return target;
  }

  NodePtr parse_for(std::uint32_t at) {
    ++loops_;
    auto target = parse_target("in", false);
    --loops_;
    if (!skip_name("in")) expected("'in'");
    auto iterable = parse_tuple({.with_conditional = false, .end = "recursive"});
    NodePtr filter, otherwise;
    if (skip_name("if")) filter = parse_expression();
    const bool recursive = skip_name("recursive");
    ++loops_;
    auto body = parse_body({"else", "endfor"});
    --loops_;
    if (take().text == "else") otherwise = parse_whole_body("endfor");
    auto node = make(Kind::loop, at, std::move(target), std::move(iterable), std::move(filter), std::move(body),
                     std::move(otherwise));
    node->flag = recursive;
    return node;
  }

  NodePtr parse_set(std::uint32_t at) {
    auto target = parse_target({}, true);
    if (skip_sign("=")) return make(Kind::assign, at, std::move(target), parse_tuple({}));
    NodePtr filter;
    while (skip_sign("|")) filter = parse_filter(std::move(filter));
    return make(Kind::assign_block, at, std::move(target), std::move(filter), parse_whole_body("endset"));
  }

  // Parameters and body; the macro sees which of the special names its body uses.
  NodePtr parse_function_body(NodePtr macro, bool with_parameters, NodePtr* call, std::string_view end) {
    macro->kids.emplace_back();
    if (with_parameters) {
      expect_sign("(");
      bool defaults = false;
      while (!at_sign(")")) {
        if (!macro->parameters.empty()) expect_sign(",");
        macro->parameters.push_back(names_.id(expect_name("the name of a parameter").text));
        const bool has_default = skip_sign("=");
        if (defaults && !has_default) fail_as(ErrorKind::bad_file, "a parameter without default behind one with");
        defaults |= has_default;
        macro->kids.push_back(has_default ? parse_expression() : nullptr);
      }
      take();
    }
    if (call != nullptr) *call = parse_expression();
    const int loops = std::exchange(loops_, 0);
    open_macros_.push_back(macro.get());
    macro->kids[0] = parse_whole_body(end);
    open_macros_.pop_back();
    loops_ = loops;
    return finish(std::move(macro));
  }

  NodePtr parse_macro(std::uint32_t at) {
    auto macro = make(Kind::macro, at);
    macro->id = names_.id(expect_name("the name of a macro").text);
    return parse_function_body(std::move(macro), true, nullptr, "endmacro");
  }
  NodePtr parse_call_block(std::uint32_t at) {
    auto macro = make(Kind::macro, at);
    macro->id = names_.id("caller");
    NodePtr call;
    macro = parse_function_body(std::move(macro), at_sign("("), &call, "endcall");
    if (call->kind != Kind::call) throw error_at(ErrorKind::bad_file, "expected a call", source_, call->at);
    return make(Kind::call_block, at, std::move(call), std::move(macro));
  }

  NodePtr parse_filter_block(std::uint32_t at) {
    auto filter = parse_filter(nullptr);
    while (skip_sign("|")) filter = parse_filter(std::move(filter));
    return make(Kind::filter_block, at, std::move(filter), parse_whole_body("endfilter"));
  }

  NodePtr parse_with(std::uint32_t at) {
    auto node = make(Kind::with, at);
    while (current().type != Type::block_end && !at_sign(":")) {
      if (!node->kids.empty()) expect_sign(",");
      auto target = parse_primary(false);
      check_target(*target, false);
      node->kids.push_back(std::move(target));
      expect_sign("=");
      node->kids.push_back(parse_expression());
    }
    node->kids.push_back(parse_whole_body("endwith"));
    return finish(std::move(node));
  }

  NodePtr parse_print(std::uint32_t at) {
    auto node = make(Kind::output, at);
    while (current().type != Type::block_end) {
      if (!node->kids.empty()) expect_sign(",");
      node->kids.push_back(parse_expression());
    }
    return finish(std::move(node));
  }

  int loops_ = 0;
};

}  // namespace jinja

VITRINE_NAMESPACE_END
