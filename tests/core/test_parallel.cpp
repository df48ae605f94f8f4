// The thread team: barriers, shared loops, exceptions, and the floating-point environment of its threads.
//
// Threads only count; what they counted is checked on the calling thread, since Catch2 is not made for several. On a
// team of std::thread (ThreadSanitizer's build) the same must hold.
#include <atomic>
#include <catch2/catch.hpp>
#include <cfenv>
#include <chrono>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "vitrine/core/parallel.hpp"
#include "vitrine/core/team_size.hpp"

using namespace vitrine;

namespace {

// How often each item of a loop was visited, by all threads together.
struct Visits {
  explicit Visits(std::int64_t n) : counts(std::size_t(n)) {}
  void add(std::int64_t begin, std::int64_t end) {
    for (auto i = begin; i < end; ++i) counts[std::size_t(i)].fetch_add(1, std::memory_order_relaxed);
  }
  bool each(int times) const {
    for (const auto& count : counts)
      if (count.load() != times) return false;
    return true;
  }
  std::vector<std::atomic<int>> counts;
};

// The team shares out a loop with every item done once, and its barriers work.
bool works(Team& team) {
  Visits visits(50);
  std::atomic<int> seen_all{0}, arrived{0};
  team.run([&](Worker& worker) {
    worker.for_chunks(50, 3, [&](std::int64_t begin, std::int64_t end) { visits.add(begin, end); });
    arrived.fetch_add(1, std::memory_order_relaxed);
    worker.sync();
    seen_all += arrived.load(std::memory_order_relaxed) == worker.n_threads();
  });
  return visits.each(1) && arrived.load() >= 1 && seen_all.load() == arrived.load();
}

constexpr unsigned flush_bits = 1u << 15 | 1u << 6;  // MXCSR: flush-to-zero, denormals-are-zero
constexpr unsigned rounding_bits = 3u << 13;

// A host program's environment that would change our bits; the former one comes back at the end.
class ForeignFloatEnvironment {
 public:
  ForeignFloatEnvironment() {
    std::fegetenv(&saved_);
    std::fesetround(FE_UPWARD);
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | flush_bits);
  }
  ~ForeignFloatEnvironment() { std::fesetenv(&saved_); }
  bool still_there() const {
    const unsigned mxcsr = __builtin_ia32_stmxcsr();
    return std::fegetround() == FE_UPWARD && (mxcsr & flush_bits) == flush_bits && (mxcsr & rounding_bits) == 2u << 13;
  }

 private:
  std::fenv_t saved_;
};

bool default_environment() {
  return std::fegetround() == FE_TONEAREST && (__builtin_ia32_stmxcsr() & (flush_bits | rounding_bits)) == 0;
}

}  // namespace

TEST_CASE("threads: barriers order what one thread writes before what another reads") {
  for (int n_threads = 1; n_threads <= 4; ++n_threads) {
    INFO(n_threads << " threads");
    Team team(n_threads);
    CHECK(team.n_threads() == n_threads);
    std::vector<int> written(std::size_t(n_threads), -1);  // plain ints: ThreadSanitizer would see a missing barrier
    std::vector<int> errors(std::size_t(n_threads), 0), rounds_done(std::size_t(n_threads), 0);
    team.run([&](Worker& worker) {
      const auto id = std::size_t(worker.id());
      for (int round = 0; round < 100; ++round) {
        written[id] = round;
        worker.sync();
        for (const int value : written) errors[id] += value != round;
        worker.sync();
        ++rounds_done[id];
      }
    });
    CHECK(errors == std::vector<int>(std::size_t(n_threads), 0));
    CHECK(rounds_done == std::vector<int>(std::size_t(n_threads), 100));
  }
}

