// Bodies of sample/sampling_chain.hpp.
#pragma once

#include "vitrine/core/error.hpp"
#include "vitrine/sample/sampling_chain.hpp"

VITRINE_NAMESPACE_BEGIN

VITRINE_INLINE bool changes_logits(const SamplingStep& step) {
  return std::visit([]<class Step>(const Step&) { return edits_logits<Step>; }, step);
}

VITRINE_INLINE void check_sampling(const SamplingChain& chain, std::int64_t n_vocab) {
  bool candidates_begun = false;
  for (const auto& step : chain) {
    std::visit([&](const auto& s) { s.check(n_vocab); }, step);
    const char* const name = std::visit([](const auto& s) { return s.name; }, step);
    check(!(changes_logits(step) && candidates_begun), ErrorKind::bad_argument, name,
          ": expected among the first steps, before any that takes candidates, got the chain ", describe(chain));
    candidates_begun = candidates_begun || !changes_logits(step);
    check(!std::holds_alternative<Mirostat>(step) || &step == &chain.back(), ErrorKind::bad_argument, name,
          ": expected as the last step, got the chain ", describe(chain));
  }
}

VITRINE_INLINE std::string describe(const SamplingStep& step) {
  return std::visit([](const auto& s) { return s.describe(); }, step);
}

VITRINE_INLINE std::string describe(const SamplingChain& chain) {
  if (chain.empty()) return "none";
  std::string text;
  for (const auto& step : chain) text += (text.empty() ? "" : " -> ") + describe(step);
  return text;
}

VITRINE_NAMESPACE_END
