// Small vocabularies made by hand.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "vitrine/text/tokenizer.hpp"

namespace text_tools {

inline std::string byte_name(int byte) {
  char name[8];
  std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(byte));
  return name;
}

// Byte-level BPE: ids 0 to 255 are the bytes; `merged` come after, each from two tokens that are there already.
inline vitrine::TokenizerSpec byte_level(const std::vector<std::pair<std::string, std::string>>& merges,
                                         const char* pre = "llama-bpe") {
  vitrine::TokenizerSpec spec;
  spec.source = "byte_level";
  spec.pre_tokenizer = vitrine::pre_tokenizer_by_name(pre).steps;
  for (int byte = 0; byte < 256; ++byte) spec.tokens.push_back({std::string(1, static_cast<char>(byte))});
  const auto id_of = [&](const std::string& text) {
    for (std::size_t i = 0; i < spec.tokens.size(); ++i)
      if (spec.tokens[i].text == text) return vitrine::Token(i);
    throw std::runtime_error("no token " + text);
  };
  for (const auto& [left, right] : merges) {
    spec.merges.emplace_back(id_of(left), id_of(right));
    spec.merge_results.push_back(vitrine::Token(spec.tokens.size()));
    spec.tokens.push_back({left + right});
  }
  return spec;
}

inline vitrine::Token add_token(vitrine::TokenizerSpec& spec, const std::string& text, vitrine::TokenKind kind) {
  const auto id = vitrine::Token(spec.tokens.size());
  spec.tokens.push_back({text, kind});
  spec.added.push_back({id, text, kind == vitrine::TokenKind::control});
  return id;
}

// A vocabulary laid out like Llama 2's: <unk> <s> </s>, 256 bytes, then what the test names at its real ids.
inline vitrine::TokenizerSpec llama2_like(const std::vector<std::pair<vitrine::Token, std::string>>& pieces,
                                          std::size_t n_vocab = 32002) {
  vitrine::TokenizerSpec spec;
  spec.source = "llama2_like";
  spec.rule = vitrine::MergeRule::scores;
  spec.tokens.resize(n_vocab, {{}, vitrine::TokenKind::unused});
  spec.tokens[0] = {"<unk>", vitrine::TokenKind::unknown};
  spec.tokens[1] = {"<s>", vitrine::TokenKind::control};
  spec.tokens[2] = {"</s>", vitrine::TokenKind::control};
  for (int byte = 0; byte < 256; ++byte)
    spec.tokens[std::size_t(3 + byte)] = {byte_name(byte), vitrine::TokenKind::byte};
  for (const auto& [id, text] : pieces)  // as there: the lower the id, the sooner it is merged
    spec.tokens[std::size_t(id)] = {text, vitrine::TokenKind::normal, -float(id)};
  spec.added = {{0, "<unk>", true}, {1, "<s>", true}, {2, "</s>", true}};
  spec.unknown = 0;
  spec.bos = 1;
  spec.prefix = {1};
  spec.end = {2};
  spec.byte_fallback = spec.fuse_unknown = spec.spaces_first = true;
  spec.space_prefix = vitrine::SpacePrefix::always;
  return spec;
}

}  // namespace text_tools
