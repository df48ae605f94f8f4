// Plots of text: horizontal bars, and lines over a common axis.
#pragma once

#include <string>
#include <vector>

#include "common/terminal.hpp"

namespace example {

// A bar of share (0 to 1) times `width` columns, to an eighth of a column.
std::string bar(double share, int width);

struct Series {
  std::string name;
  std::vector<double> values;  // one per point of the x axis
  const char* mark = "●";      // told apart by the mark where there are no colours
  Colour colour = Colour::none;
};

// The series over x = 0 .. n-1, the y axis from 0 to the largest value, or logarithmic.
void plot_lines(const std::string& y_title, const std::string& x_title, const std::vector<Series>& all,
                bool logarithmic = false, int height = 12);

}  // namespace example
