#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "vitrine/model/architecture.hpp"
#include "vitrine/model/mapped_file.hpp"
#include "vitrine/text/load_tokenizer.hpp"
#include "vitrine/text/sentencepiece_model.inl.hpp"
#include "vitrine/text/tokenizer_config.inl.hpp"
#include "vitrine/text/tokenizer_gguf.inl.hpp"
#include "vitrine/text/tokenizer_json.inl.hpp"

VITRINE_NAMESPACE_BEGIN

namespace load_tokenizer_detail {

// The folder that a path means as load_model_files takes it, but for a tokenizer's own *.json.
inline std::optional<std::filesystem::path> folder_of(const std::filesystem::path& path) {
  auto folder = model_folder(path);
  const auto name = path.filename().string();
  const bool by_itself = path.extension() == ".json" && name != "config.json" && !name.ends_with(".index.json");
  std::error_code ignored;
  if (by_itself && !std::filesystem::is_directory(path, ignored)) folder.reset();
  return folder;
}

// By its first bytes, because download caches name files after their hash.
inline bool is_gguf(const std::filesystem::path& path) {
  char magic[4] = {};
  std::ifstream(path, std::ios::binary).read(magic, sizeof magic);
  return path.extension() == ".gguf" || std::string_view(magic, sizeof magic) == "GGUF";
}

inline TokenizerSpec spec_from_file(const std::filesystem::path& path, std::int64_t n_rows) {
  if (path.extension() == ".json")
    return tokenizer_spec_from_json(tokenizer_config_detail::read_file(path), path.string(), n_rows);
  const MappedFile file(path);
  return tokenizer_spec_from_sentencepiece(file.bytes(), path.string());
}

inline Tokenizer finish(TokenizerSpec spec, const TokenizerOptions& options, std::int64_t n_rows) {
  tokenizer_config_detail::fit_rows(spec, n_rows);
  spec.end.insert(spec.end.end(), options.extra_end.begin(), options.extra_end.end());
  return Tokenizer(std::move(spec));
}

}  // namespace load_tokenizer_detail

VITRINE_INLINE Tokenizer tokenizer_from_gguf(const GgufFile& file, const TokenizerOptions& options) {
  return load_tokenizer_detail::finish(tokenizer_spec_from_gguf(file), options, options.n_rows);
}

VITRINE_INLINE Tokenizer tokenizer_from_folder(const std::filesystem::path& folder, const TokenizerOptions& options) {
  namespace fs = std::filesystem;
  using namespace tokenizer_config_detail;
  std::error_code ignored;
  const auto has = [&](const char* name) { return fs::exists(folder / name, ignored); };
  std::optional<HfConfig> config;
  if (has("config.json")) config = HfConfig::open(folder / "config.json");
  const std::int64_t n_rows = options.n_rows > 0 ? options.n_rows : config ? rows_of(*config) : 0;
  check(has("tokenizer.json") || has("tokenizer.model"), ErrorKind::io, folder.string(),
        ": neither tokenizer.json nor tokenizer.model is there");
  TokenizerSpec spec = load_tokenizer_detail::spec_from_file(
      folder / (has("tokenizer.json") ? "tokenizer.json" : "tokenizer.model"), n_rows);
  if (const auto path = folder / "tokenizer_config.json"; has("tokenizer_config.json"))
    apply_tokenizer_config(spec, read_file(path), path.string(), n_rows);
  if (has("chat_template.jinja")) spec.chat_template = read_file(folder / "chat_template.jinja");
  if (has("additional_chat_templates")) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder / "additional_chat_templates", ignored))
      if (entry.path().extension() == ".jinja") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const auto& file : files) spec.more_chat_templates.emplace_back(file.stem().string(), read_file(file));
  }

  const auto limit = n_rows > 0 ? n_rows : std::int64_t(spec.tokens.size());
  const auto read_ids = [&](const HfConfig& from) {
    const auto in_range = [&](std::int64_t id, const char* key) {
      check(id >= 0 && id < limit, ErrorKind::bad_file, from.name(), ": ", key, " is ", id, ", expected 0 to ",
            limit - 1);
      return static_cast<Token>(id);
    };
    for (const auto id : from.integers("eos_token_id")) {
      spec.end.push_back(in_range(id, "eos_token_id"));
      if (!spec.eos) spec.eos = spec.end.back();
    }
    for (const auto id : from.integers("bos_token_id")) {
      const Token bos = in_range(id, "bos_token_id");  // checked even where another file has named it
      if (!spec.bos) spec.bos = bos;
    }
  };
  if (config) {
    read_ids(*config);
    if (const auto section = config->find_section("text_config")) read_ids(*section);
  }
  if (has("generation_config.json")) read_ids(HfConfig::open(folder / "generation_config.json"));
  return load_tokenizer_detail::finish(std::move(spec), options, n_rows);
}

VITRINE_INLINE Tokenizer load_tokenizer(const std::filesystem::path& path, const TokenizerOptions& options) {
  using namespace load_tokenizer_detail;
  if (const auto folder = folder_of(path)) return tokenizer_from_folder(*folder, options);
  if (is_gguf(path)) return tokenizer_from_gguf(GgufFile::open(path), options);
  return finish(spec_from_file(path, options.n_rows), options, options.n_rows);
}

VITRINE_NAMESPACE_END
