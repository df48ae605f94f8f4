// Mirostat 2: keeps the surprise of the text near a target, by a cut that learns from each token drawn.
//
//   keep -log2 p <= mu, draw x, mu -= eta * (-log2 p(x) - tau)     mu starts at 2 tau; p(x) among those kept
//
// Basu, Ramachandran, Keskar, Varshney 2020, "Mirostat: a neural text decoding algorithm that directly controls
// perplexity", in the simpler second form. The only step that remembers: a sampler keeps mu from token to token.
#pragma once

#include <string>

#include "vitrine/core/config.hpp"
#include "vitrine/core/exact_math.hpp"
#include "vitrine/sample/candidates.hpp"
#include "vitrine/sample/sampling_check.hpp"

VITRINE_NAMESPACE_BEGIN

struct Mirostat {
  static constexpr const char* name = "mirostat";
  double tau;        // bits per token; 5 is usual
  double eta = 0.1;  // 0 to 1

  void check(std::int64_t) const {
    sampling_detail::check_range("mirostat_tau", tau, 0.0, 1000.0);
    sampling_detail::check_range("mirostat_eta", eta, 0.0, 1.0);
  }
  std::string describe() const { return sampling_detail::written(name, tau, eta); }

  double start() const { return 2 * tau; }
  void apply(Candidates& candidates, double mu) const {
    std::int64_t n = 1;
    while (n < candidates.size() && bits(candidates.surprise(n)) <= mu) ++n;
    candidates.keep(0, n);
  }
  double after(double mu, double probability) const { return mu - eta * (bits(-exact::log(probability)) - tau); }

 private:
  static double bits(double nats) { return nats / 0x1.62e42fefa39efp-1; }  // log 2
};

VITRINE_NAMESPACE_END
