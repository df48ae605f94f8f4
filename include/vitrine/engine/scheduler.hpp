// Continuous batching: which sequences are in the next step, and with how many tokens each.
//
// A sequence knows tokens (its prompt and what was drawn) and has K and V of the first n_computed of them; a step
// computes some that are missing. There are no phases: prefill is a sequence that lacks many, decode one that lacks
// one, and one that was preempted starts over from what it knows. Each step takes, in this order,
//
//   1. every running sequence that lacks one token, so that nobody waits for somebody else's prompt
//   2. running ones that lack more, in chunks, first come first served, out of what is left of the step's budget
//   3. waiting ones, first come first served, as long as blocks are there for all that they know
//
// When blocks run out the youngest running sequence gives all of its own back and waits again, before all that came
// after it. So the oldest always goes on, and nobody waits for ever.
//
// After Orca (Yu et al., OSDI 2022) for steps, arXiv 2309.06180 for blocks, arXiv 2403.02310 for chunked prefill. It
// knows neither model nor clock: bench/capacity.cpp runs it against a model of costs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

struct SchedulerOptions {
  std::int64_t max_running = 32;   // sequences in a step at most
  std::int64_t step_tokens = 256;  // tokens of a step at most
  // Of a prompt, in a step that others decode in: this many bound how long these wait. A token counts as 1 + position /
  // 2048 of them, since it looks at all before it. 0: no bound but step_tokens.
  std::int64_t prompt_tokens_beside_decode = 24;
};

// What the scheduler knows of a request; its owner counts up n_known and n_computed.
struct Sequence {
  std::int64_t n_known = 0;     // tokens: prompt and drawn
  std::int64_t n_computed = 0;  // of these, with K and V
  std::int64_t n_drafts = 0;    // guessed tokens behind the known ones, to be computed along with the last of them
  std::int64_t n_now = 0;       // plan(): to be computed in this step
  std::int64_t n_preemptions = 0;

  std::int64_t n_missing() const { return n_known - n_computed; }
};

// Where K and V find room; implemented over a block pool, or by counting alone.
class KvRoom {
 public:
  virtual ~KvRoom() = default;
  virtual std::int64_t n_free() const = 0;  // blocks that could be had now
  virtual std::int64_t n_wanted(const Sequence& sequence, std::int64_t n_tokens) const = 0;  // blocks, for so many more
  virtual bool take(Sequence& sequence, std::int64_t n_tokens) = 0;  // these; false, and nothing, if there are too few
  virtual bool must_wait(const Sequence& sequence) const = 0;  // not to be started yet: what it can share is not there
  virtual void start(Sequence& sequence) = 0;      // before the first take: may find K and V, and sets n_computed
  virtual void give_back(Sequence& sequence) = 0;  // all blocks, n_computed = 0
};

class Scheduler {
 public:
  explicit Scheduler(const SchedulerOptions& options);
  void reserve(std::size_t n_sequences);  // nothing is allocated for so many of them

  void add(Sequence& sequence);     // behind all others; it stays where it is until removed
  void remove(Sequence& sequence);  // running or waiting; its blocks are the caller's affair

  // Chooses the next step and takes the blocks for it: those in the result have n_now > 0. Empty if nobody can run.
  std::span<Sequence* const> plan(KvRoom& room);

  std::span<Sequence* const> running() const { return running_; }  // in order of arrival
  std::size_t n_waiting() const { return waiting_.size(); }
  std::int64_t n_preemptions() const { return n_preemptions_; }

 private:
  bool make_room(KvRoom& room, Sequence& sequence, std::int64_t n_tokens);
  void preempt_youngest(KvRoom& room);
  void start_waiting(KvRoom& room);
  std::int64_t chunk(const Sequence& sequence) const;
  void give(Sequence& sequence, std::int64_t n_tokens);

  SchedulerOptions options_;
  std::vector<Sequence*> running_;  // in order of arrival
  std::vector<Sequence*> waiting_;  // the next one last; all of them came after the running ones
  std::vector<Sequence*> step_;
  std::int64_t tokens_left_ = 0;
  double prompt_tokens_left_ = 0;  // as they count
  bool somebody_decodes_ = false;
  std::int64_t n_preemptions_ = 0;
};

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/engine/scheduler.inl.hpp"
#endif
