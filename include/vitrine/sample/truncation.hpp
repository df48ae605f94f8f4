// Steps that drop candidates, each from the distribution that the step before it left. None drops them all.
//
//   TopK           keep the k largest logits (Fan et al. 2018); ties at the border go to the lowest ids
//   TopP           keep as few of the most probable ones as have a mass of at least p (nucleus, Holtzman et al. 2019)
//   MinP           keep p_i >= min_p * largest p (Nguyen et al. 2024)
//   Typical        keep those whose surprise -log p_i is nearest to the entropy H, until their mass is at least p
//                  (Meister et al. 2022, locally typical); equals at the border stay
//   TopNSigma      keep z_i >= largest z - n * deviation of the logits (Tang et al. 2024)
//   EpsilonCutoff  keep p_i >= epsilon (Hewitt et al. 2022)
//   EtaCutoff      keep p_i >= min(epsilon, sqrt(epsilon) exp(-H)) (the same)
//   TopH           among the 100 most probable, keep while their entropy adds up to at most h * H (Potraghloo et al.
//                  2025)
//   Xtc            with some probability, drop all that have p_i >= threshold but the least of them (p-e-w,
//                  text-generation-webui pull request 6335)
#pragma once

#include <cstdint>
#include <string>

#include "vitrine/core/config.hpp"
#include "vitrine/sample/candidates.hpp"
#include "vitrine/sample/sampling_check.hpp"

VITRINE_NAMESPACE_BEGIN

struct TopK {
  static constexpr const char* name = "top_k";
  std::int64_t k;  // 0 or less: all; 1: greedy

  void check(std::int64_t) const {}
  std::string describe() const { return sampling_detail::written(name, k); }
  void apply(Candidates& candidates) const;
};

// The others have one parameter, in [0, most].
struct TopP {
  static constexpr const char* name = "top_p";
  double p;  // 1: all

  void check(std::int64_t) const { sampling_detail::check_range(name, p, 0.0, 1.0); }
  std::string describe() const { return sampling_detail::written(name, p); }
  void apply(Candidates& candidates) const;
};

struct MinP {
  static constexpr const char* name = "min_p";
  double of_largest;  // 0: all

  void check(std::int64_t) const { sampling_detail::check_range(name, of_largest, 0.0, 1.0); }
  std::string describe() const { return sampling_detail::written(name, of_largest); }
  void apply(Candidates& candidates) const;
};

struct Typical {
  static constexpr const char* name = "typical_p";
  double p;  // 1: all

  void check(std::int64_t) const { sampling_detail::check_range(name, p, 0.0, 1.0); }
  std::string describe() const { return sampling_detail::written(name, p); }
  void apply(Candidates& candidates) const;
};

struct TopNSigma {
  static constexpr const char* name = "top_n_sigma";
  double n;

  void check(std::int64_t) const { sampling_detail::check_range(name, n, 0.0, sampling_detail::most_float); }
  std::string describe() const { return sampling_detail::written(name, n); }
  void apply(Candidates& candidates) const;
};

struct EpsilonCutoff {
  static constexpr const char* name = "epsilon_cutoff";
  double epsilon;

  void check(std::int64_t) const { sampling_detail::check_range(name, epsilon, 0.0, 1.0); }
  std::string describe() const { return sampling_detail::written(name, epsilon); }
  void apply(Candidates& candidates) const;
};

struct EtaCutoff {
  static constexpr const char* name = "eta_cutoff";
  double epsilon;

  void check(std::int64_t) const { sampling_detail::check_range(name, epsilon, 0.0, 1.0); }
  std::string describe() const { return sampling_detail::written(name, epsilon); }
  void apply(Candidates& candidates) const;
};

struct TopH {
  static constexpr const char* name = "top_h";
  double h;

  void check(std::int64_t) const { sampling_detail::check_range(name, h, 0.0, 1.0); }
  std::string describe() const { return sampling_detail::written(name, h); }
  void apply(Candidates& candidates) const;
};

struct Xtc {
  static constexpr const char* name = "xtc";
  double probability, threshold;

  void check(std::int64_t) const {
    sampling_detail::check_range("xtc_probability", probability, 0.0, 1.0);
    sampling_detail::check_range("xtc_threshold", threshold, 0.0, 1.0);
  }
  std::string describe() const { return sampling_detail::written(name, probability, threshold); }
  void apply(Candidates& candidates, double draw) const;  // draw: in [0, 1)
};

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/sample/truncation.inl.hpp"
#endif
