// The paged KV cache: blocks of 64 tokens from a pool that many sequences share, found through a table.
//
//   table[b] = any block of the pool               tokens [64 b, 64 b + 64) of all layers; inside as in kv_layout.hpp
//
// It owns as many blocks as its tokens need, so that at most 63 places are empty, where a contiguous cache keeps its
// whole context to itself. A fork shares all blocks; whoever first writes into a shared one, which can only be the
// last, partly filled block, copies it first (copy on write). No other K or V is ever copied.
//
// After "Efficient Memory Management for Large Language Model Serving with PagedAttention" (arXiv 2309.06180).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "vitrine/cache/block_pool.hpp"
#include "vitrine/cache/kv_cache.hpp"
#include "vitrine/core/config.hpp"
#include "vitrine/core/error.hpp"

VITRINE_NAMESPACE_BEGIN

class PagedCache {
 public:
  // A sequence of at most `capacity` tokens; the table is all that is allocated. Throws Error: bad_argument for a
  // capacity below 1 or without a pool; out_of_memory.
  PagedCache(std::shared_ptr<BlockPool> pool, std::int64_t capacity)
      : pool_(std::move(pool)), capacity_(cache_detail::checked_capacity(capacity)) {
    check(pool_ != nullptr, ErrorKind::bad_argument, "paged KV cache: expected a pool, got a null pointer");
    // One block more than the capacity has: prepare() holds a shared block and its copy at once.
    const auto most = std::size_t(KvLayout::blocks_for(capacity)) + 1;
    blocks_.reserve(most);
    table_.resize(most);
    tables_ = KvTables(pool_->layout(), table_.data());
  }
  ~PagedCache() { release_from(0); }
  PagedCache(PagedCache&& other) noexcept
      : pool_(std::move(other.pool_)),
        capacity_(std::exchange(other.capacity_, 0)),
        length_(std::exchange(other.length_, 0)),
        blocks_(std::move(other.blocks_)),
        table_(std::move(other.table_)),
        tables_(std::move(other.tables_)) {
    other.blocks_.clear();
  }
  PagedCache& operator=(PagedCache&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(capacity_, other.capacity_);
    std::swap(length_, other.length_);
    std::swap(blocks_, other.blocks_);
    std::swap(table_, other.table_);
    std::swap(tables_, other.tables_);
    return *this;
  }

  const KvLayout& layout() const { return tables_.layout(); }
  std::int64_t length() const { return length_; }
  std::int64_t capacity() const { return capacity_; }
  std::size_t bytes() const { return blocks_.size() * layout().block_bytes(); }
  const KvTables& tables() const { return tables_; }
  const std::shared_ptr<BlockPool>& pool() const { return pool_; }
  std::span<const PoolBlock> blocks() const { return blocks_; }  // in the order of their tokens

  // Blocks that prepare(n_tokens) would take from the pool, for a scheduler to ask beforehand.
  std::int64_t blocks_wanted(std::int64_t n_tokens) const {
    const auto wanted = KvLayout::blocks_for(length_ + n_tokens) - std::int64_t(blocks_.size());
    return (std::max)(wanted, std::int64_t(0)) + (n_tokens > 0 && writes_shared() ? 1 : 0);
  }

  // Takes the blocks that n_tokens more need, and a copy of the last one if others read it, too. Throws Error:
  // context_full, out_of_blocks, out_of_memory; the cache is then as it was.
  void prepare(std::int64_t n_tokens) {
    cache_detail::check_room(length_, capacity_, n_tokens);
    const bool copies = n_tokens > 0 && writes_shared();
    const auto n_held = blocks_.size(), n_new = std::size_t(blocks_wanted(n_tokens));
    if (n_new == 0) return;
    blocks_.resize(n_held + n_new);  // within what is reserved
    try {
      pool_->acquire(std::span(blocks_).subspan(n_held));
    } catch (...) {
      blocks_.resize(n_held);
      throw;
    }
    if (copies) {
      auto& shared = blocks_[std::size_t(length_ / kv_block_tokens)];
      pool_->copy(shared, blocks_.back());
      pool_->release(std::exchange(shared, blocks_.back()));
      blocks_.pop_back();
    }
    fill_table();
  }

  // Counts n_tokens more as held. Throws Error::context_full unless prepare() has found room for them.
  void append(std::int64_t n_tokens) {
    cache_detail::check_room(length_, (std::min)(capacity_, std::int64_t(blocks_.size()) * kv_block_tokens), n_tokens);
    length_ += n_tokens;
  }

  // Forgets all but the first n_tokens and gives back the blocks that hold none of them. Throws Error::bad_argument
  // unless 0 <= n_tokens <= length().
  void truncate(std::int64_t n_tokens) {
    cache_detail::check_truncation(length_, n_tokens);
    release_from(std::size_t(KvLayout::blocks_for(n_tokens)));
    length_ = n_tokens;
  }

  // Copies the blocks from token `first` on that others read, too, so that they may be written. Throws Error:
  // out_of_blocks, out_of_memory; the cache is then as it was.
  void make_writable(std::int64_t first) {
    std::vector<std::size_t> shared;
    for (auto i = std::size_t(first / kv_block_tokens); i < blocks_.size(); ++i)
      if (pool_->owners(blocks_[i]) > 1) shared.push_back(i);
    std::vector<PoolBlock> copies(shared.size());
    pool_->acquire(copies);
    for (std::size_t i = 0; i < shared.size(); ++i) {
      pool_->copy(blocks_[shared[i]], copies[i]);
      pool_->release(std::exchange(blocks_[shared[i]], copies[i]));
    }
    fill_table();
  }

  // The same tokens in the same blocks: copies nothing but the table.
  PagedCache fork() const {
    PagedCache other(pool_, capacity_);
    other.adopt(std::span(blocks_).first(std::size_t(KvLayout::blocks_for(length_))), length_);
    return other;
  }

  // Becomes a sequence of n_tokens that are in `blocks` of the same pool, from the first on, and shares these; what it
  // held before is given back. Throws Error::bad_argument unless they fit each other and the capacity.
  void adopt(std::span<const PoolBlock> blocks, std::int64_t n_tokens) {
    check(n_tokens >= 0 && n_tokens <= capacity_ && KvLayout::blocks_for(n_tokens) == std::int64_t(blocks.size()),
          ErrorKind::bad_argument, "paged KV cache: ", n_tokens, " tokens in ", blocks.size(),
          " blocks do not fit its ", capacity_);
    for (const auto& block : blocks) pool_->share(block);
    release_from(0);
    blocks_.assign(blocks.begin(), blocks.end());
    length_ = n_tokens;
    fill_table();
  }

 private:
  // Whether the next token goes into a block that others read.
  bool writes_shared() const {
    return length_ % kv_block_tokens != 0 && pool_->owners(blocks_[std::size_t(length_ / kv_block_tokens)]) > 1;
  }
  void fill_table() {
    for (std::size_t i = 0; i < blocks_.size(); ++i) table_[i] = blocks_[i].data;
  }
  void release_from(std::size_t first) noexcept {
    for (auto i = blocks_.size(); i > first; --i) pool_->release(blocks_[i - 1]);
    if (first < blocks_.size()) blocks_.resize(first);
  }

  std::shared_ptr<BlockPool> pool_;
  std::int64_t capacity_ = 0, length_ = 0;
  std::vector<PoolBlock> blocks_;
  std::vector<std::byte*> table_;
  KvTables tables_;
};
static_assert(KvCache<PagedCache>);

VITRINE_NAMESPACE_END
