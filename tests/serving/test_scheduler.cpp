// The scheduler alone, against a room that only counts blocks.
#include <catch2/catch.hpp>
#include <list>
#include <map>

#include "vitrine/core/error.hpp"
#include "vitrine/engine/scheduler.hpp"
#include "vitrine/sample/random.hpp"

using namespace vitrine;

namespace {

constexpr std::int64_t block = 64;

// Blocks as the paged cache counts them; nothing is shared.
struct CountedRoom final : KvRoom {
  explicit CountedRoom(std::int64_t n_blocks) : free(n_blocks) {}
  std::int64_t n_free() const override { return free; }
  std::int64_t n_wanted(const Sequence& sequence, std::int64_t n_tokens) const override {
    const auto found = held.find(&sequence);
    const auto n_held = found == held.end() ? 0 : found->second;
    return std::max<std::int64_t>(0, (sequence.n_computed + n_tokens + block - 1) / block - n_held);
  }
  bool take(Sequence& sequence, std::int64_t n_tokens) override {
    const auto wanted = n_wanted(sequence, n_tokens);
    if (wanted > free) return false;
    free -= wanted;
    held[&sequence] += wanted;
    return true;
  }
  bool must_wait(const Sequence& sequence) const override { return &sequence == waits; }
  void start(Sequence&) override { ++n_starts; }
  void give_back(Sequence& sequence) override {
    free += held[&sequence];
    held.erase(&sequence);
    sequence.n_computed = 0;
  }

