// What a KV cache is, for those who use one: it finds room for tokens, shows its blocks, and forgets from the end.
//
// A decoder looks at keys and values of all earlier tokens in every step, and these never change; so they are kept, and
// a step computes one row instead of all of them. In each step
//
//   cache.prepare(n);    room for n more tokens that this cache alone may write, or an Error and nothing has changed
//   (a pass)             writes K and V of its tokens into the blocks of cache.tables()
//   cache.append(n);     they are held from now on; a pass that was broken off has changed nothing
//
// Attention never sees the kind of cache, only tables of blocks (kv_tables.hpp), so layers are no templates on it.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "vitrine/cache/kv_layout.hpp"
#include "vitrine/cache/kv_tables.hpp"
#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

template <class C>
concept KvCache = requires(C& cache, const C& constant, std::int64_t n) {
  { constant.layout() } -> std::convertible_to<const KvLayout&>;
  { constant.length() } -> std::same_as<std::int64_t>;    // tokens held
  { constant.capacity() } -> std::same_as<std::int64_t>;  // tokens it can hold
  { constant.bytes() } -> std::same_as<std::size_t>;      // reserved for K and V; blocks that it shares count, too
  { constant.tables() } -> std::same_as<const KvTables&>;
  {cache.prepare(n)};                      // Error: context_full beyond the capacity; out_of_blocks or out_of_memory
  {cache.append(n)};                       // n more tokens have been written behind the last
  {cache.truncate(n)};                     // keep the first n tokens; what was prepared and not appended is given back
  { constant.fork() } -> std::same_as<C>;  // the same tokens once more, to go on in another way
};

namespace cache_detail {

inline void check_room(std::int64_t length, std::int64_t capacity, std::int64_t n_tokens) {
  check(n_tokens >= 0 && n_tokens <= capacity - length, ErrorKind::context_full, "KV cache: ", length, " tokens held, ",
        n_tokens, " more do not fit its ", capacity);
}
inline void check_truncation(std::int64_t length, std::int64_t n_tokens) {
  check(n_tokens >= 0 && n_tokens <= length, ErrorKind::bad_argument, "truncate: expected 0 to ", length,
        " tokens, got ", n_tokens);
}
inline std::int64_t checked_capacity(std::int64_t capacity) {
  check(capacity >= 1, ErrorKind::bad_argument, "KV cache: expected room for at least 1 token, got ", capacity);
  return capacity;
}

}  // namespace cache_detail

VITRINE_NAMESPACE_END
