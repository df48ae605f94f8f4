// Many requests at once on one model: they join and leave at any step, and a step reads the weights once for all.
//
//   Engine engine(model, {.n_context = 2048});
//   RequestHandle a = engine.submit(prompt_a), b = engine.submit(prompt_b, {.max_new_tokens = 50});
//   std::cout << a.wait().text << b.wait().text;
//
// Any thread may call anything at any time; no call waits for a step. Steps run on a thread of the engine's own, which
// sleeps when there is nothing to do. Which requests are in a step, and with how many tokens: scheduler.hpp. K and V
// are in a pool of blocks that all share: cache/paged.hpp. Those of requests that have ended stay there as long as
// there is room, for others that begin alike: prefix_cache.hpp. Each request gets the tokens that generate() gives it
// on a session of its own, whatever else is going on.
//
// What is wrong with a request is said at submit, by an Error; what happens later ends that request alone, with the
// error in its result.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/core/parallel.hpp"
#include "vitrine/core/token.hpp"
#include "vitrine/engine/generate.hpp"
#include "vitrine/engine/metrics.hpp"
#include "vitrine/engine/model.hpp"
#include "vitrine/engine/prefix_cache.hpp"
#include "vitrine/engine/request.hpp"
#include "vitrine/engine/scheduler.hpp"
#include "vitrine/simd/dispatch.hpp"

VITRINE_NAMESPACE_BEGIN

struct EngineOptions {
  std::int64_t n_context = 0;  // tokens of one request at most; 0: what the model was trained for, at most 4096
  SchedulerOptions scheduler{};
  std::int64_t max_queued = 1024;  // requests that may wait; more are refused
  std::int64_t kv_blocks = 0;  // of 64 tokens, for all requests together; 0: enough for max_running full contexts, but
                               // no more than half of what memory is available. Memory is taken as it is needed.
  int n_threads = 0;           // 0: as many as this process may use
  Crowding crowding = Crowding::step_aside;  // fewer for a while when other programs want the processors too
  KvTypes kv_type = DType::f16;              // elements of the KV cache, as in SessionOptions
  // What is kept of requests for others that begin alike, in the engine's own pool and of its kv_type; none: nothing.
  std::optional<PrefixOptions> prefixes = PrefixOptions{};
  bool top_logits = true;    // as in SessionOptions, for steps of a single request
  std::optional<Isa> isa{};  // kernels to use; none: the best there are
};

class Engine {
 public:
  // Throws Error: bad_argument naming the option; out_of_memory; io for a folder of prefixes that cannot be used.
  explicit Engine(std::shared_ptr<const Model> model, EngineOptions options = {});
  // Cancels what has not ended; drain() before it lets all end.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Puts a request behind all others. Throws Error: bad_argument naming the option, or the token by index and value;
  // context_full when the prompt leaves no room to answer; queue_full when max_queued wait already.
  RequestHandle submit(std::vector<Token> prompt, GenerateOptions options = {}, OnToken on_token = {});

  // Several answers to one prompt, which is computed once: all share its blocks, and go on in their own. Sample i draws
  // with seed + i. All are taken, or none.
  std::vector<RequestHandle> submit_samples(std::vector<Token> prompt, std::int64_t n_samples,
                                            GenerateOptions options = {});

  void drain();  // waits until no request is left

  EngineMetrics metrics() const;
  const EngineOptions& options() const;  // with the defaults filled in
  const Model& model() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/engine/engine.inl.hpp"
#endif
