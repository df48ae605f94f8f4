// What a session, or several sequences that share their passes, will take, byte by byte, before anything is allocated.
//
//   const MemoryPlan needed = plan(config, {.n_context = 131072});       needed.kv, needed.scratch, ..., needed.total()
//   longest_context(config, options, budget)                             the most tokens whose plan fits
//
//   K and V = layers x tokens x KV heads x head dim x bytes per element x 2; a ring: tokens that its layers look at
//
// The weights are not among it: they are there already, once for all sessions (Model::weights().bytes()).
#pragma once

#include <cstddef>
#include <cstdint>

#include "vitrine/core/config.hpp"
#include "vitrine/engine/session_options.hpp"
#include "vitrine/model/config.hpp"

VITRINE_NAMESPACE_BEGIN

struct MemoryPlan {
  std::size_t kv = 0;      // of all sequences, when they are full
  std::size_t tables = 0;  // of their blocks
  std::size_t tokens = 0;  // of all sequences
  // What lies between the layers of a pass. A head in planes (LoadOptions) wants room for its bounds besides, some 0.4
  // bytes for each entry of the vocabulary and session.
  std::size_t scratch = 0;
  std::size_t logits = 0;  // a row per sequence
  std::size_t total() const { return kv + tables + tokens + scratch + logits; }
};

// For n_sequences of options.n_context tokens each. Throws Error::bad_argument, as Session does for its options.
MemoryPlan plan(const ModelConfig& config, const SessionOptions& options, std::int64_t n_sequences = 1);

// The largest n_context, in whole blocks of 64 tokens, whose plan is within the budget; 0: none. options.n_context is
// not looked at, but options.chunk is; the model may have been trained for less.
std::int64_t longest_context(const ModelConfig& config, const SessionOptions& options, std::size_t budget,
                             std::int64_t n_sequences = 1);

// The options with what a session puts in for those left open. Throws Error::bad_argument, naming the option.
SessionOptions with_defaults(SessionOptions options, const ModelConfig& config);

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/engine/memory_plan.inl.hpp"
#endif
