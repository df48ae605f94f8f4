// A KV cache and random queries for attention tests: blocks scattered in memory in scrambled order, with NaN in every
// place that nothing was stored into.
#pragma once

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "numbers.hpp"
#include "vitrine/core/float16.hpp"
#include "vitrine/ops/attention.hpp"
#include "vitrine/simd/dispatch.hpp"

namespace attention_test {

using namespace ops_test;

// A cache of `layers` layers, of which the last is used, so that offsets are not zero.
class ScatteredCache {
 public:
  ScatteredCache(KvTypes types, std::int64_t n_kv_head, std::int64_t head_dim, std::int64_t n_keys, unsigned seed) {
    view_.types = types;
    view_.n_kv_head = n_kv_head;
    view_.head_dim = head_dim;
    const std::size_t k_bytes = std::size_t(n_kv_head) * view_.k_head_bytes();
    const std::size_t v_bytes = std::size_t(n_kv_head) * view_.v_head_bytes(),
                      block_bytes = 2 * (k_bytes + v_bytes) + 64;
    view_.k_offset = k_bytes + v_bytes;
    view_.v_offset = view_.k_offset + k_bytes;
    const std::int64_t n_blocks = (n_keys + kv_block_tokens - 1) / kv_block_tokens;
    bytes_ = AlignedBytes(block_bytes * std::size_t(n_blocks));
    std::memset(bytes_.data(), 0xff, bytes_.size());  // NaN in all float types, and as scales
    std::vector<std::int64_t> order(std::size_t(n_blocks), 0);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(seed));
    for (const std::int64_t place : order) blocks_.push_back(bytes_.data() + block_bytes * std::size_t(place));
    view_.blocks = blocks_.data();
  }
  const KvView& view() const { return view_; }
  const AlignedBytes& memory() const { return bytes_; }
  // Forgets the blocks before this position, but for those of the sinks: to see that nobody looks there.
  void drop_before(std::int64_t position, std::int64_t sinks) {
    for (std::int64_t block = (sinks + 63) / 64; (block + 1) * kv_block_tokens <= position; ++block) {
      blocks_[std::size_t(block)] = nullptr;
    }
  }

 private:
  KvView view_;
  AlignedBytes bytes_;
  std::vector<std::byte*> blocks_;
};

struct AttentionCase {
  AttentionShape shape;
  KvTypes types = DType::f16;
  std::int64_t pos0 = 0, n_tokens = 1;
};

// The numbers of one case: q for the queries, k and v for every position up to the last query's.
struct Numbers {
  Tensor<float, 2> q, k, v, q_sink;
  explicit Numbers(const AttentionCase& c, unsigned seed = 1)
      : q(random_matrix(c.n_tokens, c.shape.n_head * c.shape.head_dim, seed, 2.0f)),
        k(random_matrix(c.pos0 + c.n_tokens, c.shape.n_kv_head * c.shape.head_dim, seed + 1, 2.0f)),
        v(random_matrix(c.pos0 + c.n_tokens, c.shape.n_kv_head * c.shape.head_dim, seed + 2, 1.0f)),
        q_sink(random_matrix(c.n_tokens, c.shape.n_head * c.shape.head_dim, seed + 3, 2.0f)) {}
};

inline TensorView<const float, 2> rows(const Tensor<float, 2>& x, std::int64_t begin, std::int64_t end) {
  return {x.data() + begin * x.shape()[1], {end - begin, x.shape()[1]}};
}
inline TensorView<float, 2> rows(Tensor<float, 2>& x, std::int64_t begin, std::int64_t end) {
  return {x.data() + begin * x.shape()[1], {end - begin, x.shape()[1]}};
}

// Stores keys before pos0 (the sinks, and what the window needs), then walks through the queries in chunks
// [cuts[i], cuts[i + 1]): store, attend. What a later chunk stores is NaN while an earlier one is attended to.
inline Tensor<float, 2> run(const AttentionCase& c, const Numbers& numbers, Isa isa, int n_threads,
                            const std::vector<std::int64_t>& cuts, unsigned order = 5) {
  ScatteredCache cache(c.types, c.shape.n_kv_head, c.shape.head_dim, c.pos0 + c.n_tokens, order);
  Tensor<float, 2> out({c.n_tokens, c.shape.n_head * c.shape.head_dim});
  AttentionScratch scratch;
  scratch.reserve(c.shape, c.n_tokens, c.pos0 + c.n_tokens, n_threads);
  Team team(n_threads);
  team.run([&](Worker& worker) {
    const KernelTable& table = kernels(isa);
    const std::int64_t first_needed = c.shape.first_key(c.pos0);
    const auto store = [&](std::int64_t begin, std::int64_t end) {
      store_kv(worker, table, cache.view(), begin, rows(numbers.k, begin, end), rows(numbers.v, begin, end));
    };
    store(0, (std::min)(c.shape.sinks, first_needed));
    store(first_needed, c.pos0);
    worker.on_main([&] { cache.drop_before(first_needed, c.shape.sinks); });
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      const std::int64_t begin = cuts[i], end = cuts[i + 1], at = c.pos0 + begin;
      store(at, c.pos0 + end);
      worker.sync();
      attention(worker, table, c.shape, rows(numbers.q, begin, end), cache.view(), at, rows(out, begin, end), scratch,
                rows(numbers.q_sink, begin, end));
      worker.sync();
    }
  });
  return out;
}

}  // namespace attention_test
