// What a session is made of, and how it computes: shared by the bodies of engine/session.hpp.
#pragma once

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "vitrine/engine/available_memory.hpp"
#include "vitrine/engine/memory_plan.hpp"
#include "vitrine/engine/prefix_cache.hpp"
#include "vitrine/engine/session.hpp"
#include "vitrine/ops/logits.hpp"

VITRINE_NAMESPACE_BEGIN

namespace session_detail {

inline constexpr std::int64_t max_logit_rows = 16;  // tokens whose logits are kept at a time by prefill_logits

// Marks a session as in use while a call runs: calls from a callback of its own, or from a second thread, are refused.
class InUse {
 public:
  explicit InUse(std::atomic<bool>& flag) : flag_(flag) {
    check(!flag.exchange(true), ErrorKind::bad_argument,
          "session: expected one call at a time, got a call during another (from its callback or a second thread)");
  }
  ~InUse() { flag_ = false; }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

 private:
  std::atomic<bool>& flag_;
};

// Refuses what would not fit before anything of it is allocated. A paged cache takes what it needs when it needs it.
inline void check_memory(const Model& model, const SessionOptions& options) {
  if (options.cache == CacheKind::paged) return;
  const auto needed = plan(model.config(), options);
  const auto available = available_memory();
  if (available == 0 || needed.total() <= available) return;
  const auto fits = longest_context(model.config(), options, available);
  throw Error(ErrorKind::out_of_memory,
              concat("it needs ", needed.total(), " bytes (", needed.kv, " for K and V, ", needed.total() - needed.kv,
                     " for its work), ", available, " are available; ",
                     fits > 0 ? concat("n_context <= ", fits, " fits") : std::string("no context fits")));
}

inline AnyCache make_cache(const Transformer& transformer, const SessionOptions& options) {
  const auto layout = transformer.kv_layout(options.kv_type);
  if (options.cache == CacheKind::ring)
    return RingCache(layout, transformer.kv_reach(options.limit()), options.n_context, options.chunk);
  if (options.cache == CacheKind::contiguous) return ContiguousCache(layout, options.n_context);
  return PagedCache(options.pool, options.n_context);
}

inline void check_pool(const Model& model, const SessionOptions& options) {
  constexpr auto bad = ErrorKind::bad_argument;
  check(!options.pool || options.cache == CacheKind::paged, bad, "pool: expected none for a cache that is not paged");
  check(!options.pool || options.pool->layout() == model.transformer().kv_layout(options.kv_type), bad,
        "pool: expected blocks of this model's shape and of kv_type");
  if (!options.prefixes) return;
  check(options.cache != CacheKind::ring, bad, "prefixes: expected a cache that keeps every token, not a ring");
  check(options.window == 0, bad, "prefixes: expected the model's own windows, got a window of ", options.window);
  check(options.prefixes->model_fingerprint() == model.fingerprint() &&
            options.prefixes->pool()->layout() == model.transformer().kv_layout(options.kv_type),
        bad, "prefixes: expected those of this model and of kv_type");
}

inline SessionOptions checked(const Model& model, SessionOptions options) {
  options = with_defaults(std::move(options), model.config());
  check_pool(model, options);
  if (options.cache == CacheKind::paged && !options.pool)
    options.pool = options.prefixes ? options.prefixes->pool()
                                    : std::make_shared<BlockPool>(model.transformer().kv_layout(options.kv_type));
  check_memory(model, options);
  return options;
}

}  // namespace session_detail

struct Session::Impl {
  std::shared_ptr<const Model> model;
  SessionOptions options;
  const KernelTable& kernels;
  Team team;
  AnyCache cache;
  PassScratch scratch;
  LogitRows logits;  // 1 or max_logit_rows
  std::optional<TopLogits> top;
  std::int64_t n_top = 0;     // so many of the largest logits are enough for the call at hand; 0: all are wanted
  std::vector<Token> tokens;  // the sequence; its K and V are in the cache, unless use_cache is off
  // Guesses of decode() that still stand: their K and V are in the cache behind `tokens`, the logits after the first
  // i of them in row i.
  std::vector<Token> guesses;
  std::size_t n_followed = 0;  // of the guesses, which are in `tokens` now
  std::int64_t n_passes = 0, n_pass_tokens = 0;
  std::int64_t n_cached_tokens = 0;       // of the last prefill: taken from the prefixes
  std::int64_t n_kept_blocks = 0;         // that the prefixes were given
  std::int64_t edited_from = not_edited;  // tokens from here on were moved by remove_range, or came behind such ones
  static constexpr std::int64_t not_edited = (std::numeric_limits<std::int64_t>::max)();
  std::atomic<bool> in_use{false};

