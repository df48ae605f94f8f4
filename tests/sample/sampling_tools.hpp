// What the tests of sampling share.
#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "vitrine/core/error.hpp"
#include "vitrine/core/exact_math.hpp"
#include "vitrine/sample/random.hpp"
#include "vitrine/sample/sampler.hpp"

namespace sampling_tools {

using namespace vitrine;

inline constexpr float inf = std::numeric_limits<float>::infinity();
inline constexpr float nan_ = std::numeric_limits<float>::quiet_NaN();
inline constexpr double infinite = std::numeric_limits<double>::infinity();
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

inline std::int64_t size(const std::vector<float>& logits) { return std::int64_t(logits.size()); }

// Uniform in [-6, 6).
inline std::vector<float> wavy_logits(std::int64_t n, std::uint64_t seed = 99) {
  std::vector<float> logits;
  for (std::int64_t i = 0; i < n; ++i) logits.push_back(float(random_uniform(seed, std::uint64_t(i)) * 12 - 6));
  return logits;
}

inline std::vector<float> log_of(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(float(exact::log(p)));
  return logits;
}

// The ids that the whole chain leaves, most probable first.
inline std::vector<Token> kept(const SamplingOptions& options, const std::vector<float>& logits) {
  Sampler sampler(options, size(logits));
  std::vector<Token> ids;
  const auto explanation = sampler.explain(logits);
  for (const auto& candidate : explanation.stages.back().kept) ids.push_back(candidate.id);
  return ids;
}

// Expects an Error of this kind whose message has these words.
template <class F>
void check_error(ErrorKind kind, const std::string& words, F&& f) {
  try {
    f();
    FAIL("no error, expected one about " << words);
  } catch (const Error& error) {
    CHECK(error.kind() == kind);
    CHECK_THAT(error.what(), Catch::Contains(words));
  }
}

}  // namespace sampling_tools
