// Paged storage: whose blocks are whose, what is copied, what is given back.
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>

#include "cache_tools.hpp"
#include "support/counted_allocations.hpp"
#include "vitrine/cache/contiguous.hpp"
#include "vitrine/cache/paged.hpp"

using namespace vitrine;
using cache_tools::add;

namespace {

KvLayout small_layout() { return {DType::f16, 2, 1, 8}; }

std::shared_ptr<BlockPool> pool_of(std::int64_t n) { return std::make_shared<BlockPool>(small_layout(), n); }

template <class Action>
ErrorKind kind_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.kind();
  }
  FAIL("expected an Error, got none");
  throw;
}

std::byte* block(const PagedCache& cache, std::size_t i) { return cache.tables().groups()[0].blocks[i]; }
void fill(std::byte* block, int value) { std::memset(block, value, small_layout().block_bytes()); }

}  // namespace

TEST_CASE("a paged cache owns as many blocks as its tokens need") {
  const auto pool = pool_of(10);
  PagedCache cache(pool, 1000);
  CHECK(pool->bytes() == 0);  // nothing before it is needed
  for (std::int64_t length = 1; length <= 200; ++length) {
    add(cache, 1);
    CHECK(std::int64_t(cache.blocks().size()) == (length + 63) / 64);
    CHECK(pool->counts().n_used == (length + 63) / 64);
  }
  CHECK(cache.bytes() == 4 * small_layout().block_bytes());
  cache.truncate(129);
  CHECK(cache.blocks().size() == 3);
  cache.truncate(128);
  CHECK(cache.blocks().size() == 2);
  cache.truncate(0);
  CHECK(pool->counts().n_used == 0);
  CHECK(pool->counts().n_free == 10);
  CHECK(pool->counts().peak_used == 4);
  CHECK(pool->counts().n_copied == 0);
}

TEST_CASE("a pool that has too few blocks left says so, and the cache is as it was") {
  const auto pool = pool_of(3);
  PagedCache one(pool, 1000), other(pool, 1000);
  add(one, 100);
  add(other, 64);
  CHECK(kind_of([&] { other.prepare(1); }) == ErrorKind::out_of_blocks);
  CHECK(other.length() == 64);
  CHECK(other.blocks().size() == 1);
  CHECK(kind_of([&] { one.prepare(29); }) == ErrorKind::out_of_blocks);  // 28 have room
  add(one, 28);
  one.truncate(64);
  add(other, 1);  // what one gave back
  PagedCache tight(pool_of(10), 70);
  add(tight, 70);
  CHECK(kind_of([&] { tight.prepare(1); }) == ErrorKind::context_full);
  CHECK(kind_of([&] { tight.truncate(71); }) == ErrorKind::bad_argument);
  CHECK(kind_of([&] { tight.append(1); }) == ErrorKind::context_full);
  PagedCache unprepared(pool_of(10), 70);
  CHECK(kind_of([&] { unprepared.append(1); }) == ErrorKind::context_full);
  CHECK(kind_of([] { PagedCache refused(nullptr, 5); }) == ErrorKind::bad_argument);
  CHECK(kind_of([] { PagedCache refused(pool_of(1), 0); }) == ErrorKind::bad_argument);
  CHECK(kind_of([] { pool_of(0); }) == ErrorKind::bad_argument);
  CHECK(kind_of([] { BlockPool refused({DType::q4_k, 1, 1, 8}); }) == ErrorKind::bad_argument);
}

TEST_CASE("a fork shares every block, and who writes into a shared last block copies it first") {
  const auto pool = pool_of(10);
  PagedCache parent(pool, 1000);
  add(parent, 100);
  fill(block(parent, 0), 1);
  fill(block(parent, 1), 2);
  PagedCache child = parent.fork();
  CHECK(child.length() == 100);
  CHECK(pool->counts().n_used == 2);
  CHECK(pool->counts().n_shared == 2);
  CHECK(block(child, 0) == block(parent, 0));
  CHECK(block(child, 1) == block(parent, 1));

  CHECK(child.blocks_wanted(1) == 1);
  child.prepare(1);
  CHECK(pool->counts().n_copied == 1);
  CHECK(block(child, 0) == block(parent, 0));
  CHECK(block(child, 1) != block(parent, 1));
  CHECK(std::memcmp(block(child, 1), block(parent, 1), small_layout().block_bytes()) == 0);
  child.append(1);
  add(parent, 1);  // nobody else reads its last block any more
  add(child, 100);
  CHECK(pool->counts().n_copied == 1);
  CHECK(pool->counts().n_shared == 1);
  CHECK(pool->counts().n_used == 5);  // the first shared, one more of the parent's, three of the child's

  // Whole blocks are shared for good: what follows goes into new ones.
  PagedCache whole(pool, 1000);
  add(whole, 128);
  PagedCache second = whole.fork();
  add(second, 1);
  CHECK(pool->counts().n_copied == 1);
  // Going back into a shared block, and then on, copies it.
  second.truncate(70);
  CHECK(second.blocks().size() == 2);
  add(second, 1);
  CHECK(pool->counts().n_copied == 2);
  CHECK(block(second, 0) == block(whole, 0));
  CHECK(block(second, 1) != block(whole, 1));
}

