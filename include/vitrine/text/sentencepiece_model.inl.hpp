// TokenizerSpec from a SentencePiece tokenizer.model: a protocol-buffer message ModelProto (sentencepiece_model.proto
// of the SentencePiece project), of which the few fields that matter are read. For bodies only.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "vitrine/core/error.hpp"
#include "vitrine/model/byte_reader.hpp"
#include "vitrine/text/load_tokenizer.hpp"
#include "vitrine/text/spec_tools.inl.hpp"

VITRINE_NAMESPACE_BEGIN

namespace sentencepiece_detail {

// A message as a row of fields. Values are what the wire holds; nested messages and strings are byte ranges.
class Message {
 public:
  Message(std::span<const std::byte> bytes, std::string_view file) : reader_(bytes, file) {}

  struct Field {
    std::uint32_t number = 0, wire_type = 0;
    std::uint64_t integer = 0;
    std::span<const std::byte> bytes;

    std::string_view text() const { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
    std::int64_t signed_integer() const { return static_cast<std::int64_t>(integer); }
    float real() const {
      const auto bits = static_cast<std::uint32_t>(integer);
      float value;
      std::memcpy(&value, &bits, sizeof value);
      return value;
    }
  };

  bool next(Field& field) {
    if (reader_.remaining() == 0) return false;
    const std::uint64_t at = reader_.offset(), tag = varint("field number");
    field.number = static_cast<std::uint32_t>(tag >> 3);
    field.wire_type = static_cast<std::uint32_t>(tag & 7);
    if (tag >> 32 != 0 || field.number == 0) reader_.fail(at, "no field number");
    switch (field.wire_type) {
      case 0: field.integer = varint("integer"); break;
      case 1: field.integer = reader_.number<std::uint64_t>("8-byte value"); break;
      case 2: field.bytes = reader_.bytes(varint("length"), "field of given length"); break;
      case 5: field.integer = reader_.number<std::uint32_t>("4-byte value"); break;
      default: reader_.fail(at, "wire type ", field.wire_type, ", which no field of a tokenizer.model has");
    }
    return true;
  }
  // The field must have this wire type: 0 integer, 2 bytes, 5 float.
  void expect(const Field& field, std::uint32_t wire_type, const char* name) const {
    if (field.wire_type != wire_type)
      reader_.fail(reader_.offset(), name, " has wire type ", field.wire_type, ", expected ", wire_type);
  }

