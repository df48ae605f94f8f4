#pragma once

#include <algorithm>
#include <array>

#include "vitrine/core/error.hpp"
#include "vitrine/model/byte_reader.hpp"
#include "vitrine/text/pretokenizer.hpp"
#include "vitrine/text/pretokenizer_names.inl.hpp"
#include "vitrine/text/utf8.hpp"

VITRINE_NAMESPACE_BEGIN

namespace pretokenizer_detail {

// Bytes that Latin-1 prints stand for themselves, all others for U+0100 and following (Radford et al. 2019, GPT-2's
// encoder): so a vocabulary of readable strings can hold any bytes.
inline bool is_printable_latin1(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
}

struct ByteMap {
  std::array<std::array<char, 2>, 256> utf8{};
  std::array<std::uint8_t, 256> length{};
  std::array<std::int16_t, 0x144> byte_of{};

  ByteMap() {
    byte_of.fill(-1);
    int next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const int code = is_printable_latin1(byte) ? byte : next++;
      std::string character;
      vitrine::utf8::append(character, std::uint32_t(code));
      const auto i = std::size_t(byte);
      for (std::size_t k = 0; k < character.size(); ++k) utf8[i][k] = character[k];
      length[i] = std::uint8_t(character.size());
      byte_of[std::size_t(code)] = std::int16_t(byte);
    }
  }
};

inline const ByteMap& byte_map() {
  static const ByteMap map;
  return map;
}

// The pieces and gaps of one range, as the matches found in it say, appended to `out`.
inline void cut(const PreTokenizerStep& step, TextRange range, PreTokenizer::Scratch& scratch,
                std::vector<TextRange>& out) {
  const auto& matches = scratch.matches;
  const auto push = [&](std::size_t begin, std::size_t end) {
    if (end > begin) out.push_back({range.begin + begin, range.begin + end});
  };
  const std::size_t size = range.end - range.begin;
  if (step.behavior == SplitBehavior::isolated) {
    std::size_t at = 0;
    for (const TextRange& match : matches) {
      push(at, match.begin);
      push(match.begin, match.end);
      at = match.end;
    }
    return push(at, size);
  }
  // In general: alternating list of gaps and matches, then one rule for what joins what.
  std::vector<TextRange> parts;
  auto& flags = scratch.is_match;
  flags.clear();
  const auto part = [&](std::size_t begin, std::size_t end, bool matched) {
    if (end == begin) return;
    parts.push_back({begin, end});
    flags.push_back(matched != step.invert);
  };
  std::size_t at = 0;
  for (const TextRange& match : matches) {
    part(at, match.begin, false);
    part(match.begin, match.end, true);
    at = match.end;
  }
  part(at, size, false);
  for (std::size_t i = 0; i < parts.size();) {
    std::size_t last = i;  // parts i..last form one piece
    switch (step.behavior) {
      case SplitBehavior::removed: break;
      case SplitBehavior::contiguous:
        while (last + 1 < parts.size() && flags[last + 1] == flags[i]) ++last;
        break;
      case SplitBehavior::merged_with_previous:  // one match joins the gap before it
        if (!flags[i] && last + 1 < parts.size() && flags[last + 1]) ++last;
        break;
      default:  // merged_with_next: one match joins the gap behind it
        if (flags[i] && last + 1 < parts.size() && !flags[last + 1]) ++last;
        break;
    }
    if (step.behavior != SplitBehavior::removed || !flags[i]) push(parts[i].begin, parts[last].end);
    i = last + 1;
  }
}

}  // namespace pretokenizer_detail

VITRINE_INLINE std::string_view byte_map_character(unsigned char byte) {
  const auto& map = pretokenizer_detail::byte_map();
  return {map.utf8[byte].data(), map.length[byte]};
}

VITRINE_INLINE int byte_of_map_character(std::string_view character) {
  const auto& map = pretokenizer_detail::byte_map();
  const std::uint32_t code = utf8::code_point(character);
  return code < map.byte_of.size() ? map.byte_of[code] : -1;
}

VITRINE_INLINE void PreTokenizer::split(std::string_view text, Scratch& scratch, std::vector<TextRange>& pieces) const {
  pieces.clear();
  if (text.empty()) return;
  pieces.push_back({0, text.size()});
  bool is_mapped = false;
  std::string_view subject = text;
  for (const PreTokenizerStep& step : steps_) {
    if (step.on_byte_map && !is_mapped) {
      is_mapped = true;
      scratch.mapped.clear();
      std::size_t at = 0;
      for (TextRange& piece : pieces) {  // in order; text that an earlier step removed leaves gaps
        for (; at < piece.begin; ++at) scratch.mapped += byte_map_character(static_cast<unsigned char>(text[at]));
        piece.begin = scratch.mapped.size();
        for (; at < piece.end; ++at) scratch.mapped += byte_map_character(static_cast<unsigned char>(text[at]));
        piece.end = scratch.mapped.size();
      }
      subject = scratch.mapped;
    }
    scratch.next.clear();
    for (const TextRange& piece : pieces) {
      scratch.matches.clear();
      step.pattern.find_all(subject.substr(piece.begin, piece.end - piece.begin), scratch.pattern, scratch.matches);
      pretokenizer_detail::cut(step, piece, scratch, scratch.next);
    }
    pieces.swap(scratch.next);
  }
  if (!is_mapped) return;
  std::size_t at = 0, byte = 0;  // each mapped character is one byte of the text
  const auto bytes_before = [&](std::size_t end) {
    for (; at < end; ++at) byte += (static_cast<unsigned char>(subject[at]) & 0xC0) != 0x80;
    return byte;
  };
  for (TextRange& piece : pieces) {
    piece.begin = bytes_before(piece.begin);
    piece.end = bytes_before(piece.end);
  }
}

VITRINE_INLINE NamedPreTokenizer pre_tokenizer_by_name(std::string_view name, std::string_view source) {
  for (const auto& entry : pretokenizer_detail::named_entries) {
    if (entry.name != name) continue;
    std::vector<PreTokenizerStep> steps;
    for (const char* pattern : entry.patterns)
      if (pattern != nullptr) steps.push_back({Pattern::from_oniguruma(pattern)});
    return {PreTokenizer(std::move(steps)), entry.ignore_merges, entry.add_bos, entry.add_sep};
  }
  std::string known;
  for (const auto& entry : pre_tokenizer_names()) known.append(known.empty() ? "" : ", ").append(entry);
  throw Error(ErrorKind::unsupported, concat(source, ": expected one of ", known, ", got ", printable(name)));
}

VITRINE_INLINE std::vector<std::string_view> pre_tokenizer_names() {
  std::vector<std::string_view> names;
  for (const auto& entry : pretokenizer_detail::named_entries) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  return names;
}

VITRINE_NAMESPACE_END
