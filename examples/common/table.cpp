// Bodies of table.hpp.
#include "common/table.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>

#include "common/terminal.hpp"

namespace example {

std::string fixed(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string percent(double share) { return fixed(100 * share, share < 0.0995 ? 1 : 0) + " %"; }

std::string rounded(double value) { return fixed(value, std::fabs(value) < 9.95 ? 1 : 0); }

std::string grouped(double whole) {
  const std::string digits = fixed(std::fabs(whole), 0);
  std::string text(whole < 0 ? "-" : "");
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string scaled(double value, const std::string& unit) {
  static constexpr const char* prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  int step = 0;
  while (step < 6 && value >= 999.5) {
    value /= 1000;
    ++step;
  }
  const int decimals = value >= 99.95 || (step == 0 && value == double(long(value))) ? 0 : value >= 9.995 ? 1 : 2;
  return fixed(value, decimals) + " " + prefixes[step] + unit;
}

void Table::print() const {
  std::vector<int> width(rows_[0].size());
  for (const auto& cells : rows_)
    for (std::size_t i = 0; i < cells.size(); ++i) width[i] = std::max(width[i], text_width(cells[i]));
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    std::string line;
    for (std::size_t i = 0; i < rows_[r].size(); ++i) {
      const std::string space(std::size_t(width[i] - text_width(rows_[r][i])), ' ');
      line += (i ? "  " : "") + (int(i) < n_left_ ? rows_[r][i] + space : space + rows_[r][i]);
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    std::cout << coloured(line, r == 0 ? Colour::bold : Colour::none) << '\n';
  }
}

}  // namespace example
