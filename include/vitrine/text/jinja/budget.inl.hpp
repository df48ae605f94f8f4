// What one rendering may still use, and how a failure is said before its place in the template is known. For bodies
// only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
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

// The machine's stack since this was made. Depths are bounded by counting, so that a template nests as deep on every
// machine; frames without optimisation or with sanitizers are larger, and for them there is this bound as well. Threads
// of 512 KiB are common.
class StackUse {
 public:
  static constexpr std::ptrdiff_t most = 320 * 1024;
  bool too_much() const { return std::abs(here() - base_) > most; }

 private:
  static std::ptrdiff_t here() { return reinterpret_cast<std::ptrdiff_t>(__builtin_frame_address(0)); }
  std::ptrdiff_t base_ = here();
};

}  // namespace jinja

VITRINE_NAMESPACE_END
