// A progress bar on stderr, only when stderr is a terminal: phase, bar, amount, rate and time left. It is what the
// library's progress callbacks are for:
//
//   example::ProgressBar bar;
//   Model::load(path, {.progress = bar.callback()});
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "vitrine/core/progress.hpp"

namespace example {

class ProgressBar {
 public:
  explicit ProgressBar(bool quiet = false);
  vitrine::Progress callback() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct State {
    bool on = false;
    std::string phase;
    Clock::time_point start, last_shown;

    void show(const vitrine::ProgressEvent& event);
  };
  std::shared_ptr<State> state_;
};

}  // namespace example
