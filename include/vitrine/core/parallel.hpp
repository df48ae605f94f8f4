// The thread team: the only place that starts threads, and the only `#pragma omp`.
//
// A forward pass is ONE parallel region. All threads of the team walk through the same code (like MPI ranks) and share
// out the work of each op; `Worker::sync()` is the barrier between an op and those that read its result. Work is always
// split over outputs, never over a reduction, so results do not depend on the number of threads.
//
//   Team team(2);
//   team.run([&](Worker& worker) {
//     worker.for_chunks(n_rows, 8, [&](std::int64_t begin, std::int64_t end) { ... });  // dynamic, no barrier after
//     worker.sync();
//   });
//
// Every thread must make the same sequence of for_chunks / sync / on_main calls. OpenMP runs the team, or std::thread
// when VITRINE_STD_THREADS is defined or OpenMP is off (ThreadSanitizer does not understand libgomp).
#pragma once

#include <atomic>
#include <cfenv>
#include <cstdint>
#include <exception>
#include <memory>
#include <type_traits>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/core/error.hpp"
#include "vitrine/core/rounding.hpp"
#include "vitrine/core/signal.hpp"

VITRINE_NAMESPACE_BEGIN

class Worker;

inline constexpr int max_threads = 1024;  // of a team

namespace parallel_detail {

inline constexpr int max_chunk_loops = 32;  // for_chunks calls between two barriers
inline constexpr int cache_line = 64;

// How many chunks of a thread's share are taken, for each for_chunks since the last barrier. A thread has two: one in
// use, and one that it has cleared for use after the next barrier.
struct alignas(cache_line) ChunksTaken {
  std::atomic<std::int64_t> of_loop[max_chunk_loops] = {};
  int n_used = 0;  // the owner's
  void clear() {
    for (; n_used > 0; --n_used) of_loop[n_used - 1].store(0, std::memory_order_relaxed);
  }
};

// What the threads of one team share during a region.
struct Shared {
  explicit Shared(int threads)
      : n_threads(threads),
        arrivals(threads > 1 ? std::size_t(threads) : 0),
        patience(threads > 1 ? std::size_t(threads) : 0),
        taken(threads > 1 ? std::size_t(2 * threads) : 0) {}
  // How many threads the region has; thread 0 says so while no other is in it. Who joins begins where the others are.
  void set_threads(int threads) {
    for (int id = n_threads; id < threads; ++id) {
      arrivals[std::size_t(id)].set(arrivals[0].value());
      for (int which : {0, 1}) taken_by(id, which).clear();
    }
    n_threads = threads;
  }
  ChunksTaken& taken_by(int thread, int which) { return taken[std::size_t(2 * thread + which)]; }

  int n_threads;
  std::vector<Signal> arrivals;            // [n_threads] how many barriers each has come to
  std::vector<Signal::Patience> patience;  // [n_threads] at them
  std::vector<ChunksTaken> taken;          // [n_threads][2]
  int set = 0, next_set = 0;               // which of the two this region, the next region begins with
  std::atomic<bool> failed{false};         // whose exception is kept: the first one's
  std::exception_ptr error;
  std::atomic<std::int64_t> waited{0};  // nanoseconds at barriers, all threads together, since last asked
  bool stopped = false;                 // written by thread 0 before a barrier, read by all after it
};

struct Alone {
  Shared shared{1};
};

void barrier(Shared& shared, int id);
void run_guarded(void (*call)(void*, Worker&), void* context, Shared& shared, int id);

// Puts the thread's floating-point environment to its default and restores the host's on leaving: a host program that
// flushes subnormals to zero must not change our bits, nor we its.
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatEnvironment() { std::fesetenv(&saved_); }
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
  std::fenv_t saved_;
};

}  // namespace parallel_detail

// One thread's handle inside a region.
class Worker {
 public:
  Worker(parallel_detail::Shared& shared, int id) : Worker(shared, id, id) {}
  int id() const { return id_; }
  int thread() const { return thread_; }  // the same as id(), but for a worker that works alone: its number in the team
  int n_threads() const { return shared_.n_threads; }

  // Barrier: everything written before it by any thread is visible to all after it.
  void sync() {
    if (shared_.n_threads == 1) return;
    parallel_detail::barrier(shared_, id_);
    turn_to_cleared_set();
  }

