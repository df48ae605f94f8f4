// Bodies of plot.hpp.
#include "common/plot.hpp"

#include <algorithm>
#include <cmath>
#include <iostream>

#include "common/table.hpp"

namespace example {

std::string bar(double share, int width) {
  static constexpr const char* eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int parts = int(std::lround(std::clamp(share, 0.0, 1.0) * width * 8));
  std::string text;
  for (int i = 0; i < parts / 8; ++i) text += "█";
  return text + eighths[parts % 8];
}

void plot_lines(const std::string& y_title, const std::string& x_title, const std::vector<Series>& all,
                bool logarithmic, int height) {
  double most = 0, least = 1e300;
  std::size_t n = 0;
  for (const auto& series : all) {
    n = std::max(n, series.values.size());
    for (const double value : series.values) {
      most = std::max(most, value);
      if (value > 0) least = std::min(least, value);
    }
  }
  if (n == 0 || !(most > 0)) return;
  if (logarithmic && least < most) {
    least = std::pow(10, std::floor(std::log10(least)));
  } else {
    logarithmic = false;
  }
  const int width = columns() - 10;
  std::vector<std::vector<std::string>> grid(std::size_t(height), std::vector<std::string>(std::size_t(width), " "));
  for (const auto& series : all) {
    for (std::size_t i = 0; i < series.values.size(); ++i) {
      const double value = series.values[i];
      double share = logarithmic ? std::log(std::max(value, least) / least) / std::log(most / least) : value / most;
      share = std::clamp(share, 0.0, 1.0);
      const auto row = std::size_t(std::lround((1 - share) * (height - 1)));
      const auto column = n == 1 ? 0 : std::size_t(std::lround(double(i) * (width - 1) / double(n - 1)));
      grid[row][column] = coloured(series.mark, series.colour);
    }
  }
  std::cout << y_title << (logarithmic ? " (logarithmic)" : "") << '\n';
  for (int r = 0; r < height; ++r) {
    const double share = 1 - double(r) / (height - 1);
    const double value = logarithmic ? least * std::pow(most / least, share) : most * share;
    std::string label = r % 3 == 0 || r == height - 1 ? fixed(value, value < 10 ? 2 : value < 100 ? 1 : 0) : "";
    std::cout << std::string(std::size_t(std::max(0, 8 - text_width(label))), ' ') << label << " ┤";
    std::string line;
    for (const auto& cell : grid[std::size_t(r)]) line += cell;
    std::cout << line.substr(0, line.find_last_not_of(' ') + 1) << '\n';
  }
  const std::string last = grouped(double(n - 1));
  std::cout << "         └";
  for (int i = 0; i < width; ++i) std::cout << "─";
  std::cout << "\n          0" << std::string(std::size_t(std::max(1, width - 1 - text_width(last))), ' ') << last
            << '\n';
  std::cout << "          " << x_title;
  for (const auto& series : all) std::cout << "   " << coloured(series.mark, series.colour) << " " << series.name;
  std::cout << '\n';
}

}  // namespace example
