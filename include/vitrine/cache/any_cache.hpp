// A KV cache of a kind that is chosen at run time.
//
//   contiguous   room for the whole context from the start; nothing to manage
//   paged        blocks from a pool as tokens come; forks share them               paged.hpp
//   ring         layers with a window keep no more than it takes                   ring.hpp
//
// The kind changes where K and V lie, never a bit of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>

#include "vitrine/cache/contiguous.hpp"
#include "vitrine/cache/paged.hpp"
#include "vitrine/cache/ring.hpp"
#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

enum class CacheKind { contiguous, paged, ring };

inline const char* cache_kind_name(CacheKind kind) {
  switch (kind) {
    case CacheKind::contiguous: return "contiguous";
    case CacheKind::paged: return "paged";
    case CacheKind::ring: return "ring";
  }
  return "unknown";
}

class AnyCache {
 public:
  AnyCache(ContiguousCache cache) : cache_(std::move(cache)) {}
  AnyCache(PagedCache cache) : cache_(std::move(cache)) {}
  AnyCache(RingCache cache) : cache_(std::move(cache)) {}

  CacheKind kind() const { return CacheKind(cache_.index()); }
  PagedCache* paged() { return std::get_if<PagedCache>(&cache_); }  // null if it is of another kind
  const PagedCache* paged() const { return std::get_if<PagedCache>(&cache_); }

  const KvLayout& layout() const { return tables().layout(); }
  std::int64_t length() const {
    return std::visit([](const auto& cache) { return cache.length(); }, cache_);
  }
  std::int64_t capacity() const {
    return std::visit([](const auto& cache) { return cache.capacity(); }, cache_);
  }
  std::size_t bytes() const {
    return std::visit([](const auto& cache) { return cache.bytes(); }, cache_);
  }
  const KvTables& tables() const {
    return std::visit([](const auto& cache) -> const KvTables& { return cache.tables(); }, cache_);
  }
  void prepare(std::int64_t n_tokens) {
    std::visit([=](auto& cache) { cache.prepare(n_tokens); }, cache_);
  }
  void append(std::int64_t n_tokens) {
    std::visit([=](auto& cache) { cache.append(n_tokens); }, cache_);
  }
  void truncate(std::int64_t n_tokens) {
    std::visit([=](auto& cache) { cache.truncate(n_tokens); }, cache_);
  }
  AnyCache fork() const {
    return std::visit([](const auto& cache) { return AnyCache(cache.fork()); }, cache_);
  }

  // The smallest length but 0 that truncate() can go back to.
  std::int64_t shortest() const {
    const auto* const ring = std::get_if<RingCache>(&cache_);
    return ring ? ring->shortest() : (length() > 0 ? 1 : 0);
  }
  // Whether a query behind n_tokens looks at block b of a group: what a saved cache must hold.
  bool needs(std::size_t group, std::int64_t b, std::int64_t n_tokens) const {
    const auto* const ring = std::get_if<RingCache>(&cache_);
    return !ring || b < ring->n_kept(group) || b >= ring->first_block(group, n_tokens);
  }
  // An empty cache: holds n_tokens from now on, whose needed blocks the caller writes.
  void restore(std::int64_t n_tokens) {
    if (auto* const ring = std::get_if<RingCache>(&cache_)) return ring->restore(n_tokens);
    prepare(n_tokens);
    append(n_tokens);
  }
  // Makes sure that tokens from `first` on may be written: copies blocks that others read. Throws out_of_blocks.
  void make_writable(std::int64_t first) {
    if (auto* const pages = paged()) pages->make_writable(first);
  }

  // truncate() as far as the cache can: what it cannot go back to it forgets altogether.
  void truncate_or_empty(std::int64_t n_tokens) { truncate(n_tokens < shortest() ? 0 : n_tokens); }

 private:
  std::variant<ContiguousCache, PagedCache, RingCache> cache_;
};
static_assert(KvCache<AnyCache>);

VITRINE_NAMESPACE_END
