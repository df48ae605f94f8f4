// What one rendering may still use, and how a failure is said before its place in the template is known. For bodies
// only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "vitrine/core/error.hpp"
#include "vitrine/text/jinja/marked_text.hpp"

VITRINE_NAMESPACE_BEGIN

namespace jinja {

struct Fault {
  ErrorKind kind;
  std::string message;
};

template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw Fault{ErrorKind::bad_argument, concat(parts...)};
}
template <class... Parts>
[[noreturn]] void fail_limit(const Parts&... parts) {
  throw Fault{ErrorKind::limit_exceeded, concat(parts...)};
}

struct Budget {
  std::uint64_t steps = (std::numeric_limits<std::uint64_t>::max)(), bytes = steps;

  void step(std::uint64_t n = 1) {
    if (n > steps) fail_limit("the template takes more steps than its limit allows");
    steps -= n;
  }
  void allocate(std::uint64_t n) {
    if (n > bytes) fail_limit("the template makes more text and values than its limit allows");
    bytes -= n;
    step(n / 64);
  }
};

}  // namespace jinja

VITRINE_NAMESPACE_END
