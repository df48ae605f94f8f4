// What the readers of tokenizer files share. For bodies only.
#pragma once

#include <string>
#include <string_view>

#include "vitrine/core/error.hpp"
#include "vitrine/model/byte_reader.hpp"
#include "vitrine/text/tokenizer_spec.hpp"
#include "vitrine/text/tokenizer_state.inl.hpp"
#include "vitrine/text/utf8.hpp"
#include "vitrine/text/vocabulary.hpp"

VITRINE_NAMESPACE_BEGIN

namespace spec_detail {

// Files often name one end token and leave the others, or give a turn marker the type of ordinary or user-defined text.
// The text says what these are: control tokens, so that no user can write one, and the first group ends a turn.
inline bool ends_turn(std::string_view text) {
  for (const std::string_view marker :
       {"<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>", "<|end|>"})
    if (text == marker) return true;
  return false;
}
inline bool marks_turn(std::string_view text) {
  for (const std::string_view marker : {"<|im_start|>", "<start_of_turn>", "<|start_header_id|>", "<|end_header_id|>"})
    if (text == marker) return true;
  return ends_turn(text);
}

// The texts of a spec's tokens as they are now, to look them up.
class TextIndex {
 public:
  explicit TextIndex(const TokenizerSpec& spec) {
    texts_.reserve(spec.tokens.size(), 8 * spec.tokens.size());
    for (const auto& token : spec.tokens) texts_.add(token.text, !token.text.empty());
  }
  Token find(std::string_view text) const { return texts_.find(text); }

 private:
  Vocabulary texts_;
};

// Throws if two tokens have the same text. Empty texts mark ids that no token has.
inline void check_texts_differ(const TokenizerSpec& spec) {
  const TextIndex index(spec);
  for (std::size_t i = 0; i < spec.tokens.size(); ++i) {
    if (spec.tokens[i].text.empty()) continue;
    const Token first = index.find(spec.tokens[i].text);
    check(std::size_t(first) == i, ErrorKind::bad_file, spec.source, ": tokens ", first, " and ", i, " are both ",
          printable(spec.tokens[i].text));
  }
}

// Adds the merge of two tokens given by their texts in the file.
inline void add_merge(TokenizerSpec& spec, const TextIndex& index, std::string_view left, std::string_view right) {
  std::string both(left);
  both += right;
  const auto need = [&](std::string_view text) {
    const Token id = index.find(text);
    check(id >= 0, ErrorKind::bad_file, spec.source, ": merge ", spec.merges.size(), " names ", printable(text),
          ", which is not in the vocabulary");
    return id;
  };
  const Token left_id = need(left), right_id = need(right), result = need(both);
  spec.merges.emplace_back(left_id, right_id);
  spec.merge_results.push_back(result);
}

// From GPT-2's printable characters to the bytes they stand for. A text with other characters stays as it is; no text
// becomes such a token.
inline void unmap_bytes(TokenSpec& token) {
  std::string bytes;
  for (std::string_view rest = token.text; !rest.empty();) {
    const auto unit = utf8::first_unit(rest);
    const int byte = unit.valid ? byte_of_map_character(rest.substr(0, unit.n_bytes)) : -1;
    if (byte < 0) {
      token.reachable = false;
      return;
    }
    bytes += static_cast<char>(byte);
    rest.remove_prefix(unit.n_bytes);
  }
  token.text = std::move(bytes);
}

// SentencePiece writes spaces as U+2581. A piece with a real space cannot come out of a text, where there is none left.
inline void unescape_spaces(TokenSpec& token) {
  if (token.kind == TokenKind::byte) return;
  if (token.kind == TokenKind::normal && token.text.find(' ') != std::string::npos) token.reachable = false;
  if (token.text.find(tokenizer_detail::block_space) != std::string::npos)
    token.text = normalizer_detail::replace_all(token.text, tokenizer_detail::block_space, " ");
}

}  // namespace spec_detail

VITRINE_NAMESPACE_END
