// The observer that sees every named intermediate of a forward pass.
//
//   options.trace = [](const TraceEvent& event) { std::cout << event.step << " " << event.name << "\n"; };
//
// Tracing runs the very ops of an untraced pass, so it changes no bit; when no observer is set the cost is one
// predictable branch per op. A name is that of a value, e.g. "q_rope"; `layer` is -1 outside the decoder blocks.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>

#include "vitrine/core/config.hpp"
#include "vitrine/core/tensor.hpp"

VITRINE_NAMESPACE_BEGIN

struct TraceEvent {
  std::string_view step;             // which stage of a token's life, e.g. "4/9 rope"
  std::string_view name;             // which intermediate, e.g. "q_rope"
  int layer;                         // 0 .. n_layer-1, or -1
  TensorView<const float, 2> value;  // [n_tokens, width]
  std::string_view width_meaning;    // what the width is made of, e.g. "n_head * head_dim"
};

// Called on the thread that called the session, in program order. It may throw; the pass then ends with that exception.
using TraceObserver = std::function<void(const TraceEvent&)>;

#ifdef VITRINE_REVERSED_SUMMATION
namespace trace_fault {
// Of the pass that is running, for the deliberate fault (see CONTRIBUTING.md): whether it is traced, and its tokens.
inline std::atomic<bool> watched{false};
inline std::atomic<std::int64_t> n_tokens{0};
}  // namespace trace_fault
#endif

VITRINE_NAMESPACE_END
