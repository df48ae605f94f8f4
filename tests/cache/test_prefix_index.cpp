// The tree of beginnings: what is found, what makes room, whose blocks they are.
#include <catch2/catch.hpp>
#include <numeric>

#include "cache_tools.hpp"
#include "vitrine/cache/paged.hpp"
#include "vitrine/cache/prefix_index.hpp"
#include "vitrine/sample/random.hpp"

using namespace vitrine;
using cache_tools::add;

namespace {

std::shared_ptr<BlockPool> smallest_pool(std::int64_t n) {
  return std::make_shared<BlockPool>(KvLayout{DType::f16, 1, 1, 2}, n);
}

// n tokens that count up from 0, but for the one at `place`.
std::vector<Token> sequence(std::int64_t n, std::int64_t place = -1, Token other = 9999) {
  std::vector<Token> tokens(static_cast<std::size_t>(n));
  std::iota(tokens.begin(), tokens.end(), 0);
  if (place >= 0) tokens[std::size_t(place)] = other;
  return tokens;
}

// A sequence in a cache of its own, given to the index and then gone.
std::int64_t insert(PrefixIndex& index, const std::shared_ptr<BlockPool>& pool, const std::vector<Token>& tokens) {
  PagedCache cache(pool, std::int64_t(tokens.size()));
  add(cache, std::int64_t(tokens.size()));
  return index.insert(tokens, cache.blocks().first(tokens.size() / 64));
}

std::int64_t found(PrefixIndex& index, const std::vector<Token>& tokens) { return index.find(tokens).n_tokens; }

}  // namespace

TEST_CASE("the longest beginning in common is found, within a block, too") {
  const auto pool = smallest_pool(100);
  PrefixIndex index(pool, 100);
  CHECK(found(index, sequence(200)) == 0);
  CHECK(insert(index, pool, sequence(200)) == 3);
  CHECK(pool->counts().n_used == 3);
  CHECK(found(index, sequence(500)) == 192);
  CHECK(index.find(sequence(500)).blocks.size() == 3);
  for (std::int64_t n = 0; n <= 192; ++n) {
    const auto match = index.find(sequence(n));
    CHECK(match.n_tokens == n);
    CHECK(std::int64_t(match.blocks.size()) == (n + 63) / 64);
  }
  for (std::int64_t place = 0; place < 192; ++place)
    for (const Token other : {0, 9999})  // before and behind in order
      if (place > 0 || other > 0) CHECK(found(index, sequence(200, place, other)) == place);
  CHECK(found(index, {}) == 0);
}

TEST_CASE("among many branches the one that agrees longest is found") {
  const auto pool = smallest_pool(200);
  PrefixIndex index(pool, 200);
  for (std::int64_t place = 0; place < 64; ++place)
    for (const Token other : {500, 100, 900}) insert(index, pool, sequence(64, place, other + Token(place)));
  CHECK(index.n_blocks() == 192);
  for (std::int64_t place = 0; place < 64; ++place) {
    CHECK(found(index, sequence(64, place, 500 + Token(place))) == 64);
    CHECK(found(index, sequence(64, place, 123456)) >= place);
    auto tokens = sequence(64, place, 900 + Token(place));
    tokens.resize(std::size_t(place) + 1);
    CHECK(found(index, tokens) == place + 1);
  }
  const auto again = index.n_blocks();
  insert(index, pool, sequence(64, 5, 505));
  CHECK(index.n_blocks() == again);  // what is there is not stored twice
}

TEST_CASE("the least recently used leaf makes room") {
  const auto pool = smallest_pool(100);
  PrefixIndex index(pool, 4);
  insert(index, pool, sequence(128));            // A: two blocks
  insert(index, pool, sequence(128, 64, 1000));  // B: shares the first with A
  insert(index, pool, sequence(64, 0, 2000));    // C
  CHECK(index.n_blocks() == 4);
  CHECK(found(index, sequence(128)) == 128);  // A is used: B is the oldest leaf
  CHECK(insert(index, pool, sequence(64, 0, 3000)) == 1);
  CHECK(index.n_evicted() == 1);
  CHECK(found(index, sequence(128, 64, 1000)) == 64);
  CHECK(found(index, sequence(64, 0, 2000)) == 64);
  CHECK(found(index, sequence(128)) == 128);
  CHECK(pool->counts().n_used == 4);
  // A sequence longer than the room: its beginning is kept, never an end without it.
  CHECK(insert(index, pool, sequence(640, 0, 4000)) == 4);
  CHECK(found(index, sequence(640, 0, 4000)) == 256);
  CHECK(index.n_blocks() == 4);
}

