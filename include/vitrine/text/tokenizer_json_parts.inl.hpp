// The parts of a tokenizer.json around its model. For bodies only.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "vitrine/core/error.hpp"
#include "vitrine/model/json_reader.inl.hpp"
#include "vitrine/text/pattern.hpp"
#include "vitrine/text/pretokenizer_names.inl.hpp"
#include "vitrine/text/spec_tools.inl.hpp"
#include "vitrine/text/tokenizer_spec.hpp"

VITRINE_NAMESPACE_BEGIN

namespace json_tokenizer_detail {

using nlohmann::json;
using tokenizer_detail::block_space;

// An object of the file with the path to it, for messages. A key whose value is null counts as absent.
class Part {
 public:
  Part(const json& value, const std::string& source, std::string path)
      : value_(value), source_(source), path_(std::move(path)) {
    check(value.is_object(), ErrorKind::bad_file, source, ": ", where(), " is ", json_detail::describe(value),
          ", expected an object");
  }
  bool has(const char* key) const { return value_.contains(key) && !value_[key].is_null(); }
  const json& need(const char* key) const {
    check(has(key), ErrorKind::bad_file, source_, ": ", full(key), " is missing");
    return value_[key];
  }
  const json& need(const char* key, json::value_t type) const {
    const json& value = need(key);
    check(value.type() == type, ErrorKind::bad_file, source_, ": ", full(key), " is ", json_detail::describe(value),
          ", expected ", json(type).type_name());
    return value;
  }
  std::string text(const char* key) const { return need(key, json::value_t::string).get<std::string>(); }
  bool flag(const char* key, bool by_default) const {
    return has(key) ? need(key, json::value_t::boolean).get<bool>() : by_default;
  }
  double real(const char* key) const {
    const json& value = need(key);
    check(value.is_number(), ErrorKind::bad_file, source_, ": ", full(key), " is ", json_detail::describe(value),
          ", expected a number");
    return value.get<double>();
  }
  Part part(const char* key) const { return Part(need(key), source_, full(key)); }
  // The elements of an array of objects.
  std::vector<Part> parts(const char* key) const {
    std::vector<Part> out;
    for (const json& value : need(key, json::value_t::array))
      out.emplace_back(value, source_, full(key) + "[" + std::to_string(out.size()) + "]");
    return out;
  }
  void refuse_unless(bool condition, std::string_view key, std::string_view value) const {
    check(condition, ErrorKind::unsupported, source_, ": ", full(key), " = ", printable(value), " is not supported");
  }
  // Refuses keys that are not known: what they ask for would be ignored.
  void only_keys(std::initializer_list<std::string_view> known) const {
    for (const auto& [key, value] : value_.items()) {
      bool found = value.is_null();
      for (const auto name : known) found |= name == key;
      check(found, ErrorKind::unsupported, source_, ": ", full(key), " is not known and so not supported");
    }
  }
  const std::string& source() const { return source_; }
  std::string where() const { return path_.empty() ? "the file" : path_; }
  std::string full(std::string_view key) const { return path_.empty() ? std::string(key) : concat(path_, ".", key); }

 private:
  const json& value_;
  const std::string& source_;
  std::string path_;
};

// What was seen of normalizer, pre_tokenizer and decoder; only certain combinations make sense together.
struct Pipeline {
  bool escapes_spaces = false;  // spaces become U+2581 somewhere
  bool byte_level = false;
  std::vector<PreTokenizerStep> steps;
  bool decodes_bytes = false;   // ByteLevel
  bool decodes_spaces = false;  // U+2581 to space
  bool decodes_fallback = false;
  bool strips_prefix = false;
};

inline void add_prefix(TokenizerSpec& spec, const Part& part, SpacePrefix when) {
  part.refuse_unless(spec.space_prefix == SpacePrefix::never, "type", "a second prefix");
  spec.space_prefix = when;
}

inline void read_normalizer_step(const Part& part, Pipeline& pipeline, TokenizerSpec& spec) {
  const std::string type = part.text("type");
  if (type == "Sequence") {
    part.only_keys({"type", "normalizers"});
    for (const Part& inner : part.parts("normalizers")) read_normalizer_step(inner, pipeline, spec);
  } else if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
    spec.normalizer.push_back({NormalizeStep::Kind::unicode, type, {}});
  } else if (type == "Prepend") {
    part.refuse_unless(part.text("prepend") == block_space, "prepend", part.text("prepend"));
    add_prefix(spec, part, SpacePrefix::always);
  } else if (type == "Replace") {
    const Part pattern = part.part("pattern");
    pattern.refuse_unless(!pattern.has("Regex"), "Regex", "in a normalizer");
    const std::string from = pattern.text("String"), to = part.text("content");
    part.refuse_unless(!from.empty(), "pattern", from);
    if (from == " " && to == block_space) {
      pipeline.escapes_spaces = true;
      spec.normalizer.push_back({NormalizeStep::Kind::replace, std::string(block_space), " "});
    } else {
      part.refuse_unless(!pipeline.escapes_spaces || (from + to).find(block_space) == std::string::npos, "content", to);
      spec.normalizer.push_back({NormalizeStep::Kind::replace, from, to});
    }
  } else {
    part.refuse_unless(false, "type", type);
  }
}

