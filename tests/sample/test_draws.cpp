// Seeds, and the statistics of what is drawn.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "sample/sampling_tools.hpp"
#include "support/counted_allocations.hpp"

using namespace sampling_tools;
using support::n_allocations;

namespace {

std::vector<Token> draw(Sampler& sampler, const std::vector<float>& logits, std::int64_t n) {
  std::vector<Token> tokens;
  for (std::int64_t position = 0; position < n; ++position) tokens.push_back(sampler.sample(logits, {}, position));
  return tokens;
}

}  // namespace

TEST_CASE("the same seed gives the same tokens, whatever was drawn before") {
  const auto logits = wavy_logits(50);
  Sampler a({.seed = 42}, 50), b({.temperature = 1, .top_k = 50, .seed = 42}, 50), other({.seed = 43}, 50);
  const auto tokens = draw(a, logits, 40);
  CHECK(tokens == draw(a, logits, 40));
  CHECK(tokens == draw(b, logits, 40));
  CHECK(tokens != draw(other, logits, 40));
  for (std::int64_t position = 39; position >= 0; --position)
    CHECK(a.sample(logits, {}, position) == tokens[std::size_t(position)]);
  // Recorded: the same on every machine.
  const std::vector<Token> golden = {36, 23, 22, 48, 8, 8, 45, 8, 37, 8, 37, 8};
  CHECK(std::vector<Token>(tokens.begin(), tokens.begin() + 12) == golden);
}

TEST_CASE("no seed: fresh entropy, and the seed reported reproduces the run") {
  const auto logits = wavy_logits(50);
  Sampler first(SamplingOptions{}, 50), second(SamplingOptions{}, 50);
  CHECK(first.seed() != second.seed());
  const auto tokens = draw(first, logits, 40);
  CHECK(tokens != draw(second, logits, 40));
  Sampler again({.seed = first.seed()}, 50);
  CHECK(tokens == draw(again, logits, 40));
}

TEST_CASE("draws follow the distribution") {
  const auto logits = wavy_logits(40);
  for (const auto& options :
       {SamplingOptions{.seed = 5}, SamplingOptions{.temperature = 0.6, .seed = 6},
        SamplingOptions{.temperature = 2, .top_k = 12, .seed = 7},
        SamplingOptions{.temperature = 1.5, .top_p = 0.9, .seed = 8}, SamplingOptions{.min_p = 0.05, .seed = 9},
        SamplingOptions{.typical_p = 0.7, .seed = 10}, SamplingOptions{.top_n_sigma = 1.5, .seed = 11},
        SamplingOptions{.temperature = 1, .dynatemp_range = 0.7, .seed = 12},
        SamplingOptions{.xtc_probability = 1, .xtc_threshold = 0.05, .seed = 13},
        SamplingOptions{.temperature = 3, .eta_cutoff = 0.02, .seed = 14}}) {
    Sampler sampler(options, 40);
    const auto stage = sampler.explain(logits).stages.back();
    constexpr std::int64_t n = 40000;
    std::map<Token, double> count;
    for (std::int64_t i = 0; i < n; ++i) ++count[sampler.sample(logits, {}, i)];
    double chi_square = 0, rare_count = 0, rare_expected = 0, sum = 0;
    int bins = 0;
    for (const auto& candidate : stage.kept) {
      const double expected = candidate.probability * n, got = count[candidate.id];
      sum += candidate.probability;
      count.erase(candidate.id);
      if (expected < 10) {
        rare_count += got;
        rare_expected += expected;
        continue;
      }
      chi_square += (got - expected) * (got - expected) / expected;
      ++bins;
    }
    if (rare_expected > 1) {
      chi_square += (rare_count - rare_expected) * (rare_count - rare_expected) / rare_expected;
      ++bins;
    }
    INFO(describe(sampler.chain()));
    CHECK(sum == Approx(1).epsilon(1e-6));
    CHECK(count.empty());  // nothing outside of what was kept
    const double degrees = bins - 1;
    CHECK(chi_square < degrees + 4 * std::sqrt(2 * degrees));
  }
}

TEST_CASE("tokens are chosen without allocating, also where the whole vocabulary must be sorted") {
  const std::int64_t n = 20000;
  const auto logits = wavy_logits(n);
  const std::vector<float> equal(std::size_t(n), 1.0f);
  const std::vector<Token> history = {1, 2, 3};
  for (const auto& options : {SamplingOptions{.seed = 1}, SamplingOptions{.temperature = 0},
                              SamplingOptions{.temperature = 0.7, .top_k = 40, .top_p = 0.9, .min_p = 0.01, .seed = 2},
                              SamplingOptions{.top_p = 0.9999, .repetition_penalty = 1.2, .seed = 3},
                              SamplingOptions{.dynatemp_range = 0.5,
                              .typical_p = 0.9,
                              .top_n_sigma = 5,
                              .xtc_probability = 0.5,
                              .mirostat_tau = 5,
                              .presence_penalty = 1,
                              .no_repeat_ngram_size = 3,
                              .logit_bias = {{4, -1}},
                              .suppress_tokens = {7},
                              .min_new_tokens = 9,
                              .ignore_end = true,
                              .end_tokens = {5},
                              .dry_multiplier = 0.8,
                              .seed = 4}}) {
    Sampler sampler(options, n);
    sampler.sample(logits, history, 0);  // DRY's scratch grows with the history, a few times in all
    const auto before = n_allocations.load();
    for (std::int64_t position = 0; position < 8; ++position) {
      sampler.sample(logits, history, position);
      sampler.sample(equal, history, position);
    }
    CHECK(n_allocations.load() - before == 0);
  }
  const auto before = n_allocations.load();
  ::operator delete(::operator new(1));       // called by name, else compilers may leave the pair out
  CHECK(n_allocations.load() - before == 1);  // the counter counts
}

TEST_CASE("a walk far into a flat distribution ends at the right token") {
  const std::int64_t n = 30000;
  const std::vector<float> equal(std::size_t(n), -3.0f);
  Sampler sampler({.seed = 11}, n);
  for (std::int64_t position = 0; position < 50; ++position) {
    const double u = random_uniform(11, std::uint64_t(position));
    CHECK(sampler.sample(equal, {}, position) == Token(std::floor(u * double(n))));
  }
}
