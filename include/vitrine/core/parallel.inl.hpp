// Bodies of core/parallel.hpp.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "vitrine/core/parallel.hpp"
#include "vitrine/core/team_size.hpp"

#if defined(_OPENMP) && !defined(VITRINE_STD_THREADS)
#include <omp.h>
#endif

VITRINE_NAMESPACE_BEGIN

namespace parallel_detail {

// Every thread counts up for itself and waits until each of the others has come as far.
VITRINE_INLINE void barrier(Shared& shared, int id) {
  const int n_threads = shared.n_threads;  // may change for the next region as soon as this thread has arrived
  if (n_threads == 1) return;
  auto& own = shared.arrivals[std::size_t(id)];
  const std::uint32_t wanted = own.value() + 1;
  own.set(wanted);
  std::chrono::nanoseconds waited{0};
  for (int other = 0; other < n_threads; ++other)
    waited += shared.arrivals[std::size_t(other)].wait(
        [&](std::uint32_t n) { return std::int32_t(n - wanted) >= 0; },  // it may already be at the next one
        shared.patience[std::size_t(id)]);
  if (waited.count() > 0) shared.waited.fetch_add(waited.count(), std::memory_order_relaxed);
}

// One thread's part of a region. Shape checks throw on every thread alike, so all leave together and none is left
// behind at a barrier.
VITRINE_INLINE void run_guarded(void (*call)(void*, Worker&), void* context, Shared& shared, int id) {
  const DefaultFloatEnvironment environment;
  Worker worker(shared, id);
  if (shared.n_threads > 1) shared.taken_by(id, 1 - worker.set_).clear();  // what the last region left there
  try {
    call(context, worker);
  } catch (...) {
    if (!shared.failed.exchange(true)) shared.error = std::current_exception();
  }
  // All left after the same barriers, so thread 0 speaks for all; the next region begins with the set cleared last. A
  // thread alone has used neither.
  if (id == 0) shared.next_set = shared.n_threads > 1 ? 1 - worker.set_ : worker.set_;
}

// `n_threads` threads that run body(id), id from 1 on. If one is refused, `let_go` must make those that run end.
template <class Body, class LetGo>
std::vector<std::thread> start_threads(int n_threads, Body body, LetGo let_go) {
  std::vector<std::thread> threads;
  try {
    threads.reserve(std::size_t(n_threads));
    for (int id = 1; id <= n_threads; ++id) threads.emplace_back(body, id);
  } catch (const std::exception& refused) {  // std::system_error or std::bad_alloc
    const std::size_t n_started = threads.size() + 1;
    let_go();
    for (auto& thread : threads) thread.join();
    throw Error(ErrorKind::out_of_memory, concat("n_threads: only ", n_started, " of ", n_threads + 1,
                                                 " threads could be started (", refused.what(), ")"));
  }
  return threads;
}

}  // namespace parallel_detail

struct Team::Impl {
  Impl(int n_threads, Crowding when_crowded) : shared(n_threads), size(n_threads), crowding(when_crowded) {
    if (n_threads > available_threads())
      for (auto& patience : shared.patience) patience = Signal::Patience(Signal::Patience::limit_where_outnumbered);
  }
  parallel_detail::Shared shared;
  TeamSize size;
  Crowding crowding;
#if !defined(_OPENMP) || defined(VITRINE_STD_THREADS)
  // Threads 1 .. n-1 wait for `region` to change: its number, and in the low bits how many threads are in it, which is
  // 0 when all are to leave.
  static constexpr std::uint32_t size_bits = 11;
  static_assert(max_threads < 1 << size_bits);
  std::vector<std::thread> threads;
  Signal region;
  void (*call)(void*, Worker&) = nullptr;
  void* context = nullptr;

  void open_region(int n_threads) {
    region.set(((region.value() >> size_bits) + 1) << size_bits | std::uint32_t(n_threads));
  }

