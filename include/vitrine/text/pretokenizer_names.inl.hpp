// The pre-tokenizers that GGUF files name. For bodies only.
//
// Where a family's patterns come from: the pre_tokenizer entries that the models publish in their tokenizer.json, and
// the table of names in src/llama-vocab.cpp of the llama.cpp project (MIT), whose converter gave the names and which
// says which models share a family. Patterns are facts of the models; where that table writes a pattern around its own
// regular expression engine, the model's original stands here.
#pragma once

#include <array>
#include <string_view>

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

namespace pretokenizer_detail {

#define VITRINE_CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define VITRINE_CASED_WORDS(suffix)                                                        \
  R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)" suffix \
  R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)" suffix "|"
#define VITRINE_TAIL R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define VITRINE_WORDS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|)"
#define VITRINE_SYMBOLS R"(| ?[^\s\p{L}\p{N}]+[\r\n]*)"
#define VITRINE_CASED_SYMBOLS R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*)"

inline constexpr const char* gpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
inline constexpr const char* llama3 = VITRINE_CONTRACTIONS VITRINE_WORDS R"(\p{N}{1,3})" VITRINE_SYMBOLS VITRINE_TAIL;
inline constexpr const char* qwen2 = VITRINE_CONTRACTIONS VITRINE_WORDS R"(\p{N})" VITRINE_SYMBOLS VITRINE_TAIL;
inline constexpr const char* qwen35 =
    VITRINE_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)" VITRINE_TAIL;
inline constexpr const char* gpt4o =
    VITRINE_CASED_WORDS(VITRINE_CONTRACTIONS "?") R"(\p{N}{1,3})" VITRINE_CASED_SYMBOLS VITRINE_TAIL;
inline constexpr const char* tekken = VITRINE_CASED_WORDS("") R"(\p{N})" VITRINE_CASED_SYMBOLS VITRINE_TAIL;
inline constexpr const char* digit = R"(\p{N})";
inline constexpr const char* digits = R"(\p{N}+)";
inline constexpr const char* three_digits = R"(\p{N}{1,3})";
inline constexpr const char* three_ascii_digits = "[0-9][0-9][0-9]";
inline constexpr const char* line_end = R"([\r\n])";
inline constexpr const char* cjk = "[\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+";
inline constexpr const char* cjk_kana = "[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+";
inline constexpr const char* deepseek3 =
    R"re([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|)re"
    R"re([^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*)re" VITRINE_TAIL;
inline constexpr const char* spark = R"re([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|)re"
                                     R"re([^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|)re"
                                     R"(\s+(?!\S)|\s+)";
// The letters of scripts with case, as deepseek-llm lists them.
inline constexpr const char* deepseek_letters =
    R"(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF})"
    R"(\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1})"
    R"(\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5})"
    R"(\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A})"
    R"(\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B})"
    R"(\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC})"
    R"(\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107})"
    R"(\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134})"
    R"(\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4})"
    R"(\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787})"
    R"(\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A})"
    R"(\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2})"
    R"(\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)";
inline constexpr const char* deepseek_symbols = "\\s?[!-/:-~\uFF01-\uFF0F\uFF1A-\uFF5E\u2018-\u201F\u3000-\u3002]+";
// Published as \s+$; written so that a long run of spaces inside a line is not tried from each of its characters.
inline constexpr const char* trailing_space = R"((?<!\s)\s++\z)";
inline constexpr const char* bloom = R"( ?[^(\s|.,!?…。，、।۔،)]+)";
inline constexpr const char* bailing =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";
inline constexpr const char* seed_coder =
    VITRINE_CONTRACTIONS VITRINE_WORDS R"(\p{N}| ?[^\s\p{L}\p{N}\r\n]+)" VITRINE_TAIL;
inline constexpr const char* no_contractions = R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N})" VITRINE_SYMBOLS VITRINE_TAIL;
inline constexpr const char* exaone_moe = VITRINE_CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)";
inline constexpr const char* minicpm5 = VITRINE_CONTRACTIONS VITRINE_WORDS R"(\p{N}+)" VITRINE_SYMBOLS VITRINE_TAIL;
inline constexpr const char* jais2 = VITRINE_CONTRACTIONS VITRINE_WORDS
    R"(\p{N}{1,3})" VITRINE_SYMBOLS
    R"(|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S))"
    R"(|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})";
inline constexpr const char* youtu_scripts =
    "[\uAC00-\uD7A3\u3131-\u318E]+|[！…“”‘’—：；，、\u3001-\u303F\uFE30-\uFE4F]+|[\u3105-\u312F]+|"
    "[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+";
inline constexpr const char* youtu =
    VITRINE_CASED_WORDS(VITRINE_CONTRACTIONS "?") R"(\p{N})" VITRINE_CASED_SYMBOLS VITRINE_TAIL;
inline constexpr const char* lines = R"([^\n]+|[\n]+)";

