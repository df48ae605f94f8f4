// Tokenizers: a byte that chooses one and its options, then a text. Text to ids to text, whole and as a stream; and the
// same bytes taken as ids.
#include <cstdlib>

#include "fuzz.hpp"
#include "vitrine/text/load_tokenizer.hpp"
#include "vitrine/text/utf8.hpp"

using namespace vitrine;

namespace {

const std::vector<Tokenizer>& tokenizers() {
  static const auto* const all = [] {
    const std::filesystem::path data = VITRINE_TEST_DATA;
    auto* loaded = new std::vector<Tokenizer>;
    for (const char* name : {"tokenizers/bpe_gpt2", "tokenizers/bpe_llama3", "tokenizers/bpe_qwen2",
                             "tokenizers/spm_gemma", "tokenizers/spm_llama", "tiny/llama_rope_llama3"})
      loaded->push_back(load_tokenizer(data / name));
    return loaded;
  }();
  return *all;
}

std::string streamed(const Tokenizer& tokenizer, const std::vector<Token>& ids, bool skip_special) {
  StreamDecoder decoder(tokenizer, skip_special);
  std::string text;
  for (const Token id : ids) {
    text += decoder.push(id);
    fuzz::law(decoder.pending().size() <= 3, "no more than three bytes wait");
  }
  return text + decoder.finish();
}

void check_decoding(const Tokenizer& tokenizer, const std::vector<Token>& ids) {
  for (const bool skip_special : {false, true}) {
    const std::string whole = tokenizer.decode(ids, skip_special);
    fuzz::law(whole == streamed(tokenizer, ids, skip_special), "a stream says what the whole says");
    fuzz::law(utf8::valid_prefix(whole) == whole.size(), "decoded text is valid UTF-8");
  }
}

// Whatever stands around a marker, and whatever it looks like, the marker is the only one.
void check_scaffold(const Tokenizer& tokenizer, std::string_view text) {
  Token marker = 0;
  while (tokenizer.kind(marker) != TokenKind::control) ++marker;
  std::string whole(text.substr(0, text.size() / 2));
  const TextRange range = {whole.size(), whole.size() + tokenizer.piece(marker).size()};
  whole += tokenizer.piece(marker);
  whole += text.substr(text.size() / 2);
  std::vector<Token> found;
  for (const Token id : tokenizer.encode(
           whole, {.add_special = false, .parse_special = true, .special_in = std::span(&range, std::size_t(1))}))
    if (tokenizer.kind(id) == TokenKind::control) found.push_back(id);
  fuzz::law(found == std::vector<Token>{marker}, "special tokens are found in the scaffold, and nowhere else");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  std::string_view text = fuzz::as_text(bytes, size);
  const unsigned choice = fuzz::take_byte(text);
  const Tokenizer& tokenizer = tokenizers()[(choice & 15) % tokenizers().size()];
  std::size_t n_replaced = 0;
  EncodeOptions options = {.add_special = (choice & 16) != 0, .parse_special = (choice & 32) != 0};
  options.n_replaced = &n_replaced;

  std::vector<Token> ids;
  for (const char c : text) ids.push_back(static_cast<Token>(static_cast<unsigned char>(c) * 7 % tokenizer.n_vocab()));
  check_decoding(tokenizer, ids);

  fuzz::law(fuzz::answers([&] { ids = tokenizer.encode(text, options); }), "these tokenizers encode any bytes");
  for (const Token id : ids) fuzz::law(id >= 0 && id < tokenizer.n_vocab(), "ids are those of the vocabulary");
  check_decoding(tokenizer, ids);
  check_scaffold(tokenizer, text);
  if (!options.add_special && !options.parse_special) {
    for (const Token id : ids)
      fuzz::law(tokenizer.kind(id) != TokenKind::control, "a text has no control tokens unless they are asked for");
    // What a text becomes may be another form of it (of its characters, of its spaces); that form is kept.
    const std::string form = tokenizer.decode_bytes(ids);
    if (n_replaced == 0) {
      const std::string again = tokenizer.decode_bytes(tokenizer.encode(form, options));
      fuzz::law(again == form, "decoding what was encoded is a fixed point");
    }
    const bool plain = text.find_first_of("\xE2 ") == std::string_view::npos;
    bool ascii = true;
    for (const char c : text) ascii &= static_cast<unsigned char>(c) < 0x80;
    if (n_replaced == 0 && plain && ascii) fuzz::law(form == text, "no byte of plain text is lost");
  }
  return 0;
}