TEST_CASE("blocks that nobody else uses are given back when the pool needs them") {
  const auto pool = smallest_pool(10);
  {
    PrefixIndex index(pool, 10);
    PagedCache user(pool, 1000);
    user.prepare(192);
    user.append(192);
    index.insert(sequence(192), user.blocks());
    insert(index, pool, sequence(256, 0, 1000));
    CHECK(pool->counts().n_used == 7);
    CHECK(index.give_back(2) == 2);
    CHECK(pool->counts().n_used == 5);
    CHECK(found(index, sequence(256, 0, 1000)) == 128);  // from the end on
    CHECK(index.give_back(100) == 2);                    // not those in use
    CHECK(index.n_blocks() == 3);
    user.truncate(0);
    CHECK(index.give_back(100) == 3);
    CHECK(pool->counts().n_used == 0);
    insert(index, pool, sequence(64));
  }
  CHECK(pool->counts().n_used == 0);
}

TEST_CASE("blocks that nobody else uses are counted as their owners come and go") {
  const auto pool = smallest_pool(40);
  PrefixIndex index(pool, 30);
  CHECK(index.n_idle() == 0);
  // A sequence that computed its beginning beside another: the index has the other's blocks of it.
  PagedCache other(pool, 1000), later(pool, 1000);
  other.prepare(128);
  other.append(128);
  later.prepare(256);
  later.append(256);
  CHECK(index.insert(sequence(128), other.blocks()) == 2);
  CHECK(index.insert(sequence(256), later.blocks()) == 4);
  CHECK(index.n_idle() == 0);
  other.truncate(0);
  CHECK(index.n_idle() == 2);
  CHECK(index.give_back(1) == 1);  // and it forgets what `later` has behind it
  CHECK(index.n_blocks() == 1);
  CHECK(index.n_idle() == 1);
  CHECK(pool->counts().n_used == 1 + 4);
  CHECK(index.insert(sequence(256), later.blocks()) == 4);
  later.truncate(64);
  CHECK(index.n_idle() == 4);
  later.truncate(0);

  std::uint64_t draws = 0;
  const auto any = [&](std::int64_t below) { return std::int64_t(random_uniform(1, draws++) * double(below)); };
  std::vector<PagedCache> users;
  std::int64_t n_given = 0, n_not_all = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto n_tokens = 64 * (1 + any(4)), place = 64 * any(4) % n_tokens;
    const auto tokens = sequence(n_tokens, place, Token(any(3)));
    const auto what = any(6);
    if (what <= 1 && pool->counts().n_free >= 4) {
      auto& user = users.emplace_back(pool, 1000);
      if (what == 0) {
        const auto match = index.find(tokens);
        user.adopt(match.blocks, match.n_tokens);
        CHECK(pool->counts().n_used >= index.n_blocks());
      } else {
        user.prepare(std::int64_t(tokens.size()));
        user.append(std::int64_t(tokens.size()));
        index.insert(tokens, user.blocks());
      }
    } else if (what <= 3 && !users.empty()) {
      users.erase(users.begin() + any(std::int64_t(users.size())));
    } else if (what == 4) {
      n_given += index.give_back(any(3));
    } else if (any(20) == 0) {
      const auto n_idle = index.n_idle(), n_blocks = index.n_blocks(), n_free = pool->counts().n_free;
      CHECK(index.give_back(1000) == n_idle);
      CHECK(pool->counts().n_free == n_free + n_idle);
      CHECK(index.n_idle() == 0);
      n_not_all += n_idle > 0 && n_idle < n_blocks;
    }
  }
  CHECK(n_given > 100);
  CHECK(n_not_all > 10);
  users.clear();
  CHECK(index.n_idle() == index.n_blocks());

  // A second index on the pool: no block is counted that could not be given.
  {
    PrefixIndex second(pool, 30);
    insert(index, pool, sequence(64));
    const auto match = index.find(sequence(64));
    CHECK(second.insert(sequence(64), match.blocks) == 1);
    CHECK(second.n_idle() == 0);
    CHECK(index.n_idle() == index.n_blocks() - 1);
  }
  CHECK(index.n_idle() == index.n_blocks());
}
