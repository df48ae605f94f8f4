// Bodies of engine/session.hpp.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "vitrine/engine/available_memory.hpp"
#include "vitrine/engine/session.hpp"
#include "vitrine/ops/elementwise.hpp"

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

VITRINE_INLINE KvReach limit_of(const SessionOptions& options) { return {options.window, options.sinks}; }

VITRINE_INLINE AnyCache make_cache(const Transformer& transformer, const SessionOptions& options) {
  const auto layout = transformer.kv_layout(options.kv_type);
  const auto n_context = options.n_context;
  layout.check_type();
  if (options.cache == CacheKind::paged) {
    check(!options.pool || options.pool->layout() == layout, ErrorKind::bad_argument,
          "pool: expected blocks of this model's shape and of kv_type ", options.kv_type.name());
    return PagedCache(options.pool ? options.pool : std::make_shared<BlockPool>(layout), n_context);
  }
  check(!options.pool, ErrorKind::bad_argument, "pool: expected none for a cache that is not paged");
  const auto wanted = std::size_t(KvLayout::blocks_for(n_context)) * layout.block_bytes();
  const auto available = available_memory();
  check(available == 0 || wanted <= available, ErrorKind::out_of_memory, "a KV cache for n_context = ", n_context,
        " needs ", wanted, " bytes, ", available,
        " are available; n_context <= ", std::int64_t(available / layout.block_bytes()) * kv_block_tokens, " fits");
  if (options.cache == CacheKind::ring)
    return RingCache(layout, transformer.kv_reach(limit_of(options)), n_context, options.chunk);
  return ContiguousCache(layout, n_context);
}

