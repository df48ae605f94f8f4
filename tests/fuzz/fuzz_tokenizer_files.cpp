// The files beside a model: a byte that says which, then its text. tokenizer.json, tokenizer_config.json (over a
// tokenizer.json that is fixed), config.json, tokenizer.model. A tokenizer that was accepted must work.
#include "fuzz.hpp"
#include "vitrine/model/architecture.hpp"
#include "vitrine/text/load_tokenizer.hpp"

using namespace vitrine;

namespace {

const char* const base = R"json({"added_tokens": [{"id": 4, "content": "<s>", "special": true}],
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "decoder": {"type": "ByteLevel"},
  "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "Ġ": 3}, "merges": ["a b"]}})json";

void use(TokenizerSpec spec) {
  const Tokenizer tokenizer(std::move(spec));
  for (const std::string_view text : {"ab a<s>  b\n12 \xC3\xA9\xFF", "", " ", "<unk>aaaaaaaaaaaaaaaa"}) {
    fuzz::answers([&] {
      const auto ids = tokenizer.encode(text, {.add_special = true, .parse_special = true});
      for (const Token id : ids) fuzz::law(id >= 0 && id < tokenizer.n_vocab(), "ids are those of the vocabulary");
      StreamDecoder stream(tokenizer);
      std::string streamed;
      for (const Token id : ids) stream.push(id, streamed);
      fuzz::law(streamed + stream.finish() == tokenizer.decode(ids), "a stream says what the whole says");
    });
  }
  for (Token id = 0; id < tokenizer.n_vocab(); ++id)
    if (const auto found = tokenizer.find(tokenizer.piece(id)))
      fuzz::law(tokenizer.piece(*found) == tokenizer.piece(id), "a token is found by its text");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  std::string_view text = fuzz::as_text(bytes, size);
  const unsigned choice = fuzz::take_byte(text);
  const std::int64_t n_rows = (choice & 4) != 0 ? 8 : 0;
  fuzz::answers([&] {
    switch (choice & 3) {
      case 0: return use(tokenizer_spec_from_json(text, "tokenizer.json", n_rows));
      case 1: {
        TokenizerSpec spec = tokenizer_spec_from_json(base, "tokenizer.json");
        apply_tokenizer_config(spec, text, "tokenizer_config.json", n_rows);
        return use(std::move(spec));
      }
      case 2: return (void)config_from_hf(HfConfig::parse(text, "config.json"));
      default: return use(tokenizer_spec_from_sentencepiece(std::as_bytes(std::span(text)), "tokenizer.model"));
    }
  });
  return 0;
}
