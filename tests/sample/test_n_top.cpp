// Samplers say how many of the largest logits they need, and then the others make no difference.
#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <random>

#include "vitrine/sample/sampler.hpp"

using namespace vitrine;

namespace {

struct NTopCase {
  SamplingOptions options;
  std::int64_t n_top;
};

const std::vector<NTopCase> n_top_cases = {
    {{.temperature = 0}, 1},
    {{.temperature = 0.7, .top_k = 40, .top_p = 0.9}, 40},
    {{.top_k = 5, .min_p = 0.05}, 5},
    {{.top_k = 1}, 1},
    {{.top_k = 20, .order = SamplingOrder::llama_cpp}, 20},
    {{.top_k = 20, .mirostat_tau = 4}, 20},
    {{.temperature = 0.7}, 0},
    {{.temperature = 0.7, .top_p = 0.9}, 0},
    {{.top_k = 20, .top_n_sigma = 1, .order = SamplingOrder::llama_cpp}, 0},
    {{.dynatemp_range = 0.2, .top_k = 20}, 0},
    {{.temperature = 0, .repetition_penalty = 1.1}, 0},
    {{.temperature = 0, .suppress_tokens = {3}}, 0},
};

}  // namespace

TEST_CASE("a sampler draws the same token when all but the logits that it asks for are missing") {
  constexpr std::int64_t n_vocab = 40000;
  std::mt19937 random(11);
  std::normal_distribution<float> normal(0, 3);
  for (const auto& [options, n_top] : n_top_cases) {
    auto with_seed = options;
    with_seed.seed = 9;
    Sampler full(with_seed, n_vocab), part(with_seed, n_vocab);
    INFO(describe(full.chain()));
    REQUIRE(full.n_top() == n_top);
    if (n_top == 0) continue;
    for (std::int64_t position = 0; position < 20; ++position) {
      std::vector<float> logits(n_vocab);
      for (auto& z : logits) z = std::round(normal(random) * 8) / 8;  // with ties
      auto sorted = logits;
      std::sort(sorted.begin(), sorted.end(), std::greater<>());
      auto fewer = logits;
      std::vector<float> maxima;
      for (std::size_t i = 0; i < fewer.size(); ++i) {
        if (i % 64 == 0) maxima.push_back(std::numeric_limits<float>::lowest());
        if (fewer[i] < sorted[std::size_t(n_top - 1)]) fewer[i] = -std::numeric_limits<float>::infinity();
        maxima.back() = std::max(maxima.back(), fewer[i]);
      }
      REQUIRE(full.sample(logits, {}, position) == part.sample(Logits(fewer, maxima), {}, position));
    }
  }
}