  // Calls body(begin, end) for disjoint ranges of at most `chunk` items that cover [0, n). Every thread goes through
  // its own share in order and then helps the others with theirs, so none waits for a slow one.
  template <class Body>
  void for_chunks(std::int64_t n, std::int64_t chunk, Body&& body) {
    const int n_threads = shared_.n_threads;
    if (n_threads == 1) {
      for (std::int64_t begin = 0; begin < n; begin += chunk) body(begin, begin + chunk < n ? begin + chunk : n);
      return;
    }
    auto& used = shared_.taken_by(id_, set_).n_used;
    if (used == parallel_detail::max_chunk_loops) sync();  // the same for every thread, so still one sequence
    const auto loop = std::size_t(shared_.taken_by(id_, set_).n_used++);
    for (int i = 0; i < n_threads; ++i) {
      const int owner = id_ + i < n_threads ? id_ + i : id_ + i - n_threads;
      const Range range = share(n, chunk, owner);
      auto& taken = shared_.taken_by(owner, set_).of_loop[loop];
      while (range.begin + taken.load(std::memory_order_relaxed) * chunk < range.end) {
        const std::int64_t begin = range.begin + taken.fetch_add(1, std::memory_order_relaxed) * chunk;
        if (begin < range.end) body(begin, begin + chunk < range.end ? begin + chunk : range.end);
      }
    }
  }

  // body(row) for each of n rows that are alike, several at a time.
  template <class Body>
  void for_rows(std::int64_t n, Body&& body) {
    const std::int64_t chunk = n / (4 * n_threads());
    for_chunks(n, chunk < 1 ? 1 : chunk, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) body(row);
    });
  }

  // This thread's fixed share of [0, n), in multiples of `grain`.
  struct Range {
    std::int64_t begin, end;
  };
  Range share(std::int64_t n, std::int64_t grain = 1) const { return share(n, grain, id_); }

  // Barrier, then `action` on thread 0 alone, then barrier. What it throws is kept: stopped() turns true for every
  // thread, and Team::run rethrows it at the end.
  template <class Action>
  void on_main(Action&& action) {
    sync();
    if (id_ == 0) {
      try {
        action();
      } catch (...) {
        if (!shared_.failed.exchange(true)) shared_.error = std::current_exception();
        shared_.stopped = true;
      }
    }
    sync();
  }

  // 0, 1, 2, ...: counts its calls within the region, the same on every thread when all make the same calls. An op that
  // leaves results for other threads alternates between two buffers with it.
  std::uint32_t next_turn() { return turns_++; }

  bool stopped() const { return shared_.stopped; }  // by an action of on_main that threw: time to leave the region

 protected:
  Worker(parallel_detail::Shared& shared, int id, int thread)
      : shared_(shared), id_(id), thread_(thread), set_(shared.set) {}

 private:
  friend void parallel_detail::run_guarded(void (*)(void*, Worker&), void*, parallel_detail::Shared&, int);

  Range share(std::int64_t n, std::int64_t grain, int id) const {
    const std::int64_t units = divide_up(n, grain);
    const std::int64_t begin = units * id / shared_.n_threads * grain;
    const std::int64_t end = units * (id + 1) / shared_.n_threads * grain;
    return {begin < n ? begin : n, end < n ? end : n};
  }

  // The set of counts that was in use may be cleared once all have passed the barrier, and is by its owner.
  void turn_to_cleared_set() {
    shared_.taken_by(id_, set_).clear();
    set_ = 1 - set_;
  }

  parallel_detail::Shared& shared_;
  int id_, thread_, set_;
  std::uint32_t turns_ = 0;
};

// One thread of a team as a team of its own: what it is given it does whole, and it waits for nobody. For work so small
// that every thread had better do all of it than share it out and wait.
class OwnWorker : private parallel_detail::Alone, public Worker {
 public:
  OwnWorker() : Worker(shared, 0) {}  // of no team
  explicit OwnWorker(const Worker& of_team) : Worker(shared, 0, of_team.id()) {}
};

// Whether a team keeps its number of threads when other programs want the processors too.
enum class Crowding {
  step_aside,  // leaves out, for a while, threads that the others only wait for; no result depends on it
  ignore
};

// A team of n_threads, the calling thread being number 0. One region at a time; the object may move between regions.
class Team {
 public:
  // Throws Error::bad_argument unless n_threads is 1 to max_threads, Error::out_of_memory when threads are refused.
  explicit Team(int n_threads, Crowding crowding = Crowding::ignore);
  ~Team();
  Team(Team&&) noexcept;
  Team& operator=(Team&&) noexcept;

  int n_threads() const;  // of the largest region

  // Runs body(Worker&) on every thread; returns when all have finished. What it throws on every thread
  // alike is rethrown here; it must not throw on some threads only, outside of on_main.
  template <class Body>
  void run(Body&& body) {
    run_erased([](void* context, Worker& worker) { (*static_cast<std::remove_reference_t<Body>*>(context))(worker); },
               const_cast<void*>(static_cast<const void*>(&body)));
  }

 private:
  struct Impl;
  void run_erased(void (*call)(void*, Worker&), void* context);
  std::unique_ptr<Impl> impl_;
};

// Number of processors this process may use: its affinity mask, limited by the cgroup's quota. At least 1.
int available_threads();

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/core/parallel.inl.hpp"
#endif
