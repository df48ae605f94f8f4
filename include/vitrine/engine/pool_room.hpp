// Room for the scheduler's sequences in a pool of blocks, and what they share. Internal to the engine.
//
//   samples of one prompt   all of it but the last token, from the first of them that has computed it
//   other requests          prefixes that are kept; these make room, the least recently used first, when blocks run out
//
// Counts are of blocks of 64 tokens. A block that several hold is copied before one of them writes into it. Where there
// is no block left, take() gives false and the scheduler preempts somebody; other errors of the pool pass through.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "vitrine/cache/paged.hpp"
#include "vitrine/core/config.hpp"
#include "vitrine/engine/engine_sequence.hpp"
#include "vitrine/engine/prefix_cache.hpp"
#include "vitrine/engine/scheduler.hpp"

VITRINE_NAMESPACE_BEGIN

namespace engine_detail {

class PoolRoom final : public KvRoom {
 public:
  // `prefixes`: on the same pool, or null.
  PoolRoom(std::shared_ptr<BlockPool> pool, std::shared_ptr<PrefixCache> prefixes)
      : pool_(std::move(pool)), prefixes_(std::move(prefixes)) {}

  std::int64_t n_free() const override { return pool_->counts().n_free + n_idle(); }
  std::int64_t n_idle() const { return prefixes_ ? prefixes_->n_idle() : 0; }  // kept for later requests alone
  PrefixCache::Counts prefix_counts() const { return prefixes_ ? prefixes_->counts() : PrefixCache::Counts{}; }
  std::string prefix_failure() const { return prefixes_ ? prefixes_->last_failure() : std::string(); }
  std::int64_t n_wanted(const Sequence& sequence, std::int64_t n_tokens) const override {
    return of(sequence).cache.blocks_wanted(n_tokens);
  }
  bool take(Sequence& sequence, std::int64_t n_tokens) override {
    auto& cache = of(sequence).cache;
    const auto wanted = cache.blocks_wanted(n_tokens);
    if (const auto lacking = wanted - pool_->counts().n_free; prefixes_ && lacking > 0) prefixes_->give_back(lacking);
    while (!prepare(cache, n_tokens))
      if (!prefixes_ || prefixes_->give_back(wanted) == 0) return false;
    return true;
  }

  // While a sibling computes the prompt.
  bool must_wait(const Sequence& sequence) const override {
    const auto& group = of(sequence).group;
    return group && !of(sequence).watches_prompt() && !group->running.empty() && ready_sibling(of(sequence)) == nullptr;
  }
  void start(Sequence& sequence) override {
    auto& starting = of(sequence);
    const auto* sibling = starting.group ? ready_sibling(starting) : nullptr;
    if (starting.watches_prompt()) {
      // Nothing that was computed before helps it.
    } else if (sibling && starting.n_prompt > 1) {
      const auto n_shared = starting.n_prompt - 1;
      starting.cache.adopt(sibling->cache.blocks().first(std::size_t(KvLayout::blocks_for(n_shared))), n_shared);
    } else if (prefixes_) {
      begin_with_known(starting);
    }
    starting.n_computed = starting.cache.length();
    if (starting.group) starting.group->running.push_back(&starting);
  }
  void give_back(Sequence& sequence) override {
    auto& stopped = of(sequence);
    keep(stopped);
    stopped.cache.truncate(0);
    stopped.n_computed = 0;
    if (stopped.group) std::erase(stopped.group->running, &stopped);
  }

  // For later requests: what is computed of a sequence.
  void keep(const EngineSequence& sequence) {
    if (prefixes_) prefixes_->keep(sequence.cache, sequence.tokens);
  }

  static EngineSequence& of(Sequence& sequence) { return static_cast<EngineSequence&>(sequence); }
  static const EngineSequence& of(const Sequence& sequence) { return static_cast<const EngineSequence&>(sequence); }

 private:
  static bool prepare(PagedCache& cache, std::int64_t n_tokens) {
    try {
      cache.prepare(n_tokens);
    } catch (const Error& error) {  // memory that the system refuses is as good as a block that is not there
      if (error.kind() != ErrorKind::out_of_blocks && error.kind() != ErrorKind::out_of_memory) throw;
      return false;
    }
    return true;
  }

  void begin_with_known(EngineSequence& sequence) {
    auto& cache = sequence.cache;
    prefixes_->begin(cache, sequence.tokens);
    // A block that is known in part is copied before it is written; where there is none for the copy, it goes without.
    const auto whole = cache.length() / kv_block_tokens * kv_block_tokens;
    if (cache.length() > whole && cache.blocks_wanted(sequence.n_known - cache.length()) > n_free())
      cache.truncate(whole);
  }

  // One that has K and V of all of the prompt but its last token; that one everybody computes for itself, since its
  // logits are what the first token is drawn from.
  static const EngineSequence* ready_sibling(const EngineSequence& sequence) {
    for (const EngineSequence* other : sequence.group->running)
      if (other->n_computed >= sequence.n_prompt - 1) return other;
    return nullptr;
  }

  std::shared_ptr<BlockPool> pool_;
  std::shared_ptr<PrefixCache> prefixes_;
};

}  // namespace engine_detail

VITRINE_NAMESPACE_END