inline void read_normalizer(const Part& root, Pipeline& pipeline, TokenizerSpec& spec) {
  if (root.has("normalizer")) read_normalizer_step(root.part("normalizer"), pipeline, spec);
}

inline SplitBehavior read_behavior(const Part& part) {
  const std::string name = part.text("behavior");
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  part.refuse_unless(name == "Contiguous", "behavior", name);
  return SplitBehavior::contiguous;
}

// `prepend_scheme`, and what older files write instead of it.
inline SpacePrefix read_prepend_scheme(const Part& part) {
  if (!part.has("prepend_scheme"))
    return part.flag("add_prefix_space", true) ? SpacePrefix::always : SpacePrefix::never;
  const std::string scheme = part.text("prepend_scheme");
  if (scheme == "never") return SpacePrefix::never;
  if (scheme == "first") return SpacePrefix::first;
  part.refuse_unless(scheme == "always", "prepend_scheme", scheme);
  return SpacePrefix::always;
}

inline void read_pre_tokenizer_step(const Part& part, Pipeline& pipeline, TokenizerSpec& spec) {
  const std::string type = part.text("type");
  const auto add = [&](Pattern pattern, SplitBehavior behavior, bool invert = false) {
    pipeline.steps.push_back({std::move(pattern), behavior, invert, pipeline.byte_level});
  };
  if (type == "Sequence") {
    part.only_keys({"type", "pretokenizers"});
    for (const Part& inner : part.parts("pretokenizers")) read_pre_tokenizer_step(inner, pipeline, spec);
  } else if (type == "Split") {
    const Part pattern = part.part("pattern");
    const bool is_regex = pattern.has("Regex");
    // In our texts a space is a space, not U+2581.
    const std::string literal = is_regex ? "" : pattern.text("String");
    if (pipeline.escapes_spaces && literal == " ") return;  // no space is left to split at
    part.refuse_unless(is_regex || literal.find(block_space) == std::string::npos, "pattern", literal);
    part.refuse_unless(!(pipeline.escapes_spaces && is_regex), "pattern", "a Regex behind a Replace of spaces");
    add(is_regex ? Pattern::from_oniguruma(pattern.text("Regex")) : Pattern::literal(literal), read_behavior(part),
        part.flag("invert", false));
  } else if (type == "Digits") {
    add(Pattern("\\p{N}"), part.flag("individual_digits", false) ? SplitBehavior::isolated : SplitBehavior::contiguous);
  } else if (type == "Punctuation") {
    add(Pattern("[\\p{P}$+<=>^`|~]"), part.has("behavior") ? read_behavior(part) : SplitBehavior::isolated);
  } else if (type == "ByteLevel") {
    part.refuse_unless(!pipeline.byte_level, "type", "a second ByteLevel");
    if (part.flag("add_prefix_space", true)) {
      part.refuse_unless(pipeline.steps.empty(), "add_prefix_space", "behind other steps");
      add_prefix(spec, part, SpacePrefix::always);
      spec.prefix_unless_space = true;
      spec.prefix_after_added = true;
      spec.strip_prefix = false;
    }
    if (part.flag("use_regex", true)) add(Pattern::from_oniguruma(pretokenizer_detail::gpt2), SplitBehavior::isolated);
    pipeline.byte_level = true;
  } else if (type == "Metaspace") {
    part.refuse_unless(part.text("replacement") == block_space, "replacement", part.text("replacement"));
    part.refuse_unless(pipeline.steps.empty(), "type", "Metaspace behind other steps");
    pipeline.escapes_spaces = true;
    spec.normalizer.push_back({NormalizeStep::Kind::replace, std::string(block_space), " "});
    if (const auto when = read_prepend_scheme(part); when != SpacePrefix::never) {
      add_prefix(spec, part, when);
      spec.prefix_unless_space = true;
      spec.prefix_after_added = true;
    }
    if (part.flag("split", true)) add(Pattern::literal(" "), SplitBehavior::merged_with_next);
  } else {
    part.refuse_unless(false, "type", type);
  }
}

inline void read_pre_tokenizer(const Part& root, Pipeline& pipeline, TokenizerSpec& spec) {
  if (root.has("pre_tokenizer")) read_pre_tokenizer_step(root.part("pre_tokenizer"), pipeline, spec);
}

