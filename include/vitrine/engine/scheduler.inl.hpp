// Bodies of engine/scheduler.hpp.
#pragma once

#include <algorithm>

#include "vitrine/core/error.hpp"
#include "vitrine/engine/scheduler.hpp"

VITRINE_NAMESPACE_BEGIN

namespace scheduler_detail {

inline constexpr double work_of_weights = 6.5;
inline double row(std::int64_t position) { return 1 + double(position) / 1800; }
inline double keys(std::int64_t n_tokens) { return double(n_tokens) / 180; }

}  // namespace scheduler_detail

VITRINE_INLINE Scheduler::Scheduler(const SchedulerOptions& options) : options_(options) {
  check(options.max_running >= 1, ErrorKind::bad_argument, "max_running: expected at least 1 sequence, got ",
        options.max_running);
  check(options.step_tokens >= options.max_running, ErrorKind::bad_argument,
        "step_tokens: expected at least max_running = ", options.max_running, ", got ", options.step_tokens);
  check(options.prompt_work >= 0, ErrorKind::bad_argument, "prompt_work: expected 0 or more, got ",
        options.prompt_work);
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
  rest_ = 0;
  has_prompt_ = false;
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
    if (rest_ == 0) rest_ = scheduler_detail::work_of_weights;
    rest_ += double(n) + scheduler_detail::keys(sequence.n_computed);
  }
  work_left_ = options_.prompt_work * rest_;
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
  if (sequence.n_missing() == 1) return;
  work_left_ += options_.prompt_work * scheduler_detail::keys(sequence.n_computed) -
                double(n_tokens) * scheduler_detail::row(sequence.n_computed);
  has_prompt_ = true;
}

// How many of the tokens that it lacks fit into this step. The first in order gets one at least.
VITRINE_INLINE std::int64_t Scheduler::chunk(const Sequence& sequence) const {
  using namespace scheduler_detail;
  const auto most = (std::min)(sequence.n_missing(), tokens_left_);
  if (!bounds_prompts()) return most;
  const double work = work_left_ + options_.prompt_work * keys(sequence.n_computed);
  const double n = (std::max)(work / row(sequence.n_computed), has_prompt_ ? 0.0 : 1.0);
  return n < double(most) ? std::int64_t(n) : most;
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
    if (room.must_wait(sequence) || tokens_left_ == 0) return;
    if (bounds_prompts() && has_prompt_ && work_left_ < 1) return;  // before anything is looked up
    if (promised < 0) {
      promised = 0;
      for (const Sequence* other : running_) promised += lacks(*other);
    }
    room.start(sequence);
    const auto n = chunk(sequence);
    if (n == 0 || lacks(sequence) + promised > room.n_free() || !room.take(sequence, n))
      return room.give_back(sequence);
    waiting_.pop_back();
    running_.push_back(&sequence);
    give(sequence, n);
    promised += lacks(sequence);
  }
}

VITRINE_NAMESPACE_END
