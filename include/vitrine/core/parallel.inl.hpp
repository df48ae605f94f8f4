// Bodies of core/parallel.hpp.
#pragma once

#include <sched.h>

#include <exception>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "vitrine/core/parallel.hpp"

#if defined(_OPENMP) && !defined(VITRINE_STD_THREADS)
#include <omp.h>
#endif

VITRINE_NAMESPACE_BEGIN

namespace parallel_detail {

// The last thread to arrive opens the next phase. Waiters spin for a few microseconds (the
// usual wait inside a forward pass), then sleep in the kernel, so that a busy machine is not held up by them.
VITRINE_INLINE void barrier(Shared& shared) {
  if (shared.n_threads == 1) return;
  const std::uint32_t phase = shared.phase.load(std::memory_order_relaxed);
  if (shared.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == shared.n_threads) {
    shared.arrived.store(0, std::memory_order_relaxed);
    shared.phase.store(phase + 1, std::memory_order_release);
    shared.phase.notify_all();
    return;
  }
  constexpr int spins = 4000;
  for (int i = 0; i < spins; ++i) {
    if (shared.phase.load(std::memory_order_acquire) != phase) return;
    __builtin_ia32_pause();
  }
  shared.phase.wait(phase, std::memory_order_acquire);
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
  // All left after the same barriers, so thread 0 speaks for all; the next region begins with the set cleared last.
  if (id == 0) shared.next_set = 1 - worker.set_;
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
  explicit Impl(int n_threads) : shared(n_threads) {}
  parallel_detail::Shared shared;
#if !defined(_OPENMP) || defined(VITRINE_STD_THREADS)
  // Threads 1 .. n-1 sleep on `region`, which changes when there is work, or when they are `leaving`.
  std::vector<std::thread> threads;
  std::atomic<std::uint32_t> region{0};
  bool leaving = false;
  void (*call)(void*, Worker&) = nullptr;
  void* context = nullptr;

  void serve(int id) {
    std::uint32_t seen = 0;
    for (;;) {
      region.wait(seen, std::memory_order_acquire);
      seen = region.load(std::memory_order_acquire);
      if (leaving) return;
      parallel_detail::run_guarded(call, context, shared, id);
      parallel_detail::barrier(shared);
    }
  }

  void let_go() {
    leaving = true;
    region.fetch_add(1, std::memory_order_release);
    region.notify_all();
  }

  ~Impl() {
    let_go();
    for (auto& thread : threads) thread.join();
  }
#endif
};

VITRINE_INLINE Team::Team(int n_threads) {
  check(n_threads >= 1 && n_threads <= max_threads, ErrorKind::bad_argument, "number of threads: expected 1 to ",
        max_threads, ", got ", n_threads);
  impl_ = std::make_unique<Impl>(n_threads);
#if !defined(_OPENMP) || defined(VITRINE_STD_THREADS)
  impl_->threads = parallel_detail::start_threads(
      n_threads - 1, [impl = impl_.get()](int id) { impl->serve(id); }, [impl = impl_.get()] { impl->let_go(); });
#else
  // OpenMP ends the program when it is refused a thread. So try first whether this many can run at once.
  std::atomic<bool> open{false};
  const auto let_go = [&] {
    open = true;
    open.notify_all();
  };
  auto threads = parallel_detail::start_threads(
      n_threads - 1, [&](int) { open.wait(false); }, let_go);
  let_go();
  for (auto& thread : threads) thread.join();
#endif
}
VITRINE_INLINE Team::~Team() = default;
VITRINE_INLINE Team::Team(Team&&) noexcept = default;
VITRINE_INLINE Team& Team::operator=(Team&&) noexcept = default;
VITRINE_INLINE int Team::n_threads() const { return impl_->shared.n_threads; }

VITRINE_INLINE void Team::run_erased(void (*call)(void*, Worker&), void* context) {
  auto& shared = impl_->shared;
  shared.stopped = false;
  shared.error = nullptr;
  shared.failed = false;
  shared.set = shared.next_set;
#if defined(_OPENMP) && !defined(VITRINE_STD_THREADS)
  const int wanted = shared.n_threads;
#pragma omp parallel num_threads(wanted)
  {
    // OpenMP may grant fewer threads than asked for (nested regions, thread limits); results do not depend on it.
#pragma omp single
    shared.grant(omp_get_num_threads());
    parallel_detail::run_guarded(call, context, shared, omp_get_thread_num());
  }
  shared.grant(wanted);
#else
  impl_->call = call;
  impl_->context = context;
  impl_->region.fetch_add(1, std::memory_order_release);
  impl_->region.notify_all();
  parallel_detail::run_guarded(call, context, shared, 0);
  parallel_detail::barrier(shared);
#endif
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
