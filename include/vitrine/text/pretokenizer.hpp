// The pre-tokenizer cuts a text into pieces, the words that byte-level BPE then merges within. It is a row of steps;
// each cuts every piece of the one before on its own, without seeing its neighbours.
//
//   "I've 123\n"  --llama-bpe-->  I | 've |   | 123 | \n          (the third piece is one space)
//
// A GGUF file names its pre-tokenizer (`tokenizer.ggml.pre`), a tokenizer.json spells it out; both become the same
// steps.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/text/pattern.hpp"

VITRINE_NAMESPACE_BEGIN

// What becomes of a match and the text between matches (names of the tokenizers library).
enum class SplitBehavior { isolated, removed, merged_with_previous, merged_with_next, contiguous };

struct PreTokenizerStep {
  Pattern pattern;
  SplitBehavior behavior = SplitBehavior::isolated;
  bool invert = false;       // what does not match is treated as the match
  bool on_byte_map = false;  // from this step on, patterns see GPT-2's character for each byte instead of the text
};

class PreTokenizer {
 public:
  struct Scratch {
    Pattern::Scratch pattern;
    std::vector<TextRange> matches, next;
    std::vector<char> is_match;
    std::string mapped;
  };

  PreTokenizer() = default;
  explicit PreTokenizer(std::vector<PreTokenizerStep> steps) : steps_(std::move(steps)) {}

  bool empty() const { return steps_.empty(); }  // no steps: the text is one piece
  const std::vector<PreTokenizerStep>& steps() const { return steps_; }

  // The pieces of `text`, none empty, in order. `text` must be valid UTF-8. `pieces` is overwritten.
  void split(std::string_view text, Scratch& scratch, std::vector<TextRange>& pieces) const;

 private:
  std::vector<PreTokenizerStep> steps_;
};

// A pre-tokenizer that GGUF files call by name, and what goes with the name when the file's own keys are silent.
struct NamedPreTokenizer {
  PreTokenizer steps;
  bool ignore_merges = false;  // a piece that is a token is taken whole, whatever the merges would make of it
  bool add_bos = false;
  bool add_sep = false;
};

// Throws Error::unsupported for an unknown name, listing the known ones: a guessed pre-tokenizer gives plausible ids
// that the model was never trained on. `source`, for the message: where the name stands.
NamedPreTokenizer pre_tokenizer_by_name(std::string_view name, std::string_view source = "tokenizer.ggml.pre");
// All names that pre_tokenizer_by_name knows, sorted.
std::vector<std::string_view> pre_tokenizer_names();

// GPT-2's printable character for each byte, as UTF-8, and back (-1: not such a character).
std::string_view byte_map_character(unsigned char byte);
int byte_of_map_character(std::string_view character);

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/text/pretokenizer.inl.hpp"
#endif
