// Bodies of engine/request.hpp.
#pragma once

#include <utility>

#include "vitrine/engine/request.hpp"
#include "vitrine/engine/request_state.hpp"

VITRINE_NAMESPACE_BEGIN

VITRINE_INLINE RequestHandle::RequestHandle(std::shared_ptr<engine_detail::RequestState> state)
    : state_(std::move(state)) {}
VITRINE_INLINE RequestHandle::~RequestHandle() {
  if (state_) state_->cancelled = true;
}
VITRINE_INLINE RequestHandle::RequestHandle(RequestHandle&& other) noexcept { *this = std::move(other); }
VITRINE_INLINE RequestHandle& RequestHandle::operator=(RequestHandle&& other) noexcept {
  if (this != &other && state_) state_->cancelled = true;
  state_ = std::move(other.state_);
  n_read_ = std::exchange(other.n_read_, 0);
  text_ = std::move(other.text_);
  log_probabilities_ = std::move(other.log_probabilities_);
  token_ = other.token_;
  token_.text = text_;
  if (token_.log_probabilities) token_.log_probabilities = &log_probabilities_;
  return *this;
}
VITRINE_INLINE engine_detail::RequestState& RequestHandle::state() const { return owned(state_.get(), "request"); }

VITRINE_INLINE const GeneratedToken* RequestHandle::next() {
  auto& shared = state();
  std::unique_lock lock(shared.mutex);
  shared.changed.wait(lock, [&] { return shared.finished || shared.given.size() > n_read_; });
  const auto& result = shared.result;
  if (n_read_ == shared.given.size()) {
    if (result.error) std::rethrow_exception(result.error);
    return nullptr;
  }
  const auto& given = shared.given[n_read_];
  const auto begin = n_read_ == 0 ? 0 : shared.given[n_read_ - 1].text_end;
  text_.assign(result.text, begin, given.text_end - begin);
  token_ = {given.id, text_, std::int64_t(n_read_), given.seconds};
  if (n_read_ < result.log_probabilities.size()) {
    log_probabilities_ = result.log_probabilities[n_read_];  // a copy: the vector may move
    token_.log_probabilities = &log_probabilities_;
  }
  ++n_read_;
  return &token_;
}

VITRINE_INLINE void RequestHandle::cancel() { state().cancelled = true; }

VITRINE_INLINE bool RequestHandle::finished() const {
  const std::lock_guard lock(state().mutex);
  return state().finished;
}

VITRINE_INLINE const RequestResult& RequestHandle::wait() {
  auto& shared = state();
  std::unique_lock lock(shared.mutex);
  shared.changed.wait(lock, [&] { return shared.finished; });
  return shared.result;
}

VITRINE_NAMESPACE_END
