// Bodies of rope_frequencies.hpp.
#pragma once

#include "vitrine/core/error.hpp"
#include "vitrine/core/exact_math.hpp"
#include "vitrine/model/rope_frequencies.hpp"

VITRINE_NAMESPACE_BEGIN

namespace rope_detail {

// What Llama 3's scaling divides one frequency by. (A number over a tensor is number times reciprocal in transformers.)
VITRINE_INLINE float llama3_divisor(const RopeConfig& rope, float frequency) {
  constexpr float two_pi = 6.283185307179586f;
  const double context = double(rope.original_context), low = double(rope.low_freq_factor),
               high = double(rope.high_freq_factor);
  const float wavelength = (1.0f / frequency) * two_pi;
  if (wavelength < float(context / high)) return 1.0f;
  if (wavelength > float(context / low)) return rope.factor;
  const float smooth = ((1.0f / wavelength) * float(context) - rope.low_freq_factor) / float(high - low);
  return 1.0f / ((1.0f - smooth) / rope.factor + smooth);
}

}  // namespace rope_detail

VITRINE_INLINE std::vector<float> inverse_frequencies(const RopeConfig& rope, std::int64_t head_dim) {
  check(head_dim >= 2 && head_dim % 2 == 0, ErrorKind::bad_argument, "head_dim: expected an even number, got ",
        head_dim);
  const auto n = std::size_t(head_dim / 2);
  check(rope.frequency_divisors.empty() || rope.frequency_divisors.size() == n, ErrorKind::bad_argument,
        "RoPE frequency divisors: expected ", n, ", got ", rope.frequency_divisors.size());
  std::vector<float> out(n);
  for (std::size_t i = 0; i < n; ++i) {
    const float exponent = float(2 * i) / float(head_dim);
    float frequency = 1.0f / exact::pow(rope.theta, exponent);
    if (rope.scaling == RopeScaling::linear) frequency = frequency / rope.factor;
    if (rope.scaling == RopeScaling::llama3) frequency = frequency / rope_detail::llama3_divisor(rope, frequency);
    if (!rope.frequency_divisors.empty()) frequency = frequency / rope.frequency_divisors[i];
    out[i] = frequency;
  }
  return out;
}

VITRINE_NAMESPACE_END