  std::int64_t free, n_starts = 0;
  std::map<const Sequence*, std::int64_t> held;
  const Sequence* waits = nullptr;
};

void run(std::span<Sequence* const> step) {
  for (Sequence* sequence : step) {
    sequence->n_computed += sequence->n_now;
    if (sequence->n_computed == sequence->n_known) ++sequence->n_known;  // a token was drawn
  }
}

std::vector<std::int64_t> sizes(std::span<Sequence* const> step) {
  std::vector<std::int64_t> result;
  for (const Sequence* sequence : step) result.push_back(sequence->n_now);
  return result;
}

using Sizes = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("scheduler: prompts go in chunks within the budget, and whoever decodes goes first") {
  Scheduler scheduler({.max_running = 4, .step_tokens = 100, .prompt_tokens_beside_decode = 10});
  CountedRoom room(1000);
  Sequence first{.n_known = 30}, second{.n_known = 150}, third{.n_known = 5};
  for (auto* sequence : {&first, &second, &third}) scheduler.add(*sequence);
  CHECK(sizes(scheduler.plan(room)) == Sizes{30, 70});  // nobody decodes: the whole budget, in order of arrival
  run(scheduler.plan(room));
  CHECK(sizes(scheduler.plan(room)) == Sizes{1, 9});  // 9 from 70 on: a token counts as 1 + position / 2048
  run(scheduler.plan(room));
  for (int i = 0; i < 7; ++i) {
    REQUIRE(first.n_missing() == 1);
    run(scheduler.plan(room));
    CHECK(first.n_now == 1);  // in every step, whatever the others lack
    CHECK(second.n_now <= 10);
  }
  CHECK(second.n_missing() > 1);
  CHECK(third.n_computed == 0);  // came last
  while (third.n_missing() > 1) run(scheduler.plan(room));
  CHECK(sizes(scheduler.plan(room)) == Sizes{1, 1, 1});
  scheduler.remove(second);
  CHECK(sizes(scheduler.plan(room)) == Sizes{1, 1});
}

TEST_CASE("scheduler: without a bound beside decode a prompt takes what the step has") {
  Scheduler scheduler({.max_running = 2, .step_tokens = 100, .prompt_tokens_beside_decode = 0});
  CountedRoom room(1000);
  Sequence first{.n_known = 2}, second{.n_known = 500};
  scheduler.add(first);
  scheduler.add(second);
  run(scheduler.plan(room));
  CHECK(sizes(scheduler.plan(room)) == Sizes{1, 99});
}

TEST_CASE("scheduler: no more run than may, and who may not start yet holds up those behind") {
  Scheduler scheduler({.max_running = 2, .step_tokens = 100});
  CountedRoom room(1000);
  std::list<Sequence> sequences(4, Sequence{.n_known = 3});
  for (auto& sequence : sequences) scheduler.add(sequence);
  CHECK(sizes(scheduler.plan(room)) == Sizes{3, 3});
  run(scheduler.plan(room));
  scheduler.remove(sequences.front());
  room.waits = &*std::next(sequences.begin(), 2);
  CHECK(sizes(scheduler.plan(room)) == Sizes{1});
  room.waits = nullptr;
  CHECK(sizes(scheduler.plan(room)) == Sizes{1, 3});
}

TEST_CASE("scheduler: the youngest goes when blocks run out, and comes back before all later ones") {
  Scheduler scheduler({.max_running = 4, .step_tokens = 1000});
  CountedRoom room(3);
  Sequence old{.n_known = 60}, young{.n_known = 60}, late{.n_known = 10};
  scheduler.add(old);
  scheduler.add(young);
  run(scheduler.plan(room));
  scheduler.add(late);
  run(scheduler.plan(room));
  CHECK(late.n_computed == 10);                        // one block each
  while (old.n_known < 66) run(scheduler.plan(room));  // `old` needs a second block
  CHECK(late.n_preemptions == 1);
  CHECK(late.n_computed == 0);
  CHECK(late.n_known > 10);         // what it drew it keeps
  CHECK(young.n_preemptions == 1);  // it needed a second block as well, and was the youngest then
  CHECK(scheduler.n_waiting() == 2);
  scheduler.remove(old);
  room.give_back(old);
  run(scheduler.plan(room));
  CHECK(young.n_computed > 60);  // in one go, from all that it knows; and before `late`
  CHECK(young.n_known == young.n_computed + 1);
  CHECK(late.n_computed > 0);
  CHECK(scheduler.n_preemptions() == 2);
}

TEST_CASE("scheduler: drafts run along with the last token, if the step has room for them") {
  Scheduler scheduler({.max_running = 3, .step_tokens = 8});
  CountedRoom room(1000);
  Sequence a{.n_known = 1}, b{.n_known = 1}, c{.n_known = 1};
  for (auto* sequence : {&a, &b, &c}) scheduler.add(*sequence);
  run(scheduler.plan(room));
  a.n_drafts = 4;
  b.n_drafts = 4;
  CHECK(sizes(scheduler.plan(room)) == Sizes{5, 2, 1});
}

TEST_CASE("scheduler: with any blocks and lengths everybody ends, the oldest in every step, and no block is lost") {
  for (const std::uint64_t seed : {1, 2, 3}) {
    std::uint64_t draws = 0;
    const auto any = [&](std::int64_t below) { return std::int64_t(random_uniform(seed, draws++) * double(below)); };
    Scheduler scheduler({.max_running = 8, .step_tokens = 64, .prompt_tokens_beside_decode = 16});
    constexpr std::int64_t n_blocks = 12, n_context = n_blocks * block;
    CountedRoom room(n_blocks);
    std::list<Sequence> sequences;
    std::map<const Sequence*, std::int64_t> wanted;
    std::vector<Sequence*> alive;
    std::int64_t n_steps = 0, n_ended = 0;
    while (n_ended < 300) {
      if (sequences.size() < 300 && any(3) == 0) {
        auto& sequence = sequences.emplace_back(Sequence{.n_known = 1 + any(n_context - 1)});
        wanted[&sequence] = std::min(n_context, sequence.n_known + 1 + any(200));
        alive.push_back(&sequence);
        scheduler.add(sequence);
      }
      const auto step = scheduler.plan(room);
      REQUIRE(step.empty() == alive.empty());
      std::int64_t total = 0;
      for (const auto* sequence : step) total += sequence->n_now;
      REQUIRE(total <= 64);
      if (!alive.empty()) REQUIRE(alive.front()->n_now > 0);        // nobody starves: each becomes the oldest
      for (std::size_t i = 1; i < scheduler.running().size(); ++i)  // in order of arrival, and before all waiting ones
        REQUIRE(scheduler.running()[i - 1] == alive[i - 1]);
      run(step);
      for (std::size_t i = 0; i < alive.size();) {
        if (alive[i]->n_known <= wanted[alive[i]]) {
          ++i;
          continue;
        }
        scheduler.remove(*alive[i]);
        room.give_back(*alive[i]);
        alive.erase(alive.begin() + std::ptrdiff_t(i));
        ++n_ended;
      }
      REQUIRE(++n_steps < 100000);
    }
    CHECK(room.free == n_blocks);
    CHECK(scheduler.n_preemptions() > 10);
  }
}

TEST_CASE("scheduler: options out of range are refused by name") {
  using Catch::Matchers::Contains;
  CHECK_THROWS_WITH(Scheduler({.max_running = 0}), Contains("max_running"));
  CHECK_THROWS_WITH(Scheduler({.max_running = 32, .step_tokens = 31}), Contains("step_tokens"));
  CHECK_THROWS_WITH(Scheduler({.prompt_tokens_beside_decode = -1}), Contains("prompt_tokens_beside_decode"));
}
