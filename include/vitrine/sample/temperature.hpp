// Steps that sharpen or flatten the distribution; the order of the candidates stays.
//
//   Temperature          p_i = exp(z_i / T) / sum_j exp(z_j / T); T = 0 keeps the largest logit alone (the limit)
//   DynamicTemperature   T = low + (high - low) * (H / log n) ^ exponent, low and high = temperature -+ range,
//                        H the entropy of the n candidates: hot where the model is unsure, cold where it is certain
//                        (kalomaze 2023, as in llama.cpp)
#pragma once

#include <algorithm>
#include <string>

#include "vitrine/core/config.hpp"
#include "vitrine/core/exact_math.hpp"
#include "vitrine/sample/candidates.hpp"
#include "vitrine/sample/sampling_check.hpp"

VITRINE_NAMESPACE_BEGIN

struct Temperature {
  static constexpr const char* name = "temperature";
  double temperature;  // 0 to 3.4e38

  void check(std::int64_t) const { sampling_detail::check_range(name, temperature, 0.0, sampling_detail::most_float); }
  std::string describe() const { return sampling_detail::written(name, temperature); }
  void apply(Candidates& candidates) const { candidates.divide_by(temperature); }
};

struct DynamicTemperature {
  static constexpr const char* name = "dynamic_temperature";
  double temperature, range;
  double exponent = 1;

  void check(std::int64_t) const {
    Temperature{temperature}.check(0);
    sampling_detail::check_range("dynatemp_range", range, 0.0, sampling_detail::most_float);
    sampling_detail::check_range("dynatemp_exponent", exponent, 0.0, sampling_detail::most_float);
  }
  std::string describe() const { return sampling_detail::written(name, temperature, range, exponent); }
  void apply(Candidates& candidates) const {
    if (candidates.size() == 1) return;
    const double low = (std::max)(0.0, temperature - range), high = temperature + range;
    const double share = (std::min)(1.0, candidates.entropy() / exact::log(double(candidates.size())));
    candidates.divide_by(low + (high - low) * exact::pow(share, exponent));
  }
};

VITRINE_NAMESPACE_END
