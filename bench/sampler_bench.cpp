// The choice of a token, with Google Benchmark: chains x instruction set, over a vocabulary of Gemma's size.
//
//   greedy/avx2                           the largest logit
//   greedy/avx2/maxima                    the same, with the maxima of blocks that come from a model's head
//   top_k_top_p_temperature/avx2[/maxima] temperature 0.8 -> top_k 40 -> top_p 0.95
//   ...
//
// Logits are normal with a deviation of 3, as a sum of uniform numbers, another row for each token. One thread. Options
// are Google Benchmark's; take the minimum of --benchmark_repetitions=20 where other programs run.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "vitrine/core/error.hpp"
#include "vitrine/sample/random.hpp"
#include "vitrine/sample/sampler.hpp"
#include "vitrine/simd/dispatch.hpp"

using namespace vitrine;

namespace {

constexpr std::int64_t n_vocab = 262144, n_rows = 4;

LogitRows any_logits() {
  LogitRows rows(n_rows, n_vocab);
  const auto view = rows.view();
  const auto &values = view.values, &block_max = view.block_max;
  for (std::int64_t row = 0; row < n_rows; ++row) {
    for (std::int64_t i = 0; i < n_vocab; ++i) {
      double sum = 0;
      for (std::uint64_t k = 0; k < 4; ++k) sum += random_uniform(std::uint64_t(row), std::uint64_t(i), k) - 0.5;
      values(row, i) = float(sum * 5.2);
    }
    for (std::int64_t b = 0; b < block_max.size(1); ++b)
      block_max(row, b) =
          *std::max_element(&values(row, b * Logits::block), &values(row, b * Logits::block) + Logits::block);
  }
  return rows;
}

const std::vector<std::pair<const char*, SamplingOptions>> chains = {
    {"greedy", {.temperature = 0}},
    {"top_k_top_p_temperature", {.temperature = 0.8, .top_k = 40, .top_p = 0.95, .seed = 1}},
    {"llama.cpp", sampling_preset("llama.cpp")},
    {"temperature", {.temperature = 0.8, .seed = 1}},
    {"top_p", {.top_p = 0.95, .seed = 1}},
    {"min_p", {.min_p = 0.05, .seed = 1}},
    {"top_n_sigma", {.top_n_sigma = 1, .seed = 1}},
    {"typical_p", {.typical_p = 0.9, .seed = 1}},
    {"penalties", {.top_k = 40, .repetition_penalty = 1.1, .presence_penalty = 0.5, .dry_multiplier = 0.8, .seed = 1}},
    {"mirostat", {.mirostat_tau = 5, .seed = 1}},
};

void run(benchmark::State& state, const SamplingOptions& options, Isa isa, bool with_maxima) {
  static_assert(n_vocab % Logits::block == 0);
  static const LogitRows rows = any_logits();
  std::vector<Token> history;
  for (Token i = 0; i < 1000; ++i) history.push_back(i * 7919 % 5000);
  Sampler sampler(options, n_vocab, kernels(isa));
  std::int64_t position = 0;
  for (auto _ : state) {
    const Logits row = rows.row(position % n_rows);
    benchmark::DoNotOptimize(
        sampler.sample(with_maxima ? row : Logits(std::span<const float>(row)), history, position));
    ++position;
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (const Isa isa : available_isas())
    for (const auto& [name, options] : chains)
      for (const bool with_maxima : {false, true})
        benchmark::RegisterBenchmark(
            concat(name, '/', isa_name(isa), with_maxima ? "/maxima" : "").c_str(),
            [&options = options, isa, with_maxima](benchmark::State& state) { run(state, options, isa, with_maxima); })
            ->Unit(benchmark::kMicrosecond);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