  Impl(std::shared_ptr<const Model> shared_model, SessionOptions wanted)
      : model(std::move(shared_model)),
        options(session_detail::checked(*model, std::move(wanted))),
        kernels(options.isa ? vitrine::kernels(*options.isa) : vitrine::kernels()),
        team(options.n_threads, options.crowding),
        cache(session_detail::make_cache(model->transformer(), options)),
        scratch(
            model->transformer().make_scratch(options.chunk, options.n_context, options.n_threads, options.limit())),
        logits(1, model->config().n_vocab),
        top(make_top_logits(model->weights().head(), options.top_logits)) {
    tokens.reserve(std::size_t(options.n_context));
    guesses.reserve(session_detail::max_logit_rows);
  }

  // A fork: the same tokens, with threads and memory of its own.
  Impl(const Impl& other)
      : model(other.model),
        options(other.options),
        kernels(other.kernels),
        team(options.n_threads, options.crowding),
        cache(other.cache.fork()),
        scratch(
            model->transformer().make_scratch(options.chunk, options.n_context, options.n_threads, options.limit())),
        logits(1, model->config().n_vocab),
        top(make_top_logits(model->weights().head(), options.top_logits)) {
    tokens.reserve(std::size_t(options.n_context));
    tokens = other.tokens;
    edited_from = other.edited_from;
    guesses.reserve(session_detail::max_logit_rows);
    forget_guesses();
  }

  std::size_t n_ahead() const { return guesses.size() - n_followed; }
  void forget_guesses() {
    guesses.clear();
    n_followed = 0;
    if (cache.length() > std::int64_t(tokens.size())) cache.truncate_or_empty(std::int64_t(tokens.size()));
  }
  // Whether this token was guessed, so that all is there already.
  bool follow(Token token) {
    if (n_ahead() == 0 || guesses[n_followed] != token) return false;
    check_row(std::int64_t(n_followed) + 1, std::int64_t(tokens.size()));
    tokens.push_back(token);
    ++n_followed;
    return true;
  }

  void reserve_rows(std::int64_t n_rows) {
    const auto n_vocab = model->config().n_vocab;
    if (logits.n_rows() >= n_rows) return;
    const auto make = [&] { return LogitRows(n_rows, n_vocab); };
    logits = naming_memory(make, "logits of ", counted(n_rows, "token"));
  }
  void check_row(std::int64_t row, std::int64_t position) const {
    check(all_finite(kernels, logits.row(row)), ErrorKind::numeric_failure, "the logits at position ", position,
          " hold NaN or infinity");
  }

  void check_new(std::span<const Token> more) const {
    check(!more.empty(), ErrorKind::bad_argument, "tokens: expected at least 1, got none");
    const auto n_vocab = model->config().n_vocab;
    for (std::size_t i = 0; i < more.size(); ++i)
      check(more[i] >= 0 && more[i] < n_vocab, ErrorKind::bad_argument, "token at index ", i, ": expected 0 to ",
            n_vocab - 1, ", got ", more[i]);
    check(std::int64_t(more.size()) <= options.n_context - std::int64_t(tokens.size()), ErrorKind::context_full,
          counted(std::int64_t(more.size()), "token"), more.size() == 1 ? " does" : " do",
          " not fit the context: ", tokens.size(), " of ", options.n_context, " are in use");
  }

