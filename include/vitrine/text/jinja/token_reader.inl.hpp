// A template's tokens one after another, and nodes made of them: what parsing expressions and statements shares. For
// bodies only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vitrine/text/jinja/budget.inl.hpp"
#include "vitrine/text/jinja/lexer.inl.hpp"
#include "vitrine/text/jinja/tree.inl.hpp"

VITRINE_NAMESPACE_BEGIN

namespace jinja {

inline constexpr int deepest_template = 200;  // expressions and statements in each other
inline constexpr std::size_t most_named_arguments = 1000;

class TokenReader {
 public:
  TokenReader(std::string_view source, Names& names) : names_(names), source_(source), tokens_(Lexer(source).run()) {}

 protected:
  using Type = Token::Type;
  using Kind = NodeKind;

  // Counts how deep the parser is in itself.
  class Level {
   public:
    explicit Level(TokenReader& parser) : parser_(parser) {
      if (++parser_.level_ > deepest_template || parser_.stack_.too_much())
        parser_.fail_as(ErrorKind::limit_exceeded, concat("this nests too deeply, the limit is ", deepest_template));
    }
    ~Level() { --parser_.level_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    TokenReader& parser_;
  };

  const Token& current() const { return tokens_[next_]; }
  const Token& after() const { return tokens_[(std::min)(next_ + 1, tokens_.size() - 1)]; }
  Token take() {
    const Token token = current();
    if (token.type != Type::end) ++next_;
    return token;
  }
  static bool is(const Token& token, Type type, std::string_view text) {
    return token.type == type && token.text == text;
  }
  bool at_name(std::string_view text) const { return is(current(), Type::name, text); }
  bool at_sign(std::string_view text) const { return is(current(), Type::sign, text); }
  bool skip_name(std::string_view text) { return at_name(text) && (++next_, true); }
  bool skip_sign(std::string_view text) { return at_sign(text) && (++next_, true); }

  [[noreturn]] void fail_as(ErrorKind kind, const std::string& message) const {
    throw error_at(kind, message, source_, current().at);
  }
  [[noreturn]] void expected(std::string_view what) const {
    fail_as(ErrorKind::bad_file, concat("expected ", what, ", got ", describe(current())));
  }
  static std::string describe(const Token& token) {
    switch (token.type) {
      case Type::end: return "the end of the template";
      case Type::data: return "text";
      default: return concat("'", token.text.substr(0, 40), "'");
    }
  }
  void expect_sign(std::string_view text) {
    if (!skip_sign(text)) expected(concat("'", text, "'"));
  }
  Token expect_name(std::string_view what) {
    if (current().type != Type::name) expected(what);
    return take();
  }

  NodePtr make(Kind kind, std::uint32_t at) const {
    auto node = std::make_unique<Node>();
    node->kind = kind;
    node->at = at;
    return node;
  }
  // A finished node knows how deep it is.
  NodePtr finish(NodePtr node) const {
    const auto count = [&](const NodePtr& kid) {
      if (kid) node->depth = (std::max)(node->depth, 1 + kid->depth);
    };
    for (const auto& kid : node->kids) count(kid);
    if (node->arguments) {
      for (const auto& kid : node->arguments->positional) count(kid);
      for (const auto& [name, kid] : node->arguments->named) count(kid);
      count(node->arguments->star);
      count(node->arguments->double_star);
    }
    if (node->depth > deepest_template)
      throw error_at(ErrorKind::limit_exceeded, concat("this nests too deeply, the limit is ", deepest_template),
                     source_, node->at);
    return node;
  }
  template <class... Kids>
  NodePtr make(Kind kind, std::uint32_t at, Kids... kids) const {
    auto node = make(kind, at);
    (node->kids.push_back(std::move(kids)), ...);
    return finish(std::move(node));
  }

  Names& names_;
  std::string_view source_;
  std::vector<Token> tokens_;
  std::size_t next_ = 0;

 private:
  int level_ = 0;
  StackUse stack_;
};

}  // namespace jinja

VITRINE_NAMESPACE_END