TEST_CASE("threads: a region runs once on each thread of the team, number 0 being the caller") {
  for (int n_threads = 1; n_threads <= 4; ++n_threads) {
    Team team(n_threads);
    std::vector<std::thread::id> threads(static_cast<std::size_t>(n_threads));
    std::atomic<int> runs{0}, wrong_size{0};
    team.run([&](Worker& worker) {
      threads[std::size_t(worker.id())] = std::this_thread::get_id();
      ++runs;
      wrong_size += worker.n_threads() != n_threads;
    });
    CHECK(runs.load() == n_threads);
    CHECK(wrong_size.load() == 0);
    CHECK(threads[0] == std::this_thread::get_id());
    CHECK(std::set<std::thread::id>(threads.begin(), threads.end()).size() == std::size_t(n_threads));
  }
}

TEST_CASE("threads: a shared loop does every item once, in ranges no longer than asked for") {
  for (int n_threads = 1; n_threads <= 4; ++n_threads) {
    Team team(n_threads);
    for (const std::int64_t n : {0, 1, 2, 7, 64, 301})
      for (const std::int64_t chunk : {1, 3, 64, 1000}) {
        INFO(n_threads << " threads, " << n << " items in chunks of " << chunk);
        Visits visits(n);
        std::atomic<int> bad_ranges{0};
        team.run([&](Worker& worker) {
          worker.for_chunks(n, chunk, [&](std::int64_t begin, std::int64_t end) {
            const bool whole = end - begin == chunk || end == n;
            bad_ranges += begin < 0 || begin >= end || end > n || end - begin > chunk || !whole;
            visits.add(begin, end);
          });
        });
        CHECK(visits.each(1));
        CHECK(bad_ranges.load() == 0);
      }
  }
}

TEST_CASE("threads: loops start anew after a barrier, and any number of them may follow without one") {
  constexpr int many = 2 * parallel_detail::max_chunk_loops + 5;
  for (int n_threads = 1; n_threads <= 4; ++n_threads) {
    INFO(n_threads << " threads");
    Team team(n_threads);
    Visits with_barriers(20), without(20);
    for (int region = 0; region < 3; ++region)
      team.run([&](Worker& worker) {
        for (int round = 0; round < many; ++round) {
          worker.for_chunks(20, 2, [&](std::int64_t begin, std::int64_t end) { with_barriers.add(begin, end); });
          worker.sync();
        }
        for (int round = 0; round < many; ++round)
          worker.for_chunks(20, 2, [&](std::int64_t begin, std::int64_t end) { without.add(begin, end); });
      });
    CHECK(with_barriers.each(3 * many));
    CHECK(without.each(3 * many));
  }
}

TEST_CASE("threads: fixed shares cover a range once, in whole grains") {
  for (int n_threads = 1; n_threads <= 4; ++n_threads) {
    Team team(n_threads);
    for (const std::int64_t n : {0, 1, 5, 64, 301})
      for (const std::int64_t grain : {1, 4, 16, 500}) {
        INFO(n_threads << " threads, " << n << " items in grains of " << grain);
        Visits visits(n);
        std::atomic<int> bad_shares{0};
        team.run([&](Worker& worker) {
          const auto [begin, end] = worker.share(n, grain);
          bad_shares += begin > end || (begin % grain != 0 && begin != n) || (end % grain != 0 && end != n);
          visits.add(begin, end);
        });
        CHECK(visits.each(1));
        CHECK(bad_shares.load() == 0);
      }
  }
}

TEST_CASE("threads: on_main runs once, on the calling thread, between two barriers") {
  for (int n_threads = 1; n_threads <= 4; ++n_threads) {
    INFO(n_threads << " threads");
    Team team(n_threads);
    int calls = 0;  // plain: the barriers order it
    std::thread::id caller;
    std::vector<int> calls_seen(std::size_t(n_threads), 0);
    team.run([&](Worker& worker) {
      worker.on_main([&] {
        ++calls;
        caller = std::this_thread::get_id();
      });
      calls_seen[std::size_t(worker.id())] = calls;
    });
    CHECK(calls == 1);
    CHECK(caller == std::this_thread::get_id());
    CHECK(calls_seen == std::vector<int>(std::size_t(n_threads), 1));
  }
}

