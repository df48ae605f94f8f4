// The ring: memory bounded by what layers still look at, for models whose layers have a sliding window.
//
//   table[b] = storage + (b mod n) * block_bytes,  n = ceil((window - 1 + chunk) / 64) + 1 blocks, whatever the context
//
// A query sees `window` keys, itself included; a pass of `chunk` tokens reaches as far back as its first query does. So
// block b may take the place of block b - n: nobody looks at that one any more. The table is written once, with entries
// that repeat. Layers are grouped by their window: those without one (Gemma 3 has both) keep every token.
//
// With attention sinks (Xiao et al. 2023, arXiv 2309.17453) the first blocks, which hold the sinks, stay; the rest is
// the ring. Going back is possible as far as the ring remembers: by `chunk` tokens always, and to the start.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "vitrine/cache/kv_cache.hpp"
#include "vitrine/core/config.hpp"
#include "vitrine/core/error.hpp"
#include "vitrine/core/tensor.hpp"

VITRINE_NAMESPACE_BEGIN

class RingCache {
 public:
  // For layers [n_layer], sequences of up to `capacity` tokens, and passes of up to `chunk`. Throws Error: bad_argument
  // for a number below 1, a negative window, as many layers as the layout does not have, or an element type that
  // caches do not hold; out_of_memory, saying the bytes, when refused.
  RingCache(const KvLayout& layout, std::span<const KvReach> layers, std::int64_t capacity, std::int64_t chunk)
      : capacity_(cache_detail::checked_capacity(capacity)), chunk_(chunk), layers_(layers.begin(), layers.end()) {
    layout.check_type();
    check(chunk >= 1, ErrorKind::bad_argument, "ring KV cache: expected passes of at least 1 token, got ", chunk);
    check(std::int64_t(layers.size()) == layout.n_layer, ErrorKind::bad_argument, "ring KV cache: expected ",
          layout.n_layer, " layers, got ", layers.size());
    std::vector<std::size_t> group_of_layer;
    for (const auto& reach : layers) {
      check(reach.window >= 0 && reach.sinks >= 0, ErrorKind::bad_argument,
            "ring KV cache: expected a window and sinks of at least 0 tokens, got ", reach.window, " and ",
            reach.sinks);
      const auto same = std::find_if(rings_.begin(), rings_.end(), [&](const Ring& r) { return r.reach == reach; });
      group_of_layer.push_back(std::size_t(same - rings_.begin()));
      if (same == rings_.end()) rings_.push_back({reach});
    }
    tables_ = KvTables(layout, group_of_layer);
    for (std::size_t i = 0; i < rings_.size(); ++i) make_ring(i);
  }

  // Blocks that layers of this reach take; a block holds K and V of all layers of the same reach.
  static std::int64_t n_blocks(const KvReach& reach, std::int64_t capacity, std::int64_t chunk) {
    const auto all = KvLayout::blocks_for(capacity);
    return reach.window == 0 ? all : (std::min)(all, n_kept(reach) + n_turning(reach, chunk));
  }