  // Room for n more tokens; when the pool has none left, prefixes that nobody uses make some.
  void prepare(std::int64_t n) {
    const auto* const paged = cache.paged();
    if (paged && options.prefixes && options.prefixes->pool() == paged->pool()) {
      const auto missing = paged->blocks_wanted(n) - paged->pool()->counts().n_free;
      if (missing > 0) options.prefixes->give_back(missing);
    }
    cache.prepare(n);
  }

  // Whole blocks are given to the prefixes as soon as they are full.
  void keep_prefix() {
    const auto n_whole = cache.length() / kv_block_tokens;
    if (options.prefixes && n_whole > n_kept_blocks && !is_edited()) options.prefixes->keep(cache, tokens);
    n_kept_blocks = n_whole;
  }
  // Whether tokens that were moved are still among those held: their K and V are not what computing would give.
  bool is_edited() const { return std::int64_t(tokens.size()) > edited_from; }

  // One pass over tokens [cache.length(), +n), whose last n_logits rows of logits are wanted.
  bool pass(std::int64_t n, std::int64_t n_logits, const std::stop_token& stop) {
    const parallel_detail::DefaultFloatEnvironment environment;  // a host that traps on NaN still gets an Error
    const auto pos0 = cache.length();
    prepare(n);
    const SequenceSlice slice{&cache.tables(), pos0, 0, n};
    std::int64_t rows[session_detail::max_logit_rows];
    for (std::int64_t i = 0; i < n_logits; ++i) rows[i] = n - n_logits + i;
    const Batch batch{
        std::span(tokens).subspan(std::size_t(pos0), std::size_t(n)), {&slice, 1}, {rows, std::size_t(n_logits)}};
    const auto view = logits.view(top ? &*top : nullptr, n_top);
    const bool completed = model->transformer().forward(team, kernels, batch, scratch, view,
                                                        options.trace ? &options.trace : nullptr, stop);
    if (!completed) return false;
    cache.append(n);
    ++n_passes;
    n_pass_tokens += n;
    return true;
  }

  // Appends `more` and computes what the cache lacks of `tokens`, in chunks, with the logits of the last n_wanted.
  // after_chunk(n_logits) follows each. What goes wrong takes `more` back.
  template <class AfterChunk>
  void evaluate(std::span<const Token> more, std::int64_t chunk, std::int64_t n_wanted, const std::stop_token& stop,
                const Progress& progress, AfterChunk&& after_chunk) {
    const auto n_before = tokens.size();
    tokens.insert(tokens.end(), more.begin(), more.end());
    try {
      if (!options.use_cache) cache.truncate(0);
      n_cached_tokens = 0;
      const bool reuses = options.prefixes && options.use_cache && n_wanted == 1 && !is_edited();
      if (reuses && std::int64_t(tokens.size()) > cache.length() + 1)
        n_cached_tokens = options.prefixes->begin(cache, tokens);
      const auto total = std::int64_t(tokens.size()), first = cache.length();
      while (cache.length() < total) {
        const auto n = (std::min)(chunk, total - cache.length());
        const auto n_logits = (std::clamp)(cache.length() + n - (total - n_wanted), std::int64_t(0), n);
        check(pass(n, n_logits, stop), ErrorKind::cancelled, "cancelled after ", cache.length(), " of ",
              counted(total, "token"));
        after_chunk(n_logits);
        keep_prefix();  // only what gave finite logits
        if (progress) progress({"prefill", cache.length() - first, total - first, "tokens"});
      }
    } catch (...) {
      tokens.resize(n_before);
      cache.truncate_or_empty((std::min)(cache.length(), std::int64_t(n_before)));  // emptied: computed again next time
      throw;
    }
  }

  // Appends `more` and gives the logits of its first token of which any are wanted.
  Logits last_logits(std::span<const Token> more, std::int64_t n_wanted, const std::stop_token& stop,
                     const Progress& progress, std::int64_t n_top_wanted = 0) {
    n_top = n_top_wanted;
    evaluate(more, options.chunk, n_wanted, stop, progress, [&](std::int64_t n_logits) {
      if (n_logits > 0) check_row(0, std::int64_t(tokens.size()) - n_wanted);
    });
    return logits.row(0);
  }
};

VITRINE_NAMESPACE_END
