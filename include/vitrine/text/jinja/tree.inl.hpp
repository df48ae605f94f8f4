// What a template is parsed into. For bodies only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "vitrine/text/jinja/value.hpp"

VITRINE_NAMESPACE_BEGIN

namespace jinja {

struct Node;
using NodePtr = std::unique_ptr<Node>;

enum class NodeKind : std::uint8_t {
  // Expressions, and what their kids are. A kid may be null where it is marked with ?.
  constant,   // value
  name,       // id; as a target, too
  tuple,      // its items; as a target, too
  list,       // its items
  dict,       // key, value, key, value ...
  attribute,  // of; value is its name. As a target: id is a namespace's variable, value its attribute
  item,       // of, which
  slice,      // of, start?, stop?, step?
  call,       // what; arguments
  filter,     // of? (none: the text of the block); function, arguments
  test,       // of; function, arguments
  minus,
  plus,
  negation,  // of
  conjunction,
  disjunction,
  concatenation,  // two or more
  arithmetic,     // two or more, with `signs` between: + - * / % f (floor division) p (power); from the left
  comparison,     // the same with = ! < l (<=) > g (>=) i (in) n (not in)
  conditional,    // test, value, otherwise?
  // Statements
  block,         // statements
  output,        // expressions
  branches,      // test?, block, test?, block ...; no test: else
  loop,          // target, iterable, filter?, block, otherwise?; flag: recursive
  assign,        // target, value
  assign_block,  // target, filter?, block
  with,          // target, value, target, value ..., block
  macro,         // block, default?, default? ... of each parameter; id its name
  call_block,    // call, macro
  filter_block,  // filter, block
  scope,         // block
  loop_break,
  loop_continue
};

struct CallArguments {
  std::vector<NodePtr> positional;
  std::vector<std::pair<std::string, NodePtr>> named;
  NodePtr star, double_star;
};

struct Node {
  NodeKind kind;
  bool flag = false;
  bool uses_caller = false, uses_kwargs = false, uses_varargs = false;  // of a macro
  std::uint32_t at = 0;                                                 // byte in the template
  int depth = 1;
  int id = -1;        // of a variable
  int function = -1;  // index of a filter or test
  Value value{};
  std::string signs{};
  std::vector<NodePtr> kids{};
  std::vector<int> parameters{};  // of a macro: ids
  std::unique_ptr<CallArguments> arguments{};
};

// Names of variables as small numbers.
class Names {
 public:
  int id(std::string_view name) {
    if (const int known = find(name); known >= 0) return known;
    const int next = int(names_.size());
    names_.push_back(&ids_.emplace(name, next).first->first);
    return next;
  }
  const std::string& name(int id) const { return *names_[std::size_t(id)]; }
  int find(std::string_view name) const {
    const auto found = ids_.find(name);
    return found == ids_.end() ? -1 : found->second;
  }

 private:
  std::map<std::string, int, std::less<>> ids_;
  std::vector<const std::string*> names_;
};

}  // namespace jinja

VITRINE_NAMESPACE_END
