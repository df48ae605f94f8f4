// TokenizerSpec from tokenizer.json, the description of a pipeline by the tokenizers library: added tokens, normalizer,
// pre_tokenizer, model, post_processor, decoder. Byte-level BPE and BPE on characters as SentencePiece models are
// exported are read; every other kind of part is refused by name. For bodies only.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "vitrine/core/error.hpp"
#include "vitrine/model/json_reader.inl.hpp"
#include "vitrine/text/load_tokenizer.hpp"
#include "vitrine/text/spec_tools.inl.hpp"
#include "vitrine/text/tokenizer_json_parts.inl.hpp"

VITRINE_NAMESPACE_BEGIN

namespace json_tokenizer_detail {

// Tables grow with ids and rows, so these may not exceed the tokens by far, whatever a file says.
inline std::int64_t most_rows(std::size_t n_tokens) { return 2 * std::int64_t(n_tokens) + (1 << 20); }

// Ids index tables, so they need a limit before the first of them is used as a size. A few more ids than the model has
// rows are common (Gemma 3 names an image token that its text models lack); such tokens are dropped later.
inline std::int64_t id_limit(std::size_t n_tokens, std::int64_t n_rows) {
  return (n_rows > 0 ? (std::min)(n_rows, most_rows(n_tokens)) : 2 * std::int64_t(n_tokens)) + 4096;
}

inline Token read_id(const json& value, std::int64_t limit, const std::string& source, std::string_view what) {
  check(value.is_number_integer(), ErrorKind::bad_file, source, ": the id of ", printable(what), " is ",
        json_detail::describe(value), ", expected an integer");
  const bool fits = value.is_number_unsigned() ? value.get<std::uint64_t>() < std::uint64_t(limit)
                                               : value.get<std::int64_t>() >= 0 && value.get<std::int64_t>() < limit;
  check(fits, ErrorKind::bad_file, source, ": the id of ", printable(what), " is ", value.dump(), ", expected 0 to ",
        limit - 1);
  return value.get<Token>();
}

// Puts a token at its id; two different tokens at one id are an error.
inline TokenSpec& place(TokenizerSpec& spec, Token id, const std::string& text) {
  if (std::size_t(id) >= spec.tokens.size()) spec.tokens.resize(std::size_t(id) + 1, {{}, TokenKind::unused});
  auto& token = spec.tokens[std::size_t(id)];
  check(token.text.empty() || token.text == text, ErrorKind::bad_file, spec.source, ": id ", id, " belongs to both ",
        printable(token.text), " and ", printable(text));
  token.text = text;
  if (token.kind == TokenKind::unused) token.kind = TokenKind::normal;
  return token;
}

inline void read_vocabulary(const Part& model, TokenizerSpec& spec, std::int64_t limit) {
  const json& vocab = model.need("vocab", json::value_t::object);
  for (const auto& [text, id] : vocab.items()) {
    check(!text.empty(), ErrorKind::bad_file, spec.source, ": model.vocab has a token without text");
    place(spec, read_id(id, limit, spec.source, text), text);
  }
}

inline void read_merges(const Part& model, TokenizerSpec& spec) {
  const json& merges = model.need("merges", json::value_t::array);
  const spec_detail::TextIndex index(spec);
  for (const json& merge : merges) {
    if (merge.is_string()) {  // "left right", the older form
      const auto& text = merge.get_ref<const std::string&>();
      const std::size_t space = text.find(' ', 1);
      check(space != std::string::npos && text.find(' ', space + 1) == std::string::npos, ErrorKind::bad_file,
            spec.source, ": merge ", spec.merges.size(), " is ", printable(text),
            ", expected two tokens with a space between");
      spec_detail::add_merge(spec, index, std::string_view(text).substr(0, space),
                             std::string_view(text).substr(space + 1));
    } else {
      check(merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string(), ErrorKind::bad_file,
            spec.source, ": merge ", spec.merges.size(), " is ", json_detail::describe(merge), ", expected two tokens");
      spec_detail::add_merge(spec, index, merge[0].get_ref<const std::string&>(),
                             merge[1].get_ref<const std::string&>());
    }
  }
}

// One entry of added_tokens, or of tokenizer_config.json's added_tokens_decoder.
inline void read_added(const Part& entry, Token id, TokenizerSpec& spec) {
  AddedToken token;
  token.id = id;
  token.text = entry.text("content");
  check(!token.text.empty(), ErrorKind::bad_file, spec.source, ": added token ", id, " has no text");
  token.special = entry.flag("special", false);
  const bool normalized_by_default = !token.special;
  token.special |= spec_detail::marks_turn(token.text);
  token.left_strip = entry.flag("lstrip", false);
  token.right_strip = entry.flag("rstrip", false);
  token.single_word = entry.flag("single_word", false);
  token.normalized = entry.flag("normalized", normalized_by_default);
  place(spec, id, token.text).kind = token.special ? TokenKind::control : TokenKind::user_defined;
  spec.added.push_back(std::move(token));
}

inline void read_model(const Part& model, TokenizerSpec& spec, std::int64_t limit) {
  const std::string type = model.has("type") ? model.text("type") : "BPE";
  model.refuse_unless(type == "BPE", "type", type);
  model.refuse_unless(!model.has("dropout") || model.real("dropout") == 0, "dropout", "above 0");
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"})
    model.refuse_unless(!model.has(affix) || model.text(affix).empty(), affix, "not empty");
  read_vocabulary(model, spec, limit);
  read_merges(model, spec);
  spec.ignore_merges = model.flag("ignore_merges", false);
  spec.byte_fallback = model.flag("byte_fallback", false);
  spec.fuse_unknown = model.flag("fuse_unk", false);
}

// After vocabulary, merges and added tokens: from the file's spelling to what tokens stand for.
inline void finish_tokens(const Part& model, TokenizerSpec& spec) {
  spec_detail::check_texts_differ(spec);
  if (model.has("unk_token")) {
    const std::string unknown = model.text("unk_token");
    const Token id = spec_detail::TextIndex(spec).find(unknown);
    check(id >= 0, ErrorKind::bad_file, spec.source, ": model.unk_token is ", printable(unknown),
          ", which is not in the vocabulary");
    spec.unknown = id;
  }
  for (auto& token : spec.tokens) {
    if (spec.rule == MergeRule::byte_ranks) {
      if (token.kind == TokenKind::normal) spec_detail::unmap_bytes(token);
    } else {
      if (spec.byte_fallback && token.kind == TokenKind::normal && tokenizer_detail::byte_of_name(token.text) >= 0)
        token.kind = TokenKind::byte;
      spec_detail::unescape_spaces(token);
    }
  }
  // No text may merge into a special token.
  std::size_t kept = 0;
  for (std::size_t i = 0; i < spec.merges.size(); ++i) {
    if (spec.tokens[std::size_t(spec.merge_results[i])].kind == TokenKind::control) continue;
    spec.merges[kept] = spec.merges[i];
    spec.merge_results[kept++] = spec.merge_results[i];
  }
  spec.merges.resize(kept);
  spec.merge_results.resize(kept);
}

}  // namespace json_tokenizer_detail

