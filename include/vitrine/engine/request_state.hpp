// What a request's handle and the engine's thread share. Internal to the engine.
//
//   engine's thread   locks, writes a token into `given` and `result`, wakes the handle; at the end sets `finished`
//   handle            waits for `changed`, takes what is given; sets `cancelled` to end it, without the lock
//
// Handles and engine hold it together, so either may go first. From `finished` on nobody writes `result`, and it is
// read without the lock.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/engine/request.hpp"

VITRINE_NAMESPACE_BEGIN

namespace engine_detail {

struct RequestState {
  std::atomic<bool> cancelled{false};
  std::mutex mutex;  // of all below, until finished
  std::condition_variable changed;
  struct Given {
    Token id;
    std::size_t text_end;  // of its text in result.text
    double seconds;        // since the request
  };
  std::vector<Given> given;  // what next() gives, token by token
  RequestResult result;
  bool finished = false;
};

}  // namespace engine_detail

VITRINE_NAMESPACE_END
