// A number that one thread counts up and others wait for: the barrier and the start of a region are made of these.
//
// A waiter spins for some microseconds, the usual wait inside a forward pass, and then for longest_spin, which is about
// as long as a virtual machine waits for a processor that it has lost: to sleep and be woken would take longer. After
// that it sleeps in the kernel (futex on Linux). Where threads outnumber processors, who spins holds the processor that
// somebody else needs; so a waiter that had to sleep after all does so sooner the next times. std::atomic::wait would
// do but for one thing: libstdc++ yields before it sleeps, which on a busy machine hands the rest of the time slice to
// another program, at every barrier.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

class alignas(64) Signal {  // a cache line of its own
 public:
  std::uint32_t value() const { return value_.load(std::memory_order_acquire); }

  // What was written before is visible to those who see the value.
  void set(std::uint32_t value) {
    value_.store(value, std::memory_order_seq_cst);
    if (n_sleeping_.load(std::memory_order_seq_cst) > 0) wake();
  }

  // What a waiter has learned: after spinning in vain it hardly spins at all for twice as many waits as the last time,
  // up to a limit. Beside another program a processor is lost now and then, and who sleeps at every barrier hands it
  // his own at each: limited by 64, decoding kept 17 % of its speed there, and keeps 55 % with 4. Where a team's own
  // threads outnumber the processors, who spins holds up the others nearly always.
  class alignas(64) Patience {
   public:
    static constexpr int usual_limit = 4, limit_where_outnumbered = 64;
    explicit Patience(int limit = usual_limit) : limit_(limit) {}

    bool lasts() {
      if (n_short_ == 0) return true;
      --n_short_;
      return false;
    }
    void was_in_vain() {
      n_short_ = n_next_;
      n_next_ = (std::min)(2 * n_next_, limit_);
    }
    void was_worth_it() { n_next_ = 1; }

   private:
    int limit_, n_short_ = 0, n_next_ = 1;
  };

  // Returns once enough(value). The result is how long that took, 0 if it was short.
  template <class Enough>
  std::chrono::nanoseconds wait(Enough enough, Patience& patience) {
    const auto spun = [&](int spins) {
      for (int i = 0; i < spins; ++i) {
        if (enough(value())) return true;
        __builtin_ia32_pause();
      }
      return false;
    };
    const bool is_patient = patience.lasts();
    if (spun(is_patient ? 2000 : 50)) return {};
    const auto start = std::chrono::steady_clock::now();
    const auto waited = [&] { return std::chrono::steady_clock::now() - start; };
    while (is_patient && waited() < longest_spin) {
      if (!spun(100)) continue;
      patience.was_worth_it();
      return waited();
    }
    if (is_patient) patience.was_in_vain();
    for (;;) {
      // Either this thread sees the new value, or who sets it sees a sleeper: both sides write first and then read.
      n_sleeping_.fetch_add(1, std::memory_order_seq_cst);
      const std::uint32_t seen = value_.load(std::memory_order_seq_cst);
      const bool is_enough = enough(seen);
      if (!is_enough) sleep(seen);
      n_sleeping_.fetch_sub(1, std::memory_order_relaxed);
      if (is_enough) return waited();
    }
  }

 private:
  static constexpr std::chrono::microseconds longest_spin{400};
#if defined(__linux__)
  void sleep(std::uint32_t seen) { ::syscall(SYS_futex, &value_, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0); }
  void wake() { ::syscall(SYS_futex, &value_, FUTEX_WAKE_PRIVATE, 0x7fffffff, nullptr, nullptr, 0); }
#else
  void sleep(std::uint32_t seen) { value_.wait(seen); }
  void wake() { value_.notify_all(); }
#endif

  std::atomic<std::uint32_t> value_{0};
  std::atomic<std::uint32_t> n_sleeping_{0};
};

VITRINE_NAMESPACE_END