  const KvLayout& layout() const { return tables_.layout(); }
  std::int64_t length() const { return length_; }
  std::int64_t capacity() const { return capacity_; }
  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const auto& ring : rings_) sum += ring.storage.size();
    return sum;
  }
  const KvTables& tables() const { return tables_; }
  std::int64_t chunk() const { return chunk_; }

  // Throws Error: context_full; bad_argument for more tokens at a time than the ring was made for.
  void prepare(std::int64_t n_tokens) {
    cache_detail::check_room(length_, capacity_, n_tokens);
    check(n_tokens <= chunk_, ErrorKind::bad_argument, "ring KV cache: expected at most ", chunk_,
          " tokens at a time, got ", n_tokens);
    written_ = (std::max)(written_, length_ + n_tokens);
  }
  void append(std::int64_t n_tokens) {
    cache_detail::check_room(length_, (std::min)(capacity_, written_), n_tokens);
    length_ += n_tokens;
  }

  // The smallest length but 0 that truncate() can go back to: behind it every layer still has what it looks at.
  std::int64_t shortest() const {
    std::int64_t least = 1;
    for (const auto& ring : rings_) {
      const auto lost = (written_ - 1) / kv_block_tokens + 1 - ring.n_turning;  // blocks before this one, but the kept
      if (written_ == 0 || ring.n_turning == 0 || lost <= ring.n_kept) continue;
      least = (std::max)(least, lost * kv_block_tokens + ring.reach.window - 1);
    }
    return (std::min)((std::max)(least, restored_), length_);
  }
  // Forgets all but the first n_tokens. Throws Error::bad_argument unless n_tokens is 0 or shortest() to length().
  void truncate(std::int64_t n_tokens) {
    cache_detail::check_truncation(length_, n_tokens);
    check(n_tokens == 0 || n_tokens >= shortest(), ErrorKind::bad_argument, "truncate: this ring remembers ",
          shortest(), " to ", length_, " tokens, or can be emptied; got ", n_tokens);
    length_ = n_tokens;
    if (n_tokens == 0) written_ = restored_ = 0;
  }

  // The first block of a group, among those that take turns, that a query behind n_tokens looks at.
  std::int64_t first_block(std::size_t group, std::int64_t n_tokens) const {
    const auto& reach = rings_[group].reach;
    return reach.window == 0 ? 0 : (std::max)(n_tokens - reach.window + 1, std::int64_t(0)) / kv_block_tokens;
  }
  std::int64_t n_kept(std::size_t group) const { return n_kept(rings_[group].reach); }
  // An empty ring: n_tokens are held, of which the caller writes the blocks that a query behind them looks at.
  void restore(std::int64_t n_tokens) {
    cache_detail::check_room(0, capacity_, n_tokens);
    length_ = written_ = restored_ = n_tokens;
  }

  // A copy.
  RingCache fork() const {
    RingCache other(layout(), layers_, capacity_, chunk_);
    for (std::size_t i = 0; i < rings_.size(); ++i) {
      const auto n_used = (std::min)(KvLayout::blocks_for(written_), rings_[i].n_kept + rings_[i].n_turning);
      const auto used = std::size_t(n_used) * tables_.groups()[i].layout.block_bytes();
      if (used > 0) std::memcpy(other.rings_[i].storage.data(), rings_[i].storage.data(), used);
    }
    other.length_ = length_;
    other.written_ = written_;
    other.restored_ = restored_;
    return other;
  }

 private:
  struct Ring {
    KvReach reach;
    std::int64_t n_kept = 0, n_turning = 0;  // blocks that stay, and that take turns (0: none needs to)
    AlignedBytes storage{};
    std::vector<std::byte*> table{};
  };
  static std::int64_t n_kept(const KvReach& reach) { return KvLayout::blocks_for(reach.sinks); }
  static std::int64_t n_turning(const KvReach& reach, std::int64_t chunk) {
    return KvLayout::blocks_for(reach.window - 1 + chunk) + 1;
  }

  void make_ring(std::size_t index) {
    Ring& ring = rings_[index];
    const auto all = KvLayout::blocks_for(capacity_), n = n_blocks(ring.reach, capacity_, chunk_);
    const auto bytes = tables_.groups()[index].layout.block_bytes();
    ring.n_turning = n < all ? n_turning(ring.reach, chunk_) : 0;
    ring.n_kept = n - ring.n_turning;
    ring.storage = AlignedBytes(std::size_t(n) * bytes, false);
    ring.table.resize(std::size_t(all));
    for (std::int64_t b = 0; b < all; ++b) {
      const auto place = b < ring.n_kept ? b : ring.n_kept + (b - ring.n_kept) % ring.n_turning;
      ring.table[std::size_t(b)] = ring.storage.data() + std::size_t(place) * bytes;
    }
    tables_.set_blocks(index, ring.table.data());
  }

  std::int64_t capacity_ = 0, chunk_ = 0;
  std::int64_t length_ = 0;
  std::int64_t written_ = 0;   // positions below this may have been written since the ring was last empty
  std::int64_t restored_ = 0;  // what was behind these was not restored
  std::vector<KvReach> layers_;
  std::vector<Ring> rings_;  // one per group of tables_
  KvTables tables_;
};
static_assert(KvCache<RingCache>);

VITRINE_NAMESPACE_END
