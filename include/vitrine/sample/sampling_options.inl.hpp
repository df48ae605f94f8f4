// Bodies of sample/sampling_options.hpp.
#pragma once

#include <cstddef>
#include <limits>

#include "vitrine/core/error.hpp"
#include "vitrine/sample/sampling_options.hpp"

VITRINE_NAMESPACE_BEGIN

namespace sampling_detail {

// Every comparison is written so that NaN fails it.
VITRINE_INLINE void check_value(SamplingOp op, double value) {
  // Logits are floats, and so must be what one of them is divided by or multiplied with.
  constexpr double least = (std::numeric_limits<float>::min)(), largest = (std::numeric_limits<float>::max)();
  const char* name = sampling_op_name(op);
  switch (op) {
    case SamplingOp::temperature:
      check(value >= 0 && value <= largest, ErrorKind::bad_argument, name, ": expected 0 to ", largest, ", got ",
            value);
      break;
    case SamplingOp::top_k:
      check(value >= -2147483648.0 && value <= 2147483647.0 && value == double(std::int64_t(value)),
            ErrorKind::bad_argument, name, ": expected a whole number of 32 bits, got ", value);
      break;
    case SamplingOp::top_p:
    case SamplingOp::min_p:
      check(value >= 0 && value <= 1, ErrorKind::bad_argument, name, ": expected a number from 0 to 1, got ", value);
      break;
    case SamplingOp::repetition_penalty:
      check(value >= least && value <= largest, ErrorKind::bad_argument, name, ": expected ", least, " to ", largest,
            ", got ", value);
      break;
    default:
      throw Error(
          ErrorKind::bad_argument,
          concat("sampling step: expected repetition_penalty, temperature, top_k, top_p or min_p, got SamplingOp(",
                 int(op), ")"));
  }
}

VITRINE_INLINE void check_window(std::int64_t window) {
  check(window >= 0, ErrorKind::bad_argument, "repetition_window: expected a number of tokens >= 0, got ", window);
}

}  // namespace sampling_detail

VITRINE_INLINE const char* sampling_op_name(SamplingOp op) {
  switch (op) {
    case SamplingOp::repetition_penalty: return "repetition_penalty";
    case SamplingOp::temperature: return "temperature";
    case SamplingOp::top_k: return "top_k";
    case SamplingOp::top_p: return "top_p";
    case SamplingOp::min_p: return "min_p";
  }
  return "unknown";
}

VITRINE_INLINE void check_sampling(const SamplingOptions& options) {
  sampling_detail::check_value(SamplingOp::repetition_penalty, options.repetition_penalty);
  sampling_detail::check_window(options.repetition_window);
  sampling_detail::check_value(SamplingOp::temperature, options.temperature);
  sampling_detail::check_value(SamplingOp::top_p, options.top_p);
  sampling_detail::check_value(SamplingOp::min_p, options.min_p);
}

VITRINE_INLINE void check_sampling(const std::vector<SamplingStep>& chain) {
  for (const auto& step : chain) {
    sampling_detail::check_value(step.op, step.value);
    if (step.op == SamplingOp::repetition_penalty) {
      sampling_detail::check_window(step.window);
      check(&step == &chain.front(), ErrorKind::bad_argument,
            "repetition_penalty: expected once and as the first step, got the chain ", describe(chain));
    }
  }
}

VITRINE_INLINE std::vector<SamplingStep> sampling_chain(const SamplingOptions& options) {
  check_sampling(options);
  std::vector<SamplingStep> chain;
  if (options.repetition_penalty != 1.0)
    chain.push_back({SamplingOp::repetition_penalty, options.repetition_penalty, options.repetition_window});
  if (options.temperature != 1.0) chain.push_back({SamplingOp::temperature, options.temperature});
  if (options.top_k > 0) chain.push_back({SamplingOp::top_k, double(options.top_k)});
  if (options.top_p < 1.0) chain.push_back({SamplingOp::top_p, options.top_p});
  if (options.min_p > 0.0) chain.push_back({SamplingOp::min_p, options.min_p});
  return chain;
}

VITRINE_INLINE std::string describe(const SamplingStep& step) {
  std::string text = concat(sampling_op_name(step.op), "(", step.value);
  if (step.window > 0) text += concat(", last ", step.window);
  return text + ")";
}

VITRINE_INLINE std::string describe(const std::vector<SamplingStep>& chain) {
  if (chain.empty()) return "none";
  std::string text;
  for (const auto& step : chain) text += (text.empty() ? "" : " -> ") + describe(step);
  return text;
}

VITRINE_NAMESPACE_END
