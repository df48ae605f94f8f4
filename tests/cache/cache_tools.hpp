// What the tests of caches share.
#pragma once

#include <cstdint>

namespace cache_tools {

// n more tokens, whose keys and values nobody writes.
template <class Cache>
void add(Cache& cache, std::int64_t n) {
  cache.prepare(n);
  cache.append(n);
}

}  // namespace cache_tools
