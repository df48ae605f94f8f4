// Runs of a prompt whose logits are compared bit by bit.
#pragma once

#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "support/models.hpp"

namespace support {

inline std::vector<float> copy(std::span<const float> logits) { return {logits.begin(), logits.end()}; }

inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

// Logits after the prompt and after each of n_steps tokens of greedy decoding.
struct Run {
  std::vector<Token> tokens;               // [n_steps], chosen greedily
  std::vector<std::vector<float>> logits;  // [n_steps + 1]
  // What ran, for tests to show that two sides did take different ways:
  std::string isa;
  int n_threads = 0;
  std::int64_t n_passes = 0, n_pass_tokens = 0;
};

inline Token best(std::span<const float> logits) {
  return Token(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// `pieces`: sizes of the calls of prefill that the prompt is given in; empty: one call.
inline Run run(const std::shared_ptr<const Model>& model, const std::vector<Token>& prompt, std::int64_t n_steps,
               SessionOptions options, const std::vector<std::int64_t>& pieces = {}) {
  options.crowding = Crowding::ignore;  // as many threads as the test says, however busy the machine is
  options.n_context = std::int64_t(prompt.size()) + n_steps + 1;
  Session session(model, std::move(options));
  Run result;
  std::span<const float> logits;
  std::size_t at = 0;
  for (const auto n : pieces.empty() ? std::vector<std::int64_t>{std::int64_t(prompt.size())} : pieces) {
    logits = session.prefill(std::span(prompt).subspan(at, std::size_t(n)));
    at += std::size_t(n);
  }
  REQUIRE(at == prompt.size());
  result.logits.push_back(copy(logits));
  for (std::int64_t step = 0; step < n_steps; ++step) {
    result.tokens.push_back(best(logits));
    logits = session.decode(result.tokens.back());
    result.logits.push_back(copy(logits));
  }
  result.isa = session.isa();
  result.n_threads = session.options().n_threads;
  result.n_passes = session.n_passes();
  result.n_pass_tokens = session.n_pass_tokens();
  return result;
}

// Index of the first step whose logits differ by a bit, or -1.
inline int first_difference(const Run& a, const Run& b) {
  for (std::size_t i = 0; i < a.logits.size(); ++i)
    if (i >= b.logits.size() || !same_bits(a.logits[i], b.logits[i])) return int(i);
  return a.logits.size() == b.logits.size() ? -1 : int(a.logits.size());
}

// FNV-1a over the bytes of all logits of a run: what the golden files record.
inline std::uint64_t hash(const Run& run) {
  std::uint64_t value = 14695981039346656037ull;
  for (const auto& logits : run.logits)
    for (const float logit : logits) {
      std::uint32_t bits;
      std::memcpy(&bits, &logit, sizeof bits);
      for (int byte = 0; byte < 4; ++byte) value = (value ^ (bits >> (8 * byte) & 255u)) * 1099511628211ull;
    }
  return value;
}

}  // namespace support