VITRINE_INLINE TokenizerSpec tokenizer_spec_from_json(std::string_view text, std::string name, std::int64_t n_rows) {
  using namespace json_tokenizer_detail;
  TokenizerSpec spec;
  spec.source = std::move(name);
  const auto document = json_detail::parse_json(text, spec.source);
  const Part root(document, spec.source, "");
  root.only_keys({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "model",
                  "post_processor", "decoder"});
  const Part model = root.part("model");
  const json& vocab = model.need("vocab", json::value_t::object);
  const std::size_t n_added = root.has("added_tokens") ? root.need("added_tokens", json::value_t::array).size() : 0;
  const std::int64_t limit = id_limit(vocab.size() + n_added, n_rows);
  read_model(model, spec, limit);
  if (n_added > 0) {
    for (const json& value : root.need("added_tokens", json::value_t::array)) {
      const Part entry(value, spec.source, "added_tokens[]");
      read_added(entry, read_id(entry.need("id"), limit, spec.source, entry.text("content")), spec);
    }
  }
  Pipeline pipeline;
  read_normalizer(root, pipeline, spec);
  read_pre_tokenizer(root, pipeline, spec);
  read_decoder(root, pipeline);
  check_pipeline(root, pipeline, spec);
  finish_tokens(model, spec);
  read_post_processor(root, spec);
  // Tokens that are looked for in normalised text are looked for in their own normalised form.
  for (AddedToken& token : spec.added) {
    if (!token.normalized) continue;
    std::string buffer;
    token.text = std::string(normalizer_detail::normalize(spec.normalizer, token.text, buffer));
    if (!spec.prefix_after_added && spec.space_prefix != SpacePrefix::never) token.text.insert(0, 1, ' ');
  }
  return spec;
}

VITRINE_NAMESPACE_END
