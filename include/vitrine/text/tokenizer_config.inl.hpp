// What a model's folder says about its tokenizer outside of tokenizer.json and tokenizer.model. For bodies only.
#pragma once

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <unordered_set>

#include "vitrine/core/error.hpp"
#include "vitrine/model/hf_config.hpp"
#include "vitrine/text/load_tokenizer.hpp"
#include "vitrine/text/tokenizer_json.inl.hpp"

VITRINE_NAMESPACE_BEGIN

namespace tokenizer_config_detail {

using json_tokenizer_detail::json;
using json_tokenizer_detail::Part;

// A token named as a string or as an object with its flags.
inline std::optional<Token> find_named(const Part& config, const char* key, const spec_detail::TextIndex& index) {
  if (!config.has(key)) return std::nullopt;
  const std::string text = config.need(key).is_object() ? config.part(key).text("content") : config.text(key);
  const Token id = index.find(text);
  check(id >= 0, ErrorKind::bad_file, config.source(), ": ", config.full(key), " is ", printable(text),
        ", which is not in the vocabulary");
  return id;
}

// tokenizer classes that put BOS and EOS by their own flags, whatever tokenizer.json says
inline bool class_adds_by_flags(const Part& config) {
  if (!config.has("tokenizer_class")) return false;
  const std::string name = config.text("tokenizer_class");
  for (const std::string_view known : {"LlamaTokenizer", "CodeLlamaTokenizer", "GemmaTokenizer"})
    if (name == known || name == std::string(known) + "Fast") return true;
  return false;
}

inline void read_added_tokens(const Part& config, TokenizerSpec& spec, std::int64_t limit) {
  if (!config.has("added_tokens_decoder")) return;
  const Part entries = config.part("added_tokens_decoder");
  std::unordered_set<Token> known, again;
  for (const AddedToken& token : spec.added) known.insert(token.id);
  const auto n_before = std::ptrdiff_t(spec.added.size());
  for (const auto& [key, value] : config.need("added_tokens_decoder").items()) {
    const bool is_number = !key.empty() && key.size() < 10 &&
                           std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; });
    check(is_number, ErrorKind::bad_file, config.source(), ": ", entries.full(key), " is not an id");
    const Part entry(value, config.source(), entries.full(key));
    const Token id = json_tokenizer_detail::read_id(json(std::stoull(key)), limit, config.source(), key);
    if (!known.insert(id).second) {
      if (spec.rule != MergeRule::scores) continue;  // tokenizer.json has said it all
      again.insert(id);
    }
    const std::string before = std::size_t(id) < spec.tokens.size() ? spec.tokens[std::size_t(id)].text : "";
    const TokenKind kind = before.empty() ? TokenKind::normal : spec.tokens[std::size_t(id)].kind;
    json_tokenizer_detail::read_added(entry, id, spec);
    if (spec.rule == MergeRule::scores) spec.added.back().normalized = false;  // cut out of the text as it stands
    if (kind == TokenKind::unknown) spec.tokens[std::size_t(id)].kind = kind;
  }
  const auto said_again = [&](const AddedToken& token) { return again.count(token.id) != 0; };
  const auto end = spec.added.begin() + n_before;
  spec.added.erase(std::remove_if(spec.added.begin(), end, said_again), end);
}

inline void put_around(const Part& config, TokenizerSpec& spec, std::optional<Token> eos) {
  const bool by_flags = spec.rule == MergeRule::scores || class_adds_by_flags(config);
  const auto apply = [&](const char* key, bool by_default, std::optional<Token> token, std::vector<Token>& where) {
    if (!config.has(key) && !by_flags) return;
    const bool wanted = config.flag(key, by_default);
    const bool there = token && std::find(where.begin(), where.end(), *token) != where.end();
    if (wanted && !there) {
      check(token.has_value() || !config.has(key), ErrorKind::bad_file, config.source(), ": ", config.full(key),
            " is true, but the file names no such token");
      if (token) where.insert(where.begin(), *token);
    } else if (!wanted && there && by_flags) {
      where.erase(std::remove(where.begin(), where.end(), *token), where.end());
    }
  };
  apply("add_bos_token", true, spec.bos, spec.prefix);
  apply("add_eos_token", false, eos, spec.suffix);
}