 private:
  std::uint64_t varint(const char* what) {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = reader_.number<std::uint8_t>(what);
      value |= std::uint64_t(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    reader_.fail(reader_.offset(), what, " is longer than 10 bytes");
  }
  ByteReader reader_;
};

inline TokenSpec read_piece(std::span<const std::byte> bytes, const TokenizerSpec& spec) {
  TokenSpec token;
  Message message(bytes, spec.source);
  for (Message::Field field; message.next(field);) {
    if (field.number == 1) message.expect(field, 2, "piece"), token.text = field.text();
    if (field.number == 2) message.expect(field, 5, "score"), token.score = field.real();
    if (field.number == 3) {
      message.expect(field, 0, "type of a piece");
      check(field.integer >= 1 && field.integer <= 6, ErrorKind::bad_file, spec.source, ": piece ", spec.tokens.size(),
            " has type ", field.integer, ", expected 1 to 6");
      token.kind = TokenKind(field.integer);  // the same numbers as in GGUF
    }
  }
  check(!token.text.empty(), ErrorKind::bad_file, spec.source, ": piece ", spec.tokens.size(), " is empty");
  return token;
}

struct Settings {
  std::int64_t model_type = 1, bos = 1, eos = 2;  // the format's defaults
  bool suffix_spaces = false, dummy_prefix = true, remove_extra_spaces = true, escape_spaces = true;
  std::string normalizer;
  bool has_charsmap = false, has_denormalizer = false;
};

inline void read_trainer(std::span<const std::byte> bytes, const std::string& source, Settings& settings) {
  Message message(bytes, source);
  for (Message::Field field; message.next(field);) {
    const auto integer = [&](const char* name) {
      message.expect(field, 0, name);
      return field.signed_integer();
    };
    if (field.number == 3) settings.model_type = integer("model_type");
    if (field.number == 24) settings.suffix_spaces = integer("treat_whitespace_as_suffix") != 0;
    if (field.number == 41) settings.bos = static_cast<std::int32_t>(integer("bos_id"));
    if (field.number == 42) settings.eos = static_cast<std::int32_t>(integer("eos_id"));
  }
}

inline void read_normalizer(std::span<const std::byte> bytes, const std::string& source, Settings& settings) {
  Message message(bytes, source);
  for (Message::Field field; message.next(field);) {
    if (field.number == 1) message.expect(field, 2, "name"), settings.normalizer = field.text();
    if (field.number == 2)
      message.expect(field, 2, "precompiled_charsmap"), settings.has_charsmap = !field.bytes.empty();
    if (field.number == 3) message.expect(field, 0, "add_dummy_prefix"), settings.dummy_prefix = field.integer != 0;
    if (field.number == 4)
      message.expect(field, 0, "remove_extra_whitespaces"), settings.remove_extra_spaces = field.integer != 0;
    if (field.number == 5) message.expect(field, 0, "escape_whitespaces"), settings.escape_spaces = field.integer != 0;
  }
}

inline void check_supported(const Settings& settings, const std::string& source) {
  const auto refuse_if = [&](bool condition, const auto&... what) {
    check(!condition, ErrorKind::unsupported, source, ": ", what..., " is not supported");
  };
  const char* const types[] = {"", "UNIGRAM", "BPE", "WORD", "CHAR"};
  refuse_if(settings.model_type != 2, "model_type ",
            settings.model_type >= 1 && settings.model_type <= 4 ? types[settings.model_type] : "(unknown)");
  refuse_if(settings.suffix_spaces, "treat_whitespace_as_suffix");
  refuse_if(!settings.escape_spaces, "escape_whitespaces = false");
  refuse_if(settings.has_charsmap, "the normalisation ", printable(settings.normalizer));
  refuse_if(settings.has_denormalizer, "a denormaliser");
}

}  // namespace sentencepiece_detail

VITRINE_INLINE TokenizerSpec tokenizer_spec_from_sentencepiece(std::span<const std::byte> bytes, std::string name) {
  using namespace sentencepiece_detail;
  TokenizerSpec spec;
  spec.source = std::move(name);
  spec.rule = MergeRule::scores;
  Settings settings;
  Message message(bytes, spec.source);
  for (Message::Field field; message.next(field);) {
    if (field.number == 1) message.expect(field, 2, "pieces"), spec.tokens.push_back(read_piece(field.bytes, spec));
    if (field.number == 2) message.expect(field, 2, "trainer_spec"), read_trainer(field.bytes, spec.source, settings);
    if (field.number == 3)
      message.expect(field, 2, "normalizer_spec"), read_normalizer(field.bytes, spec.source, settings);
    if (field.number == 5) {
      message.expect(field, 2, "denormalizer_spec");
      Settings denormalizer;
      read_normalizer(field.bytes, spec.source, denormalizer);
      settings.has_denormalizer = denormalizer.has_charsmap;
    }
  }
  check(!spec.tokens.empty(), ErrorKind::bad_file, spec.source, ": no pieces; is this a SentencePiece model?");
  check_supported(settings, spec.source);
  spec_detail::check_texts_differ(spec);

  for (std::size_t i = 0; i < spec.tokens.size(); ++i) {
    auto& token = spec.tokens[i];
    const auto id = static_cast<Token>(i);
    const bool has_real_space = token.text.find(' ') != std::string::npos;
    spec_detail::unescape_spaces(token);
    spec.byte_fallback |= token.kind == TokenKind::byte;
    if (token.kind == TokenKind::unknown && !spec.unknown) spec.unknown = id;
    if (token.kind == TokenKind::control || token.kind == TokenKind::unknown)
      spec.added.push_back({id, token.text, true});
    // User-defined pieces are looked for where spaces are U+2581 already; with a real space they are never found.
    if (token.kind == TokenKind::user_defined && !has_real_space) {
      spec.added.push_back({id, token.text, false});
      spec.added.back().normalized = true;
    }
  }
  spec.fuse_unknown = true;
  spec.spaces_first = true;
  if (settings.remove_extra_spaces) spec.normalizer.push_back({NormalizeStep::Kind::collapse_spaces, {}, {}});
  if (settings.dummy_prefix) spec.space_prefix = SpacePrefix::always;
  const auto id_or_none = [&](std::int64_t id, const char* what) -> std::optional<Token> {
    check(id < std::int64_t(spec.tokens.size()), ErrorKind::bad_file, spec.source, ": ", what, " is ", id,
          ", expected less than ", spec.tokens.size());
    return id < 0 ? std::nullopt : std::optional<Token>(static_cast<Token>(id));
  };
  spec.bos = id_or_none(settings.bos, "bos_id");
  if (spec.bos) spec.prefix.push_back(*spec.bos);
  if (const auto eos = id_or_none(settings.eos, "eos_id")) spec.end.push_back(*eos);
  return spec;
}

VITRINE_NAMESPACE_END
