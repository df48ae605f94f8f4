// What the KV cache is for: the same tokens generated with it and without it.
//
// Without a cache every step recomputes the keys and values of all tokens so far; with it, of the new token only. The
// results are the same to the last bit, which this program checks at every step: the cache changes nothing but time.
//
//   cached_vs_uncached --prompt_tokens 64 --steps 64
#include <chrono>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "common/model.hpp"
#include "common/plot.hpp"
#include "common/table.hpp"
#include "vitrine/engine/session.hpp"
#include "vitrine/sample/sampler.hpp"

using example::fixed, vitrine::concat, vitrine::Token;

// Milliseconds of one call; its logits are copied, since the session overwrites them at the next step.
template <class Step>
static double timed(std::vector<float>& logits, Step step) {
  const auto start = std::chrono::steady_clock::now();
  const std::span<const float> result = step();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  logits.assign(result.begin(), result.end());
  return 1000 * seconds;
}

// The prefill, the step after it, about six between, and the last.
static std::vector<std::int64_t> shown_steps(std::int64_t n_steps) {
  std::vector<std::int64_t> steps = {0};
  for (std::int64_t step = 1; step < n_steps - 1; step += n_steps < 9 ? 1 : (n_steps - 2) / 6 + 1)
    steps.push_back(step);
  steps.push_back(n_steps - 1);
  return steps;
}

// The sentences follow the numbers as printed, whatever they are: on a tiny model or a busy machine other ones win.
static double as_printed(double value, int decimals) { return std::stod(fixed(value, decimals)); }

static std::string change(const std::vector<double>& milliseconds) {
  const double first = as_printed(milliseconds[1], 2), last = as_printed(milliseconds.back(), 2);
  if (first == last) return concat("takes ", fixed(last, 2), " ms at the end as at first");
  return concat(first < last ? "grows from " : "falls from ", fixed(first, 2), " to ", fixed(last, 2), " ms");
}

static std::string conclusion(double with_cache, double without) {
  const double a = as_printed(with_cache, 1), b = as_printed(without, 1);
  if (a < b) return concat("In all the cache saved ", example::percent(1 - a / b), " of the time.");
  return concat("In all the cache saved no time here: ", fixed(a, 1), " ms with it, ", fixed(b, 1),
                " without; the text is too short or the model too small for it.");
}

static void compare(const example::Arguments& args) {
  const auto n_prompt = args.get<std::int64_t>("prompt_tokens", 1, 1 << 20),
             n_steps = args.get<std::int64_t>("steps", 2, 1 << 20);
  const auto model = example::load_model(args);
  const auto prompt = example::any_tokens(*model, n_prompt);
  const auto session = [&](bool use_cache) {
    return vitrine::Session(model,
                            {.n_context = n_prompt + n_steps, .n_threads = args.threads(), .use_cache = use_cache});
  };
  vitrine::Session with_cache = session(true), without_cache = session(false);
  vitrine::Sampler greedy({.temperature = 0}, model->config().n_vocab);

  std::vector<float> logits[2];
  std::vector<double> milliseconds[2];
  std::int64_t n_equal = 0;
  Token token = 0;
  for (std::int64_t step = 0; step < n_steps; ++step) {
    for (const int cached : {1, 0}) {
      auto& which = cached ? with_cache : without_cache;
      milliseconds[cached].push_back(
          timed(logits[cached], [&] { return step == 0 ? which.prefill(prompt) : which.decode(token); }));
    }
    n_equal += std::memcmp(logits[0].data(), logits[1].data(), logits[0].size() * sizeof(float)) == 0;
    token = greedy.sample(logits[1], {}, 0);
  }
  const bool identical = n_equal == n_steps;
  const double sum[2] = {std::accumulate(milliseconds[0].begin(), milliseconds[0].end(), 0.0),
                         std::accumulate(milliseconds[1].begin(), milliseconds[1].end(), 0.0)};

  if (args.json()) {
    example::print_json({{"prompt_tokens", n_prompt},
                         {"steps", n_steps},
                         {"cached_ms", milliseconds[1]},
                         {"uncached_ms", milliseconds[0]},
                         {"cached_sum_ms", sum[1]},
                         {"uncached_sum_ms", sum[0]},
                         {"steps_with_bit_identical_logits", n_equal},
                         {"bit_identical", identical}});
  } else {
    example::plot_lines("milliseconds per step", "step",
                        {{"without cache", milliseconds[0], "×", example::Colour::yellow},
                         {"with cache", milliseconds[1], "●", example::Colour::blue}});
    std::cout << '\n';
    example::Table table({"step", "tokens so far", "with cache", "without", "ratio"}, 0);
    for (const std::int64_t step : shown_steps(n_steps)) {
      const double a = milliseconds[1][std::size_t(step)], b = milliseconds[0][std::size_t(step)];
      table.row({std::to_string(step), std::to_string(n_prompt + step), fixed(a, 2) + " ms", fixed(b, 2) + " ms",
                 fixed(b / a, 1)});
    }
    table.row({"sum", "", fixed(sum[1], 1) + " ms", fixed(sum[0], 1) + " ms", fixed(sum[0] / sum[1], 1)});
    table.print();
    example::what_to_notice(concat(
        "At all ", n_steps, " steps the ", example::grouped(double(logits[0].size())), " logits of both runs were ",
        identical ? "bit-identical (compared byte by byte)" : "NOT ALL identical",
        ". Step 0 is the prefill, the same work for both. After it a step without the cache ", change(milliseconds[0]),
        ", with the cache it ", change(milliseconds[1]), ". ", conclusion(sum[1], sum[0])));
  }
  vitrine::check(identical, vitrine::ErrorKind::numeric_failure, "logits: equal at ", n_equal, " of ", n_steps,
                 " steps only");
}

int main(int argc, char** argv) {
  const auto options = [](cxxopts::OptionAdder add) {
    add("prompt_tokens", "length of the prompt", cxxopts::value<std::int64_t>()->default_value("64"), "N");
    add("steps", "tokens generated, 2 at least: the first comes from the prefill, alike for both",
        cxxopts::value<std::int64_t>()->default_value("48"), "N");
  };
  return example::run(argc, argv, {"cached_vs_uncached", "Decoding with and without the KV cache", options, compare});
}
