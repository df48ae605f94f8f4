// A tokenizer, written down: what GGUF metadata, tokenizer.json and tokenizer.model are all turned into, and what a
// Tokenizer is built from.
//
//   added tokens are cut out -> normalizer -> pre_tokenizer -> merges by the rule -> prefix and suffix around
//
// Plain data; fill one by hand to make a tokenizer for a test or a lesson. Whether it makes sense (ids in range, every
// merge of known tokens) is looked at by the constructor of Tokenizer, which throws Error::bad_file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/core/token.hpp"
#include "vitrine/text/pretokenizer.hpp"

VITRINE_NAMESPACE_BEGIN

enum class TokenKind : std::uint8_t {  // numbered as in GGUF's tokenizer.ggml.token_type
  normal = 1,
  unknown = 2,       // stands for what the vocabulary cannot say
  control = 3,       // <s>, <|im_end|>: never comes out of ordinary text
  user_defined = 4,  // recognised in any text before everything else
  unused = 5,
  byte = 6  // <0x41>: one byte, for what has no other token
};

struct TokenSpec {
  // What the token stands for: raw bytes, a space where SentencePiece writes U+2581. A byte token's text is "<0x41>".
  std::string text;
  TokenKind kind = TokenKind::normal;
  float score = 0;        // SentencePiece: the higher, the sooner it is merged
  bool reachable = true;  // ordinary text can become it; false for a normal token that no text can spell
};

// How pieces are put together.
enum class MergeRule {
  byte_ranks,       // byte-level BPE: starts from bytes, merges by rank (GPT-2, Llama 3, Qwen)
  character_ranks,  // BPE on characters, merges by rank (SentencePiece models exported to tokenizer.json)
  scores            // SentencePiece BPE: any two neighbours that form a token, highest score first
};

// A token that is looked for in the text as it stands, before any splitting.
struct AddedToken {
  Token id = 0;
  std::string text;
  bool special = false;      // only found when asked for (EncodeOptions::parse_special)
  bool left_strip = false;   // takes white space before it along
  bool right_strip = false;  // and behind it
  bool single_word = false;  // not directly next to a word character
  bool normalized = false;   // looked for after normalisation, not before
};

struct NormalizeStep {
  enum class Kind {
    unicode,         // `from` is NFC, NFD, NFKC or NFKD
    replace,         // every `from` by `to`
    collapse_spaces  // no space at the ends, never two in a row
  } kind;
  std::string from, to;
};

// Where a space is put before text that has none, so that its first word looks like any other.
enum class SpacePrefix { never, first, always };  // not at all; at the very start only; also behind each special token

using NamedTemplates = std::vector<std::pair<std::string, std::string>>;  // name, template

struct TokenizerSpec {
  std::string source;  // file, for messages
  std::vector<TokenSpec> tokens;

  MergeRule rule = MergeRule::byte_ranks;
  std::vector<std::pair<Token, Token>> merges;  // for the rank rules; first is rank 0
  std::vector<Token> merge_results;             // as many
  bool ignore_merges = false;                   // a piece that is a token is taken whole
  bool byte_fallback = false;                   // byte tokens for characters that have none
  bool fuse_unknown = false;                    // neighbouring unknown characters become one unknown token
  std::optional<Token> unknown;

  std::vector<AddedToken> added;
  bool spaces_first = false;  // U+2581 in a text is a space, even before added tokens are looked for
  std::vector<NormalizeStep> normalizer;
  SpacePrefix space_prefix = SpacePrefix::never;
  bool prefix_unless_space = false;  // no prefix where the text begins with a space anyway
  bool prefix_after_added = false;   // added after normalized added tokens were found, not before
  PreTokenizer pre_tokenizer;

  std::vector<Token> prefix, suffix;  // put around a text by EncodeOptions::add_special
  std::optional<Token> bos, eos;
  std::vector<Token> end;     // every token that ends a generation
  bool strip_prefix = true;   // decoding takes the space away that space_prefix put there
  std::string chat_template;  // Jinja, as the file has it; empty if none
  NamedTemplates more_chat_templates;
};

VITRINE_NAMESPACE_END
