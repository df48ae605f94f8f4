// What the steps of a chain have in common: how their parameters are checked, and how they are written.
//
//   check_range("temperature", value, 0.0, most_float)    written("dry", 0.8, 1.75)    gives "dry(0.8, 1.75)"
//
// Checks throw Error::bad_argument with the parameter's name, its bounds (both of them allowed) and the value; NaN is
// outside of any bounds. What is written is for people, to see what a chain does.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/core/error.hpp"
#include "vitrine/core/token.hpp"

VITRINE_NAMESPACE_BEGIN

namespace sampling_detail {

// Logits are floats, and so must be what one of them is divided by or multiplied with.
inline constexpr double least_float = (std::numeric_limits<float>::min)();
inline constexpr double most_float = (std::numeric_limits<float>::max)();

// Written so that NaN is outside.
template <class Number>
void check_range(const char* name, Number value, Number least, Number most) {
  check(value >= least && value <= most, ErrorKind::bad_argument, name, ": expected ", least, " to ", most, ", got ",
        value);
}

inline void check_count(const char* name, std::int64_t value, std::int64_t least = 0) {
  check(value >= least, ErrorKind::bad_argument, name, ": expected at least ", least, ", got ", value);
}

inline void check_tokens(std::string_view name, const std::vector<Token>& tokens, std::int64_t n_vocab) {
  for (std::size_t i = 0; i < tokens.size(); ++i)
    check(tokens[i] >= 0 && tokens[i] < n_vocab, ErrorKind::bad_argument, name, "[", i,
          "]: expected a token from 0 to ", n_vocab - 1, ", got ", tokens[i]);
}

inline void check_sequences(std::string_view name, const std::vector<std::vector<Token>>& sequences,
                            std::int64_t n_vocab) {
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const std::string one = concat(name, "[", i, "]");
    check(!sequences[i].empty(), ErrorKind::bad_argument, one, ": expected at least 1 token, got none");
    check_tokens(one, sequences[i], n_vocab);
  }
}

// "name(1.5, last 64)"
template <class First, class... Rest>
std::string written(const char* name, const First& first, const Rest&... rest) {
  return concat(name, "(", first, concat(", ", rest)..., ")");
}

}  // namespace sampling_detail

VITRINE_NAMESPACE_END
