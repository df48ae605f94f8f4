// Bodies of engine/session.hpp; saving and editing are in session_edit.inl.hpp.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "vitrine/engine/session.hpp"
#include "vitrine/engine/session_impl.inl.hpp"

VITRINE_NAMESPACE_BEGIN

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

VITRINE_INLINE Logits Session::prefill(std::span<const Token> more, const std::stop_token& stop,
                                       const Progress& progress) {
  const session_detail::InUse in_use(impl().in_use);
  impl().check_new(more);
  impl().forget_guesses();
  return impl().last_logits(more, 1, stop, progress);
}

VITRINE_INLINE Logits Session::decode(Token token, const std::stop_token& stop) { return decode(token, {}, stop); }

VITRINE_INLINE Logits Session::decode(Token token, std::span<const Token> guesses, const std::stop_token& stop) {
  const session_detail::InUse in_use(impl().in_use);
  auto& self = impl();
  self.check_new({&token, 1});
  if (self.follow(token)) return self.logits.row(std::int64_t(self.n_followed));
  self.forget_guesses();
  const auto room = (std::min)({session_detail::max_logit_rows, self.options.chunk, context() - length()}) - 1;
  const bool can_guess = self.options.use_cache && self.cache.length() == length();
  const auto n = can_guess ? (std::min)(room, std::int64_t(guesses.size())) : 0;
  if (n == 0) return self.last_logits({&token, 1}, 1, stop, {});
  self.check_new(guesses.first(std::size_t(n)));
  self.reserve_rows(session_detail::max_logit_rows);
  Token all[session_detail::max_logit_rows] = {token};
  std::copy_n(guesses.begin(), n, all + 1);
  const auto logits = self.last_logits({all, std::size_t(n) + 1}, n + 1, stop, {});
  self.tokens.resize(self.tokens.size() - std::size_t(n));
  self.guesses.assign(all + 1, all + 1 + n);
  return logits;
}

VITRINE_INLINE Logits Session::decode_top(Token token, std::int64_t n_top, const std::stop_token& stop) {
  const session_detail::InUse in_use(impl().in_use);
  auto& self = impl();
  check(n_top >= 1, ErrorKind::bad_argument, "n_top: expected at least 1, got ", n_top);
  self.check_new({&token, 1});
  if (self.follow(token)) return self.logits.row(std::int64_t(self.n_followed));
  self.forget_guesses();
  return self.last_logits({&token, 1}, 1, stop, {}, n_top);
}

VITRINE_INLINE std::int64_t Session::n_ahead() const { return std::int64_t(impl().n_ahead()); }

VITRINE_INLINE void Session::prefill_logits(std::span<const Token> more, const LogitsObserver& see,
                                            const std::stop_token& stop, const Progress& progress) {
  const session_detail::InUse in_use(impl().in_use);
  check(bool(see), ErrorKind::bad_argument, "see: expected a function, got an empty one");
  impl().check_new(more);
  auto& self = impl();
  self.forget_guesses();
  const auto rows = (std::min)(session_detail::max_logit_rows, self.options.chunk);
  self.reserve_rows(rows);
  self.n_top = 0;
  const auto first_new = length();
  const auto all = first_new + std::int64_t(more.size());
  self.evaluate(more, rows, all, stop, progress, [&](std::int64_t n) {
    const auto pos0 = self.cache.length() - n;
    for (std::int64_t i = 0; i < n; ++i) {
      self.check_row(i, pos0 + i);
      if (pos0 + i >= first_new) see(pos0 + i, self.logits.row(i));
    }
  });
}

VITRINE_INLINE void Session::truncate(std::int64_t n_tokens) {
  const session_detail::InUse in_use(impl().in_use);
  check(n_tokens >= 0 && n_tokens <= length(), ErrorKind::bad_argument, "truncate: expected 0 to ", length(),
        " tokens, got ", n_tokens);
  impl().forget_guesses();
  impl().tokens.resize(std::size_t(n_tokens));
  impl().cache.truncate_or_empty((std::min)(impl().cache.length(), n_tokens));
  if (!impl().is_edited()) impl().edited_from = Impl::not_edited;
}

VITRINE_INLINE Session Session::fork() const {
  const session_detail::InUse in_use(impl().in_use);
  const auto copy = [&] { return std::make_unique<Impl>(std::as_const(impl())); };
  Session other;
  other.impl_ = naming_memory(copy, "a fork of a session with ", length(), " tokens");
  return other;
}

VITRINE_INLINE std::span<const Token> Session::tokens() const { return impl().tokens; }
VITRINE_INLINE std::int64_t Session::context() const { return impl().options.n_context; }
VITRINE_INLINE const Model& Session::model() const { return *impl().model; }
VITRINE_INLINE const SessionOptions& Session::options() const { return impl().options; }
VITRINE_INLINE const char* Session::isa() const { return impl().kernels.name; }
VITRINE_INLINE std::size_t Session::kv_bytes() const { return impl().cache.bytes(); }
VITRINE_INLINE const AnyCache& Session::cache() const { return impl().cache; }
VITRINE_INLINE std::int64_t Session::n_cached_tokens() const { return impl().n_cached_tokens; }
VITRINE_INLINE std::int64_t Session::n_passes() const { return impl().n_passes; }
VITRINE_INLINE TopLogits::Counts Session::top_counts() const {
  return impl().top ? impl().top->counts() : TopLogits::Counts{};
}
VITRINE_INLINE std::int64_t Session::n_pass_tokens() const { return impl().n_pass_tokens; }

VITRINE_NAMESPACE_END
