#pragma once

#include <cstring>

#include "vitrine/text/vocabulary.hpp"

VITRINE_NAMESPACE_BEGIN

namespace vocabulary_detail {

// Eight bytes a step, each mixed by a multiplication whose two halves are folded together. The tables are private and
// every probe compares the text itself, so a collision costs time only.
inline std::uint64_t hash(std::string_view text) {
  const auto mix = [](std::uint64_t a, std::uint64_t b) {
    const std::uint64_t product = a * b;
    return product ^ (product >> 29);
  };
  std::uint64_t state = 0x9E3779B97F4A7C15u ^ text.size();
  while (text.size() >= 8) {
    std::uint64_t eight;
    std::memcpy(&eight, text.data(), 8);
    state = mix(state ^ eight, 0xD6E8FEB86659FD93u);
    text.remove_prefix(8);
  }
  std::uint64_t rest = 0;
  if (!text.empty()) std::memcpy(&rest, text.data(), text.size());
  return mix(mix(state ^ rest, 0xD6E8FEB86659FD93u), 0xA0761D6478BD642Fu);
}

}  // namespace vocabulary_detail

VITRINE_INLINE void Vocabulary::reserve(std::size_t n_tokens, std::size_t n_bytes) {
  bytes_.reserve(n_bytes);
  starts_.reserve(n_tokens + 1);
  std::size_t n_slots = 16;
  while (n_slots < 2 * n_tokens) n_slots *= 2;
  if (slots_.empty()) slots_.assign(n_slots, -1);
}

VITRINE_INLINE Token Vocabulary::add(std::string_view text, bool findable) {
  const auto id = static_cast<Token>(size());
  bytes_ += text;
  starts_.push_back(bytes_.size());
  if (!findable) return id;
  if (2 * (n_findable_ + 1) > slots_.size()) grow();
  Token& slot = slots_[slot_of(text)];
  if (slot < 0) {
    slot = id;
    ++n_findable_;
  }
  return id;
}

VITRINE_INLINE Token Vocabulary::find(std::string_view text) const {
  return slots_.empty() ? -1 : slots_[slot_of(text)];
}

VITRINE_INLINE std::size_t Vocabulary::slot_of(std::string_view wanted) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = vocabulary_detail::hash(wanted) & mask;
  while (slots_[at] >= 0 && text(slots_[at]) != wanted) at = (at + 1) & mask;
  return at;
}

VITRINE_INLINE void Vocabulary::grow() {
  std::vector<Token> old(slots_.empty() ? 16 : 2 * slots_.size(), -1);
  old.swap(slots_);
  for (const Token id : old)
    if (id >= 0) slots_[slot_of(text(id))] = id;
}

VITRINE_NAMESPACE_END
