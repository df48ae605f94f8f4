// What a KV cache is, for those who use one: it finds room for tokens, shows its blocks, and forgets from the end.
//
// A decoder looks at keys and values of all earlier tokens in every step, and these never change; so they are kept, and
// a step computes one row instead of all of them. A pass writes K and V of its tokens into the blocks; append() follows
// when it has run to its end, so that a pass that was broken off has changed nothing.
//
// Attention never sees the kind of cache, only the table of blocks (ops/kv_view.hpp), so layers are no templates on it.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "vitrine/cache/kv_layout.hpp"
#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

template <class C>
concept KvCache = requires(C& cache, const C& constant, std::int64_t n) {
  { constant.layout() } -> std::convertible_to<const KvLayout&>;
  { constant.length() } -> std::same_as<std::int64_t>;    // tokens held
  { constant.capacity() } -> std::same_as<std::int64_t>;  // tokens it can hold
  { constant.bytes() } -> std::same_as<std::size_t>;      // reserved for K and V
  { constant.blocks() } -> std::same_as<std::byte* const*>;
  {cache.append(n)};    // n more tokens have been written behind the last
  {cache.truncate(n)};  // keep the first n tokens
};

VITRINE_NAMESPACE_END
