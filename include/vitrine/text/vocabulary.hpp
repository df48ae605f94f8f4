// Strings numbered 0, 1, 2 ...: the texts of a vocabulary, in one block of memory, with a flat hash table to find them.
//
//   bytes_  "<unk>theof..."     starts_  0 5 8 10 ...      text(i) = bytes_[starts_[i], starts_[i + 1])
//
// A vocabulary has up to some 260,000 tokens and is built at each start of a program, so neither a string object nor a
// map node per token is spent on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/core/token.hpp"

VITRINE_NAMESPACE_BEGIN

class Vocabulary {
 public:
  void reserve(std::size_t n_tokens, std::size_t n_bytes);
  // Gives `text` the next id. With `findable`, find() knows it from then on, unless an earlier token has the same text.
  Token add(std::string_view text, bool findable);

  std::int64_t size() const { return static_cast<std::int64_t>(starts_.size()) - 1; }
  std::string_view text(Token id) const {
    const auto i = static_cast<std::size_t>(id);
    return std::string_view(bytes_).substr(starts_[i], starts_[i + 1] - starts_[i]);
  }
  // The token of exactly this text, or -1.
  Token find(std::string_view text) const;

 private:
  std::size_t slot_of(std::string_view text) const;  // where it is, or where it would go
  void grow();

  std::string bytes_;
  std::vector<std::uint64_t> starts_ = {0};
  std::vector<Token> slots_;  // open addressing, a power of two, -1 is free
  std::size_t n_findable_ = 0;
};

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/text/vocabulary.inl.hpp"
#endif
