// Runs of a prompt whose logits are compared bit by bit.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "support/models.hpp"

namespace support {

std::vector<float> copy(std::span<const float> logits);

bool same_bits(std::span<const float> a, std::span<const float> b);

// Logits after the prompt and after each of n_steps tokens of greedy decoding.
struct Run {
  std::vector<Token> tokens;               // [n_steps], chosen greedily
  std::vector<std::vector<float>> logits;  // [n_steps + 1]
  // What ran, for tests to show that two sides did take different ways:
  std::string isa;
  int n_threads = 0;
  std::int64_t n_passes = 0, n_pass_tokens = 0;
};

Token best(std::span<const float> logits);

// `pieces`: sizes of the calls of prefill that the prompt is given in; empty: one call.
Run run(const std::shared_ptr<const Model>& model, const std::vector<Token>& prompt, std::int64_t n_steps,
        SessionOptions options, const std::vector<std::int64_t>& pieces = {});

// Index of the first step whose logits differ by a bit, or -1.
int first_difference(const Run& a, const Run& b);

// FNV-1a over the bytes of all logits of a run: what the golden files record.
std::uint64_t hash(const Run& run);

}  // namespace support
