// Bodies of progress_bar.hpp.
#include "common/progress_bar.hpp"

#include <cstdio>

#include "common/plot.hpp"
#include "common/table.hpp"
#include "common/terminal.hpp"

namespace example {

ProgressBar::ProgressBar(bool quiet) : state_(std::make_shared<State>()) {
  state_->on = !quiet && has_terminal(stderr);
}

vitrine::Progress ProgressBar::callback() const {
  if (!state_->on) return {};
  return [state = state_](const vitrine::ProgressEvent& event) { state->show(event); };
}

void ProgressBar::State::show(const vitrine::ProgressEvent& event) {
  const auto now = Clock::now();
  if (phase != event.phase) {
    phase = event.phase;
    start = now;
    last_shown = {};
  }
  const bool finished = event.done >= event.total;
  if (!finished && now - last_shown < std::chrono::milliseconds(50)) return;
  last_shown = now;
  const double seconds = std::chrono::duration<double>(now - start).count();
  const double share = event.total > 0 ? double(event.done) / double(event.total) : 1;
  const std::string unit(event.unit);
  const auto amount = [&](double value) { return unit == "bytes" ? scaled(value, "B") : grouped(value) + " " + unit; };
  std::string tail = amount(double(event.done));
  if (seconds > 0.1) {
    const double rate = double(event.done) / seconds;
    tail += "  " + amount(rate) + "/s";
    if (!finished && rate > 0) tail += "  " + fixed(double(event.total - event.done) / rate, 0) + " s left";
  }
  const std::string done = bar(share, 24);
  std::fprintf(stderr, "\r\x1b[K%s ▕%s%s▏ %3.0f %%  %s", phase.c_str(), done.c_str(),
               std::string(std::size_t(24 - text_width(done)), ' ').c_str(), 100 * share, tail.c_str());
  if (finished) std::fputs("\r\x1b[K", stderr);  // leave nothing behind
  std::fflush(stderr);
}

}  // namespace example
