// One conversation with a model: the tokens so far, their KV cache, the scratch memory and the threads.
//
//   Session session(model, {.n_context = 2048});
//   Logits logits = session.prefill(prompt);   // all positions of a chunk through each layer together
//   logits = session.decode(next);             // one more token
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
#include <iosfwd>
#include <memory>
#include <span>
#include <stop_token>

#include "vitrine/cache/any_cache.hpp"
#include "vitrine/core/config.hpp"
#include "vitrine/core/progress.hpp"
#include "vitrine/core/token.hpp"
#include "vitrine/engine/model.hpp"
#include "vitrine/engine/prefix_cache.hpp"
#include "vitrine/engine/session_options.hpp"
#include "vitrine/ops/logits.hpp"
#include "vitrine/ops/top_logits.hpp"

VITRINE_NAMESPACE_BEGIN

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
  Logits prefill(std::span<const Token> tokens, const std::stop_token& stop = {}, const Progress& progress = {});
  // The same for one token; allocates nothing.
  Logits decode(Token token, const std::stop_token& stop = {});
  // The same with guesses of the tokens that will follow, of which up to 15 are computed in the same pass: as long as
  // the next calls of decode() give these, they return at once. What they return has the bits that it has without
  // guesses, and guesses are no part of the sequence. The first call with some allocates the room for their logits.
  Logits decode(Token token, std::span<const Token> guesses, const std::stop_token& stop = {});
  // The same for whoever needs the n_top largest logits only: these have the bits that they have in all of them, others
  // may be left out as -infinity, which only the maxima of Logits tell from a logit that is not finite: hand the row on
  // as Logits. Costs less where the head lies in planes, see ops/top_logits.hpp.
  Logits decode_top(Token token, std::int64_t n_top, const std::stop_token& stop = {});
  std::int64_t n_ahead() const;  // guesses that still stand

  // Appends tokens and shows the logits of every one of them: see(position, logits [n_vocab]), positions ascending. May
  // end as prefill may; bad_argument also for an empty `see`, out_of_memory for the room of its logits. What `see`
  // throws ends the call.
  using LogitsObserver = std::function<void(std::int64_t, const Logits&)>;
  void prefill_logits(std::span<const Token> tokens, const LogitsObserver& see, const std::stop_token& stop = {},
                      const Progress& progress = {});

  // Keeps the first n_tokens. Throws Error::bad_argument unless 0 <= n_tokens <= length(). Where a ring has overwritten
  // what these need (never within the last `chunk` tokens), the next call computes all tokens anew.
  void truncate(std::int64_t n_tokens);
  void reset() { truncate(0); }

  // A second session with the same tokens, options and model, to go on in another way. Paged: shares all blocks, and
  // who writes into a shared one copies it first; other kinds copy K and V. Throws Error::out_of_memory.
  Session fork() const;

  // Forgets tokens [begin, end) and moves the later ones up, turning their keys to the new positions. That is cheap and
  // not the same as computing the shorter text: what later tokens took from the forgotten ones stays in them, and keys
  // are rounded once more. Throws Error: bad_argument unless 0 <= begin <= end <= length(); unsupported for rings and
  // for caches that are not of floats, where reset() and prefill() of what shall stay do it instead.
  void remove_range(std::int64_t begin, std::int64_t end);

  // Writes the tokens with their K and V, and reads them back in place of what the session holds. What follows has the
  // same bits as without. A file goes with its model, types of K and V, kind of cache and version of the arithmetic.
  // Logits are not in it. Throws Error: io; bad_file for what is cut, damaged or foreign, context_full, and
  // out_of_memory or out_of_blocks; the session is then as it was.
  void save(std::ostream& out) const;
  void load(std::istream& in);

  std::span<const Token> tokens() const;  // the sequence so far
  std::int64_t length() const { return std::int64_t(tokens().size()); }
  std::int64_t context() const;
  const Model& model() const;
  const SessionOptions& options() const;  // with the defaults filled in
  const char* isa() const;                // name of the kernels in use
  std::size_t kv_bytes() const;           // reserved for K and V; of shared blocks, too
  const AnyCache& cache() const;
  std::int64_t n_cached_tokens() const;  // of the last prefill: found among the prefixes, not computed
  std::int64_t n_passes() const;         // forward passes run so far
  std::int64_t n_pass_tokens() const;    // tokens computed in them: with a cache, each position once
  TopLogits::Counts top_counts() const;  // of decode_top: what the head was spared

 private:
  struct Impl;
  Session();  // as if moved from
  Impl& impl() const;
  std::unique_ptr<Impl> impl_;
};

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/engine/session.inl.hpp"
#include "vitrine/engine/session_edit.inl.hpp"
#endif
