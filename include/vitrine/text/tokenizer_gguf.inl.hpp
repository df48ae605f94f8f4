// TokenizerSpec from GGUF metadata (keys tokenizer.ggml.*, docs/gguf.md of the ggml project). For bodies only.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "vitrine/core/error.hpp"
#include "vitrine/text/load_tokenizer.hpp"
#include "vitrine/text/spec_tools.inl.hpp"

VITRINE_NAMESPACE_BEGIN

namespace gguf_tokenizer_detail {

inline std::string key(std::string_view name) { return "tokenizer.ggml." + std::string(name); }

inline std::vector<std::int64_t> integers_of_tokens(const GgufFile& file, std::string_view name, std::size_t n) {
  auto values = file.integers(key(name));
  check(values.size() == n, ErrorKind::bad_file, file.name(), ": ", key(name), " has ", values.size(),
        " elements, expected one for each of ", n, " tokens");
  return values;
}

inline std::optional<Token> find_token_id(const GgufFile& file, std::string_view name, std::size_t n) {
  const auto id = file.find_integer(key(name));
  if (!id) return std::nullopt;
  check(*id >= 0 && std::uint64_t(*id) < n, ErrorKind::bad_file, file.name(), ": ", key(name), " is ", *id,
        ", expected 0 to ", n - 1);
  return static_cast<Token>(*id);
}

inline void read_kinds(const GgufFile& file, TokenizerSpec& spec) {
  const std::size_t n = spec.tokens.size();
  std::vector<std::int64_t> kinds(n, 1);
  if (file.has(key("token_type"))) kinds = integers_of_tokens(file, "token_type", n);
  for (std::size_t i = 0; i < n; ++i) {
    check(kinds[i] >= 0 && kinds[i] <= 6, ErrorKind::bad_file, file.name(), ": ", key("token_type"), "[", i, "] is ",
          kinds[i], ", expected 1 to 6");
    auto& token = spec.tokens[i];
    token.kind = kinds[i] == 0 ? TokenKind::normal : TokenKind(kinds[i]);  // 0: undefined
    const bool textual = token.kind == TokenKind::normal || token.kind == TokenKind::user_defined;
    if (textual && spec_detail::marks_turn(token.text)) token.kind = TokenKind::control;
  }
}

inline NamedPreTokenizer read_byte_level(const GgufFile& file, TokenizerSpec& spec) {
  check(file.has(key("pre")), ErrorKind::unsupported, file.name(), ": ", key("pre"),
        " is missing, so it is not known how texts are cut into pieces (the file was made by an old converter)");
  auto named = pre_tokenizer_by_name(file.text(key("pre")), file.name() + ": " + key("pre"));
  spec.rule = MergeRule::byte_ranks;
  spec.pre_tokenizer = std::move(named.steps);
  spec.ignore_merges = named.ignore_merges;
  const spec_detail::TextIndex index(spec);
  for (const std::string_view merge : file.strings(key("merges"))) {
    const std::size_t space = merge.find(' ', 1);
    check(space != std::string_view::npos, ErrorKind::bad_file, file.name(), ": ", key("merges"), "[",
          spec.merges.size(), "] is ", printable(merge), ", expected two tokens with a space between");
    spec_detail::add_merge(spec, index, merge.substr(0, space), merge.substr(space + 1));
  }
  for (auto& token : spec.tokens)
    if (token.kind == TokenKind::normal || token.kind == TokenKind::unused) spec_detail::unmap_bytes(token);
  if (file.find_boolean(key("add_space_prefix")).value_or(false)) {
    spec.space_prefix = SpacePrefix::always;
    spec.prefix_unless_space = true;
    spec.strip_prefix = false;
  }
  return named;
}

inline void read_sentencepiece(const GgufFile& file, TokenizerSpec& spec) {
  spec.rule = MergeRule::scores;
  const std::size_t n = spec.tokens.size();
  const auto scores = file.reals(key("scores"));
  check(scores.size() == n, ErrorKind::bad_file, file.name(), ": ", key("scores"), " has ", scores.size(),
        " elements, expected one for each of ", n, " tokens");
  for (std::size_t i = 0; i < n; ++i) {
    auto& token = spec.tokens[i];
    token.score = scores[i];
    spec_detail::unescape_spaces(token);
    spec.byte_fallback |= token.kind == TokenKind::byte;
    if (token.kind == TokenKind::unknown && !spec.unknown) spec.unknown = static_cast<Token>(i);
  }
  if (const auto id = find_token_id(file, "unknown_token_id", n)) spec.unknown = id;
  spec.fuse_unknown = true;
  spec.spaces_first = true;
  const auto* charsmap = file.find(key("precompiled_charsmap"));
  check(charsmap == nullptr || charsmap->count == 0, ErrorKind::unsupported, file.name(), ": ",
        key("precompiled_charsmap"), " (SentencePiece's compiled normalisation) is not supported");
  if (file.find_boolean(key("remove_extra_whitespaces")).value_or(false))
    spec.normalizer.push_back({NormalizeStep::Kind::collapse_spaces, {}, {}});
  if (file.find_boolean(key("add_space_prefix")).value_or(true)) spec.space_prefix = SpacePrefix::always;
}

inline void read_special(const GgufFile& file, TokenizerSpec& spec, bool add_bos, bool add_sep) {
  const std::size_t n = spec.tokens.size();
  spec.bos = find_token_id(file, "bos_token_id", n);
  const auto eos = spec.eos = find_token_id(file, "eos_token_id", n);
  auto sep = find_token_id(file, "seperator_token_id", n);  // so the format spells it
  const auto put = [&](const char* flag, bool by_default, const std::optional<Token>& id, std::vector<Token>& where) {
    const auto said = file.find_boolean(key(flag));
    if (!said.value_or(by_default)) return;
    check(id || !said, ErrorKind::bad_file, file.name(), ": ", key(flag), " is true, but the file names no such token");
    if (id) where.push_back(*id);
  };
  put("add_bos_token", add_bos, spec.bos, spec.prefix);
  put("add_eos_token", false, eos, spec.suffix);
  put("add_sep_token", add_sep, sep ? sep : eos, spec.suffix);
  for (const auto& id : {eos, find_token_id(file, "eot_token_id", n), find_token_id(file, "eom_token_id", n)})
    if (id) spec.end.push_back(*id);
  // gpt-oss ends messages within a turn with <|end|>, and turns with <|return|> or <|call|>.
  const bool end_is_inner = std::any_of(spec.tokens.begin(), spec.tokens.end(), [](const TokenSpec& token) {
    return token.kind == TokenKind::control && (token.text == "<|return|>" || token.text == "<|call|>");
  });
  for (std::size_t i = 0; i < n; ++i) {
    const auto& token = spec.tokens[i];
    if (token.kind == TokenKind::control && spec_detail::ends_turn(token.text) &&
        !(end_is_inner && token.text == "<|end|>"))
      spec.end.push_back(static_cast<Token>(i));
  }
  for (std::size_t i = 0; i < n; ++i) {
    const auto& token = spec.tokens[i];
    if (token.kind == TokenKind::control || token.kind == TokenKind::unknown || token.kind == TokenKind::user_defined)
      spec.added.push_back({static_cast<Token>(i), token.text, token.kind != TokenKind::user_defined});
  }
}

}  // namespace gguf_tokenizer_detail