inline void read_decoder_step(const Part& part, Pipeline& pipeline) {
  const std::string type = part.text("type");
  if (type == "Sequence") {
    for (const Part& inner : part.parts("decoders")) read_decoder_step(inner, pipeline);
  } else if (type == "ByteLevel") {
    pipeline.decodes_bytes = true;
  } else if (type == "ByteFallback") {
    pipeline.decodes_fallback = true;
  } else if (type == "Replace") {
    const std::string from = part.part("pattern").text("String"), to = part.text("content");
    part.refuse_unless(from == block_space && to == " ", "pattern", from);
    pipeline.decodes_spaces = true;
  } else if (type == "Metaspace") {
    part.refuse_unless(part.text("replacement") == block_space, "replacement", part.text("replacement"));
    pipeline.decodes_spaces = true;
    pipeline.strips_prefix |= read_prepend_scheme(part) != SpacePrefix::never;
  } else if (type == "Strip") {
    part.refuse_unless(part.text("content") == " " && part.real("start") == 1 && part.real("stop") == 0, "content",
                       "other than one space at the start");
    pipeline.strips_prefix = true;
  } else {
    part.refuse_unless(type == "Fuse", "type", type);  // joins what is joined here anyway
  }
}

inline void read_decoder(const Part& root, Pipeline& pipeline) {
  if (root.has("decoder")) read_decoder_step(root.part("decoder"), pipeline);
}

// The two kinds of tokenizer that make sense of these parts.
inline void check_pipeline(const Part& root, const Pipeline& pipeline, TokenizerSpec& spec) {
  const auto need = [&](bool condition, const char* what) {
    check(condition, ErrorKind::unsupported, root.source(), ": ", what);
  };
  if (pipeline.byte_level) {
    need(!pipeline.escapes_spaces, "ByteLevel together with U+2581 for spaces is not supported");
    need(pipeline.decodes_bytes, "a ByteLevel pre_tokenizer without a ByteLevel decoder is not supported");
    need(!spec.byte_fallback, "ByteLevel together with byte_fallback is not supported");
    spec.rule = MergeRule::byte_ranks;
  } else {
    need(pipeline.escapes_spaces,
         "neither a ByteLevel nor a Metaspace pre_tokenizer, nor a normalizer that replaces spaces");
    need(pipeline.decodes_spaces && !pipeline.decodes_bytes,
         "a decoder that does not turn U+2581 into spaces is not supported");
    need(pipeline.decodes_fallback || !spec.byte_fallback,
         "byte_fallback without a ByteFallback decoder is not supported");
    spec.rule = MergeRule::character_ranks;
    spec.strip_prefix = pipeline.strips_prefix;
  }
  spec.pre_tokenizer = PreTokenizer(pipeline.steps);
}

// TemplateProcessing for one text: tokens, the text, tokens.
inline void read_post_processor_part(const Part& part, TokenizerSpec& spec) {
  const std::string type = part.text("type");
  if (type == "Sequence") {
    for (const Part& inner : part.parts("processors")) read_post_processor_part(inner, spec);
  } else if (type == "TemplateProcessing") {
    const json& specials = part.need("special_tokens", json::value_t::object);
    bool text_seen = false;
    part.refuse_unless(spec.prefix.empty() && spec.suffix.empty(), "type", "a second TemplateProcessing");
    for (const Part& item : part.parts("single")) {
      if (item.has("Sequence")) {
        part.refuse_unless(!text_seen, "single", "the text twice");
        text_seen = true;
        continue;
      }
      const std::string name = item.part("SpecialToken").text("id");
      check(specials.contains(name), ErrorKind::bad_file, part.source(), ": ", part.full("special_tokens"), " lacks ",
            printable(name));
      const Part special(specials[name], part.source(), part.full("special_tokens") + "." + name);
      for (const json& id : special.need("ids", json::value_t::array)) {
        const bool fits = id.is_number_unsigned() && id.get<std::uint64_t>() < spec.tokens.size();
        check(fits, ErrorKind::bad_file, part.source(), ": ", special.full("ids"), " has ", json_detail::describe(id),
              ", expected 0 to ", spec.tokens.size() - 1);
        (text_seen ? spec.suffix : spec.prefix).push_back(id.get<Token>());
      }
    }
    part.refuse_unless(text_seen, "single", "no text");
  } else {
    part.refuse_unless(type == "ByteLevel", "type", type);  // concerns offsets only
  }
}

inline void read_post_processor(const Part& root, TokenizerSpec& spec) {
  if (root.has("post_processor")) read_post_processor_part(root.part("post_processor"), spec);
}

}  // namespace json_tokenizer_detail

VITRINE_NAMESPACE_END