  void serve(int id) {
    std::uint32_t seen = 0;
    Signal::Patience patience;  // between regions, where the next may be long in coming
    for (;;) {
      region.wait([&](std::uint32_t now) { return now != seen; }, patience);
      seen = region.value();
      const int n_threads = int(seen & ((1u << size_bits) - 1));
      if (n_threads == 0) return;
      if (id >= n_threads) continue;
      parallel_detail::run_guarded(call, context, shared, id);
      parallel_detail::barrier(shared, id);
    }
  }

  void let_go() { open_region(0); }

  ~Impl() {
    let_go();
    for (auto& thread : threads) thread.join();
  }
#endif
};

VITRINE_INLINE Team::Team(int n_threads, Crowding crowding) {
  check(n_threads >= 1 && n_threads <= max_threads, ErrorKind::bad_argument, "number of threads: expected 1 to ",
        max_threads, ", got ", n_threads);
  impl_ = std::make_unique<Impl>(n_threads, crowding);
#if !defined(_OPENMP) || defined(VITRINE_STD_THREADS)
  impl_->threads = parallel_detail::start_threads(
      n_threads - 1, [impl = impl_.get()](int id) { impl->serve(id); }, [impl = impl_.get()] { impl->let_go(); });
#else
  // OpenMP ends the program when it is refused a thread. So try first whether this many can run at once.
  Signal open;
  const auto let_go = [&] { open.set(1); };
  auto threads = parallel_detail::start_threads(
      n_threads - 1,
      [&](int) {
        Signal::Patience patience;
        open.wait([](std::uint32_t value) { return value == 1; }, patience);
      },
      let_go);
  let_go();
  for (auto& thread : threads) thread.join();
#endif
}
VITRINE_INLINE Team::~Team() = default;
VITRINE_INLINE Team::Team(Team&&) noexcept = default;
VITRINE_INLINE Team& Team::operator=(Team&&) noexcept = default;
VITRINE_INLINE int Team::n_threads() const { return owned(impl_.get(), "team").size.most(); }

VITRINE_INLINE void Team::run_erased(void (*call)(void*, Worker&), void* context) {
  auto& shared = owned(impl_.get(), "team").shared;
  const bool adapts = impl_->crowding == Crowding::step_aside && impl_->size.most() > 1;
  const int n_threads = adapts ? impl_->size.begin() : impl_->size.most();
  shared.stopped = false;
  shared.error = nullptr;
  shared.failed = false;
  shared.set = shared.next_set;
#if defined(_OPENMP) && !defined(VITRINE_STD_THREADS)
#pragma omp parallel num_threads(n_threads)
  {
    // OpenMP may grant fewer threads than asked for (nested regions, thread limits); results do not depend on it.
#pragma omp single
    shared.set_threads(omp_get_num_threads());
    parallel_detail::run_guarded(call, context, shared, omp_get_thread_num());
  }
#else
  shared.set_threads(n_threads);
  impl_->call = call;
  impl_->context = context;
  impl_->open_region(n_threads);
  parallel_detail::run_guarded(call, context, shared, 0);
  parallel_detail::barrier(shared, 0);
#endif
  const std::chrono::nanoseconds waited(shared.waited.exchange(0));
  if (adapts) impl_->size.end(waited);
  if (shared.error) std::rethrow_exception(std::exchange(shared.error, nullptr));
}

VITRINE_INLINE int available_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : int(std::thread::hardware_concurrency());
  std::ifstream quota_file("/sys/fs/cgroup/cpu.max");  // "max 100000" or "<quota> <period>" in microseconds
  std::string quota;
  double period = 0;
  if (quota_file >> quota >> period && quota != "max" && period > 0) {
    const double allowed = std::atof(quota.c_str()) / period;
    if (allowed > 0 && allowed < n) n = allowed < 1 ? 1 : int(allowed);
  }
  return n < 1 ? 1 : n;
}

VITRINE_NAMESPACE_END