VITRINE_INLINE TokenizerSpec tokenizer_spec_from_gguf(const GgufFile& file) {
  using namespace gguf_tokenizer_detail;
  TokenizerSpec spec;
  spec.source = file.name();
  const auto model = file.text(key("model"));
  check(model == "gpt2" || model == "llama", ErrorKind::unsupported, file.name(), ": ", key("model"), " is ",
        printable(model), "; 'gpt2' (byte-level BPE) and 'llama' (SentencePiece BPE) are supported");
  for (const std::string_view text : file.strings(key("tokens"))) spec.tokens.push_back({std::string(text)});
  read_kinds(file, spec);
  spec_detail::check_texts_differ(spec);
  bool add_bos = true, add_sep = false;
  if (model == "gpt2") {
    const auto named = read_byte_level(file, spec);
    add_bos = named.add_bos;
    add_sep = named.add_sep;
  } else {
    read_sentencepiece(file, spec);
  }
  read_special(file, spec, add_bos, add_sep);
  spec.chat_template = file.find_text("tokenizer.chat_template").value_or("");
  constexpr std::string_view named = "tokenizer.chat_template.";
  for (const GgufValue& value : file.metadata())
    if (value.key.starts_with(named) && value.type == GgufType::string)
      spec.more_chat_templates.emplace_back(value.key.substr(named.size()), file.text(value.key));
  return spec;
}

VITRINE_NAMESPACE_END
