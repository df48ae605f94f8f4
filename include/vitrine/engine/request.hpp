// A request to an engine, seen from the program that made it: tokens as they come, the way to cancel, the result.
//
//   RequestHandle answer = engine.submit(prompt, {.max_new_tokens = 100});
//   for (const GeneratedToken& token : answer) std::cout << token.text << std::flush;   // waits for each
//   const RequestResult& result = answer.wait();                                        // waits for the end
//
// A handle may outlive its engine, and may be used by one thread at a time (cancel() by any). Dropping it cancels the
// request, since nobody could see the rest.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <string>

#include "vitrine/core/config.hpp"
#include "vitrine/engine/generate.hpp"
#include "vitrine/engine/metrics.hpp"

VITRINE_NAMESPACE_BEGIN

struct RequestResult : GenerateResult {
  std::exception_ptr error;  // why, when reason is FinishReason::failed
  RequestMetrics metrics;
};

// Called by the engine's thread for each token, between two steps: all requests wait for it, so it should be short. It
// returns false to end its request; what it throws makes that request fail. It must not wait for a request nor destroy
// the engine.
using OnToken = std::function<bool(const GeneratedToken&)>;

namespace engine_detail {
struct RequestState;  // shared by handle and engine
}

class RequestHandle {
 public:
  RequestHandle() = default;  // of no request
  explicit RequestHandle(std::shared_ptr<engine_detail::RequestState> state);
  ~RequestHandle();
  RequestHandle(RequestHandle&& other) noexcept;
  RequestHandle& operator=(RequestHandle&& other) noexcept;

  // The next token, as soon as it is there; null when there are no more. Rethrows what made the request fail, once all
  // tokens before that were given. Token and text are valid until the next call.
  const GeneratedToken* next();

  void cancel();  // soon: what has been drawn meanwhile still comes
  bool finished() const;

  // Waits for the end and gives the result. Throws nothing: what went wrong is in the result.
  const RequestResult& wait();

  class Iterator {
   public:
    using value_type = GeneratedToken;
    using difference_type = std::ptrdiff_t;
    explicit Iterator(RequestHandle* handle = nullptr) : handle_(handle) { ++*this; }
    const GeneratedToken& operator*() const { return *token_; }
    const GeneratedToken* operator->() const { return token_; }
    Iterator& operator++() {
      token_ = nullptr;  // so it stays if next() throws
      if (handle_) token_ = handle_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return token_ == nullptr; }

   private:
    RequestHandle* handle_;
    const GeneratedToken* token_ = nullptr;
  };
  Iterator begin() { return Iterator(this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  engine_detail::RequestState& state() const;
  std::shared_ptr<engine_detail::RequestState> state_;
  std::size_t n_read_ = 0;
  std::string text_;  // of the current token
  TokenLogProbabilities log_probabilities_;
  GeneratedToken token_;
};

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/engine/request.inl.hpp"
#endif
