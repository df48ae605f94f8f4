// Progress of something long (loading a file, prefilling a prompt), told to whoever wants to show it.
//
//   options.progress = [](const ProgressEvent& event) { bar.show(event.done, event.total); };
//
// Taken by Model::load (phase "load", in bytes), by a session's prefill and by generate() (phase "prefill", in tokens).
// A function that throws ends what is being done; examples/common/progress_bar.hpp has one that draws a bar.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

struct ProgressEvent {
  std::string_view phase;  // "load", "prefill"
  std::int64_t done, total;
  std::string_view unit;  // what done and total count: "bytes", "tokens"
};

// Called on the thread that called the library, never on a thread of the team. The last event has done == total. It may
// throw; what was being done then ends with that exception.
using Progress = std::function<void(const ProgressEvent&)>;

VITRINE_NAMESPACE_END
