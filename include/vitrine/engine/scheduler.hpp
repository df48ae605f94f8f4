// Continuous batching: which sequences are in the next step, and with how many tokens each.
//
// A sequence knows tokens (its prompt and what was drawn) and has K and V of the first n_computed of them; a step
// computes some that are missing. There are no phases: prefill is a sequence that lacks many, decode one that lacks
// one, and one that was preempted starts over from what it knows. Each step takes, in this order,
//
//   1. every running sequence that lacks one token, so that nobody waits for somebody else's prompt
//   2. running ones that lack more, in chunks, first come first served, out of what is left of the step's budgets
//   3. waiting ones, first come first served, as long as blocks are there for all that they know
//
// When blocks run out the youngest running sequence gives all of its own back and waits again, before all that came
// after it. So the oldest always goes on, and nobody waits for ever.
//
// How much of a prompt goes beside others' decode is bound by estimated work, in units of a prompt's first tokens:
//
//   row(p) = 1 + p / 1800    a token at position p, which looks at all before it
//   keys(p) = p / 180        what a sequence with p tokens costs a step for reading these, however many it adds
//   rest = 6.5 + sum over those that decode of (1 + guesses + keys)             6.5: the weights
//   prompt's tokens * row(p) <= prompt_work * (rest + keys(p)), but the first prompt gets one token at least
//
// So a step with a part of a prompt takes about 1 + prompt_work times what it takes when that sequence, too, decodes,
// whether few others run or many, at the prompt's beginning and deep in it. (The figures: SmolLM2-135M, AVX-512.)
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
  // In a step that others decode in: work on prompts, as a multiple of the rest. More, and prompts are read sooner;
  // less, and the others wait less. 0: no bound but step_tokens.
  double prompt_work = 1;
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
  bool bounds_prompts() const { return rest_ > 0 && options_.prompt_work > 0; }
  std::int64_t chunk(const Sequence& sequence) const;
  void give(Sequence& sequence, std::int64_t n_tokens);

  SchedulerOptions options_;
  std::vector<Sequence*> running_;  // in order of arrival
  std::vector<Sequence*> waiting_;  // the next one last; all of them came after the running ones
  std::vector<Sequence*> step_;
  std::int64_t tokens_left_ = 0;
  double rest_ = 0;       // work of the step but for prompts; 0: nobody decodes in it
  double work_left_ = 0;  // for prompts
  bool has_prompt_ = false;
  std::int64_t n_preemptions_ = 0;
};

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/engine/scheduler.inl.hpp"
#endif
