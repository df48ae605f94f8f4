#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>

#include "vitrine/text/tokenizer.hpp"
#include "vitrine/text/tokenizer_state.inl.hpp"

VITRINE_NAMESPACE_BEGIN

namespace tokenizer_detail {

inline void build_vocabulary(State& state) {
  auto& tokens = state.spec.tokens;
  std::size_t n_bytes = 0;
  for (const auto& token : tokens) n_bytes += token.text.size();
  state.vocabulary.reserve(tokens.size(), n_bytes);
  state.byte_tokens.fill(-1);
  for (std::size_t byte = 0; byte < 256; ++byte) state.bytes[byte] = static_cast<char>(byte);
  state.kinds.reserve(tokens.size());
  const bool by_bytes = state.spec.rule == MergeRule::byte_ranks;
  for (const auto& token : tokens) {
    const bool ordinary = token.kind == TokenKind::normal || token.kind == TokenKind::unused ||
                          (token.kind == TokenKind::user_defined && state.spec.rule != MergeRule::scores);
    const bool findable = ordinary && token.reachable && !token.text.empty();
    const Token id = state.vocabulary.add(token.text, findable);
    state.kinds.push_back(token.kind);
    state.has_unused |= token.kind == TokenKind::unused && findable;
    if (!findable) state.not_findable.push_back(id);
    if (findable) {
      state.longest_token = (std::max)(state.longest_token, token.text.size());
      for (std::size_t i = 1; i < token.text.size(); ++i)
        if (token.text[i] == ' ' && token.text[i - 1] != ' ')
          state.space_may_follow[static_cast<unsigned char>(token.text[i - 1])] = true;
    }
    int byte = -1;
    if (token.kind == TokenKind::byte) {
      byte = byte_of_name(token.text);
      check(byte >= 0, ErrorKind::bad_file, state.spec.source, ": byte token ", id, " is ", printable(token.text),
            ", expected <0x00> to <0xFF>");
    } else if (by_bytes && findable && token.text.size() == 1) {
      byte = static_cast<unsigned char>(token.text.front());
    }
    if (byte >= 0 && state.byte_tokens[std::size_t(byte)] < 0) state.byte_tokens[std::size_t(byte)] = id;
  }
  std::sort(state.not_findable.begin(), state.not_findable.end(), [&](Token a, Token b) {
    const auto left = state.vocabulary.text(a), right = state.vocabulary.text(b);
    return left != right ? left < right : a < b;
  });
}

// Equal scores share a rank, so that the leftmost of equals is merged first.
inline void build_score_ranks(State& state) {
  const auto& tokens = state.spec.tokens;
  std::vector<Token> order(tokens.size());
  std::iota(order.begin(), order.end(), Token(0));
  for (const Token id : order)
    check(!std::isnan(tokens[std::size_t(id)].score), ErrorKind::bad_file, state.spec.source, ": the score of token ",
          id, " is not a number");
  const auto score = [&](Token id) { return tokens[std::size_t(id)].score; };
  std::sort(order.begin(), order.end(), [&](Token a, Token b) { return score(a) > score(b); });
  state.score_ranks.resize(tokens.size());
  std::uint32_t rank = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && score(order[i]) != score(order[i - 1])) ++rank;
    state.score_ranks[std::size_t(order[i])] = rank;
  }
}

inline void check_ids(const TokenizerSpec& spec) {
  const auto n = static_cast<std::int64_t>(spec.tokens.size());
  check(n > 0, ErrorKind::bad_file, spec.source, ": the vocabulary is empty");
  const auto in_range = [&](Token id, const char* what) {
    check(id >= 0 && id < n, ErrorKind::bad_file, spec.source, ": ", what, " is ", id, ", expected 0 to ", n - 1);
  };
  check(spec.merges.size() == spec.merge_results.size(), ErrorKind::bad_file, spec.source, ": ", spec.merges.size(),
        " merges, but ", spec.merge_results.size(), " results");
  for (const auto& [left, right] : spec.merges)
    in_range(left, "a token of a merge"), in_range(right, "a token of a merge");
  for (const Token id : spec.merge_results) in_range(id, "the result of a merge");
  for (const auto& token : spec.added) in_range(token.id, "the id of an added token");
  for (const Token id : spec.prefix) in_range(id, "a token put before texts");
  for (const Token id : spec.suffix) in_range(id, "a token put behind texts");
  for (const Token id : spec.end) in_range(id, "an end token");
  if (spec.bos) in_range(*spec.bos, "the start token");
  if (spec.eos) in_range(*spec.eos, "the end token");
  if (spec.unknown) in_range(*spec.unknown, "the unknown token");
}

}  // namespace tokenizer_detail

VITRINE_INLINE Tokenizer::Tokenizer(TokenizerSpec spec) {
  auto state = std::make_shared<tokenizer_detail::State>();
  state->spec = std::move(spec);
  auto& own = state->spec;
  tokenizer_detail::check_ids(own);
  tokenizer_detail::build_vocabulary(*state);
  if (own.rule == MergeRule::scores) {
    tokenizer_detail::build_score_ranks(*state);
  } else {
    state->merges = merge_detail::MergeTable(own.merges, own.merge_results);
  }
  state->prefix_follows.assign(own.tokens.size(), 0);
  for (AddedToken& token : own.added) {
    state->prefix_follows[std::size_t(token.id)] = !token.normalized || own.prefix_after_added;
    (token.normalized ? state->normalized_added : state->added).add(std::move(token));
  }
  state->added.finish();
  state->normalized_added.finish();
  std::sort(own.end.begin(), own.end.end());
  own.end.erase(std::unique(own.end.begin(), own.end.end()), own.end.end());
  own.tokens = {};
  own.merges = {};
  own.merge_results = {};
  own.added = {};
  state_ = std::move(state);
}

