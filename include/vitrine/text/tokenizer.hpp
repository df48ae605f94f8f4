// STEP 1/9 tokenize: text to token ids and back.
//
//   const Tokenizer tokenizer = load_tokenizer("model.gguf");                  // text/load_tokenizer.hpp
//   std::vector<Token> ids = tokenizer.encode("Hello", {.add_special = true}); // with BOS if the model wants one
//   std::string text = tokenizer.decode(ids);
//
// encode: added tokens are cut out -> normalise -> pre-tokenize -> merge.
// Any bytes can be encoded, NUL and invalid UTF-8 too: tokenizers that have a token for every byte lose nothing, and
// decode_bytes() gives the same bytes back. A Tokenizer is immutable; copies share one state, any number of threads may
// use it. No recursion, no stack that grows with the text.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/core/token.hpp"
#include "vitrine/text/tokenizer_spec.hpp"

VITRINE_NAMESPACE_BEGIN

struct EncodeOptions {
  // Put the model's own tokens around the text: BOS, EOS, as its flags say.
  bool add_special = true;
  // Recognise special tokens written in the text ("<|im_end|>"). Leave it off for anything that a user typed: then such
  // text becomes ordinary pieces, and no one can end his own turn. User-defined tokens are recognised always.
  bool parse_special = false;
  // If given, then only where they lie wholly within one of these ranges of the text (ascending, apart): the parts that
  // no user wrote. What stands around them changes nothing about the special tokens in them.
  std::optional<std::span<const TextRange>> special_in = std::nullopt;
  // Another rule for the space before the first word than the model's own; for experiments and old model files.
  std::optional<SpacePrefix> space_prefix = std::nullopt;
  // If given, is set to the number of bytes of the text that no token stands for (see encode).
  std::size_t* n_replaced = nullptr;
};

namespace tokenizer_detail {
struct State;
}

class Tokenizer {
 public:
  // Throws Error::bad_file for a spec that contradicts itself (ids out of range, merges without result).
  explicit Tokenizer(TokenizerSpec spec);
  // Moving copies, too: it costs a count, and leaves none that is empty.
  Tokenizer(const Tokenizer&) noexcept = default;
  Tokenizer& operator=(const Tokenizer&) noexcept = default;

  // What the vocabulary has no token for, not even bytes, becomes its unknown token. A byte-level vocabulary without
  // one says U+FFFD instead, once per byte (SmolLM2's lacks a few bytes of characters that Unicode has not assigned).
  // Where that is impossible, too: throws Error::unsupported naming the character.
  std::vector<Token> encode(std::string_view text, const EncodeOptions& options = {}) const;

  // Valid UTF-8; what is none becomes U+FFFD, one for each maximal part of a character. With `skip_special` control
  // tokens give no text. Equal to the concatenation of what a StreamDecoder gives. Throws Error::bad_argument naming
  // index and value of an id outside the vocabulary. Nothing is tidied up: no spaces before punctuation are removed.
  std::string decode(std::span<const Token> tokens, bool skip_special = true) const;
  // The same without replacement: exactly the bytes.
  std::string decode_bytes(std::span<const Token> tokens, bool skip_special = false) const;

  // The bytes of one token, valid as long as the Tokenizer or a copy of it. Throws Error::bad_argument.
  std::string_view piece(Token token) const;
  TokenKind kind(Token token) const;
  // Control tokens and the unknown token: markers of the model, not text.
  bool is_special(Token token) const;

  // The token of exactly this text, special or not.
  std::optional<Token> find(std::string_view text) const;

  std::int64_t n_vocab() const;
  std::optional<Token> bos() const;
  std::optional<Token> eos() const;          // the one that the file names as such
  const std::vector<Token>& prefix() const;  // what add_special puts before a text: BOS, if the model wants one
  std::optional<Token> unknown() const;
  const std::vector<Token>& end_tokens() const;  // every token that ends a generation, ascending
  bool is_end(Token token) const;
  const std::string& chat_template() const;
  const NamedTemplates& more_chat_templates() const;  // for other purposes, such as tool_use

  // Ids from outside (a request, a file), checked before they are narrowed. Throws Error::bad_argument naming the index
  // and the value of the first one outside [0, n_vocab).
  std::vector<Token> checked(std::span<const std::int64_t> ids) const;

 private:
  friend class StreamDecoder;
  std::shared_ptr<const tokenizer_detail::State> state_;
};

// Text out of tokens one at a time, never half a character: bytes wait until the character is complete, and what can
// not become one any more is U+FFFD at once.
class StreamDecoder {
 public:
  explicit StreamDecoder(Tokenizer tokenizer, bool skip_special = true)
      : tokenizer_(std::move(tokenizer)), skip_special_(skip_special) {}

  // What comes next is the continuation of a prompt that ends in `previous`: the first word keeps the space before it,
  // unless the tokenizer itself put one there.
  void continue_after(Token previous);

  // The text that is complete now; often empty, up to 3 bytes wait. Throws Error::bad_argument.
  std::string push(Token token);
  // The same, appended to `out`: allocates only when the string must grow.
  void push(Token token, std::string& out);
  // The end: one U+FFFD if a character is incomplete, else nothing. The decoder starts afresh.
  std::string finish();

  const std::string& pending() const { return pending_; }  // the bytes that wait

 private:
  friend class Tokenizer;
  std::string_view next_piece(Token token);

  Tokenizer tokenizer_;
  bool skip_special_;
  bool strip_space_ = true;  // the next piece begins where a space was put by the tokenizer
  std::string pending_;      // never more than a string holds without allocating
};

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/text/tokenizer.inl.hpp"
#endif
