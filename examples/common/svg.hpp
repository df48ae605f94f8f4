// Points and a line through them, as SVG: a picture that stands by itself or within an HTML page.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "common/least_squares.hpp"
#include "common/table.hpp"

namespace example {

inline std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

// 1, 2 or 5 times a power of ten: about five steps up to `most`.
inline double tick_step(double most) {
  const double power = std::pow(10, std::floor(std::log10(most / 5)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (most / (factor * power) <= 6) return factor * power;
  return 10 * power;
}

inline std::string scatter(const std::string& title, const std::string& x_title, const std::string& y_title,
                           const std::vector<double>& x, const std::vector<double>& y, const Line& line) {
  constexpr double width = 480, height = 320, left = 64, top = 32, right = 16, bottom = 44;
  const auto most = [](const std::vector<double>& values) {
    return values.empty() ? 1.0 : std::max(1e-9, 1.05 * *std::max_element(values.begin(), values.end()));
  };
  const double x_most = most(x), y_most = most(y);
  const auto across = [&](double value) { return fixed(left + value / x_most * (width - left - right), 1); };
  const auto up = [&](double value) { return fixed(height - bottom - value / y_most * (height - top - bottom), 1); };
  std::string svg =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 480 320\" width=\"480\" font-size=\"11\" "
      "font-family=\"sans-serif\">\n<rect width=\"480\" height=\"320\" fill=\"white\"/>\n";
  const auto text = [&](const std::string& at_x, const std::string& at_y, const std::string& more,
                        const std::string& words) {
    svg += "<text x=\"" + at_x + "\" y=\"" + at_y + "\" " + more + ">" + escaped(words) + "</text>\n";
  };
  const auto stroke = [&](const std::string& x1, const std::string& y1, const std::string& x2, const std::string& y2,
                          const std::string& colour) {
    svg +=
        "<line x1=\"" + x1 + "\" y1=\"" + y1 + "\" x2=\"" + x2 + "\" y2=\"" + y2 + "\" stroke=\"" + colour + "\"/>\n";
  };
  for (double at = 0; at <= x_most; at += tick_step(x_most)) {
    stroke(across(at), up(0), across(at), fixed(top, 1), "#ddd");
    text(across(at), fixed(height - bottom + 15, 1), "text-anchor=\"middle\"", grouped(at));
  }
  for (double at = 0; at <= y_most; at += tick_step(y_most)) {
    stroke(across(0), up(at), across(x_most), up(at), "#ddd");
    text(fixed(left - 6, 1), up(at), "text-anchor=\"end\" dominant-baseline=\"middle\"",
         y_most < 5 ? fixed(at, 2) : grouped(at));
  }
  for (std::size_t i = 0; i < x.size(); ++i)
    svg +=
        "<circle cx=\"" + across(x[i]) + "\" cy=\"" + up(y[i]) + "\" r=\"3\" fill=\"#1f6fb2\" fill-opacity=\"0.7\"/>\n";
  // The line, where it lies within the picture.
  double from = 0, to = x_most;
  if (line.slope != 0) {
    const double low = -line.at_zero / line.slope, high = (y_most - line.at_zero) / line.slope;
    from = std::max(from, std::min(low, high));
    to = std::min(to, std::max(low, high));
  }
  if (from < to) stroke(across(from), up(line.at(from)), across(to), up(line.at(to)), "#c8501e");
  text("240", "18", "text-anchor=\"middle\" font-size=\"13\"", title);
  text("272", fixed(height - 8, 1), "text-anchor=\"middle\"", x_title);
  text("14", "154", "text-anchor=\"middle\" transform=\"rotate(-90 14 154)\"", y_title);
  return svg + "</svg>\n";
}

inline std::string html_page(const std::string& title, const std::string& text, const std::string& pictures) {
  return "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>" + escaped(title) + "</title>\n" +
         "<body style=\"font-family:sans-serif;max-width:62em;margin:auto\">\n<h1>" + escaped(title) + "</h1>\n<p>" +
         escaped(text) + "</p>\n" + pictures + "</body></html>\n";
}

}  // namespace example