VITRINE_INLINE std::vector<Token> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  check(text.size() < (std::uint64_t(1) << 31), ErrorKind::bad_argument, "a text of ", text.size(),
        " bytes is too long to encode at once, expected less than 2 GiB");
  std::vector<Token> out;
  const auto& spec = state_->spec;
  if (options.add_special) out = spec.prefix;
  const std::size_t n_replaced = tokenizer_detail::Encoder(*state_, options, out).run(text);
  if (options.n_replaced != nullptr) *options.n_replaced = n_replaced;
  if (options.add_special) out.insert(out.end(), spec.suffix.begin(), spec.suffix.end());
  return out;
}

VITRINE_INLINE std::string Tokenizer::decode_bytes(std::span<const Token> tokens, bool skip_special) const {
  StreamDecoder decoder(*this, skip_special);
  std::string bytes;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    state_->check_token(tokens[i], i);
    bytes += decoder.next_piece(tokens[i]);
  }
  return bytes;
}

VITRINE_INLINE std::string Tokenizer::decode(std::span<const Token> tokens, bool skip_special) const {
  return utf8::to_valid(decode_bytes(tokens, skip_special));
}

VITRINE_INLINE std::string_view Tokenizer::piece(Token token) const {
  state_->check_token(token, 0);
  return state_->piece(token);
}

VITRINE_INLINE TokenKind Tokenizer::kind(Token token) const {
  state_->check_token(token, 0);
  return state_->kinds[std::size_t(token)];
}

VITRINE_INLINE bool Tokenizer::is_special(Token token) const {
  state_->check_token(token, 0);
  return state_->is_special(token);
}

VITRINE_INLINE std::optional<Token> Tokenizer::find(std::string_view text) const {
  if (const Token id = state_->vocabulary.find(text); id >= 0) return id;
  const auto& others = state_->not_findable;
  const auto at = std::lower_bound(others.begin(), others.end(), text, [&](Token id, std::string_view wanted) {
    return state_->vocabulary.text(id) < wanted;
  });
  if (at == others.end() || text.empty() || state_->vocabulary.text(*at) != text) return std::nullopt;
  return *at;
}

VITRINE_INLINE std::int64_t Tokenizer::n_vocab() const { return state_->n_vocab(); }
VITRINE_INLINE std::optional<Token> Tokenizer::bos() const { return state_->spec.bos; }
VITRINE_INLINE std::optional<Token> Tokenizer::eos() const { return state_->spec.eos; }
VITRINE_INLINE std::optional<Token> Tokenizer::unknown() const { return state_->spec.unknown; }
VITRINE_INLINE const std::vector<Token>& Tokenizer::prefix() const { return state_->spec.prefix; }
VITRINE_INLINE const std::vector<Token>& Tokenizer::end_tokens() const { return state_->spec.end; }
VITRINE_INLINE const std::string& Tokenizer::chat_template() const { return state_->spec.chat_template; }
VITRINE_INLINE const NamedTemplates& Tokenizer::more_chat_templates() const { return state_->spec.more_chat_templates; }
VITRINE_INLINE bool Tokenizer::is_end(Token token) const {
  return std::binary_search(end_tokens().begin(), end_tokens().end(), token);
}

VITRINE_INLINE std::vector<Token> Tokenizer::checked(std::span<const std::int64_t> ids) const {
  std::vector<Token> tokens;
  tokens.reserve(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    state_->check_token(ids[i], i);
    tokens.push_back(static_cast<Token>(ids[i]));
  }
  return tokens;
}

VITRINE_INLINE void StreamDecoder::continue_after(Token previous) {
  tokenizer_.state_->check_token(previous, 0);
  strip_space_ = tokenizer_.state_->prefix_follows[std::size_t(previous)] != 0 &&
                 tokenizer_.state_->spec.space_prefix == SpacePrefix::always;
}

// What the token adds to the text, without a space that only encoding put there.
VITRINE_INLINE std::string_view StreamDecoder::next_piece(Token token) {
  const auto& state = *tokenizer_.state_;
  const auto& spec = state.spec;
  std::string_view piece = state.piece(token);
  const bool skipped = skip_special_ && state.is_special(token);
  if (skipped) piece = {};
  if (strip_space_ && spec.strip_prefix && spec.space_prefix != SpacePrefix::never && !state.is_special(token) &&
      piece.substr(0, 1) == " ") {
    piece.remove_prefix(1);
    strip_space_ = false;
  } else if (!piece.empty()) {
    strip_space_ = false;
  }
  if (spec.space_prefix == SpacePrefix::always && state.prefix_follows[std::size_t(token)]) strip_space_ = true;
  return piece;
}

VITRINE_INLINE void StreamDecoder::push(Token token, std::string& out) {
  tokenizer_.state_->check_token(token, 0);
  // In parts so short that they and the three bytes that may wait fit into the string itself: it never allocates,
  // however long the pieces of the vocabulary are. Where parts end changes the text as little as where tokens do.
  constexpr std::size_t part_bytes = 12;
  for (auto piece = next_piece(token); !piece.empty(); piece.remove_prefix((std::min)(part_bytes, piece.size()))) {
    pending_ += piece.substr(0, part_bytes);
    utf8::flush_whole_characters(pending_, out, false);
  }
}

VITRINE_INLINE std::string StreamDecoder::push(Token token) {
  std::string out;
  push(token, out);
  return out;
}

VITRINE_INLINE std::string StreamDecoder::finish() {
  std::string out;
  utf8::flush_whole_characters(pending_, out, true);
  strip_space_ = true;
  return out;
}

VITRINE_NAMESPACE_END
