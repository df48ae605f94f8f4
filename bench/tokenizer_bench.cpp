// Texts to ids, with Google Benchmark: tokenizers x texts, in bytes per second.
//
//   bpe_llama3/prose       words and numbers
//   bpe_llama3/one_letter  one letter a million times: a single piece, which a tokenizer may take long for
//   ...
//
// The folder with tokenizers is the environment's VITRINE_TOKENIZERS, or else the tests' own.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "vitrine/core/error.hpp"
#include "vitrine/sample/random.hpp"
#include "vitrine/text/load_tokenizer.hpp"

using namespace vitrine;

namespace {

constexpr std::size_t n_bytes = 1'000'000;

std::string repeated(std::string_view part) {
  std::string text;
  while (text.size() < n_bytes) text += part;
  return text;
}

std::string base64() {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < n_bytes; ++i) text += letters[std::size_t(random_uniform(2, i) * 64)];
  return text;
}

const std::vector<std::pair<const char*, std::string>> texts = {
    {"prose", repeated("The cache of keys and values holds 24 layers, one beside the other; nothing else. ")},
    {"one_letter", repeated("A")},
    {"two_letters", repeated("us")},
    {"spaces", repeated(" ")},
    {"line_ends", repeated("\n")},
    {"ideographs", repeated("\u6F22")},
    {"base64", base64()},
};

void run(benchmark::State& state, const Tokenizer& tokenizer, const std::string& text) {
  for (auto _ : state) benchmark::DoNotOptimize(tokenizer.encode(text));
  state.SetBytesProcessed(std::int64_t(state.iterations()) * std::int64_t(text.size()));
}

}  // namespace

int main(int argc, char** argv) {
  const char* named = std::getenv("VITRINE_TOKENIZERS");
  const std::filesystem::path folder = named ? named : VITRINE_TOKENIZERS;
  for (const char* name : {"bpe_gpt2", "bpe_llama3", "bpe_qwen2", "spm_gemma", "spm_llama"}) {
    const Tokenizer tokenizer = load_tokenizer(folder / name);
    for (const auto& [what, text] : texts)
      benchmark::RegisterBenchmark(concat(name, '/', what).c_str(), [tokenizer, &text = text](benchmark::State& state) {
        run(state, tokenizer, text);
      })->Unit(benchmark::kMillisecond);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
