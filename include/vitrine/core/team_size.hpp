// How many threads a team uses while other programs want the processors too.
//
// On a crowded machine a barrier waits for a thread that has no processor, and a forward pass has hundreds of barriers:
// two threads can be slower than one by far. When the threads of a team, taken together, have waited for longer than
// they worked, half of them is left out; it comes back after a pause, which doubles each time that this was too early.
// It is judged over many regions at a time: a virtual machine loses a processor now and then for longer than a region
// takes. Results do not depend on the number of threads, so nothing but time does.
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
      now_ = (std::min)(most_, 2 * now_);
      retry_ = start_ + pause_;
      waited_ = elapsed_ = {};
    }
    return now_;
  }

  // `waited`: all threads together, at the barriers of the region.
  void end(std::chrono::nanoseconds waited, Clock::time_point end = Clock::now()) {
    waited_ += waited;
    elapsed_ += end - start_;
    if (elapsed_ < judged_over) return;
    const bool waits_more = 2 * waited_ >= now_ * elapsed_;
    waited_ = elapsed_ = {};
    if (waits_more && now_ > 1) {
      now_ = (now_ + 1) / 2;
      retry_ = end + pause_;
      pause_ = (std::min)(2 * pause_, longest_pause);
    } else if (now_ == most_) {
      pause_ = shortest_pause;
    }
  }

 private:
  static constexpr Clock::duration judged_over = std::chrono::milliseconds(25);
  static constexpr Clock::duration shortest_pause = std::chrono::milliseconds(100);
  static constexpr Clock::duration longest_pause = std::chrono::seconds(2);
  int most_, now_;
  Clock::time_point start_, retry_;
  Clock::duration pause_ = shortest_pause;
  std::chrono::nanoseconds waited_{0}, elapsed_{0};  // of the regions since it was last judged
};

VITRINE_NAMESPACE_END
