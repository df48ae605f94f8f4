// Byte-pair encoding: starting from the smallest symbols of a piece, join the best pair of neighbours, again and again.
//
// "Best" is a rank, lowest first, the leftmost of equals; where ranks come from (a merge list or scores) is the
// caller's business. Short pieces are scanned, long ones go through a heap over a linked list, so that a run of n equal
// characters takes n log n steps. (Sennrich et al. 2016; the heap as in SentencePiece, Kudo and Richardson 2018.) For
// bodies only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/core/token.hpp"

VITRINE_NAMESPACE_BEGIN

namespace merge_detail {

inline constexpr std::uint32_t no_rank = (std::numeric_limits<std::uint32_t>::max)();

struct Symbol {
  std::uint32_t begin = 0, size = 0;  // bytes of the piece; size 0: joined into its left neighbour
  Token id = -1;                      // -1: no token yet
};

struct Merge {
  std::uint32_t rank = no_rank;
  Token result = -1;
};

// Pairs of tokens to the rank of their merge: a flat hash table, the first of equal pairs counts.
class MergeTable {
 public:
  MergeTable() = default;
  MergeTable(const std::vector<std::pair<Token, Token>>& pairs, const std::vector<Token>& results) {
    std::size_t n_slots = 16;
    while (n_slots < 2 * pairs.size()) n_slots *= 2;
    slots_.resize(n_slots);
    for (std::size_t rank = 0; rank < pairs.size(); ++rank) {
      Slot& slot = slots_[slot_of(key(pairs[rank].first, pairs[rank].second))];
      if (slot.merge.rank == no_rank)
        slot = {key(pairs[rank].first, pairs[rank].second), {std::uint32_t(rank), results[rank]}};
    }
  }

  Merge find(Token left, Token right) const {
    if (slots_.empty()) return {};
    return slots_[slot_of(key(left, right))].merge;
  }

 private:
  struct Slot {
    std::uint64_t key = 0;
    Merge merge;
  };
  static std::uint64_t key(Token left, Token right) {
    return std::uint64_t(std::uint32_t(left)) << 32 | std::uint32_t(right);
  }
  std::size_t slot_of(std::uint64_t wanted) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = std::size_t((wanted * 0x9E3779B97F4A7C15u) >> 20) & mask;
    while (slots_[at].merge.rank != no_rank && slots_[at].key != wanted) at = (at + 1) & mask;
    return at;
  }
  std::vector<Slot> slots_;
};

// A pair on the heap is out of date unless its two symbols still cover the same bytes; the size of what they would join
// to says so, since a symbol only ever grows to the right.
struct HeapEntry {
  std::uint64_t order;  // rank << 32 | symbol
  std::uint32_t size;
  Token result;
  bool operator>(const HeapEntry& other) const { return order > other.order; }
};

template <class FindMerge, class OnMerge>
void merge_short(std::vector<Symbol>& symbols, std::vector<Merge>& merges, FindMerge&& find, OnMerge&& on_merge) {
  std::size_t n = symbols.size();
  merges.resize(n);
  for (std::size_t i = 0; i + 1 < n; ++i) merges[i] = find(symbols[i], symbols[i + 1]);
  while (n > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < n; ++i)
      if (merges[i].rank < merges[best].rank) best = i;
    if (merges[best].rank == no_rank) break;
    on_merge(symbols[best], symbols[best + 1], merges[best].result);
    symbols[best].size += symbols[best + 1].size;
    symbols[best].id = merges[best].result;
    std::move(symbols.begin() + std::ptrdiff_t(best) + 2, symbols.begin() + std::ptrdiff_t(n),
              symbols.begin() + std::ptrdiff_t(best) + 1);
    std::move(merges.begin() + std::ptrdiff_t(best) + 2, merges.begin() + std::ptrdiff_t(n),
              merges.begin() + std::ptrdiff_t(best) + 1);
    --n;
    if (best + 1 < n) merges[best] = find(symbols[best], symbols[best + 1]);
    if (best > 0) merges[best - 1] = find(symbols[best - 1], symbols[best]);
  }
  symbols.resize(n);
}

template <class FindMerge, class OnMerge>
void merge_long(std::vector<Symbol>& symbols, FindMerge&& find, OnMerge&& on_merge) {
  constexpr std::uint32_t none = no_rank;
  const auto n = static_cast<std::uint32_t>(symbols.size());
  std::vector<std::uint32_t> next(n), previous(n);
  std::vector<HeapEntry> heap;
  heap.reserve(n);
  const auto propose = [&](std::uint32_t left, std::uint32_t right) {
    const Merge merge = find(symbols[left], symbols[right]);
    if (merge.rank == no_rank) return false;
    heap.push_back({std::uint64_t(merge.rank) << 32 | left, symbols[left].size + symbols[right].size, merge.result});
    return true;
  };
  for (std::uint32_t i = 0; i < n; ++i) {
    next[i] = i + 1 < n ? i + 1 : none;
    previous[i] = i > 0 ? i - 1 : none;
    if (i + 1 < n) propose(i, i + 1);
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const HeapEntry top = heap.back();
    heap.pop_back();
    const auto left = static_cast<std::uint32_t>(top.order);
    if (symbols[left].size == 0 || next[left] == none) continue;
    const std::uint32_t right = next[left];
    if (symbols[left].size + symbols[right].size != top.size) continue;
    on_merge(symbols[left], symbols[right], top.result);
    symbols[left].size = top.size;
    symbols[left].id = top.result;
    symbols[right].size = 0;
    next[left] = next[right];
    if (next[left] != none) {
      previous[next[left]] = left;
      if (propose(left, next[left])) std::push_heap(heap.begin(), heap.end(), std::greater<>());
    }
    if (previous[left] != none && propose(previous[left], left))
      std::push_heap(heap.begin(), heap.end(), std::greater<>());
  }
  symbols.erase(std::remove_if(symbols.begin(), symbols.end(), [](const Symbol& s) { return s.size == 0; }),
                symbols.end());
}

// Joins `symbols` (neighbours, in order) until no pair has a rank. find(left, right) gives the merge of two symbols;
// on_merge(left, right, result) is told of each one made.
template <class FindMerge, class OnMerge>
void merge_all(std::vector<Symbol>& symbols, std::vector<Merge>& merges, FindMerge&& find, OnMerge&& on_merge) {
  constexpr std::size_t longest_to_scan = 48;
  if (symbols.size() <= longest_to_scan) {
    merge_short(symbols, merges, find, on_merge);
  } else {
    merge_long(symbols, find, on_merge);
  }
}

}  // namespace merge_detail

VITRINE_NAMESPACE_END
