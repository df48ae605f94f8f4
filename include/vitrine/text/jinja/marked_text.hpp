// A text that remembers, for each byte, where it came from: the template's own words or a part of the conversation.
//
//   MarkedText line("<|user|>", 0);  line.append("Hi", 3);    // runs: [0, 8) from 0, [8, 10) from 3
//
// Every operation of the template language keeps these marks (slices, joins, upper case, JSON), so that in the rendered
// prompt special tokens can be recognised in the scaffold only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

namespace jinja {

using Origin = std::uint32_t;          // a number the caller chose for each part of the input
inline constexpr Origin scaffold = 0;  // the template itself

class MarkedText {
 public:
  struct Run {
    std::size_t begin, end;
    Origin origin;
  };

  MarkedText() = default;
  explicit MarkedText(std::string bytes, Origin origin = scaffold) : bytes_(std::move(bytes)), last_(origin) {}

  const std::string& bytes() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }

  // Of one byte; at the end and beyond: of the last one.
  Origin origin_at(std::size_t index) const {
    const auto run = std::upper_bound(ends_.begin(), ends_.end(), index,
                                      [](std::size_t value, const auto& entry) { return value < entry.first; });
    return run == ends_.end() ? last_ : run->second;
  }

  void append(std::string_view bytes, Origin origin) {
    if (bytes.empty()) return;
    if (bytes_.empty()) last_ = origin;
    if (origin != last_) {
      ends_.emplace_back(bytes_.size(), last_);
      last_ = origin;
    }
    bytes_ += bytes;
  }
  void append(const MarkedText& other, std::size_t begin, std::size_t end) {
    other.for_each_run(begin, end, [&](const Run& run) {
      append(std::string_view(other.bytes_).substr(run.begin, run.end - run.begin), run.origin);
    });
  }
  void append(const MarkedText& other) { append(other, 0, other.size()); }

  MarkedText slice(std::size_t begin, std::size_t end) const {
    MarkedText out;
    out.append(*this, begin, end);
    return out;
  }

  // use(Run) for each stretch of bytes of one origin in [begin, end), in order.
  template <class Use>
  void for_each_run(std::size_t begin, std::size_t end, Use&& use) const {
    auto entry = std::upper_bound(ends_.begin(), ends_.end(), begin,
                                  [](std::size_t value, const auto& each) { return value < each.first; });
    while (begin < end) {
      const std::size_t stop = entry == ends_.end() ? end : (std::min)(end, entry->first);
      use(Run{begin, stop, entry == ends_.end() ? last_ : entry->second});
      begin = stop;
      if (entry != ends_.end()) ++entry;
    }
  }
  std::vector<Run> runs() const {
    std::vector<Run> out;
    for_each_run(0, size(), [&](const Run& run) { out.push_back(run); });
    return out;
  }

 private:
  std::string bytes_;
  std::vector<std::pair<std::size_t, Origin>> ends_;  // where runs end, without the last one
  Origin last_ = scaffold;
};

}  // namespace jinja

VITRINE_NAMESPACE_END
