#pragma once

#ifndef PCRE2_CODE_UNIT_WIDTH
#define PCRE2_CODE_UNIT_WIDTH 8  // only which short names exist; the code below uses the full ones
#endif
#include <pcre2.h>

#include <cstdint>

#include "vitrine/core/error.hpp"
#include "vitrine/model/byte_reader.hpp"
#include "vitrine/text/pattern.hpp"
#include "vitrine/text/pattern_dialect.inl.hpp"
#include "vitrine/text/utf8.hpp"

VITRINE_NAMESPACE_BEGIN

namespace pattern_detail {

inline constexpr std::size_t first_stack = std::size_t(32) << 10, largest_stack = std::size_t(64) << 20;
inline constexpr std::uint32_t most_steps = 20'000'000, most_heap_kib = 1u << 20;

inline std::string message_of(int code) {
  unsigned char buffer[256] = {};
  pcre2_get_error_message_8(code, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

}  // namespace pattern_detail

struct Pattern::Scratch::Parts {
  pcre2_match_context_8* context = nullptr;
  pcre2_jit_stack_8* stack = nullptr;
  pcre2_match_data_8* data = nullptr;

  Parts()
      : context(pcre2_match_context_create_8(nullptr)),
        stack(pcre2_jit_stack_create_8(pattern_detail::first_stack, pattern_detail::largest_stack, nullptr)),
        data(pcre2_match_data_create_8(1, nullptr)) {
    if (context == nullptr || data == nullptr) {
      free_all();
      throw Error(ErrorKind::out_of_memory, "no memory to match a pattern");
    }
    pcre2_set_match_limit_8(context, pattern_detail::most_steps);
    pcre2_set_heap_limit_8(context, pattern_detail::most_heap_kib);
    if (stack != nullptr) pcre2_jit_stack_assign_8(context, nullptr, stack);
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
  ~Parts() { free_all(); }

 private:
  void free_all() {
    pcre2_match_data_free_8(data);
    pcre2_match_context_free_8(context);
    if (stack != nullptr) pcre2_jit_stack_free_8(stack);
  }
};

VITRINE_INLINE Pattern::Scratch::Scratch() : parts_(std::make_unique<Parts>()) {}
VITRINE_INLINE Pattern::Scratch::~Scratch() = default;

VITRINE_INLINE Pattern::Pattern(std::string_view pattern) : text_(pattern) {
  int code = 0;
  PCRE2_SIZE offset = 0;
  const auto options = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
  auto* compiled =
      pcre2_compile_8(reinterpret_cast<PCRE2_SPTR8>(text_.data()), text_.size(), options, &code, &offset, nullptr);
  code_ = std::shared_ptr<const void>(compiled, [](void* p) { pcre2_code_free_8(static_cast<pcre2_code_8*>(p)); });
  check(compiled != nullptr, ErrorKind::bad_file, "pattern ", printable(text_), ": ", pattern_detail::message_of(code),
        " at byte ", offset);
  // Where no machine code can be made (a system that forbids it), matching interprets; slower, the same matches.
  pcre2_jit_compile_8(compiled, PCRE2_JIT_COMPLETE);
}

VITRINE_INLINE Pattern Pattern::from_oniguruma(std::string_view pattern) {
  return Pattern(pattern_detail::rewrite_oniguruma(pattern));
}

VITRINE_INLINE Pattern Pattern::literal(std::string_view text) {
  std::string quoted;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x80 && !std::isalnum(static_cast<unsigned char>(c))) quoted += '\\';
    quoted += c;
  }
  return Pattern(quoted);
}

VITRINE_INLINE void Pattern::find_all(std::string_view subject, Scratch& scratch,
                                      std::vector<TextRange>& matches) const {
  const auto* code = static_cast<const pcre2_code_8*>(code_.get());
  const auto& parts = *scratch.parts_;
  const auto* bytes = reinterpret_cast<PCRE2_SPTR8>(subject.data());
  const PCRE2_SIZE* found = pcre2_get_ovector_pointer_8(parts.data);
  std::size_t at = 0, last_end = std::size_t(-1);
  while (at <= subject.size()) {
    int result = pcre2_match_8(code, bytes, subject.size(), at, PCRE2_NO_UTF_CHECK, parts.data, parts.context);
    if (result == PCRE2_ERROR_JIT_STACKLIMIT)
      result =
          pcre2_match_8(code, bytes, subject.size(), at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, parts.data, parts.context);
    if (result == PCRE2_ERROR_NOMATCH) return;
    check(result >= 0, ErrorKind::unsupported, "pattern ", printable(text_), " cannot be matched at byte ", at, " of ",
          subject.size(), ": ", pattern_detail::message_of(result));
    const TextRange range{found[0], found[1]};
    const bool empty = range.begin == range.end;
    if (!(empty && range.begin == last_end)) matches.push_back(range);
    last_end = range.end;
    at = range.end;
    if (empty) at += at < subject.size() ? utf8::first_unit(subject.substr(at)).n_bytes : 1;
  }
}

VITRINE_NAMESPACE_END
