// Which blocks hold which beginnings of token sequences: a tree with one node per block of 64 tokens.
//
//   root -> [t0 .. t63] -> [t64 .. t127] -> ...        a path is a beginning; its blocks are in the pool, shared
//
// Children are kept in the order of their tokens, so that the one with the longest beginning in common stands beside
// the place where a new one would go; tokens are compared, never hashes of them. The least recently used leaf goes
// first when there is no room: a node is always more recent than its children, so that it stands last in the list.
//
// One thread at a time; engine/prefix_cache.hpp has the lock.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "vitrine/cache/block_pool.hpp"
#include "vitrine/core/config.hpp"
#include "vitrine/core/token.hpp"

VITRINE_NAMESPACE_BEGIN

class PrefixIndex {
 public:
  PrefixIndex(std::shared_ptr<BlockPool> pool, std::int64_t max_blocks)
      : pool_(std::move(pool)), max_blocks_(max_blocks) {}
  ~PrefixIndex() {
    while (!recent_.empty()) drop(recent_.back());
  }
  PrefixIndex(const PrefixIndex&) = delete;
  PrefixIndex& operator=(const PrefixIndex&) = delete;

  std::int64_t n_blocks() const { return std::int64_t(recent_.size()); }
  std::int64_t n_evicted() const { return n_evicted_; }
  // Blocks that give_back() could give: those that nobody else uses.
  std::int64_t n_idle() const { return n_alone_; }

  struct Match {
    std::vector<PoolBlock> blocks;  // of the beginning in common, the index's own: share them before it changes
    std::int64_t n_tokens = 0;      // in common; the last block may hold more than these
  };
  // The longest beginning of `tokens` that is there.
  Match find(std::span<const Token> tokens) {
    Match match;
    Node* node = &root_;
    while (match.n_tokens < std::int64_t(tokens.size())) {
      const auto rest = tokens.subspan(std::size_t(match.n_tokens));
      const auto [child, n_common] = closest(*node, rest);
      if (n_common == 0) break;
      match.blocks.push_back(child->block);
      match.n_tokens += n_common;
      node = child;
      if (n_common < kv_block_tokens) break;
    }
    touch(node);
    return match;
  }

  // Adds the whole blocks of a sequence, tokens [64 blocks.size()], as far as there is room. Returns how many of the
  // blocks are there now.
  std::int64_t insert(std::span<const Token> tokens, std::span<const PoolBlock> blocks) {
    Node* node = &root_;
    std::int64_t i = 0;
    for (; i < std::int64_t(blocks.size()); ++i) {
      const auto key = key_of(tokens.subspan(std::size_t(i * kv_block_tokens)));
      const auto found = node->children.find(key);
      Node* child = found != node->children.end() ? found->second.get() : add(node, key, blocks[std::size_t(i)]);
      if (!child) break;
      node = child;
    }
    touch(node);
    return i;
  }

  // Lets go of blocks that nobody else uses, the least recently used first, until n have been given back to the pool or
  // there are no more. Returns how many have been. (What stands behind such a block goes first, unless somebody uses it
  // who computed it beside the sequence that this block is from. Then the index forgets it: it cannot be found without
  // what comes before it.)
  std::int64_t give_back(std::int64_t n) {
    std::int64_t done = 0;
    for (auto at = recent_.end(); done < n && at != recent_.begin();) {
      Node* node = *--at;
      if (pool_->owners(node->block) > 1) continue;
      drop_behind(node);
      at = std::next(at);
      evict(node);
      ++done;
    }
    return done;
  }

 private:
  using Key = std::array<Token, std::size_t(kv_block_tokens)>;
  struct Node {
    std::map<Key, std::unique_ptr<Node>> children{};
    Node* parent = nullptr;
    const Key* key = nullptr;  // in the parent's map
    PoolBlock block{};
    std::list<Node*>::iterator place{};  // in recent_
  };

  static Key key_of(std::span<const Token> tokens) {
    Key key;
    std::copy_n(tokens.begin(), key.size(), key.begin());
    return key;
  }

  // The child with the longest beginning in common with `tokens`, and how long that is.
  static std::pair<Node*, std::int64_t> closest(const Node& node, std::span<const Token> tokens) {
    Key wanted;
    wanted.fill(0);
    std::copy_n(tokens.begin(), (std::min)(tokens.size(), wanted.size()), wanted.begin());
    std::pair<Node*, std::int64_t> best{nullptr, 0};
    const auto look = [&](auto place) {
      const auto n = (std::min)(tokens.size(), place->first.size());
      const auto differs =
          std::mismatch(place->first.begin(), place->first.begin() + std::ptrdiff_t(n), tokens.begin());
      const auto n_common = std::int64_t(differs.first - place->first.begin());
      if (n_common > best.second) best = {place->second.get(), n_common};
    };
    const auto behind = node.children.lower_bound(wanted);
    if (behind != node.children.end()) look(behind);
    if (behind != node.children.begin()) look(std::prev(behind));
    return best;
  }

  Node* add(Node* parent, const Key& key, const PoolBlock& block) {
    touch(parent);  // so that it is not what makes room
    while (n_blocks() >= max_blocks_) {
      if (recent_.empty() || !recent_.back()->children.empty() || recent_.back() == parent) return nullptr;
      evict(recent_.back());
    }
    auto node = std::make_unique<Node>();
    const auto behind = parent == &root_ ? recent_.begin() : std::next(parent->place);
    node->place = recent_.insert(behind, node.get());
    try {
      const auto place = parent->children.emplace(key, nullptr).first;
      node->parent = parent;
      node->key = &place->first;
      node->block = block;
      pool_->keep(block, n_alone_);
      return (place->second = std::move(node)).get();
    } catch (...) {
      recent_.erase(node->place);
      throw;
    }
  }

  // Moves a path to the front, the end of it first.
  void touch(Node* node) {
    for (; node != &root_; node = node->parent) recent_.splice(recent_.begin(), recent_, node->place);
  }

  void drop_behind(Node* node) {
    for (Node* last = node; !node->children.empty();) {
      while (!last->children.empty()) last = last->children.begin()->second.get();
      evict(std::exchange(last, last->parent));
    }
  }
  void evict(Node* leaf) {
    drop(leaf);
    ++n_evicted_;
  }
  // A leaf.
  void drop(Node* node) {
    pool_->let_go(node->block, n_alone_);
    recent_.erase(node->place);
    auto& siblings = node->parent->children;
    siblings.erase(siblings.find(*node->key));
  }

  std::shared_ptr<BlockPool> pool_;
  std::int64_t max_blocks_, n_evicted_ = 0;
  BlockPool::CountAlone n_alone_ = 0;
  Node root_;
  std::list<Node*> recent_;  // all nodes, the most recently used first
};

VITRINE_NAMESPACE_END
