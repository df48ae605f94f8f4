// Where a pass finds K and V of each layer: tables of blocks, and which layer reads which.
//
// Layers that keep the same tokens share a table, and a block of that table holds K and V of all of them:
//   one table        every layer keeps every token: contiguous and paged caches
//   several tables   layers with a sliding window keep less than the others: a ring has a table per window
//
//   view(layer) = layout of its group, with the group's table        what attention reads (ops/kv_view.hpp)
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "vitrine/cache/kv_layout.hpp"
#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

// Which keys a layer looks at: a query at p sees (p - window, p], and the first `sinks` ones. window = 0: all.
struct KvReach {
  std::int64_t window = 0, sinks = 0;
  friend bool operator==(const KvReach&, const KvReach&) = default;
};

// Layers whose blocks are found through the same table.
struct KvGroup {
  KvLayout layout;                     // n_layer: of this group
  std::byte* const* blocks = nullptr;  // entry b: tokens [64 b, 64 b + 64); may change while no pass runs
};

class KvTables {
 public:
  KvTables() = default;

  // One table for all layers.
  KvTables(const KvLayout& layout, std::byte* const* blocks)
      : KvTables(layout, std::vector<std::size_t>(std::size_t(layout.n_layer), 0)) {
    groups_[0].blocks = blocks;
  }
  // group_of_layer [n_layer], numbered from 0 on; set_blocks follows for each group.
  KvTables(const KvLayout& layout, const std::vector<std::size_t>& group_of_layer) : layout_(layout) {
    std::size_t n_groups = 1;
    for (const auto group : group_of_layer) n_groups = (std::max)(n_groups, group + 1);
    groups_.resize(n_groups, KvGroup{layout});
    for (auto& group : groups_) group.layout.n_layer = 0;
    for (const auto group : group_of_layer) places_.push_back({group, groups_[group].layout.n_layer++});
  }
  void set_blocks(std::size_t group, std::byte* const* blocks) { groups_[group].blocks = blocks; }

  const KvLayout& layout() const { return layout_; }  // of all layers
  std::span<const KvGroup> groups() const { return groups_; }
  KvView view(std::int64_t layer) const {
    const Place& place = places_[std::size_t(layer)];
    const KvGroup& group = groups_[place.group];
    return group.layout.view(place.index, group.blocks);
  }

 private:
  struct Place {
    std::size_t group;
    std::int64_t index;  // among the group's layers
  };
  KvLayout layout_;
  std::vector<KvGroup> groups_;
  std::vector<Place> places_;  // [n_layer]
};

VITRINE_NAMESPACE_END
