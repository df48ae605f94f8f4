// Tokenizers from files: GGUF metadata, tokenizer.json (the tokenizers library), tokenizer.model (SentencePiece).
//
//   const Tokenizer tokenizer = load_tokenizer("model.gguf");
//
// Each reader only fills a TokenizerSpec. What a file asks for and this library does not do is refused by name: a
// tokenizer that ignores a part of its description gives plausible ids that the model was never trained on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/model/gguf.hpp"
#include "vitrine/text/tokenizer.hpp"

VITRINE_NAMESPACE_BEGIN

struct TokenizerOptions {
  std::vector<Token> extra_end;  // more tokens that end a generation
  std::int64_t n_rows = 0;  // rows of the model's embedding; ids beyond the file's own are filled up with unused tokens
};

// `path`: a GGUF file of any name; a folder that holds tokenizer.json or tokenizer.model (looked for in this order) and
// perhaps tokenizer_config.json, config.json and generation_config.json; such a folder's config.json, *.safetensors or
// *.index.json; or one tokenizer.json or tokenizer.model by itself. Throws Error::io, bad_file or unsupported.
Tokenizer load_tokenizer(const std::filesystem::path& path, const TokenizerOptions& options = {});

Tokenizer tokenizer_from_gguf(const GgufFile& file, const TokenizerOptions& options = {});
Tokenizer tokenizer_from_folder(const std::filesystem::path& folder, const TokenizerOptions& options = {});

// The specs themselves, to look at or change before a Tokenizer is made of them.
TokenizerSpec tokenizer_spec_from_gguf(const GgufFile& file);
// `name` is for messages. Ids must be below n_rows, or, when that is 0, not far above the number of tokens.
TokenizerSpec tokenizer_spec_from_json(std::string_view text, std::string name, std::int64_t n_rows = 0);
TokenizerSpec tokenizer_spec_from_sentencepiece(std::span<const std::byte> bytes, std::string name);
// Adds what tokenizer_config.json says: BOS and EOS, whether they are put around texts, more added tokens, the
// template.
void apply_tokenizer_config(TokenizerSpec& spec, std::string_view text, std::string_view name, std::int64_t n_rows = 0);

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/text/load_tokenizer.inl.hpp"
#endif
