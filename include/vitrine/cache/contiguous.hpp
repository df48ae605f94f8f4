// The plain KV cache: one allocation for the whole context, blocks of 64 tokens side by side.
//
//   table[b] = storage + b * block_bytes         tokens [64 b, 64 b + 64) of all layers; inside as in kv_layout.hpp
//
// Its pages take memory only as tokens arrive, so that a long context costs what is used of it. Going back is free:
// truncate() only lowers the length, and what lay behind is written over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "vitrine/cache/kv_cache.hpp"
#include "vitrine/core/config.hpp"
#include "vitrine/core/error.hpp"
#include "vitrine/core/tensor.hpp"

VITRINE_NAMESPACE_BEGIN

class ContiguousCache {
 public:
  ContiguousCache() = default;

  // Room for `capacity` tokens, rounded up to whole blocks. Throws Error: bad_argument for a capacity below 1 or an
  // element type that caches do not hold; out_of_memory, saying the bytes, when refused.
  ContiguousCache(const KvLayout& layout, std::int64_t capacity)
      : capacity_(cache_detail::checked_capacity(capacity)), blocks_(std::size_t(KvLayout::blocks_for(capacity))) {
    layout.check_type();
    storage_ = AlignedBytes(blocks_.size() * layout.block_bytes(), false);
    for (std::size_t i = 0; i < blocks_.size(); ++i) blocks_[i] = storage_.data() + i * layout.block_bytes();
    tables_ = KvTables(layout, blocks_.data());
  }

  const KvLayout& layout() const { return tables_.layout(); }
  std::int64_t length() const { return length_; }
  std::int64_t capacity() const { return capacity_; }
  std::size_t bytes() const { return storage_.size(); }
  const KvTables& tables() const { return tables_; }

  void prepare(std::int64_t n_tokens) { cache_detail::check_room(length_, capacity_, n_tokens); }
  // Counts n_tokens more as held. Throws Error::context_full when there is no room for them.
  void append(std::int64_t n_tokens) {
    cache_detail::check_room(length_, capacity_, n_tokens);
    length_ += n_tokens;
  }
  // Forgets all but the first n_tokens. Throws Error::bad_argument unless 0 <= n_tokens <= length().
  void truncate(std::int64_t n_tokens) {
    cache_detail::check_truncation(length_, n_tokens);
    length_ = n_tokens;
  }

  // A cache of the same size; copies the blocks that hold tokens.
  ContiguousCache fork() const {
    ContiguousCache other(layout(), capacity_);
    const auto used = std::size_t(KvLayout::blocks_for(length_)) * layout().block_bytes();
    if (used > 0) std::memcpy(other.storage_.data(), storage_.data(), used);
    other.length_ = length_;
    return other;
  }

 private:
  std::int64_t capacity_ = 0, length_ = 0;
  std::vector<std::byte*> blocks_;
  AlignedBytes storage_;
  KvTables tables_;
};
static_assert(KvCache<ContiguousCache>);

VITRINE_NAMESPACE_END
