// Bodies of engine/scheduler.hpp.
#pragma once

#include <algorithm>

#include "vitrine/core/error.hpp"
#include "vitrine/engine/scheduler.hpp"

VITRINE_NAMESPACE_BEGIN

namespace scheduler_detail {

// The depth at which a token costs twice what it costs at the start. (SmolLM2-135M on AVX-512: about 1,800 tokens.)
inline constexpr double depth_of_double_cost = 2048;
inline double cost(std::int64_t position) { return 1 + double(position) / depth_of_double_cost; }

}  // namespace scheduler_detail

VITRINE_INLINE Scheduler::Scheduler(const SchedulerOptions& options) : options_(options) {
  check(options.max_running >= 1, ErrorKind::bad_argument, "max_running: expected at least 1 sequence, got ",
        options.max_running);
  check(options.step_tokens >= options.max_running, ErrorKind::bad_argument,
        "step_tokens: expected at least max_running = ", options.max_running, ", got ", options.step_tokens);
  check(options.prompt_tokens_beside_decode >= 0, ErrorKind::bad_argument,
        "prompt_tokens_beside_decode: expected 0 or more, got ", options.prompt_tokens_beside_decode);
  running_.reserve(std::size_t(options.max_running));
  step_.reserve(std::size_t(options.max_running));
}

VITRINE_INLINE void Scheduler::reserve(std::size_t n_sequences) { waiting_.reserve(n_sequences); }

VITRINE_INLINE void Scheduler::add(Sequence& sequence) { waiting_.insert(waiting_.begin(), &sequence); }

VITRINE_INLINE void Scheduler::remove(Sequence& sequence) {
  if (std::erase(running_, &sequence) == 0) std::erase(waiting_, &sequence);
}

VITRINE_INLINE std::span<Sequence* const> Scheduler::plan(KvRoom& room) {
  step_.clear();
  tokens_left_ = options_.step_tokens;
  somebody_decodes_ = false;
  for (Sequence* sequence : running_) sequence->n_now = 0;

  // Preemption takes sequences off the end of running_, never one before the place where a loop stands.
  for (std::size_t i = 0; i < running_.size(); ++i) {
    Sequence& sequence = *running_[i];
    if (sequence.n_missing() != 1) continue;
    // Whoever is behind must get a token, too, before drafts are tried.
    const auto others = std::int64_t(running_.size() - i) - 1;
    const auto n =
        1 + (std::clamp)(sequence.n_drafts, std::int64_t(0), (std::max)(tokens_left_ - others - 1, std::int64_t(0)));
    if (!make_room(room, sequence, n)) break;
    give(sequence, n);
    somebody_decodes_ = true;
  }
  prompt_tokens_left_ = somebody_decodes_ && options_.prompt_tokens_beside_decode > 0
                            ? double(options_.prompt_tokens_beside_decode)
                            : 1e18;
  for (std::size_t i = 0; i < running_.size(); ++i) {
    Sequence& sequence = *running_[i];
    const auto n = sequence.n_now == 0 ? chunk(sequence) : 0;
    if (n == 0) continue;
    if (!make_room(room, sequence, n)) break;
    give(sequence, n);
  }
  start_waiting(room);

  for (Sequence* sequence : running_)
    if (sequence->n_now > 0) step_.push_back(sequence);
  return step_;
}

VITRINE_INLINE void Scheduler::give(Sequence& sequence, std::int64_t n_tokens) {
  sequence.n_now = n_tokens;
  tokens_left_ -= n_tokens;
  if (sequence.n_missing() > 1) prompt_tokens_left_ -= double(n_tokens) * scheduler_detail::cost(sequence.n_computed);
}

// How many of the tokens that it lacks fit into this step.
VITRINE_INLINE std::int64_t Scheduler::chunk(const Sequence& sequence) const {
  if (prompt_tokens_left_ < 1) return 0;
  const double as_counted = prompt_tokens_left_ / scheduler_detail::cost(sequence.n_computed);
  const auto allowed =
      as_counted < double(tokens_left_) ? (std::max)(std::int64_t(as_counted), std::int64_t(1)) : tokens_left_;
  return (std::min)({sequence.n_missing(), allowed, tokens_left_});
}

// False if the sequence itself had to go.
VITRINE_INLINE bool Scheduler::make_room(KvRoom& room, Sequence& sequence, std::int64_t n_tokens) {
  while (!room.take(sequence, n_tokens)) {
    const bool itself = running_.back() == &sequence;
    preempt_youngest(room);
    if (itself) return false;
  }
  return true;
}

VITRINE_INLINE void Scheduler::preempt_youngest(KvRoom& room) {
  Sequence& youngest = *running_.back();
  running_.pop_back();
  waiting_.push_back(&youngest);
  tokens_left_ += youngest.n_now;
  youngest.n_now = 0;
  room.give_back(youngest);
  ++youngest.n_preemptions;
  ++n_preemptions_;
}

// Blocks must be there for all that a sequence knows, beside what the running ones still lack: otherwise it would be
// started only to be preempted.
VITRINE_INLINE void Scheduler::start_waiting(KvRoom& room) {
  const auto lacks = [&](const Sequence& sequence) { return room.n_wanted(sequence, sequence.n_missing()); };
  std::int64_t promised = -1;  // not counted yet
  while (!waiting_.empty() && std::int64_t(running_.size()) < options_.max_running) {
    Sequence& sequence = *waiting_.back();
    if (room.must_wait(sequence) || tokens_left_ == 0 || prompt_tokens_left_ < 1) return;
    if (promised < 0) {
      promised = 0;
      for (const Sequence* other : running_) promised += lacks(*other);
    }
    room.start(sequence);
    const auto n = chunk(sequence);
    if (lacks(sequence) + promised > room.n_free() || !room.take(sequence, n)) return room.give_back(sequence);
    waiting_.pop_back();
    running_.push_back(&sequence);
    give(sequence, n);
    promised += lacks(sequence);
  }
}

VITRINE_NAMESPACE_END
