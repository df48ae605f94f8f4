// The one exception type of the library, and the checks that throw it.
//
//   check(n > 0, ErrorKind::bad_argument, "n_context: expected at least 1, got ", n);
//
// Every message names the thing (tensor, key, option), what was expected and what was found. Nothing in the library
// prints, exits or aborts; what fails is said by throwing Error.
#pragma once

#include <cstdint>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

enum class ErrorKind {
  bad_file,         // truncated, malformed or inconsistent model file
  unsupported,      // well-formed, but of a kind this library does not run (architecture, RoPE type, tensor type, ISA)
  bad_argument,     // a caller's value is outside its documented range
  context_full,     // prompt or generation does not fit the context
  numeric_failure,  // NaN or infinity in the logits, or no admissible token
  cancelled,        // the caller's stop token asked to end; what was being done is undone
  io,               // the operating system refused: file missing, map failed
  out_of_memory,    // an allocation was refused; the message says how many bytes
  out_of_blocks,    // a pool of KV blocks, shared by several sequences, has too few left
  queue_full,       // as many requests wait as an engine lets wait; later there may be room
  refused,          // the model's chat template refused the conversation, in its own words
  limit_exceeded    // a chat template asked for more work, memory or nesting than its limits allow
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

// Joins its arguments into one string; anything with operator<< will do. Cold: such texts are for people, and there are
// hundreds of these functions, which take much longer to compile for speed than for size.
template <class... Parts>
[[gnu::cold, gnu::noinline]] std::string concat(const Parts&... parts) {
  std::ostringstream out;
  out.exceptions(std::ios::badbit);  // refused memory is said, instead of a message with holes
  (out << ... << parts);
  return out.str();
}

// Throws Error(kind, concat(parts...)) unless the condition holds. The message is built only on failure.
template <class... Parts>
void check(bool condition, ErrorKind kind, const Parts&... parts) {
  if (!condition) [[unlikely]]
    throw Error(kind, concat(parts...));
}

// "1 token", "2 tokens"
inline std::string counted(std::int64_t n, std::string_view thing) { return concat(n, " ", thing, n == 1 ? "" : "s"); }

// What an object owns by pointer and works with, if it has not been moved from.
template <class T>
T& owned(T* part, std::string_view object) {
  check(part != nullptr, ErrorKind::bad_argument, object,
        ": expected one that is in use, got one that was moved from, or never set");
  return *part;
}

// Runs `action`; memory that is refused in it becomes an Error that says for what, so that no std::bad_alloc leaves the
// library.
template <class Action, class... Parts>
decltype(auto) naming_memory(Action&& action, const Parts&... parts) {
  try {
    return std::forward<Action>(action)();
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::out_of_memory, concat(parts..., ": not enough memory"));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::out_of_memory) throw;
    throw Error(ErrorKind::out_of_memory, concat(parts..., ": ", error.what()));
  }
}

VITRINE_NAMESPACE_END
