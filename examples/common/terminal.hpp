// What the terminal can do. Without a terminal (a pipe, a file, a test) output is plain text of 80 columns; NO_COLOR
// switches colours off everywhere.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace example {

bool has_terminal(std::FILE* stream);

int columns();

enum class Colour { none, blue = 34, yellow = 33, green = 32, red = 31, grey = 90, bold = 1 };

bool use_colour();

std::string coloured(const std::string& text, Colour colour);

// Columns that a UTF-8 text takes: code points, of which East Asian wide ones and emoji take two and combining marks
// none. Good enough for tables of tokens.
int text_width(std::string_view text);

// The text in columns of at most `width`, with an ellipsis where it was cut.
std::string shortened(std::string_view text, int width);

// A token's text on one line: quoted, with control characters and broken UTF-8 written as escapes.
std::string visible(std::string_view text);

// A model's text for a terminal: control characters, which might command it, become their pictures.
std::string harmless(std::string_view text);

// Text broken between words to lines of the terminal's width.
void print_wrapped(std::string_view text, std::string_view indent = "");

// The sentence that closes an example.
void what_to_notice(const std::string& text);

}  // namespace example
