// Tokens by what their text holds.
//
//   options.dry_breakers = tokens_containing(tokenizer, {"\n", ":"});
//
// For options of sampling that speak of strings where the sampler knows tokens only. It looks at the text of every
// token of the vocabulary once, special ones included: call it when options are made, not per token.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/core/token.hpp"
#include "vitrine/text/tokenizer.hpp"

VITRINE_NAMESPACE_BEGIN

// All tokens whose text contains one of the strings, ascending: {"\n", ":", "\"", "*"} are DRY's usual breakers.
inline std::vector<Token> tokens_containing(const Tokenizer& tokenizer, const std::vector<std::string>& strings) {
  std::vector<Token> tokens;
  for (Token token = 0; token < tokenizer.n_vocab(); ++token) {
    const auto piece = tokenizer.piece(token);
    const auto is_in = [&](const std::string& s) { return piece.find(s) != std::string_view::npos; };
    if (std::any_of(strings.begin(), strings.end(), is_in)) tokens.push_back(token);
  }
  return tokens;
}

VITRINE_NAMESPACE_END