TEST_CASE("threads: what on_main throws stops every thread and reaches the caller and the team works afterwards") {
  for (int n_threads = 1; n_threads <= 4; ++n_threads) {
    INFO(n_threads << " threads");
    Team team(n_threads);
    std::atomic<int> stopped{0}, went_on{0};
    const auto region = [&](Worker& worker) {
      worker.for_chunks(100, 1, [](std::int64_t, std::int64_t) {});
      went_on += !worker.stopped();
      worker.on_main([] { throw std::runtime_error("said on the way"); });
      stopped += worker.stopped();
    };
    CHECK_THROWS_WITH(team.run(region), "said on the way");
    CHECK(went_on.load() == n_threads);
    CHECK(stopped.load() == n_threads);
    team.run([&](Worker& worker) { stopped -= !worker.stopped(); });  // the next region has forgotten it
    CHECK(stopped.load() == 0);
    CHECK(works(team));
  }
}

TEST_CASE("threads: what every thread throws reaches the caller and the team works afterwards") {
  for (int n_threads = 1; n_threads <= 4; ++n_threads) {
    INFO(n_threads << " threads");
    Team team(n_threads);
    std::atomic<int> thrown{0};
    // Inside a loop's body it leaves a counter behind that the next region must not find.
    const auto region = [&](Worker& worker) {
      worker.for_chunks(50, 3, [](std::int64_t, std::int64_t) {});
      ++thrown;
      check(false, ErrorKind::bad_argument, "shapes differ");
    };
    try {
      team.run(region);
      FAIL("nothing was thrown");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::bad_argument);
      CHECK(std::string(error.what()) == "shapes differ");
    }
    CHECK(thrown.load() == n_threads);
    CHECK(works(team));
    CHECK(works(team));
  }
}

TEST_CASE("threads: a team may move between regions") {
  Team first(3);
  CHECK(works(first));
  Team second(std::move(first));
  CHECK(second.n_threads() == 3);
  CHECK(works(second));
  Team third(2);
  CHECK(works(third));
  third = std::move(second);  // the two threads of the old team end here
  CHECK(third.n_threads() == 3);
  CHECK(works(third));
  Team left(2);
  const Team taken(std::move(left));
  CHECK(taken.n_threads() == 2);
  CHECK_THROWS_AS(left.n_threads(), Error);
  CHECK_THROWS_AS(left.run([](Worker&) {}), Error);
}

TEST_CASE("threads: a team of none or of too many is refused with the number") {
  for (const int n_threads : {0, -1, 1025}) {
    try {
      Team refused(n_threads);
      FAIL("a team of " << n_threads << " was made");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::bad_argument);
      CHECK_THAT(error.what(), Catch::Matchers::Contains("number of threads") &&
                                   Catch::Matchers::EndsWith("got " + std::to_string(n_threads)));
    }
  }
  CHECK(available_threads() >= 1);
}

TEST_CASE("threads: all of a team compute in the default floating-point environment, the host keeps its own") {
  Team made_before(3);
  REQUIRE(default_environment());
  for (const bool throws : {false, true}) {
    std::atomic<int> right{0}, wrong{0};
    bool host_kept = true;
    const auto region = [&](Worker& worker) {
      (default_environment() ? right : wrong) += 1;
      worker.on_main([&] { (default_environment() ? right : wrong) += 1; });
      __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | flush_bits);  // ours must not reach the host
      if (throws) throw std::runtime_error("left early");
    };
    {
      const ForeignFloatEnvironment host;
      REQUIRE(host.still_there());
      REQUIRE(!default_environment());
      Team made_within(3);  // new threads inherit the environment of their maker
      for (Team* team : {&made_before, &made_within}) {
        try {
          team->run(region);
        } catch (const std::runtime_error&) {
        }
        host_kept = host_kept && host.still_there();
      }
    }
    CHECK(host_kept);
    CHECK(right.load() == 2 * (3 + 1));
    CHECK(wrong.load() == 0);
    CHECK(default_environment());
  }
}

