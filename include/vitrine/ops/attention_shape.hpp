// What an attention needs to know of a model: heads, width of a head, window, scale.
//
// Query heads may share keys and values: group = n_head / n_kv_head of them read the same K/V head, which divides the
// size of the cache by the group.
//   n_kv_head == n_head       multi-head       (Vaswani et al. 2017, arXiv 1706.03762)
//   1 < n_kv_head < n_head    grouped-query    (Ainslie et al. 2023, arXiv 2305.13245)
//   n_kv_head == 1            multi-query      (Shazeer 2019, arXiv 1911.02150)
//
// A window bounds what a query looks at. Models that were trained without one lose their footing when the first tokens
// fall out of it, since they put their spare attention there; with `sinks` the first few stay visible (Xiao et al.
// 2023, arXiv 2309.17453).
#pragma once

#include <cstdint>

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

// n_kv_head == n_head is multi-head, 1 < n_kv_head < n_head grouped-query, n_kv_head == 1 multi-query attention.
struct AttentionShape {
  std::int64_t n_head = 1, n_kv_head = 1;  // n_head is a multiple of n_kv_head; query head h reads K/V head h / group
  std::int64_t head_dim = 2;               // even
  std::int64_t window = 0;                 // a query at position p sees keys (p - window, p]; 0: all up to p
  float scale = 1.0f;                      // usually 1 / sqrt(head_dim)
  std::int64_t sinks = 0;                  // with a window: keys [0, sinks) are seen, too; at most attention_span

  std::int64_t group() const { return n_head / n_kv_head; }  // query heads that share one K/V head
  // The same with a window of the caller's choice, unless this one is as short already; no window: unchanged.
  AttentionShape limited(std::int64_t to_window, std::int64_t with_sinks) const {
    AttentionShape result = *this;
    if (to_window > 0 && (window == 0 || window > to_window)) {
      result.window = to_window;
      result.sinks = with_sinks;
    }
    return result;
  }
  // Where a query stands when it looks at the sinks: as if what lies between them and the window were not there.
  std::int64_t sink_position(std::int64_t position) const {
    return window > 0 && position > sinks + window - 1 ? sinks + window - 1 : position;
  }
  // First key that a query at `position` sees, the sinks left aside.
  std::int64_t first_key(std::int64_t position) const {
    return window > 0 && position >= window ? position - window + 1 : 0;
  }
};

VITRINE_NAMESPACE_END
