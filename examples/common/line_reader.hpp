// Lines from a person or a pipe. On a terminal they can be edited and called back (libedit or readline, if CMake found
// one; else what the terminal itself does); from a pipe they are shown, so that the output reads like the conversation.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#if defined(VITRINE_EDITLINE)
#include <editline/readline.h>
#elif defined(VITRINE_READLINE)
#include <readline/readline.h>
//
#include <readline/history.h>
#endif

#include "common/terminal.hpp"

namespace example {

// Nothing at the end of the input. `quiet`: from a pipe, neither prompt nor line are shown.
inline std::optional<std::string> read_line(const std::string& prompt, Colour colour, bool quiet = false) {
  const bool by_hand = has_terminal(stdin);
#if defined(VITRINE_EDITLINE) || defined(VITRINE_READLINE)
  if (by_hand && has_terminal(stdout)) {
    // The editor must know which bytes take no column.
    const std::string shown =
        use_colour() ? "\001\x1b[" + std::to_string(int(colour)) + "m\002" + prompt + "\001\x1b[0m\002" : prompt;
    std::cout.flush();
    const std::unique_ptr<char, decltype(&std::free)> line(readline(shown.c_str()), &std::free);
    if (!line) {
      std::cout << '\n';
      return std::nullopt;
    }
    if (*line) add_history(line.get());
    return std::string(line.get());
  }
#endif
  if (by_hand || !quiet) std::cout << coloured(prompt, colour) << std::flush;
  std::string line;
  const bool there = bool(std::getline(std::cin, line));
  if (!there && (by_hand || !quiet)) std::cout << '\n';
  if (!there) return std::nullopt;
  if (!line.empty() && line.back() == '\r') line.pop_back();
  if (!by_hand && !quiet) std::cout << line << '\n';
  return line;
}

}  // namespace example