// With OpenMP an inner team is granted one thread only: what the loops share out must follow what was granted.
TEST_CASE("threads: a team inside another team's region does its work, with as many threads as it is granted") {
  Team outer(2);
  std::atomic<int> good{0};
  outer.run([&](Worker&) {
    Team inner(3);
    Visits shares(31);
    std::atomic<int> granted{0}, entered{0};
    inner.run([&](Worker& inside) {
      ++entered;
      if (inside.id() == 0) granted = inside.n_threads();
      const auto [begin, end] = inside.share(31);
      shares.add(begin, end);
    });
    good += shares.each(1) && entered.load() == granted.load() && works(inner) && inner.n_threads() == 3;
  });
  CHECK(good.load() == 2);
  CHECK(works(outer));
}

// The threads of each region run one after the other here: the first takes every chunk, and none may be left or taken
// again, whatever the region before had counted.
TEST_CASE("threads: chunks are taken once in regions of two threads before and after regions of one") {
  parallel_detail::Shared shared(2);
  for (const int n_threads : {2, 1, 2, 2, 1, 1, 2, 1, 1, 1, 2}) {
    Visits visits(20);
    const auto body = [](void* context, Worker& worker) {
      for (int loop = 0; loop < 3; ++loop)
        worker.for_chunks(20, 3, [&](auto begin, auto end) { static_cast<Visits*>(context)->add(begin, end); });
    };
    shared.set = shared.next_set;
    shared.set_threads(n_threads);
    for (int id = 0; id < n_threads; ++id) parallel_detail::run_guarded(body, &visits, shared, id);
    CHECK(visits.each(3));
  }
}

TEST_CASE("threads: a crowded team leaves out those that wait, and takes them back after a pause that doubles") {
  using namespace std::chrono_literals;
  TeamSize size(8);
  TeamSize::Clock::time_point now;  // no real one: nothing here depends on how busy the machine is
  const auto region = [&](std::chrono::nanoseconds waited, std::chrono::nanoseconds takes = 50ms) {
    const int n_threads = size.begin(now);
    now += takes;
    size.end(waited, now);
    return n_threads;
  };
  CHECK(region(0s) == 8);
  CHECK(region(199ms) == 8);  // of 400 that eight threads have in 50
  CHECK(region(200ms) == 8);  // as much as they worked: half of them remains
  CHECK(region(0s) == 4);
  now += 48ms;
  CHECK(region(0s, 2ms) == 4);
  CHECK(region(1h) == 8);  // after 100 ms tried again with all: too early
  now += 150ms;
  CHECK(region(1h) == 4);  // and half of four
  CHECK(region(0s) == 2);  // the pause has doubled, and again for the next one
  now += 348ms;
  CHECK(region(0s, 2ms) == 2);
  CHECK(region(0s) == 4);  // one step after the other
  now += 748ms;
  CHECK(region(0s, 2ms) == 4);
  CHECK(region(0s) == 8);  // all were busy: the pause is a short one again
  CHECK(region(1h) == 8);
  CHECK(region(0s) == 4);
  now += 48ms;
  CHECK(region(0s, 2ms) == 4);
  CHECK(region(0s) == 8);

  // A processor lost for a while is no reason; one that is lost again and again is.
  for (int i = 0; i < 20; ++i) CHECK(region(i == 5 ? 120ms : 0ms, i == 5 ? 22ms : 2ms) == 8);
  for (int i = 0; i < 12; ++i) CHECK(region(12ms, 2ms) == 8);
  CHECK(region(0s, 2ms) == 4);

  TeamSize three(3);
  now += 50ms;
  three.begin(now - 50ms);
  three.end(1h, now);
  CHECK(three.begin(now) == 2);

  for (const auto crowding : {Crowding::ignore, Crowding::step_aside}) {
    Team team(3, crowding);
    for (int i = 0; i < 20; ++i) CHECK(works(team));
    CHECK(team.n_threads() == 3);
  }
}
