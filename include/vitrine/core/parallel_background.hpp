// A thread beside the host's, for work that goes on while calls return: the engine's steps run on one.
//
//   BackgroundThread thread;
//   thread.start([&] { ... });      // what it throws is lost, so catch it inside
//
// The destructor waits for its end; asking it to end is the owner's part.
#pragma once

#include <system_error>
#include <thread>
#include <utility>

#include "vitrine/core/config.hpp"
#include "vitrine/core/error.hpp"

VITRINE_NAMESPACE_BEGIN

class BackgroundThread {
 public:
  BackgroundThread() = default;
  ~BackgroundThread() {
    if (thread_.joinable()) thread_.join();
  }
  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;

  // Once. Throws Error::out_of_memory when the system refuses a thread.
  template <class Body>
  void start(Body body) {
    auto guarded = [body = std::move(body)]() mutable {
      try {
        body();
      } catch (...) {
      }
    };
    try {
      thread_ = std::thread(std::move(guarded));
    } catch (const std::system_error& refused) {
      throw Error(ErrorKind::out_of_memory, concat("a background thread could not be started (", refused.what(), ")"));
    }
  }

 private:
  std::thread thread_;
};

VITRINE_NAMESPACE_END
