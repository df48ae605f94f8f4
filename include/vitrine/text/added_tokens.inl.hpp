// Finds added tokens in a text, from the left the longest one at each position, as the tokenizers library does: its
// rules for white space and words are kept even where they are odd, since ids must be the same. For bodies only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "vitrine/text/longest_word.inl.hpp"
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

class Matcher {
 public:
  struct Match {
    std::size_t begin = 0;
    const AddedToken* token = nullptr;
  };

  void add(AddedToken token) {
    if (!token.text.empty()) tokens_.push_back(std::move(token));
  }
  // After the last add(). Of equal texts the first added one stays.
  void finish() {
    std::stable_sort(tokens_.begin(), tokens_.end(), [](const auto& a, const auto& b) { return a.text < b.text; });
    tokens_.erase(
        std::unique(tokens_.begin(), tokens_.end(), [](const auto& a, const auto& b) { return a.text == b.text; }),
        tokens_.end());
    for (std::size_t i = 0; i < tokens_.size(); ++i)
      (tokens_[i].special ? special_ : ordinary_).add(tokens_[i].text, std::int32_t(i));
    special_.finish();
    ordinary_.finish();
  }
  bool empty() const { return tokens_.empty(); }

  // The longest token at each place where one begins, the last place first; how many steps that took. With `places`
  // (ascending and apart), a special token must lie within one of them, and no other one may take away the special
  // token that a place begins with.
  std::size_t find(std::string_view text, const std::vector<TextRange>* places, std::vector<Match>& found) const {
    const TextRange everywhere = {0, text.size()};
    const TextRange* const ranges = places ? places->data() : &everywhere;
    std::size_t n_places = places ? places->size() : 1, n_steps = 0;
    auto special = LongestWord::start, ordinary = LongestWord::start;
    for (std::size_t at = text.size(); at-- > 0;) {
      ordinary = ordinary_.step(ordinary, text[at], n_steps);
      std::int32_t longest = ordinary_.longest(ordinary);
      while (n_places > 0 && ranges[n_places - 1].begin > at) --n_places;
      if (n_places > 0 && at < ranges[n_places - 1].end) {
        const TextRange& place = ranges[n_places - 1];
        if (at + 1 == place.end) special = LongestWord::start;
        special = special_.step(special, text[at], n_steps);
        const std::int32_t other = special_.longest(special);
        if (other >= 0 && (longest < 0 || size_of(longest) < size_of(other))) {
          longest = other;
          if (places && at == place.begin) ordinary = LongestWord::start;  // further left, none reaches across
        }
      }
      if (longest >= 0) found.push_back({at, &tokens_[std::size_t(longest)]});
    }
    return n_steps;
  }

 private:
  std::size_t size_of(std::int32_t i) const { return tokens_[std::size_t(i)].text.size(); }

  std::vector<AddedToken> tokens_;
  LongestWord special_, ordinary_;
};

// Goes through the matches from the left. They do not overlap; one that is not allowed (special, or inside a word) is
// passed over as a whole.
class Cutter {
 public:
  Cutter(const Matcher& matcher, std::string_view text, const std::vector<TextRange>* places)
      : text_(text), in_places_(places != nullptr) {
    matcher.find(text, places, found_);
  }

  struct Cut {
    TextRange range;  // what it takes, stripped white space included
    Token id = -1;
  };
  // The next one, id -1 if there is none. `taken`: where the text begins that no earlier token has taken along; the
  // search goes on behind a token's own text, even in white space that was taken.
  Cut next(std::size_t taken, bool parse_special) {
    while (!found_.empty()) {
      const auto [begin, token] = found_.back();
      found_.pop_back();
      if (begin < at_) continue;
      TextRange range = {begin, begin + token->text.size()};
      at_ = range.end;
      const bool in_scaffold = in_places_ && token->special;
      if (token->special && !parse_special) continue;
      if (token->single_word && !in_scaffold && !stands_alone(range)) continue;
      if (token->left_strip) {
        while (range.begin > taken) {
          const auto before = character_before(text_, range.begin);
          if (!is_space(before) || before.size() > range.begin - taken) break;
          range.begin -= before.size();
        }
        range.begin = (std::max)(range.begin, taken);
      }
      if (token->right_strip) range.end = white_until(range.end);
      return {range, token->id};
    }
    return {};
  }

 private:
  bool stands_alone(TextRange range) const {
    if (range.begin > 0 && is_word(character_before(text_, range.begin))) return false;
    const auto behind = text_.substr(range.end);
    return behind.empty() || !is_word(behind.substr(0, utf8::first_unit(behind).n_bytes));
  }

  // Where the white space that begins here ends. Tokens of white space may ask for each place of a long run of it.
  std::size_t white_until(std::size_t at) {
    const bool is_start = at < text_.size() && (static_cast<unsigned char>(text_[at]) & 0xC0) != 0x80;
    if (is_start && white_.begin <= at && at < white_.end) return white_.end;
    white_ = {at, at};
    while (white_.end < text_.size()) {
      const auto unit = utf8::first_unit(text_.substr(white_.end));
      if (!is_space(text_.substr(white_.end, unit.n_bytes))) break;
      white_.end += unit.n_bytes;
    }
    return white_.end;
  }

  std::string_view text_;
  bool in_places_;
  std::vector<Matcher::Match> found_;  // from the right
  std::size_t at_ = 0;
  TextRange white_{};  // the run of white space seen last
};

}  // namespace added_detail

VITRINE_NAMESPACE_END