TEST_CASE("a copy that finds no block leaves both owners as they were") {
  const auto pool = pool_of(2);
  PagedCache parent(pool, 1000);
  add(parent, 100);
  PagedCache child = parent.fork();
  CHECK(kind_of([&] { child.prepare(1); }) == ErrorKind::out_of_blocks);
  CHECK(block(child, 1) == block(parent, 1));
  CHECK(pool->counts().n_copied == 0);
  { const PagedCache gone = std::move(parent); }
  add(child, 28);  // alone now: no copy needed
  CHECK(pool->counts().n_copied == 0);
  CHECK(pool->counts().n_used == 2);
}

TEST_CASE("blocks that were prepared and not used are given back") {
  const auto pool = pool_of(10);
  PagedCache cache(pool, 1000);
  add(cache, 10);
  cache.prepare(200);
  CHECK(pool->counts().n_used == 4);
  cache.prepare(20);  // they are there
  CHECK(pool->counts().n_used == 4);
  cache.truncate(10);
  CHECK(pool->counts().n_used == 1);
  const PagedCache child = [&] {
    cache.prepare(200);
    return cache.fork();
  }();
  CHECK(child.blocks().size() == 1);
}

TEST_CASE("steps allocate nothing and copy nothing, and a moved cache takes its blocks along") {
  const auto pool = pool_of(100);
  PagedCache cache(pool, 6400);
  add(cache, 1);
  const auto before = support::n_allocations.load();
  const auto held = pool->counts().n_held;
  while (cache.length() < 64 * held) add(cache, 1);
  CHECK(support::n_allocations.load() == before);
  CHECK(held >= 10);  // the system is asked for megabytes at a time
  CHECK(pool->counts().n_copied == 0);
  const auto n_used = pool->counts().n_used;
  PagedCache moved(std::move(cache));
  CHECK(pool->counts().n_used == n_used);
  CHECK(moved.tables().groups()[0].blocks[1] == moved.blocks()[1].data);
  moved = PagedCache(pool, 64);
  CHECK(pool->counts().n_used == 0);
}

TEST_CASE("a contiguous fork is a copy of what is used") {
  ContiguousCache cache(small_layout(), 1000);
  add(cache, 100);
  for (const std::size_t i : {0, 1}) fill(cache.tables().groups()[0].blocks[i], int(i) + 1);
  const ContiguousCache other = cache.fork();
  CHECK(other.length() == 100);
  CHECK(other.capacity() == 1000);
  for (const std::size_t i : {0, 1}) {
    auto* const copy = other.tables().groups()[0].blocks[i];
    auto* const original = cache.tables().groups()[0].blocks[i];
    CHECK(copy != original);
    CHECK(std::memcmp(copy, original, small_layout().block_bytes()) == 0);
  }
}

TEST_CASE("tables give each layer the blocks of its group and its place within them") {
  std::byte* first[1] = {nullptr};
  std::byte* second[1] = {nullptr};
  KvTables tables({DType::f32, 4, 1, 8}, std::vector<std::size_t>{0, 1, 0, 1});
  tables.set_blocks(0, first);
  tables.set_blocks(1, second);
  const std::size_t of_layer = tables.layout().block_bytes() / 4;
  CHECK(tables.layout().n_layer == 4);
  CHECK(tables.groups().size() == 2);
  CHECK(tables.groups()[1].layout.block_bytes() == 2 * of_layer);
  CHECK(tables.view(0).blocks == first);
  CHECK(tables.view(0).k_offset == 0);
  CHECK(tables.view(2).blocks == first);
  CHECK(tables.view(2).k_offset == of_layer);
  CHECK(tables.view(3).blocks == second);
  CHECK(tables.view(3).k_offset == of_layer);
}

TEST_CASE("a pool serves several threads") {
  const auto pool = pool_of(200);
  PagedCache common(pool, 1000);
  add(common, 100);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        PagedCache own = common.fork();
        add(own, 1 + round);
        own.truncate(round / 2);
        add(own, 3);
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(pool->counts().n_used == 2);
  CHECK(pool->counts().n_shared == 0);
  CHECK(pool->counts().n_copied >= 4 * 200);
}
