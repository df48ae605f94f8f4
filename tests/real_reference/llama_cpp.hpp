// How far llama.cpp (build 11434, the same files) is from the reference: what we are held to. Compiled for AVX2, but
// for perplexity_error_f32: that is of the build whose largest and mean differences with an F32 cache are 0.525 and
// 0.149, 0.545 and 0.177 (AVX-512, weights not repacked), so that all three hold at once against one build.
#pragma once

#include <vector>

#include "support/models.hpp"

namespace llama_cpp {

struct Real {
  const char* file;
  const char* fixture;
  double largest, mean;  // F32 cache: |difference| of the 20 largest logits of each prompt's last position
  double perplexity_error, perplexity_error_f32;  // of the long text, relative to the reference
  double rms_f32, rms_f16;                        // of the differences of the long text's log-probabilities
  // Mean |difference| of the reference's 20 largest logits at each position of the long text: with an F16 cache and
  // flash attention, as it does by default, and with an F32 cache.
  double mean_f16, mean_f32;
};
inline const std::vector<Real> reals = {
    {support::smollm2_file, "smollm2.json", 0.525, 0.149, 0.0087, 0.0100, 0.0772, 0.0802, 0.1252, 0.1197},
    {support::gemma3_file, "gemma3.json", 0.310, 0.101, 0.0035, 0.0076, 0.0990, 0.1078, 0.1636, 0.1528}};
inline constexpr double allowance = 1.1;

}  // namespace llama_cpp
