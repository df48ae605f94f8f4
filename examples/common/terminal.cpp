// Bodies of terminal.hpp.
#include "common/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

namespace example {

bool has_terminal(std::FILE* stream) { return isatty(fileno(stream)) == 1; }

int columns() {
  winsize size{};
  if (has_terminal(stdout) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return std::clamp(int(size.ws_col), 40, 200);
  return 80;
}

bool use_colour() {
  static const bool use = [] {
    const char* off = std::getenv("NO_COLOR");
    const char* terminal = std::getenv("TERM");
    return has_terminal(stdout) && !(off && *off) && !(terminal && std::string_view(terminal) == "dumb");
  }();
  return use;
}

std::string coloured(const std::string& text, Colour colour) {
  if (colour == Colour::none || !use_colour() || text.empty()) return text;
  return "\x1b[" + std::to_string(int(colour)) + "m" + text + "\x1b[0m";
}

int text_width(std::string_view text) {
  int width = 0;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    unsigned code = length == 1 ? lead : lead & (0xffu >> (length + 1));
    for (std::size_t k = 1; k < length && i + k < text.size(); ++k)
      code = code << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3fu);
    i += length;
    if (code >= 0x300 && code < 0x370) continue;
    const bool wide = (code >= 0x1100 && code < 0x1160) || (code >= 0x2e80 && code < 0xa4d0) ||
                      (code >= 0xac00 && code < 0xd7a4) || (code >= 0xf900 && code < 0xfb00) ||
                      (code >= 0xff00 && code < 0xff61) || (code >= 0x1f300 && code < 0x1fb00);
    width += wide ? 2 : 1;
  }
  return width;
}

std::string shortened(std::string_view text, int width) {
  if (text_width(text) <= width) return std::string(text);
  std::size_t end = text.size();
  while (end > 0 &&
         (text_width(text.substr(0, end)) > width - 1 || (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80))
    --end;
  return std::string(text.substr(0, end)) + "…";
}

std::string visible(std::string_view text) {
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::size_t length = byte < 0x80                   ? 1
                               : byte >= 0xf0 && byte < 0xf5 ? 4
                               : byte >= 0xe0                ? 3
                               : byte >= 0xc2                ? 2
                                                             : 0;
    bool whole = length > 0 && byte < 0xf5 && i + length <= text.size();
    for (std::size_t k = 1; whole && k < length; ++k) whole = (static_cast<unsigned char>(text[i + k]) & 0xc0) == 0x80;
    if (byte == '\n') {
      out += "\\n";
    } else if (byte == '\t') {
      out += "\\t";
    } else if (byte == '"' || byte == '\\') {
      out += {'\\', char(byte)};
    } else if (byte < 0x20 || byte == 0x7f || !whole) {
      char escape[5];
      std::snprintf(escape, sizeof escape, "\\x%02x", byte);
      out += escape;
    } else {
      out += text.substr(i, length);
      i += length - 1;
    }
  }
  return out + "\"";
}

std::string harmless(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0x7f)
      out += "␡";
    else if (byte < 0x20 && c != '\n' && c != '\t')
      out += {char(0xe2), char(0x90), char(0x80 + byte)};
    else
      out += c;
  }
  return out;
}

void print_wrapped(std::string_view text, std::string_view indent) {
  const int width = columns() - text_width(indent);
  std::string line;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const auto word = text.substr(begin, end - begin);
    if (!line.empty() && text_width(line) + 1 + text_width(word) > width) {
      std::cout << indent << line << '\n';
      line.clear();
    }
    if (!line.empty()) line += ' ';
    line += word;
    begin = end + 1;
  }
  if (!line.empty()) std::cout << indent << line << '\n';
}

void what_to_notice(const std::string& text) {
  std::cout << '\n' << coloured("What to notice", Colour::bold) << '\n';
  print_wrapped(text, "  ");
}

}  // namespace example
