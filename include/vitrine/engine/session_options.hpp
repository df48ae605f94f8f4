// What can be chosen for a session; all of it has defaults.
//
//   Session session(model, {.n_context = 8192, .kv_type = DType::int8, .cache = CacheKind::paged});
//
// Each option says whether it changes results or only time and memory: kv_type, window and sinks
// change logits, all others not one bit. Lengths are in tokens. The constructor of Session throws
// Error::bad_argument naming an option that is out of range or that does not go with another one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "vitrine/cache/any_cache.hpp"
#include "vitrine/core/config.hpp"
#include "vitrine/core/parallel.hpp"
#include "vitrine/core/trace.hpp"
#include "vitrine/ops/kv_view.hpp"
#include "vitrine/simd/dispatch.hpp"

VITRINE_NAMESPACE_BEGIN

class PrefixCache;  // engine/prefix_cache.hpp

struct SessionOptions {
  // Tokens the session can hold; 0: what the model was trained for, at most 4096. More than it was trained for is
  // computed as it stands, with rotations that the model has never seen: the text is likely to get worse.
  std::int64_t n_context = 0;
  int n_threads = 0;                         // 0: as many as this process may use
  Crowding crowding = Crowding::step_aside;  // fewer for a while when other programs want the processors too
  KvTypes kv_type = DType::f16;  // elements of the KV cache: f32, f16, bf16, int8 or int4; {k, v} if they differ
  CacheKind cache = CacheKind::contiguous;  // where K and V are kept: changes memory, never a result
  // Paged: the pool to take blocks from; none: that of the prefixes, or one for this session and its forks.
  std::shared_ptr<BlockPool> pool{};
  std::shared_ptr<PrefixCache> prefixes{};  // beginnings that need not be computed again; not for rings
  // Each token looks at this many keys only, itself included, and at the first `sinks` ones (at most 256) besides;
  // 0: as the model was trained. With cache = ring the memory stays bounded, but what has left the window is forgotten.
  std::int64_t window = 0, sinks = 0;
  // Prompt tokens per pass, 0: 256, or 512 for more than one thread. Changes speed and memory (scratch, and that of
  // rings, which hold a pass beside their window), never a result.
  std::int64_t chunk = 0;
  // Where generation needs the largest logits only, a head in planes (LoadOptions::head_in_planes) finds them without
  // computing all: changes speed, never a result.
  bool top_logits = true;
  bool use_cache = true;     // false: every step computes the whole sequence anew, to see what the cache is good for
  std::optional<Isa> isa{};  // kernels to use; none: the best there are, see simd/dispatch.hpp
  TraceObserver trace{};     // is shown every intermediate

  KvReach limit() const { return {window, sinks}; }
};

VITRINE_NAMESPACE_END
