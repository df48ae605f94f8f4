// The scheduler alone, against a room that only counts blocks.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
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
  Scheduler scheduler({.max_running = 4, .step_tokens = 100, .prompt_work = 1});
  CountedRoom room(1000);
  Sequence first{.n_known = 30}, second{.n_known = 150}, third{.n_known = 5};
  for (auto* sequence : {&first, &second, &third}) scheduler.add(*sequence);
  CHECK(sizes(scheduler.plan(room)) == Sizes{30, 70});  // nobody decodes: the whole budget, in order of arrival
  run(scheduler.plan(room));
  // The rest of the step counts as 6.5 + 1 + 30 / 180, the prompt's keys as 70 / 180, each of its tokens as 1 + 70 /
  // 1800: there is work for 7.75 tokens.
  CHECK(sizes(scheduler.plan(room)) == Sizes{1, 7});
  run(scheduler.plan(room));
  for (int i = 0; i < 7; ++i) {
    REQUIRE(first.n_missing() == 1);
    run(scheduler.plan(room));
    CHECK(first.n_now == 1);  // in every step, whatever the others lack
    CHECK(second.n_now <= 8);
  }
  CHECK(second.n_missing() > 1);
  CHECK(third.n_computed == 0);  // came last
  while (third.n_missing() > 1) run(scheduler.plan(room));
  CHECK(sizes(scheduler.plan(room)) == Sizes{1, 1, 1});
  scheduler.remove(second);
  CHECK(sizes(scheduler.plan(room)) == Sizes{1, 1});
}

TEST_CASE("scheduler: without a bound beside decode a prompt takes what the step has") {
  Scheduler scheduler({.max_running = 2, .step_tokens = 100, .prompt_work = 0});
  CountedRoom room(1000);
  Sequence first{.n_known = 2}, second{.n_known = 500};
  scheduler.add(first);
  scheduler.add(second);
  run(scheduler.plan(room));
  CHECK(sizes(scheduler.plan(room)) == Sizes{1, 99});
}

// By the estimates that scheduler.hpp names: what the sequences of a step cost without and with their prompts.
struct Work {
  double rest = 6.5, all = 6.5;
  explicit Work(std::span<Sequence* const> step) {
    for (const Sequence* sequence : step) {
      const double keys = double(sequence->n_computed) / 180, row = 1 + double(sequence->n_computed) / 1800;
      const bool decodes = sequence->n_missing() == 1;
      rest += keys + (decodes ? 1 : 0);
      all += keys + (decodes ? 1 : row * double(sequence->n_now));
    }
  }
};

TEST_CASE(
    "scheduler: a prompt that arrives makes no step longer than its share, and nobody's latency thrice the median") {
  constexpr std::int64_t n_arriving = 4000, n_beside = 100;
  for (const double prompt_work : {0.5, 1.5}) {
    std::vector<std::int64_t> n_during;
    for (const std::int64_t n_others : {1, 4, 8, 16}) {
      INFO(n_others << " others, prompt_work " << prompt_work);
      Scheduler scheduler({.prompt_work = prompt_work});
      CountedRoom room(1000);
      std::list<Sequence> others(std::size_t(n_others), Sequence{.n_known = 16});
      for (auto& sequence : others) scheduler.add(sequence);
      run(scheduler.plan(room));
      Sequence prompt{.n_known = n_arriving};
      std::vector<double> latencies;
      std::int64_t n_after = 0;
      n_during.push_back(0);
      while (n_after < n_beside) {
        if (latencies.size() == std::size_t(n_beside)) scheduler.add(prompt);
        const auto step = scheduler.plan(room);
        const Work work(step);
        for (const auto& sequence : others) REQUIRE(sequence.n_now == 1);
        if (prompt.n_missing() > 1 && prompt.n_now > 0) {
          const double next = 1 + double(prompt.n_computed) / 1800;
          REQUIRE(work.all <= (1 + prompt_work) * work.rest + 1e-9);
          if (prompt.n_now < prompt.n_missing()) REQUIRE(work.all + next > (1 + prompt_work) * work.rest);  // all of it
          ++n_during.back();
        }
        latencies.push_back(work.all);
        run(step);
        if (prompt.n_known > n_arriving) ++n_after;
      }
      std::sort(latencies.begin(), latencies.end());
      const auto n = latencies.size();
      CHECK(latencies[(99 * n + 99) / 100 - 1] < 2.5 * latencies[n / 2]);
    }
    CHECK(std::is_sorted(n_during.rbegin(), n_during.rend()));  // more others, more work in a step, fewer steps
    CHECK(n_during.front() < (prompt_work < 1 ? 1000 : 320));
  }
}

TEST_CASE("scheduler: however little work on prompts may be, the first one gets on") {
  Scheduler scheduler({.prompt_work = 0.001});
  CountedRoom room(1000);
  Sequence first{.n_known = 3}, second{.n_known = 50}, third{.n_known = 50};
  scheduler.add(first);
  run(scheduler.plan(room));
  scheduler.add(second);
  scheduler.add(third);
  for (int i = 0; i < 49; ++i) {
    CHECK(sizes(scheduler.plan(room)) == Sizes{1, 1});
    run(scheduler.plan(room));
  }
  CHECK(second.n_missing() == 1);
  CHECK(sizes(scheduler.plan(room)) == Sizes{1, 1, 1});
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
  Scheduler scheduler({.max_running = 4, .step_tokens = 1000, .prompt_work = 0});
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
    Scheduler scheduler({.max_running = 8, .step_tokens = 64, .prompt_work = 1});
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
  for (const double work : {-1.0, std::nan("")})
    CHECK_THROWS_WITH(Scheduler({.prompt_work = work}), Contains("prompt_work"));
}
