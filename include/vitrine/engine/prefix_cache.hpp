// Keys and values of beginnings that were computed before: a system prompt, a document, the turns so far.
//
//   auto prefixes = std::make_shared<PrefixCache>(*model, PrefixOptions{.limit_bytes = 1 << 30});
//   Session session(model, {.cache = CacheKind::paged, .prefixes = prefixes});      // any number of them, any threads
//
// Whole blocks of 64 tokens are kept, and found by the tokens themselves. Up to min(tokens in common, tokens wanted -
// 1) are reused, also within a block: the last token is always computed, since its logits are wanted. As no bit of K
// and V depends on how they were computed, a hit gives the same logits as a miss.
//
// Paged caches on its pool share its blocks (and copy one before they write into it); others copy them. With a folder,
// blocks are kept on disk, too, for other processes and later ones: a file per block, written whole or not at all,
// checked (model, types, arithmetic, all tokens up to its end, checksum) before it is used. What is wrong with a file
// fails no request: it is counted, said by last_failure(), and the file is written anew with the block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "vitrine/cache/any_cache.hpp"
#include "vitrine/cache/prefix_index.hpp"
#include "vitrine/core/config.hpp"
#include "vitrine/core/token.hpp"
#include "vitrine/engine/model.hpp"

VITRINE_NAMESPACE_BEGIN

struct PrefixOptions {
  KvTypes kv_type = DType::f16;                           // as the sessions'
  std::size_t limit_bytes = std::size_t(1) << 30;         // of K and V in memory; the least recently used make room
  std::shared_ptr<BlockPool> pool{};                      // where blocks are; none: a pool of its own, without a limit
  std::filesystem::path folder{};                         // made if it is not there; empty: nothing on disk
  std::size_t folder_limit_bytes = std::size_t(8) << 30;  // the files that were used longest ago make room
};

class PrefixCache {
 public:
  struct Counts {
    std::int64_t n_requests = 0, n_hits = 0;  // of begin(), and those that found something
    std::int64_t cached_tokens = 0;           // that need not be computed, in all
    std::int64_t n_blocks = 0, n_evicted = 0;
    std::int64_t n_read = 0, n_written = 0;  // files
    std::int64_t n_refused = 0;              // files that were damaged or foreign, and are removed, or not readable
    std::int64_t n_writes_failed = 0;        // files that could not be written
  };

  // Throws Error: bad_argument for a limit below one block, or a pool of another shape; io for a folder that cannot be
  // made, or in which no file can, even if there are some to read.
  PrefixCache(const Model& model, const PrefixOptions& options);

  // Makes `cache` begin like tokens [n], without the last, as far as that is known and more than it holds already (its
  // tokens must be the first of these). Returns how many tokens it did not hold before. Where there is no memory or no
  // block for it, it returns 0, and the cache holds a beginning of what it held. Throws Error::bad_argument for rings
  // and caches of another shape.
  std::int64_t begin(AnyCache& cache, std::span<const Token> tokens);
  std::int64_t begin(PagedCache& cache, std::span<const Token> tokens);  // of one on its pool

  // Keeps the whole blocks of `cache`, whose tokens are `tokens`. What cannot be kept is left out.
  void keep(const AnyCache& cache, std::span<const Token> tokens);
  void keep(const PagedCache& cache, std::span<const Token> tokens);

  // When the pool has run out: gives back n blocks or as many as it can. Returns how many.
  std::int64_t give_back(std::int64_t n_blocks);
  std::int64_t n_idle() const;  // as many as it could give back now

  const std::shared_ptr<BlockPool>& pool() const { return pool_; }
  std::uint64_t model_fingerprint() const { return fingerprint_; }
  Counts counts() const;
  std::string last_failure() const;  // the file that was refused or not written last, and why; empty: none was

 private:
  PrefixIndex::Match find(std::span<const Token> tokens);
  std::int64_t hit(std::int64_t n_tokens);
  std::int64_t copy_into(AnyCache& cache, std::span<const Token> tokens);
  template <class BlockOf>
  void keep_blocks(std::int64_t n_tokens, std::span<const Token> tokens, BlockOf&& block_of);
  std::filesystem::path file_of(std::span<const Token> tokens) const;
  std::string header_of(std::span<const Token> tokens) const;
  bool read_file(std::span<const Token> tokens, std::byte* block);
  void write_file(std::span<const Token> tokens, const PoolBlock& block);
  void make_room_on_disk(std::size_t n_bytes);
  void read_more(std::span<const Token> tokens, PrefixIndex::Match& match);

  std::uint64_t fingerprint_;
  std::shared_ptr<BlockPool> pool_;
  PrefixOptions options_;
  mutable std::mutex mutex_;
  PrefixIndex index_;
  Counts counts_;
  std::string last_failure_;
  std::size_t folder_bytes_ = 0;  // about: other processes write, too
};

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/engine/prefix_cache.inl.hpp"
#endif
