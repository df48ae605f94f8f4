// One conversation with a model: the tokens so far, their KV cache, the scratch memory and the threads.
//
//   Session session(model, {.n_context = 2048});
//   std::span<const float> logits = session.prefill(prompt);   // all positions of a chunk through each layer together
//   logits = session.decode(next);                             // one more token
//
// A session is used by one thread at a time and may be moved (calls on what it was moved from are Error::bad_argument);
// any number of sessions may share a model. The logits it gives are bit-identical for any chunk size, number of threads
// and instruction set, and with the cache or without. What fails leaves the session as it was before the call.
//
// In a host that uses OpenMP itself, a call from inside one of its parallel regions gets as many threads as OpenMP
// grants there: one, unless nested regions are allowed (omp_set_max_active_levels). It is slower then, with the same
// bits. After fork() a child must make sessions with one thread, since OpenMP's stay with the parent. A build with
// VITRINE_STD_THREADS knows neither limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>

#include "vitrine/cache/any_cache.hpp"
#include "vitrine/core/config.hpp"
#include "vitrine/core/parallel.hpp"
#include "vitrine/core/progress.hpp"
#include "vitrine/core/token.hpp"
#include "vitrine/core/trace.hpp"
#include "vitrine/engine/model.hpp"
#include "vitrine/ops/kv_view.hpp"
#include "vitrine/simd/dispatch.hpp"

VITRINE_NAMESPACE_BEGIN

struct SessionOptions {
  // Tokens the session can hold; 0: what the model was trained for, at most 4096. More than it was trained for is
  // computed as it stands, with rotations that the model has never seen: the text is likely to get worse.
  std::int64_t n_context = 0;
  int n_threads = 0;                         // 0: as many as this process may use
  Crowding crowding = Crowding::step_aside;  // fewer for a while when other programs want the processors too
  KvTypes kv_type = DType::f16;  // elements of the KV cache: f32, f16, bf16, int8 or int4; {k, v} if they differ
  CacheKind cache = CacheKind::contiguous;  // where K and V are kept: changes memory, never a result
  std::shared_ptr<BlockPool> pool{};        // paged: the pool to take blocks from; none: one for this and its forks
  // Each token looks at this many keys only, itself included, and at the first `sinks` ones (at most 256) besides;
  // 0: as the model was trained. With cache = ring the memory stays bounded, but what has left the window is forgotten.
  std::int64_t window = 0, sinks = 0;
  std::int64_t chunk = 256;  // prompt tokens per pass; changes speed and scratch memory, never a result
  bool use_cache = true;     // false: every step computes the whole sequence anew, to see what the cache is good for
  std::optional<Isa> isa{};  // kernels to use; none: the best there are, see simd/dispatch.hpp
  TraceObserver trace{};     // is shown every intermediate
};

class Session {
 public:
  // Throws Error: bad_argument naming the option; out_of_memory with the bytes wanted and available and the longest
  // context that fits.
  explicit Session(std::shared_ptr<const Model> model, SessionOptions options = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  // Appends tokens [n] and returns the logits [n_vocab] of the last one, valid until the next call. Throws Error:
  // bad_argument (no tokens, an id outside the vocabulary), context_full, cancelled, numeric_failure.
  std::span<const float> prefill(std::span<const Token> tokens, const std::stop_token& stop = {},
                                 const Progress& progress = {});
  // The same for one token; allocates nothing.
  std::span<const float> decode(Token token, const std::stop_token& stop = {});

  // Appends tokens and shows the logits of every one of them: see(position, logits [n_vocab]), positions ascending. May
  // end as prefill may; bad_argument also for an empty `see`, out_of_memory for the room of its logits. What `see`
  // throws ends the call.
  using LogitsObserver = std::function<void(std::int64_t, std::span<const float>)>;
  void prefill_logits(std::span<const Token> tokens, const LogitsObserver& see, const std::stop_token& stop = {},
                      const Progress& progress = {});

  // Keeps the first n_tokens. Throws Error::bad_argument unless 0 <= n_tokens <= length(). A ring can go back by at
  // least `chunk` tokens; further back, where it has overwritten keys, the next call computes all tokens anew.
  void truncate(std::int64_t n_tokens);
  void reset() { truncate(0); }

  // A second session with the same tokens, options and model, to go on in another way. Paged: shares all blocks, and
  // who writes into a shared one copies it first; other kinds copy K and V. Throws Error::out_of_memory.
  Session fork() const;

  std::span<const Token> tokens() const;  // the sequence so far
  std::int64_t length() const { return std::int64_t(tokens().size()); }
  std::int64_t context() const;
  const Model& model() const;
  const SessionOptions& options() const;  // with the defaults filled in
  const char* isa() const;                // name of the kernels in use
  std::size_t kv_bytes() const;           // reserved for K and V; of shared blocks, too
  const AnyCache& cache() const;
  std::int64_t n_passes() const;       // forward passes run so far
  std::int64_t n_pass_tokens() const;  // tokens computed in them: with a cache, each position once

 private:
  struct Impl;
  Session();  // as if moved from
  Impl& impl() const;
  std::unique_ptr<Impl> impl_;
};

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/engine/session.inl.hpp"
#endif
