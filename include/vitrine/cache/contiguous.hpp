// The plain KV cache: one allocation for the whole context, blocks of 64 tokens side by side.
//
//   blocks()[b] = storage + b * block_bytes         tokens [64 b, 64 b + 64) of all layers; inside as in kv_layout.hpp
//
// Its pages take memory only as tokens arrive, so that a long context costs what is used of it. Going back is free:
// truncate() only lowers the length, and what lay behind is written over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "vitrine/cache/kv_cache.hpp"
#include "vitrine/cache/kv_layout.hpp"
#include "vitrine/core/config.hpp"
#include "vitrine/core/error.hpp"
#include "vitrine/core/tensor.hpp"

VITRINE_NAMESPACE_BEGIN

class ContiguousCache {
 public:
  ContiguousCache() = default;

  // Room for `capacity` tokens, rounded up to whole blocks. Throws Error: bad_argument for a capacity below 1 or an
  // element type that caches do not hold; out_of_memory, saying the bytes, when refused.
  ContiguousCache(const KvLayout& layout, std::int64_t capacity) : layout_(layout), capacity_(capacity) {
    layout.check_type();
    check(capacity >= 1, ErrorKind::bad_argument, "KV cache: expected room for at least 1 token, got ", capacity);
    const auto n_blocks = KvLayout::blocks_for(capacity);
    storage_ = AlignedBytes(std::size_t(n_blocks) * layout.block_bytes(), false);
    blocks_.reserve(std::size_t(n_blocks));
    for (std::int64_t i = 0; i < n_blocks; ++i)
      blocks_.push_back(storage_.data() + std::size_t(i) * layout.block_bytes());
  }

  const KvLayout& layout() const { return layout_; }
  std::int64_t length() const { return length_; }
  std::int64_t capacity() const { return capacity_; }
  std::size_t bytes() const { return storage_.size(); }
  std::byte* const* blocks() const { return blocks_.data(); }

  // Counts n_tokens more as held. Throws Error::context_full when there is no room for them.
  void append(std::int64_t n_tokens) {
    check(n_tokens >= 0 && n_tokens <= capacity_ - length_, ErrorKind::context_full, "KV cache: ", length_,
          " tokens held, ", n_tokens, " more do not fit its ", capacity_);
    length_ += n_tokens;
  }
  // Forgets all but the first n_tokens. Throws Error::bad_argument unless 0 <= n_tokens <= length().
  void truncate(std::int64_t n_tokens) {
    check(n_tokens >= 0 && n_tokens <= length_, ErrorKind::bad_argument, "truncate: expected 0 to ", length_,
          " tokens, got ", n_tokens);
    length_ = n_tokens;
  }

 private:
  KvLayout layout_;
  std::int64_t capacity_ = 0, length_ = 0;
  AlignedBytes storage_;
  std::vector<std::byte*> blocks_;
};
static_assert(KvCache<ContiguousCache>);

VITRINE_NAMESPACE_END