inline void read_chat_templates(const Part& config, TokenizerSpec& spec) {
  if (!config.has("chat_template")) return;
  if (config.need("chat_template").is_string()) {
    spec.chat_template = config.text("chat_template");
    return;
  }
  for (const Part& named : config.parts("chat_template")) {  // several, by name
    const std::string name = named.text("name");
    if (name == "default")
      spec.chat_template = named.text("template");
    else
      spec.more_chat_templates.emplace_back(name, named.text("template"));
  }
}

inline std::string read_file(const std::filesystem::path& path) {
  const MappedFile file(path);
  const auto bytes = file.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Rows of the embedding, 0 if the folder does not say.
inline std::int64_t rows_of(const HfConfig& config) {
  const auto section = config.find_section("text_config");
  auto rows = config.find_integer("vocab_size");
  if (!rows && section) rows = section->find_integer("vocab_size");
  check(!rows || (*rows > 0 && *rows < (std::int64_t(1) << 28)), ErrorKind::bad_file, config.name(), ": vocab_size is ",
        rows.value_or(0), ", expected 1 to 2^28 - 1");
  return rows.value_or(0);
}

// Makes the ids those of the embedding's rows: missing ones are filled up, special ones beyond are dropped.
inline void fit_rows(TokenizerSpec& spec, std::int64_t n_rows) {
  if (n_rows <= 0) return;
  const auto n = std::size_t(n_rows), n_tokens = spec.tokens.size();
  check(n_rows <= json_tokenizer_detail::most_rows(n_tokens), ErrorKind::bad_file, spec.source, ": has ", n_tokens,
        " tokens, too few for an embedding (vocab_size) of ", n_rows, " rows");
  for (std::size_t i = n; i < spec.tokens.size(); ++i) {
    const auto kind = spec.tokens[i].kind;
    const bool ordinary = kind == TokenKind::normal || kind == TokenKind::byte || kind == TokenKind::unknown;
    check(!ordinary, ErrorKind::bad_file, spec.source, ": token ", i, " has no row in the embedding, which has ",
          n_rows);
  }
  spec.tokens.resize(n, {{}, TokenKind::unused});
  const auto beyond = [&](Token id) { return std::int64_t(id) >= n_rows; };
  std::erase_if(spec.added, [&](const AddedToken& token) { return beyond(token.id); });
  std::erase_if(spec.end, beyond);
  if (spec.eos && beyond(*spec.eos)) spec.eos.reset();
  std::size_t kept = 0;
  for (std::size_t i = 0; i < spec.merges.size(); ++i) {
    const auto& [left, right] = spec.merges[i];
    if (beyond(left) || beyond(right) || beyond(spec.merge_results[i])) continue;
    spec.merges[kept] = spec.merges[i];
    spec.merge_results[kept++] = spec.merge_results[i];
  }
  spec.merges.resize(kept);
  spec.merge_results.resize(kept);
}

}  // namespace tokenizer_config_detail

VITRINE_INLINE void apply_tokenizer_config(TokenizerSpec& spec, std::string_view text, std::string_view name,
                                           std::int64_t n_rows) {
  using namespace tokenizer_config_detail;
  const std::string source(name);
  const auto document = json_detail::parse_json(text, source);
  const Part config(document, source, "");
  read_added_tokens(config, spec, json_tokenizer_detail::id_limit(spec.tokens.size(), n_rows));
  const spec_detail::TextIndex index(spec);
  if (const auto bos = find_named(config, "bos_token", index)) {
    if (spec.bos && *spec.bos != *bos) std::replace(spec.prefix.begin(), spec.prefix.end(), *spec.bos, *bos);
    spec.bos = bos;
  }
  const auto eos = find_named(config, "eos_token", index);
  if (eos) {
    spec.eos = eos;
    spec.end.push_back(*eos);
  }
  put_around(config, spec, eos);
  if (spec.rule == MergeRule::scores && spec.space_prefix == SpacePrefix::always) {
    if (!config.flag("add_prefix_space", true)) {
      spec.space_prefix = SpacePrefix::never;
    } else if (!config.flag("legacy", true)) {
      spec.space_prefix = SpacePrefix::first;
    }
  }
  read_chat_templates(config, spec);
}

VITRINE_NAMESPACE_END