#undef VITRINE_CONTRACTIONS
#undef VITRINE_CASED_WORDS
#undef VITRINE_TAIL
#undef VITRINE_WORDS
#undef VITRINE_SYMBOLS
#undef VITRINE_CASED_SYMBOLS

struct NamedEntry {
  std::string_view name;
  std::array<const char*, 6> patterns;
  bool ignore_merges = false, add_bos = false, add_sep = false;
};

inline constexpr NamedEntry named_entries[] = {
    // no name was known when the file was made
    {"default", {R"([\p{P}$+<=>^~|]+)", gpt2, digits, three_ascii_digits}},
    // pieces of up to three digits
    {"llama-bpe", {llama3}, true, true},
    {"llama-v3", {llama3}, true, true},
    {"llama3", {llama3}, true, true},
    {"falcon3", {llama3}, true, true},
    {"falcon-h1", {llama3}, true, true},
    {"jina-v5-nano", {llama3}, true, true},
    {"lfm2", {llama3}, true, true},
    {"midm-2.0", {llama3}, true, true},
    {"pixtral", {llama3}, true, true},
    {"chatglm-bpe", {llama3}},
    {"dbrx", {llama3}},
    {"glm4", {llama3}},
    {"smaug-bpe", {llama3}},
    {"jais-2", {jais2}},
    {"minicpm5", {three_digits, minicpm5}, true},
    // GPT-2's own
    {"gpt-2", {gpt2}},
    {"a.x-4.0", {gpt2}},
    {"exaone4", {gpt2}},
    {"gigachat", {gpt2}},
    {"granite-docling", {gpt2}},
    {"jais", {gpt2}},
    {"jina-de", {gpt2}},
    {"jina-es", {gpt2}},
    {"jina-v1-en", {gpt2}, false, false, true},
    {"jina-v2-code", {gpt2}, false, false, true},
    {"jina-v2-de", {gpt2}},
    {"jina-v2-es", {gpt2}},
    {"mellum", {gpt2}},
    {"modern-bert", {gpt2}},
    {"mpt", {gpt2}},
    {"olmo", {gpt2}},
    {"phi-2", {gpt2}},
    {"roberta-bpe", {gpt2}, false, false, true},
    {"trillion", {gpt2}},
    // each digit a piece, then GPT-2's
    {"smollm", {digit, gpt2}},
    {"codeshell", {digit, gpt2}},
    {"command-r", {digit, gpt2}},
    {"exaone", {digit, gpt2}},
    {"mellum2", {digit, gpt2}},
    {"minerva-7b", {digit, gpt2}},
    {"refact", {digit, gpt2}},
    {"starcoder", {digit, gpt2}},
    // like llama-bpe with each digit a piece
    {"qwen2", {qwen2}},
    {"deepseek-r1-qwen", {qwen2}},
    {"f2llmv2", {qwen2}},
    {"grok-2", {qwen2}},
    {"hunyuan", {qwen2}},
    {"kormo", {qwen2}},
    {"megrez", {qwen2}},
    {"solar-open", {qwen2}},
    {"stablelm2", {qwen2}},
    {"laguna", {lines, qwen2}},
    {"qwen35", {qwen35}},
    {"bailingmoe", {bailing}},
    {"bailingmoe2", {bailing}},
    {"llada-moe", {bailing}},
    {"seed-coder", {seed_coder}},
    {"ufakzeka", {no_contractions}},
    {"exaone-moe", {exaone_moe}},
    // words cut where lower case ends
    {"gpt-4o", {gpt4o}},
    {"kanana2", {gpt4o}},
    {"llama4", {gpt4o}},
    {"minimax-m2", {gpt4o}},
    {"talkie", {gpt4o}},
    {"tekken", {tekken}, true, true},
    {"youtu", {youtu_scripts, youtu}, true},
    // scripts apart from each other
    {"deepseek-llm", {line_end, deepseek_letters, deepseek_symbols, trailing_space, cjk, digits}},
    {"deepseek-coder", {line_end, R"(\s?\p{L}+)", R"(\s?\p{P}+)", cjk, digit}},
    {"deepseek-v3", {three_digits, cjk_kana, deepseek3}},
    {"hunyuan-dense", {three_digits, cjk_kana, deepseek3}},
    {"hy_v4", {three_digits, cjk_kana, deepseek3}},
    {"joyai-llm", {three_digits, cjk_kana, deepseek3}},
    {"spark2_5", {three_digits, cjk_kana, spark, digit}},
    // others
    {"falcon", {R"([\p{P}$+<=>^~|`]+)", gpt2, three_ascii_digits}},
    {"bloom", {bloom}},
    {"gpt3-finnish", {bloom}},
    {"poro-chat", {bloom}},
    {"viking", {bloom, digit}},
    {"chameleon",
     {"<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", "([\\t\\n]|    |  )", digit,
      R"([\p{P}!-/:-@\[-`{-~])", gpt2},
     false,
     true},
};

}  // namespace pretokenizer_detail

VITRINE_NAMESPACE_END
