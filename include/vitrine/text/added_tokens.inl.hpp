// Finds added tokens in a text, from the left the longest one at each position, as the tokenizers library does: its
// rules for white space and words are kept even where they are odd, since ids must be the same. For bodies only.
#pragma once

#include <algorithm>
#include <bitset>
#include <string_view>
#include <utility>
#include <vector>

#include "vitrine/text/pattern.hpp"
#include "vitrine/text/tokenizer_spec.hpp"
#include "vitrine/text/unicode.inl.hpp"
#include "vitrine/text/utf8.hpp"

VITRINE_NAMESPACE_BEGIN

namespace added_detail {

// The character that ends at `end`; nothing valid: one byte.
inline std::string_view character_before(std::string_view text, std::size_t end) {
  std::size_t begin = end - 1;
  while (begin > 0 && end - begin < 4 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  const auto character = text.substr(begin, end - begin);
  const auto unit = utf8::first_unit(character);
  return unit.valid && unit.n_bytes == character.size() ? character : text.substr(end - 1, 1);
}

inline bool is_space(std::string_view character) {
  return utf8::first_unit(character).valid && utf8::is_white_space(utf8::code_point(character));
}

// \w of the regex library in question: alphabetic, marks, digits, connectors, joiners.
inline bool is_word(std::string_view character) {
  if (!utf8::first_unit(character).valid) return false;
  const std::uint32_t code = utf8::code_point(character);
  const auto in = [&](std::uint32_t first, std::uint32_t last) { return code >= first && code <= last; };
  if (in(0x200C, 0x200D) || in(0x24B6, 0x24E9)) return true;  // letters in circles, in squares
  if (in(0x1F130, 0x1F149) || in(0x1F150, 0x1F169) || in(0x1F170, 0x1F189)) return true;
  return unicode::is_letter_mark_digit_or_connector(code);
}

// Where special tokens are recognised: ranges of the text, ascending and apart.
class SpecialPlaces {
 public:
  explicit SpecialPlaces(std::vector<TextRange> ranges) : ranges_(std::move(ranges)) {}

  // The range that holds this byte; an empty one if none does.
  TextRange around(std::size_t at) const {
    const auto range = std::upper_bound(ranges_.begin(), ranges_.end(), at,
                                        [](std::size_t value, const TextRange& each) { return value < each.end; });
    return range == ranges_.end() || range->begin > at ? TextRange{at, at} : *range;
  }
  // Those of a part of the text, counted from its start.
  SpecialPlaces shifted(std::size_t begin, std::size_t size) const {
    std::vector<TextRange> out;
    for (const TextRange& range : ranges_)
      if (range.end > begin && range.begin < begin + size)
        out.push_back({(std::max)(range.begin, begin) - begin, (std::min)(range.end, begin + size) - begin});
    return SpecialPlaces(std::move(out));
  }
  bool starts_at(std::size_t at) const {
    const TextRange range = around(at);
    return range.begin == at && range.end > at;
  }

 private:
  std::vector<TextRange> ranges_;
};

class Matcher {
 public:
  struct Match {
    TextRange range;      // what it takes, stripped white space included
    std::size_t end = 0;  // where its own text ends: the search goes on there, even in white space that was taken
    Token id = -1;
  };

  void add(AddedToken token) {
    if (token.text.empty()) return;
    first_bytes_.set(static_cast<unsigned char>(token.text.front()));
    tokens_.push_back(std::move(token));
  }
  // After the last add(). Of equal texts the first added one stays.
  void finish() {
    std::stable_sort(tokens_.begin(), tokens_.end(), [](const auto& a, const auto& b) { return a.text < b.text; });
    tokens_.erase(
        std::unique(tokens_.begin(), tokens_.end(), [](const auto& a, const auto& b) { return a.text == b.text; }),
        tokens_.end());
  }
  bool empty() const { return tokens_.empty(); }

  // The next match from `from` on, id -1 if there is none. Matches do not overlap; one that is not allowed (special, or
  // inside a word) is passed over as a whole. `taken`: where the text begins that no earlier token has taken along.
  // With `places`, special tokens are seen within these ranges only, and nothing else may take a byte of theirs.
  Match find(std::string_view text, std::size_t from, std::size_t taken, bool parse_special,
             const SpecialPlaces* places = nullptr) const {
    for (std::size_t at = from; at < text.size(); ++at) {
      if (!first_bytes_[static_cast<unsigned char>(text[at])]) continue;
      const AddedToken* token = longest(text, at, places);
      if (token == nullptr) continue;
      Match match{{at, at + token->text.size()}, at + token->text.size(), token->id};
      const bool in_scaffold = places != nullptr && token->special;
      if ((token->special && !parse_special) ||
          (token->single_word && !in_scaffold && !stands_alone(text, match.range))) {
        at = match.range.end - 1;
        continue;
      }
      if (token->left_strip) {
        while (match.range.begin > taken) {
          const auto before = character_before(text, match.range.begin);
          if (!is_space(before) || before.size() > match.range.begin - taken) break;
          match.range.begin -= before.size();
        }
        match.range.begin = (std::max)(match.range.begin, taken);
      }
      if (token->right_strip)
        while (match.range.end < text.size()) {
          const auto unit = utf8::first_unit(text.substr(match.range.end));
          if (!is_space(text.substr(match.range.end, unit.n_bytes))) break;
          match.range.end += unit.n_bytes;
        }
      return match;
    }
    return {};
  }

 private:
  static bool stands_alone(std::string_view text, TextRange range) {
    if (range.begin > 0 && is_word(character_before(text, range.begin))) return false;
    const auto behind = text.substr(range.end);
    return behind.empty() || !is_word(behind.substr(0, utf8::first_unit(behind).n_bytes));
  }

  // The tokens are sorted; those that begin like the text form a range that each further byte narrows.
  const AddedToken* longest(std::string_view text, std::size_t at, const SpecialPlaces* places) const {
    auto low = tokens_.begin(), high = tokens_.end();
    const AddedToken* best = nullptr;
    for (std::size_t depth = 0; at + depth < text.size(); ++depth) {
      const auto wanted = static_cast<unsigned char>(text[at + depth]);
      low = std::partition_point(low, high, [&](const AddedToken& token) {
        return token.text.size() <= depth || static_cast<unsigned char>(token.text[depth]) < wanted;
      });
      high = std::partition_point(
          low, high, [&](const AddedToken& token) { return static_cast<unsigned char>(token.text[depth]) == wanted; });
      if (low == high) break;
      if (low->text.size() == depth + 1 && (places == nullptr || may_match(*low, text, at, *places))) best = &*low;
    }
    return best;
  }

  // A special token must lie within one place. Another one that reaches into a place from outside must not take away
  // the start of a special token there.
  bool may_match(const AddedToken& token, std::string_view text, std::size_t at, const SpecialPlaces& places) const {
    const std::size_t end = at + token.text.size();
    const TextRange place = places.around(at);
    if (token.special) return end <= place.end && at >= place.begin && place.begin < place.end;
    for (std::size_t inside = at + 1; inside < end; ++inside)
      if (places.starts_at(inside))
        if (const AddedToken* other = longest(text, inside, &places); other != nullptr && other->special) return false;
    return true;
  }

  std::vector<AddedToken> tokens_;
  std::bitset<256> first_bytes_;
};

}  // namespace added_detail

VITRINE_NAMESPACE_END