VITRINE_INLINE SessionOptions with_defaults(SessionOptions options, const ModelConfig& config) {
  constexpr std::int64_t default_context = 4096, largest_context = std::int64_t(1) << 31;
  check(options.n_context >= 0 && options.n_context <= largest_context, ErrorKind::bad_argument,
        "n_context: expected 1 to ", largest_context, ", or 0 for the default, got ", options.n_context);
  check(options.chunk >= 1, ErrorKind::bad_argument, "chunk: expected at least 1 token, got ", options.chunk);
  check(options.n_threads >= 0 && options.n_threads <= max_threads, ErrorKind::bad_argument,
        "n_threads: expected 1 to ", max_threads, ", or 0 for all, got ", options.n_threads);
  check(options.window >= 0, ErrorKind::bad_argument, "window: expected at least 1 token, or 0 for none, got ",
        options.window);
  check(options.sinks >= 0 && options.sinks <= attention_span && (options.sinks == 0 || options.window > 0),
        ErrorKind::bad_argument, "sinks: expected 0 to ", attention_span, " tokens beside a window, got ",
        options.sinks, " and a window of ", options.window);
  check(options.cache >= CacheKind::contiguous && options.cache <= CacheKind::ring, ErrorKind::bad_argument,
        "cache: expected contiguous, paged or ring, got CacheKind(", int(options.cache), ")");
  if (options.n_context == 0) options.n_context = (std::min)(config.n_context, default_context);
  if (options.n_threads == 0) options.n_threads = available_threads();
  options.chunk = (std::min)(options.chunk, options.n_context);
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
  Tensor<float, 2> logits;    // [1 or max_logit_rows, n_vocab]
  std::vector<Token> tokens;  // the sequence; its K and V are in the cache, unless use_cache is off
  std::int64_t n_passes = 0, n_pass_tokens = 0;
  std::atomic<bool> in_use{false};

  Impl(std::shared_ptr<const Model> shared_model, SessionOptions wanted)
      : model(std::move(shared_model)),
        options(session_detail::with_defaults(std::move(wanted), model->config())),
        kernels(options.isa ? vitrine::kernels(*options.isa) : vitrine::kernels()),
        team(options.n_threads, options.crowding),
        cache(session_detail::make_cache(model->transformer(), options)),
        scratch(model->transformer().make_scratch(options.chunk, options.n_context, options.n_threads,
                                                  session_detail::limit_of(options))),
        logits({1, model->config().n_vocab}) {
    tokens.reserve(std::size_t(options.n_context));
  }

  // A fork: the same tokens, with threads and memory of its own.
  Impl(const Impl& other)
      : model(other.model),
        options(other.options),
        kernels(other.kernels),
        team(options.n_threads, options.crowding),
        cache(other.cache.fork()),
        scratch(model->transformer().make_scratch(options.chunk, options.n_context, options.n_threads,
                                                  session_detail::limit_of(options))),
        logits({1, model->config().n_vocab}) {
    tokens.reserve(std::size_t(options.n_context));
    tokens = other.tokens;
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

  // One pass over tokens [cache.length(), +n), whose last n_logits rows of logits are wanted.
  bool pass(std::int64_t n, std::int64_t n_logits, const std::stop_token& stop) {
    const parallel_detail::DefaultFloatEnvironment environment;  // a host that traps on NaN still gets an Error
    const auto pos0 = cache.length();
    cache.prepare(n);
    const SequenceSlice slice{&cache.tables(), pos0, 0, n};
    std::int64_t rows[session_detail::max_logit_rows];
    for (std::int64_t i = 0; i < n_logits; ++i) rows[i] = n - n_logits + i;
    const Batch batch{
        std::span(tokens).subspan(std::size_t(pos0), std::size_t(n)), {&slice, 1}, {rows, std::size_t(n_logits)}};
    const bool completed = model->transformer().forward(team, kernels, batch, scratch, logits.view(),
                                                        options.trace ? &options.trace : nullptr, stop);
    if (!completed) return false;
    cache.append(n);
    ++n_passes;
    n_pass_tokens += n;
    for (std::int64_t i = 0; i < n_logits; ++i)
      check(find_peak(kernels, std::as_const(logits).view().row(i)).all_finite, ErrorKind::numeric_failure,
            "the logits at position ", pos0 + rows[i], " hold NaN or infinity");
    return true;
  }

  // Appends `more` and computes what the cache lacks of `tokens`, in chunks. What goes wrong takes `more` back.
  template <class AfterChunk>
  void evaluate(std::span<const Token> more, std::int64_t chunk, bool all_logits, const std::stop_token& stop,
                const Progress& progress, AfterChunk&& after_chunk) {
    const auto n_before = tokens.size();
    tokens.insert(tokens.end(), more.begin(), more.end());
    try {
      if (!options.use_cache) cache.truncate(0);
      const auto total = std::int64_t(tokens.size()), first = cache.length();
      while (cache.length() < total) {
        const auto n = (std::min)(chunk, total - cache.length());
        const bool last = cache.length() + n == total;
        check(pass(n, all_logits ? n : (last ? 1 : 0), stop), ErrorKind::cancelled, "cancelled after ", cache.length(),
              " of ", counted(total, "token"));
        after_chunk(n);
        if (progress) progress({"prefill", cache.length() - first, total - first, "tokens"});
      }
    } catch (...) {
      tokens.resize(n_before);
      cache.truncate_or_empty((std::min)(cache.length(), std::int64_t(n_before)));  // emptied: computed again next time
      throw;
    }
  }

  std::span<const float> last_logits() const { return logits.view().row(0); }
};

VITRINE_INLINE Session::Session(std::shared_ptr<const Model> model, SessionOptions options) {
  check(model != nullptr, ErrorKind::bad_argument, "model: expected one, got a null pointer");
  const auto make = [&] { return std::make_unique<Impl>(std::move(model), options); };
  impl_ = naming_memory(make, "a session with n_context = ", options.n_context, ", chunk = ", options.chunk,
                        ", n_threads = ", options.n_threads);
}
VITRINE_INLINE Session::Session() = default;
VITRINE_INLINE Session::~Session() = default;
VITRINE_INLINE Session::Session(Session&&) noexcept = default;
VITRINE_INLINE Session& Session::operator=(Session&&) noexcept = default;
VITRINE_INLINE Session::Impl& Session::impl() const { return owned(impl_.get(), "session"); }

VITRINE_INLINE std::span<const float> Session::prefill(std::span<const Token> more, const std::stop_token& stop,
                                                       const Progress& progress) {
  const session_detail::InUse in_use(impl().in_use);
  impl().check_new(more);
  impl().evaluate(more, impl().options.chunk, false, stop, progress, [](std::int64_t) {});
  return impl().last_logits();
}

VITRINE_INLINE std::span<const float> Session::decode(Token token, const std::stop_token& stop) {
  const session_detail::InUse in_use(impl().in_use);
  impl().check_new({&token, 1});
  impl().evaluate({&token, 1}, impl().options.chunk, false, stop, {}, [](std::int64_t) {});
  return impl().last_logits();
}

VITRINE_INLINE void Session::prefill_logits(std::span<const Token> more, const LogitsObserver& see,
                                            const std::stop_token& stop, const Progress& progress) {
  const session_detail::InUse in_use(impl().in_use);
  check(bool(see), ErrorKind::bad_argument, "see: expected a function, got an empty one");
  impl().check_new(more);
  const auto rows = (std::min)(session_detail::max_logit_rows, impl().options.chunk);
  const auto n_vocab = impl().model->config().n_vocab;
  if (impl().logits.shape()[0] < rows)
    impl().logits = naming_memory(
        [&] {
          return Tensor<float, 2>({rows, n_vocab});
        },
        "logits of ", counted(rows, "token"));
  const auto first_new = length();
  impl().evaluate(more, rows, true, stop, progress, [&](std::int64_t n) {
    const auto pos0 = impl().cache.length() - n;
    for (std::int64_t i = 0; i < n; ++i)
      if (pos0 + i >= first_new) see(pos0 + i, std::as_const(impl().logits).view().row(i));
  });
}

VITRINE_INLINE void Session::truncate(std::int64_t n_tokens) {
  const session_detail::InUse in_use(impl().in_use);
  check(n_tokens >= 0 && n_tokens <= length(), ErrorKind::bad_argument, "truncate: expected 0 to ", length(),
        " tokens, got ", n_tokens);
  impl().tokens.resize(std::size_t(n_tokens));
  impl().cache.truncate_or_empty((std::min)(impl().cache.length(), n_tokens));
}

VITRINE_INLINE Session Session::fork() const {
  const session_detail::InUse in_use(impl().in_use);
  const auto copy = [&] { return std::make_unique<Impl>(std::as_const(impl())); };
  Session other;
  other.impl_ = naming_memory(copy, "a fork of a session with ", counted(length(), "token"));
  return other;
}

VITRINE_INLINE std::span<const Token> Session::tokens() const { return impl().tokens; }
VITRINE_INLINE std::int64_t Session::context() const { return impl().options.n_context; }
VITRINE_INLINE const Model& Session::model() const { return *impl().model; }
VITRINE_INLINE const SessionOptions& Session::options() const { return impl().options; }
VITRINE_INLINE const char* Session::isa() const { return impl().kernels.name; }
VITRINE_INLINE std::size_t Session::kv_bytes() const { return impl().cache.bytes(); }
VITRINE_INLINE const AnyCache& Session::cache() const { return impl().cache; }
VITRINE_INLINE std::int64_t Session::n_passes() const { return impl().n_passes; }
VITRINE_INLINE std::int64_t Session::n_pass_tokens() const { return impl().n_pass_tokens; }

VITRINE_NAMESPACE_END
