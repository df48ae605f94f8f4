// Ring storage: how much it takes, which entries repeat, how far it goes back.
#include <catch2/catch.hpp>
#include <set>

#include "cache_tools.hpp"
#include "vitrine/cache/any_cache.hpp"

using namespace vitrine;
using cache_tools::add;

namespace {

KvLayout layout_of(std::int64_t n_layer) { return {DType::f16, n_layer, 1, 8}; }
std::size_t layer_block() { return layout_of(1).block_bytes(); }

std::vector<KvReach> layers(std::vector<std::int64_t> windows) {
  std::vector<KvReach> result;
  for (const auto window : windows) result.push_back({window, 0});
  return result;
}

}  // namespace

TEST_CASE("a ring's memory is bounded by the window, whatever the context") {
  const RingCache small(layout_of(2), layers({100, 100}), 10'000, 32),
      large(layout_of(2), layers({100, 100}), 1'000'000, 32);
  CHECK(small.bytes() == large.bytes());
  CHECK(small.bytes() == 2 * layer_block() * 4);  // ceil((99 + 32) / 64) + 1
  CHECK(RingCache::n_blocks({100, 0}, 10'000, 32) == 4);
  CHECK(RingCache::n_blocks({100, 0}, 150, 32) == 3);      // never more than the context has
  CHECK(RingCache::n_blocks({100, 70}, 10'000, 32) == 6);  // two more that hold sinks
  CHECK(RingCache::n_blocks({0, 0}, 10'000, 32) == 157);
  // Layers are grouped by window: those without one keep everything.
  const RingCache mixed(layout_of(4), layers({100, 0, 100, 100}), 1000, 32);
  CHECK(mixed.tables().groups().size() == 2);
  CHECK(mixed.bytes() == layer_block() * (3 * 4 + 16));
}

TEST_CASE("no two blocks that a pass looks at or writes share memory") {
  for (const std::int64_t window : {1, 63, 64, 65, 100})
    for (const std::int64_t chunk : {1, 7, 64, 65, 200})
      for (const std::int64_t sinks : {0, 4, 64, 65}) {
        INFO("window " << window << ", chunk " << chunk << ", sinks " << sinks);
        const std::vector<KvReach> reach = {{window, sinks}};
        const RingCache ring(layout_of(1), reach, 3000, chunk);
        auto* const* table = ring.tables().groups()[0].blocks;
        for (std::int64_t pos0 = 0; pos0 + chunk <= 3000; ++pos0) {
          std::set<const std::byte*> seen;
          std::int64_t n = 0;
          const auto first = std::max<std::int64_t>(0, pos0 - window + 1) / 64;
          for (std::int64_t b = 0; b <= (pos0 + chunk - 1) / 64; ++b) {
            if (b < first && b >= (sinks + 63) / 64) continue;
            seen.insert(table[b]);
            ++n;
          }
          if (std::int64_t(seen.size()) != n) FAIL("position " << pos0);
        }
      }
}

TEST_CASE("a ring goes back as far as it remembers, and to the start") {
  RingCache ring(layout_of(1), layers({100}), 10'000, 32);
  add(ring, 32);
  CHECK(ring.shortest() == 1);
  ring.truncate(5);
  CHECK_THROWS_WITH(ring.prepare(33), Catch::Matchers::Contains("at most 32"));
  while (ring.length() < 1000) add(ring, 1);
  // Position 999 is in block 15; with four blocks, those before 12 are lost, so that the first whole window ends at
  CHECK(ring.shortest() == 12 * 64 + 99);
  CHECK(ring.length() - ring.shortest() >= ring.chunk());
  CHECK_THROWS_WITH(ring.truncate(500), Catch::Matchers::Contains("867 to 1000") && Catch::Matchers::Contains("500"));
  CHECK(ring.length() == 1000);
  ring.truncate(867);
  CHECK_THROWS_AS(ring.truncate(866), Error);  // going back has not brought anything back
  add(ring, 20);
  CHECK(ring.shortest() == 867);
  RingCache other = ring.fork();
  CHECK(other.shortest() == 867);
  CHECK(other.length() == 887);
  ring.truncate(0);
  add(ring, 1);
  CHECK(ring.shortest() == 1);

  AnyCache any(std::move(other));
  any.truncate_or_empty(870);
  CHECK(any.length() == 870);
  any.truncate_or_empty(600);
  CHECK(any.length() == 0);
  CHECK(any.kind() == CacheKind::ring);
  CHECK_THROWS_AS(RingCache(layout_of(2), layers({5}), 100, 8), Error);
  CHECK_THROWS_AS(RingCache(layout_of(1), layers({-5}), 100, 8), Error);
  CHECK_THROWS_AS(RingCache(layout_of(1), layers({5}), 100, 0), Error);
}
