// Room for the scheduler's sequences in a pool of blocks, and what samples of one prompt share. Internal to the engine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "vitrine/cache/paged.hpp"
#include "vitrine/core/config.hpp"
#include "vitrine/engine/engine_sequence.hpp"
#include "vitrine/engine/scheduler.hpp"

VITRINE_NAMESPACE_BEGIN

namespace engine_detail {

class PoolRoom final : public KvRoom {
 public:
  explicit PoolRoom(std::shared_ptr<BlockPool> pool) : pool_(std::move(pool)) {}

  std::int64_t n_free() const override { return pool_->counts().n_free; }
  std::int64_t n_wanted(const Sequence& sequence, std::int64_t n_tokens) const override {
    return of(sequence).cache.blocks_wanted(n_tokens);
  }
  bool take(Sequence& sequence, std::int64_t n_tokens) override {
    try {
      of(sequence).cache.prepare(n_tokens);
    } catch (const Error& error) {  // memory that the system refuses is as good as a block that is not there
      if (error.kind() != ErrorKind::out_of_blocks && error.kind() != ErrorKind::out_of_memory) throw;
      return false;
    }
    return true;
  }

  // While a sibling computes the prompt.
  bool must_wait(const Sequence& sequence) const override {
    const auto& group = of(sequence).group;
    return group && !group->running.empty() && ready_sibling(of(sequence)) == nullptr;
  }
  void start(Sequence& sequence) override {
    auto& starting = of(sequence);
    if (!starting.group) return;
    if (const auto* sibling = ready_sibling(starting); sibling && starting.n_prompt > 1) {
      starting.n_computed = starting.n_prompt - 1;
      const auto n_blocks = std::size_t(KvLayout::blocks_for(starting.n_computed));
      starting.cache.adopt(sibling->cache.blocks().first(n_blocks), starting.n_computed);
    }
    starting.group->running.push_back(&starting);
  }
  void give_back(Sequence& sequence) override {
    auto& stopped = of(sequence);
    stopped.cache.truncate(0);
    stopped.n_computed = 0;
    if (stopped.group) std::erase(stopped.group->running, &stopped);
  }

  static EngineSequence& of(Sequence& sequence) { return static_cast<EngineSequence&>(sequence); }
  static const EngineSequence& of(const Sequence& sequence) { return static_cast<const EngineSequence&>(sequence); }

 private:
  // One that has K and V of all of the prompt but its last token; that one everybody computes for itself, since its
  // logits are what the first token is drawn from.
  static const EngineSequence* ready_sibling(const EngineSequence& sequence) {
    for (const EngineSequence* other : sequence.group->running)
      if (other->n_computed >= sequence.n_prompt - 1) return other;
    return nullptr;
  }

  std::shared_ptr<BlockPool> pool_;
};

}  // namespace engine_detail

VITRINE_NAMESPACE_END
