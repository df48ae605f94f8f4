// Straight lines through measured points.
#pragma once

#include <cstddef>
#include <vector>

#include "common/averages.hpp"

namespace example {

// y = at_zero + slope * x with the least sum of squares; r2: the part of the variance of y that it explains. Where x
// does not vary there is no slope to be known: 0.
struct Line {
  double at_zero = 0, slope = 0, r2 = 0;
  double at(double x) const { return at_zero + slope * x; }
};

inline Line least_squares(const std::vector<double>& x, const std::vector<double>& y) {
  const double x_mean = mean(x), y_mean = mean(y);
  double xx = 0, xy = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - x_mean) * (x[i] - x_mean);
    xy += (x[i] - x_mean) * (y[i] - y_mean);
    yy += (y[i] - y_mean) * (y[i] - y_mean);
  }
  const double slope = xx > 0 ? xy / xx : 0;
  return {y_mean - slope * x_mean, slope, yy > 0 ? slope * xy / yy : 0};
}

// The same for y = slope * x.
inline double slope_from_zero(const std::vector<double>& x, const std::vector<double>& y) {
  double xx = 0, xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += x[i] * x[i];
    xy += x[i] * y[i];
  }
  return xx > 0 ? xy / xx : 0;
}

}  // namespace example
