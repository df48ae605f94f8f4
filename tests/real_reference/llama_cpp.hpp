// How far llama.cpp (build 11434, the same files) is from the reference: what we are held to.
#pragma once

#include <vector>

#include "support/models.hpp"

namespace llama_cpp {

struct Real {
  const char* file;
  const char* fixture;
  // But for the last two, each is the least that was measured of it in any build: compiled for AVX2 or for AVX-512
  // (with AMX), weights repacked or not; bench/README.md, "How near to the reference", has them one by one. They are
  // not of one build, since each is nearest in something else. Gemma's logits and both rms_f32 are from an earlier
  // measurement, whose build is not recorded, and stricter than each of these. With an F32 cache, without flash
  // attention, unless said. Gemma's perplexity with an F16 cache, anything from 0.06 to 0.65 % by the build, is held to
  // that with an F32 one.
  double largest, mean;         // |difference| of the 20 largest logits of each prompt's last position
  double perplexity_error;      // of the long text, relative to the reference
  double perplexity_error_f16;  // with an F16 cache
  double rms_f32, rms_f16;      // of the differences of its log-probabilities; F16 with flash attention
  // Mean |difference| of the reference's 20 largest logits at each position of the long text, compiled for AVX2: with
  // an F16 cache and flash attention, as it does by default, and with an F32 cache.
  double mean_f16, mean_f32;
};
inline const std::vector<Real> reals = {
    {support::smollm2_file, "smollm2.json", 0.29, 0.087, 0.0061, 0.0034, 0.0772, 0.0802, 0.1252, 0.1197},
    {support::gemma3_file, "gemma3.json", 0.310, 0.101, 0.0035, 0.0035, 0.0990, 0.1034, 0.1636, 0.1528}};
inline constexpr double allowance = 1.1;

}  // namespace llama_cpp
