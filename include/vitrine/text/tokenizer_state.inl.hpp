// What a Tokenizer looks things up in, and one encoding in progress. For bodies only.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "vitrine/core/error.hpp"
#include "vitrine/model/byte_reader.hpp"
#include "vitrine/text/added_tokens.inl.hpp"
#include "vitrine/text/merge_engine.inl.hpp"
#include "vitrine/text/normalizer.inl.hpp"
#include "vitrine/text/tokenizer.hpp"
#include "vitrine/text/vocabulary.hpp"

VITRINE_NAMESPACE_BEGIN

namespace tokenizer_detail {

inline constexpr std::string_view block_space = "\xE2\x96\x81";  // U+2581, a space in SentencePiece's vocabularies

// The byte that a token's text of the form <0x41> names, or -1.
inline int byte_of_name(std::string_view text) {
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>') return -1;
  int value = 0;
  for (const char c : text.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

struct State {
  TokenizerSpec spec;  // tokens, merges and scores are moved out of it into the tables below
  Vocabulary vocabulary;
  std::vector<TokenKind> kinds;
  std::vector<char> prefix_follows;  // encoding puts a space before what comes after this token
  std::vector<Token> not_findable;   // sorted by text: tokens that ordinary text does not become
  std::array<Token, 256> byte_tokens;
  std::array<char, 256> bytes;  // the piece of a byte token is a view into this
  merge_detail::MergeTable merges;
  std::vector<std::uint32_t> score_ranks;  // per token: 0 for the highest score
  std::size_t longest_token = 0;
  std::array<bool, 256> space_may_follow{};  // last bytes before a space within some token
  bool has_unused = false;
  added_detail::Matcher added, normalized_added;

  std::int64_t n_vocab() const { return vocabulary.size(); }
  void check_token(std::int64_t id, std::size_t index) const {
    check(id >= 0 && id < n_vocab(), ErrorKind::bad_argument, "token at index ", index, " is ", id,
          ", expected 0 to n_vocab - 1 = ", n_vocab() - 1);
  }
  std::string_view piece(Token id) const {
    if (kinds[std::size_t(id)] != TokenKind::byte) return vocabulary.text(id);
    return {&bytes[std::size_t(byte_of_name(vocabulary.text(id)))], 1};
  }
  bool is_special(Token id) const {
    const TokenKind kind = kinds[std::size_t(id)];
    return kind == TokenKind::control || kind == TokenKind::unknown;
  }
};

// One call of encode().
class Encoder {
 public:
  Encoder(const State& state, const EncodeOptions& options, std::vector<Token>& out)
      : state_(state),
        spec_(state.spec),
        parse_special_(options.parse_special),
        special_in_(options.special_in),
        space_prefix_(options.space_prefix.value_or(state.spec.space_prefix)),
        out_(out) {}

  // Appends to the output; returns how many bytes had no token.
  std::size_t run(std::string_view text) {
    std::string spaced;
    const bool replaces = spec_.spaces_first && text.find(block_space) != std::string_view::npos;
    if (parse_special_ && special_in_) {
      std::vector<TextRange> ranges(special_in_->begin(), special_in_->end());
      std::size_t before = 0;
      for (TextRange& range : ranges) {
        check(before <= range.begin && range.begin <= range.end, ErrorKind::bad_argument,
              "special_in: expected ranges that ascend and lie apart, got ", range.begin, " to ", range.end, " behind ",
              before);
        before = range.end;
        range = {(std::min)(range.begin, text.size()), (std::min)(range.end, text.size())};
      }
      if (replaces) move_with_spaces(text, ranges);
      places_ = std::move(ranges);
    }
    if (replaces) text = spaced = normalizer_detail::replace_all(text, block_space, " ");
    whole_ = text;
    split_at(state_.added, text, [&](std::string_view segment, bool at_start) { encode_segment(segment, at_start); });
    return n_replaced_;
  }

 private:
  // Ranges of the text, ascending and apart, as they are when each U+2581 has become a space.
  static void move_with_spaces(std::string_view text, std::vector<TextRange>& ranges) {
    std::size_t hit = text.find(block_space), n = 0;
    const auto moved = [&](std::size_t at) {
      for (; hit < at; hit = text.find(block_space, hit + block_space.size())) ++n;
      return at - (block_space.size() - 1) * n;
    };
    for (TextRange& range : ranges) {
      range.begin = moved(range.begin);
      range.end = moved(range.end);
    }
  }
  // Special tokens in a part of the text: everywhere, or in the caller's ranges, as far as the part is as it was there.
  std::optional<std::vector<TextRange>> places_in(std::string_view part) const {
    if (!places_) return std::nullopt;
    std::vector<TextRange> places;
    const std::less<const char*> before;
    if (before(part.data(), whole_.data()) || before(whole_.data() + whole_.size(), part.data() + part.size()))
      return places;  // normalised
    const auto begin = std::size_t(part.data() - whole_.data()), end = begin + part.size();
    auto range = std::partition_point(places_->begin(), places_->end(),
                                      [&](const TextRange& each) { return each.end <= begin; });
    for (; range != places_->end() && range->begin < end; ++range)
      places.push_back({(std::max)(range->begin, begin) - begin, (std::min)(range->end, end) - begin});
    return places;
  }

  // Added tokens go to the output, the text between them to `use(segment, is it the start of the text?)`.
  template <class Use>
  void split_at(const added_detail::Matcher& matcher, std::string_view text, Use&& use) {
    if (matcher.empty()) return text.empty() ? void() : use(text, true);
    const auto places = places_in(text);
    added_detail::Cutter cutter(matcher, text, places ? &*places : nullptr);
    std::size_t taken = 0;
    for (auto cut = cutter.next(taken, parse_special_); cut.id >= 0; cut = cutter.next(taken, parse_special_)) {
      const auto [begin, end] = cut.range;
      if (begin > taken) use(text.substr(taken, begin - taken), taken == 0);
      if (begin < end) out_.push_back(cut.id);  // else all of it was taken already
      taken = end;
    }
    if (taken < text.size()) use(text.substr(taken), taken == 0);
  }

  bool wants_prefix(std::string_view text, bool at_start) const {
    if (text.empty() || space_prefix_ == SpacePrefix::never) return false;
    if (space_prefix_ == SpacePrefix::first && !at_start) return false;
    return !(spec_.prefix_unless_space && text.front() == ' ');
  }

  void encode_segment(std::string_view segment, bool at_start) {
    std::string buffer;
    std::string_view text = normalizer_detail::normalize(spec_.normalizer, segment, buffer);
    std::string prefixed;
    if (!spec_.prefix_after_added && wants_prefix(text, at_start)) text = prefixed = concat_text(text);
    split_at(state_.normalized_added, text, [&](std::string_view part, bool part_at_start) {
      std::string part_prefixed;
      if (spec_.prefix_after_added && wants_prefix(part, at_start && part_at_start))
        part = part_prefixed = concat_text(part);
      encode_plain(part);
    });
  }
  static std::string concat_text(std::string_view text) {
    std::string out(1, ' ');
    return out += text;
  }

  void encode_plain(std::string_view text) {
    last_was_unknown_ = false;
    if (spec_.pre_tokenizer.empty()) return encode_chunks(text);
    if (!scratch_) scratch_.emplace();
    while (!text.empty()) {
      const std::string_view valid = text.substr(0, utf8::valid_prefix(text));
      spec_.pre_tokenizer.split(valid, *scratch_, pieces_);
      for (const TextRange& piece : pieces_) {
        last_was_unknown_ = false;
        encode_piece(valid.substr(piece.begin, piece.end - piece.begin));
      }
      text.remove_prefix(valid.size());
      // A run of bytes that are no characters is a piece of its own: the patterns are for characters.
      std::size_t n_invalid = 0;
      for (utf8::Unit unit; !(unit = utf8::first_unit(text.substr(n_invalid))).valid && unit.n_bytes > 0;)
        n_invalid += unit.n_bytes;
      if (n_invalid > 0) encode_piece(text.substr(0, n_invalid));
      text.remove_prefix(n_invalid);
    }
  }

  // Without a pre-tokenizer a text is one piece, however long. It may still be cut wherever no token reaches across:
  // that is before most spaces, since tokens have them in front. The ids are the same, in linear time.
  void encode_chunks(std::string_view text) {
    std::size_t begin = 0;
    for (std::size_t at = 1; at < text.size(); ++at) {
      if (text[at] != ' ' || text[at - 1] == ' ' || state_.space_may_follow[static_cast<unsigned char>(text[at - 1])])
        continue;
      encode_piece(text.substr(begin, at - begin));
      begin = at;
    }
    if (begin < text.size()) encode_piece(text.substr(begin));
  }

  void encode_piece(std::string_view piece) {
    using merge_detail::Merge;
    using merge_detail::Symbol;
    if (spec_.ignore_merges)
      if (const Token id = state_.vocabulary.find(piece); id >= 0) return put(id);
    symbols_.clear();
    const bool by_bytes = spec_.rule == MergeRule::byte_ranks;
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t n = by_bytes                                   ? 1
                            : utf8::first_unit(piece.substr(at)).valid ? utf8::first_unit(piece.substr(at)).n_bytes
                                                                       : 1;
      const Token id = by_bytes ? state_.byte_tokens[static_cast<unsigned char>(piece[at])]
                                : state_.vocabulary.find(piece.substr(at, n));
      symbols_.push_back({std::uint32_t(at), std::uint32_t(n), id});
      at += n;
    }
    if (spec_.rule == MergeRule::scores) {
      splits_.clear();
      merge_detail::merge_all(
          symbols_, merges_,
          [&](const Symbol& left, const Symbol& right) -> Merge {
            const std::size_t size = std::size_t(left.size) + right.size;
            if (size > state_.longest_token) return {};
            const Token id = state_.vocabulary.find(piece.substr(left.begin, size));
            if (id < 0) return {};
            return {state_.score_ranks[std::size_t(id)], id};
          },
          [&](const Symbol& left, const Symbol& right, Token result) {
            if (state_.has_unused && state_.kinds[std::size_t(result)] == TokenKind::unused)
              splits_[split_key(left.begin, left.size + right.size)] = left.size;
          });
    } else {
      merge_detail::merge_all(
          symbols_, merges_,
          [&](const Symbol& left, const Symbol& right) { return state_.merges.find(left.id, right.id); },
          [](const Symbol&, const Symbol&, Token) {});
    }
    for (const Symbol& symbol : symbols_) put(symbol, piece);
  }

  static std::uint64_t split_key(std::uint32_t begin, std::uint32_t size) { return std::uint64_t(begin) << 32 | size; }

  void put(Token id) {
    out_.push_back(id);
    last_was_unknown_ = false;
  }

  // A finished symbol. One that merged into an unused token falls apart again into what it was merged from.
  void put(const merge_detail::Symbol& whole, std::string_view piece) {
    std::vector<merge_detail::Symbol> open = {whole};
    if (whole.id >= 0 && !state_.has_unused) return put(whole.id);
    while (!open.empty()) {
      const auto symbol = open.back();
      open.pop_back();
      const auto split = symbol.id >= 0 && state_.kinds[std::size_t(symbol.id)] == TokenKind::unused
                             ? splits_.find(split_key(symbol.begin, symbol.size))
                             : splits_.end();
      if (split != splits_.end()) {
        const std::uint32_t left = split->second;
        for (const auto& part : {merge_detail::Symbol{symbol.begin + left, symbol.size - left, -1},
                                 merge_detail::Symbol{symbol.begin, left, -1}}) {
          open.push_back(part);
          open.back().id = state_.vocabulary.find(piece.substr(part.begin, part.size));
        }
      } else if (symbol.id >= 0) {
        put(symbol.id);
      } else {
        put_without_token(piece.substr(symbol.begin, symbol.size));
      }
    }
  }

  void put_without_token(std::string_view character) {
    const auto has_bytes = [&](std::string_view text) {
      for (const char c : text)
        if (state_.byte_tokens[static_cast<unsigned char>(c)] < 0) return false;
      return true;
    };
    const auto put_bytes = [&](std::string_view text) {
      for (const char c : text) put(state_.byte_tokens[static_cast<unsigned char>(c)]);
    };
    const bool by_bytes = spec_.rule == MergeRule::byte_ranks;
    if (!by_bytes && spec_.byte_fallback && has_bytes(character)) return put_bytes(character);
    n_replaced_ += character.size();
    if (spec_.unknown) {
      if (!(spec_.fuse_unknown && last_was_unknown_)) out_.push_back(*spec_.unknown);
      last_was_unknown_ = true;
      return;
    }
    if (by_bytes && has_bytes(utf8::replacement)) return put_bytes(utf8::replacement);
    throw Error(ErrorKind::unsupported, concat(spec_.source, ": the vocabulary has no token for ", printable(character),
                                               " and no unknown token"));
  }

  const State& state_;
  const TokenizerSpec& spec_;
  bool parse_special_;
  std::optional<std::span<const TextRange>> special_in_;
  SpacePrefix space_prefix_;
  std::vector<Token>& out_;
  std::optional<std::vector<TextRange>> places_;  // special_in_, as ranges of whole_
  std::string_view whole_;
  std::size_t n_replaced_ = 0;
  bool last_was_unknown_ = false;
  std::optional<PreTokenizer::Scratch> scratch_;
  std::vector<TextRange> pieces_;
  std::vector<merge_detail::Symbol> symbols_;
  std::vector<merge_detail::Merge> merges_;
  std::unordered_map<std::uint64_t, std::uint32_t> splits_;
};

}  // namespace tokenizer_detail

VITRINE_NAMESPACE_END
