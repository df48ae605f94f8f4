// Bodies of text/stop_strings.hpp.
#pragma once

#include "vitrine/core/error.hpp"
#include "vitrine/text/stop_strings.hpp"
#include "vitrine/text/utf8.hpp"

VITRINE_NAMESPACE_BEGIN

VITRINE_INLINE StopMatcher::StopMatcher(const std::vector<std::string>& strings) : nodes_(1) {
  for (std::size_t i = 0; i < strings.size(); ++i) {
    check(!strings[i].empty(), ErrorKind::bad_argument, "stop string ", i, ": expected at least 1 byte, got none");
    const auto n_valid = utf8::valid_prefix(strings[i]);
    check(n_valid == strings[i].size(), ErrorKind::bad_argument, "stop string ", i,
          ": expected UTF-8, got another byte at ", n_valid);
    add(strings[i], std::int32_t(i));
  }
  link();
  std::size_t longest = 0;
  for (const auto& string : strings) longest = string.size() > longest ? string.size() : longest;
  held_.reserve(longest + 256);
}

VITRINE_INLINE std::int32_t StopMatcher::child(std::int32_t node, char byte) const {
  std::int32_t at = nodes_[std::size_t(node)].child;
  while (at >= 0 && nodes_[std::size_t(at)].byte != byte) at = nodes_[std::size_t(at)].sibling;
  return at;
}

VITRINE_INLINE void StopMatcher::add(const std::string& string, std::int32_t index) {
  std::int32_t node = 0;
  for (const char byte : string) {
    std::int32_t next = child(node, byte);
    if (next < 0) {
      next = std::int32_t(nodes_.size());
      nodes_.push_back(
          {.sibling = nodes_[std::size_t(node)].child, .depth = nodes_[std::size_t(node)].depth + 1, .byte = byte});
      nodes_[std::size_t(node)].child = next;
    }
    node = next;
  }
  auto& end = nodes_[std::size_t(node)];
  if (end.whole >= 0) return;  // the same string again
  end.whole = index;
  end.length = end.depth;
}

// In order of depth, so that fallbacks, which are shorter, come first.
VITRINE_INLINE void StopMatcher::link() {
  std::vector<std::int32_t> queue = {0};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const std::int32_t parent = queue[i];
    for (std::int32_t at = nodes_[std::size_t(parent)].child; at >= 0; at = nodes_[std::size_t(at)].sibling) {
      auto& node = nodes_[std::size_t(at)];
      node.fallback = parent == 0 ? 0 : next(nodes_[std::size_t(parent)].fallback, node.byte);
      const auto& shorter = nodes_[std::size_t(node.fallback)];
      if (node.whole < 0) {
        node.whole = shorter.whole;
        node.length = shorter.length;
      }
      queue.push_back(at);
    }
  }
}

VITRINE_INLINE std::int32_t StopMatcher::next(std::int32_t node, char byte) const {
  for (;;) {
    if (const std::int32_t found = child(node, byte); found >= 0) return found;
    if (node == 0) return 0;
    node = nodes_[std::size_t(node)].fallback;
  }
}

VITRINE_INLINE void StopMatcher::give(std::size_t n, std::string& out) {
  out.append(held_, 0, n);
  held_.erase(0, n);
  match_begin_ -= match_ >= 0 ? n : 0;
}

// The match counts: all before it is given, it and the rest are dropped.
VITRINE_INLINE bool StopMatcher::take(std::string& out) {
  give(match_begin_, out);
  held_.clear();
  done_ = true;
  return true;
}

VITRINE_INLINE bool StopMatcher::push(std::string_view text, std::string& out) {
  if (done_) return match_ >= 0;
  for (const char byte : text) {
    held_.push_back(byte);
    node_ = next(node_, byte);
    const auto& node = nodes_[std::size_t(node_)];
    if (node.whole >= 0) {
      const std::size_t begin = held_.size() - std::size_t(node.length);
      if (match_ < 0 || begin < match_begin_ || (begin == match_begin_ && node.length > match_length_)) {
        match_ = node.whole;
        match_length_ = node.length;
        match_begin_ = begin;
      }
    }
    // No string that is still growing begins before the match, nor where it does.
    if (match_ >= 0 && held_.size() - std::size_t(node.depth) > match_begin_) return take(out);
  }
  const std::size_t growing = held_.size() - std::size_t(nodes_[std::size_t(node_)].depth);
  if (match_ >= 0 && growing == match_begin_) return take(out);  // a longer one would change nothing that is shown
  give(growing, out);
  return false;
}

VITRINE_INLINE bool StopMatcher::finish(std::string& out) {
  if (done_) return match_ >= 0;
  if (match_ >= 0) return take(out);
  give(held_.size(), out);
  done_ = true;
  return false;
}

VITRINE_INLINE std::optional<std::size_t> StopMatcher::found() const {
  return done_ && match_ >= 0 ? std::optional(std::size_t(match_)) : std::nullopt;
}

VITRINE_NAMESPACE_END
