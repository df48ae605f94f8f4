// A stock of equal blocks of 64 tokens that many caches take from, with a count of owners per block.
//
//   acquire()  a block with one owner       share()  one owner more       release()  one fewer; the last gives it back
//
// Memory comes from the system as blocks are needed, some megabytes at a time, up to max_blocks, and stays with the
// pool. Any thread may call anything at any time. A block with one owner may be written by that owner alone; one with
// several owners is written by nobody (copy on write: paged.hpp). Who keeps blocks only in case somebody wants them has
// those counted that nobody has.
//
// After "Efficient Memory Management for Large Language Model Serving with PagedAttention" (arXiv 2309.06180).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <span>
#include <vector>

#include "vitrine/cache/kv_layout.hpp"
#include "vitrine/core/config.hpp"
#include "vitrine/core/error.hpp"
#include "vitrine/core/tensor.hpp"

VITRINE_NAMESPACE_BEGIN

struct PoolBlock {
  std::int32_t id = -1;       // in its pool
  std::byte* data = nullptr;  // [block_bytes]
};

class BlockPool {
 public:
  struct Counts {
    std::int64_t max_blocks = 0;                // the pool's limit
    std::int64_t n_used = 0;                    // blocks with an owner
    std::int64_t n_shared = 0;                  // of these, with several
    std::int64_t n_free = 0;                    // that could still be had: max_blocks - n_used
    std::int64_t n_held = 0;                    // with memory from the system, used or not
    std::int64_t n_acquired = 0, n_copied = 0;  // since the beginning: blocks given out, blocks copied
    std::int64_t peak_used = 0;
  };
  static constexpr std::int64_t no_limit = (std::int64_t(1) << 31) - 1;
  using CountAlone = std::atomic<std::int64_t>;  // of the blocks that somebody keeps: those with no other owner

  // Throws Error::bad_argument for fewer than 1 block, more than no_limit, or an element type that caches do not hold.
  explicit BlockPool(const KvLayout& layout, std::int64_t max_blocks = no_limit) : layout_(layout) {
    layout.check_type();
    check(max_blocks >= 1 && max_blocks <= no_limit, ErrorKind::bad_argument, "KV pool: expected 1 to ", no_limit,
          " blocks, got ", max_blocks);
    counts_.max_blocks = counts_.n_free = max_blocks;
  }
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // How many blocks fit into a budget of bytes.
  static std::int64_t blocks_in(const KvLayout& layout, std::size_t bytes) {
    return (std::min)(no_limit, std::int64_t(bytes / layout.block_bytes()));
  }

  const KvLayout& layout() const { return layout_; }
  Counts counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }
  // Held from the system for K and V.
  std::size_t bytes() const { return std::size_t(counts().n_held) * layout_.block_bytes(); }

  // Fills `blocks` with blocks of one owner each, or throws and gives out none. Error: out_of_blocks at the limit;
  // out_of_memory when the system refuses.
  void acquire(std::span<PoolBlock> blocks) {
    const auto n = std::int64_t(blocks.size());
    const std::lock_guard lock(mutex_);
    check(n <= counts_.n_free, ErrorKind::out_of_blocks, "KV pool: ", counted(n, "block"), " wanted, ", counts_.n_free,
          " of ", counts_.max_blocks, " are free (64 tokens each)");
    while (std::int64_t(free_.size()) < n) grow(n - std::int64_t(free_.size()));
    for (auto& block : blocks) {
      block = free_.back();
      free_.pop_back();
      owners_[std::size_t(block.id)] = 1;
    }
    counts_.n_free -= n;
    counts_.n_used += n;
    counts_.n_acquired += n;
    counts_.peak_used = (std::max)(counts_.peak_used, counts_.n_used);
  }

  void share(const PoolBlock& block) {
    const std::lock_guard lock(mutex_);
    add_owner(block);
  }
  void release(const PoolBlock& block) noexcept {
    const std::lock_guard lock(mutex_);
    remove_owner(block);
  }
  // The same for who keeps blocks: while it is the only owner of one, `alone` counts it. A block that two of these keep
  // is counted for the first of them only.
  void keep(const PoolBlock& block, CountAlone& alone) {
    const std::lock_guard lock(mutex_);
    auto& keeper = kept_by_[std::size_t(block.id)];
    add_owner(block);
    if (!keeper) keeper = &alone;  // not counted: who has it still owns it
  }
  void let_go(const PoolBlock& block, CountAlone& alone) noexcept {
    const std::lock_guard lock(mutex_);
    auto& keeper = kept_by_[std::size_t(block.id)];
    if (keeper == &alone) {
      if (owners_[std::size_t(block.id)] == 1) --alone;
      keeper = nullptr;
    }
    remove_owner(block);
  }
  std::int64_t owners(const PoolBlock& block) const {
    const std::lock_guard lock(mutex_);
    return owners_[std::size_t(block.id)];
  }

  // `to` has one owner, the caller, who also keeps `from` alive.
  void copy(const PoolBlock& from, const PoolBlock& to) {
    std::memcpy(to.data, from.data, layout_.block_bytes());
    const std::lock_guard lock(mutex_);
    ++counts_.n_copied;
  }

 private:
  // These under the lock.
  void add_owner(const PoolBlock& block) {
    const auto id = std::size_t(block.id);
    if (++owners_[id] != 2) return;
    ++counts_.n_shared;
    if (kept_by_[id]) --*kept_by_[id];
  }
  void remove_owner(const PoolBlock& block) noexcept {
    const auto id = std::size_t(block.id);
    const auto left = --owners_[id];
    if (left == 1) {
      --counts_.n_shared;
      if (kept_by_[id]) ++*kept_by_[id];
    }
    if (left > 0) return;
    free_.push_back(block);  // there is room: see grow()
    --counts_.n_used;
    ++counts_.n_free;
  }

  // At least n blocks more from the system; under the lock.
  void grow(std::int64_t n) {
    const auto bytes = layout_.block_bytes();
    constexpr std::size_t slab = 8 * huge_page_bytes;  // so that few blocks lie where no large page has room
    const auto wished = (std::max)(n, std::int64_t(slab / bytes));
    const auto n_new = (std::min)(wished, counts_.max_blocks - counts_.n_held);
    const auto n_held = std::size_t(counts_.n_held + n_new);
    // Vectors double, so that their growth is not felt; all that can fail comes before anything changes.
    const auto reserve = [n_held](auto& vector) {
      if (vector.capacity() < n_held) vector.reserve((std::max)(n_held, 2 * vector.capacity()));
    };
    naming_memory(
        [&] {
          reserve(free_);
          reserve(owners_);
          reserve(kept_by_);
          slabs_.reserve(slabs_.size() + 1);
          slabs_.emplace_back(std::size_t(n_new) * bytes, false);
        },
        "KV pool: ", counted(n_new, "block"), " more");
    for (auto i = n_new - 1; i >= 0; --i)  // so that blocks are given out in ascending order
      free_.push_back({std::int32_t(counts_.n_held + i), slabs_.back().data() + std::size_t(i) * bytes});
    owners_.resize(n_held, 0);
    kept_by_.resize(n_held, nullptr);
    counts_.n_held += n_new;
  }

  KvLayout layout_;
  mutable std::mutex mutex_;
  Counts counts_;
  std::vector<AlignedBytes> slabs_;
  std::vector<PoolBlock> free_;       // held and unused; the last released is taken first
  std::vector<std::int32_t> owners_;  // [n_held]
  std::vector<CountAlone*> kept_by_;  // [n_held] null for blocks that nobody keeps
};

VITRINE_NAMESPACE_END
