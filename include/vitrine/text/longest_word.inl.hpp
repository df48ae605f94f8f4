// The longest of many words that begins at a place of a text, for all places in one pass from the text's end to its
// start. For bodies only.
//
// An automaton of Aho and Corasick (1975) over the words read backwards. Its state is the longest text beginning at the
// place that is the end of some word; a character further to the left lengthens it by one, or shortens it first, and
// nothing is shortened that was not lengthened before. So a text of n bytes takes at most 2 n steps, whatever the words
// are: a file may bring thousands that begin alike.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

namespace added_detail {

class LongestWord {
 public:
  using State = std::int32_t;
  static constexpr State start = 0;  // at the end of a text, or where nothing to the right may be looked at

  LongestWord() { root_.fill(start); }

  void add(std::string_view word, std::int32_t value) {
    State state = start;
    for (std::size_t i = word.size(); i-- > 0;) {
      State next = child(state, word[i]);
      if (next == start) {
        next = State(nodes_.size());
        nodes_.push_back({.sibling = nodes_[std::size_t(state)].first_child, .byte = word[i]});
        nodes_[std::size_t(state)].first_child = next;
        if (state == start) root_[static_cast<unsigned char>(word[i])] = next;
      }
      state = next;
    }
    nodes_[std::size_t(state)].value = value;
  }

  // After the last add().
  void finish() {
    std::vector<State> order = {start};  // the shorter ones first
    order.reserve(nodes_.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      const State state = order[i];
      for (State next = node(state).first_child; next != start; next = node(next).sibling) {
        auto& each = nodes_[std::size_t(next)];
        std::size_t steps = 0;
        each.shorter = state == start ? start : step(node(state).shorter, each.byte, steps);
        if (each.value < 0) each.value = node(each.shorter).value;
        order.push_back(next);
      }
    }
  }

  // The state one byte further to the left. Adds to `steps`.
  State step(State state, char byte, std::size_t& steps) const {
    for (;; state = node(state).shorter) {
      ++steps;
      const State next = child(state, byte);
      if (next != start || state == start) return next;
    }
  }
  std::int32_t longest(State state) const { return node(state).value; }  // its value; -1: none begins here

 private:
  struct Node {
    State first_child = start, sibling = start;
    State shorter = start;    // the longest other state that this text begins with
    std::int32_t value = -1;  // of the longest word that it begins with
    char byte = 0;
  };
  const Node& node(State state) const { return nodes_[std::size_t(state)]; }

  State child(State state, char byte) const {
    if (state == start) return root_[static_cast<unsigned char>(byte)];
    State next = node(state).first_child;
    while (next != start && node(next).byte != byte) next = node(next).sibling;
    return next;
  }

  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::array<State, 256> root_;
};

}  // namespace added_detail

VITRINE_NAMESPACE_END
