// Tables of text: columns aligned, the first to the left, the others to the right; and numbers as people read them.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace example {

std::string fixed(double value, int decimals);

std::string percent(double share);

// A rate or a ratio: one decimal below ten, where it matters.
std::string rounded(double value);

// 12,345,678
std::string grouped(double whole);

// Three digits and an SI prefix: "13.6 GB".
std::string scaled(double value, const std::string& unit);

class Table {
 public:
  explicit Table(std::vector<std::string> head, int n_left = 1) : n_left_(n_left) { rows_.push_back(std::move(head)); }
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  void print() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  int n_left_;
};

}  // namespace example
