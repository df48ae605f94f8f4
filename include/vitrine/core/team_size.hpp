// How many threads a team uses while other programs want the processors too.
//
// On a crowded machine a barrier waits for a thread that has no processor, and a forward pass has hundreds of barriers:
// two threads can be slower than one by far. When the threads of a region slept longer than half of the region's time,
// as many as slept are left out, and come back one by one: after a pause, which doubles each time that this was too
// early. Results do not depend on the number of threads, so nothing but time does on this.
#pragma once

#include <algorithm>
#include <chrono>

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

class TeamSize {
 public:
  using Clock = std::chrono::steady_clock;
  explicit TeamSize(int most) : most_(most), now_(most) {}
  int most() const { return most_; }

  int begin(Clock::time_point now = Clock::now()) {
    start_ = now;
    if (now_ < most_ && start_ >= retry_) {
      ++now_;
      retry_ = start_ + pause_;
    }
    return now_;
  }

  void end(std::chrono::nanoseconds slept, Clock::time_point end = Clock::now()) {
    const double idle = (std::min)(double(now_), double(slept.count()) / double((end - start_).count() + 1));
    if (idle > 0.5 && now_ > 1) {
      now_ = (std::max)(1, now_ - (std::max)(1, int(idle)));
      retry_ = end + pause_;
      pause_ = (std::min)(2 * pause_, longest_pause);
    } else if (now_ == most_ && end >= retry_) {
      pause_ = shortest_pause;
    }
  }

 private:
  static constexpr Clock::duration shortest_pause = std::chrono::milliseconds(20);
  static constexpr Clock::duration longest_pause = std::chrono::seconds(1);
  int most_, now_;
  Clock::time_point start_, retry_;
  Clock::duration pause_ = shortest_pause;
};

VITRINE_NAMESPACE_END
