// The ladder from logits to the chosen token: what each step of a sampler does to the candidates, and where the random
// number falls on what is left.
//
//   logits -> penalties and biases -> temperature -> cuts -> the candidate at point u of the cumulative distribution
//
// Each rung shows the candidates before the step, most probable first; the ones that it drops are grey. The same code
// chooses the tokens in `generate`; see vitrine/sample/sampler.hpp, and the headers of the steps for their formulas.
//
//   sampling                                                     a small vocabulary, a usual chain
//   sampling --prompt "The sky is" --min_p 0.05 --seed 3         the logits of a real model
//   sampling --preset llama.cpp --temperature 2                  the same steps in another order
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "common/logit_source.hpp"
#include "common/plot.hpp"
#include "common/sampling_args.hpp"
#include "common/table.hpp"
#include "vitrine/sample/sampler.hpp"

using example::Colour, example::coloured, example::fixed, example::percent;
using vitrine::concat, vitrine::SamplingStage, vitrine::Token, vitrine::TokenProbability;

static example::json to_json(const vitrine::SamplingExplanation& told, std::uint64_t seed, std::size_t n) {
  example::json stages = example::json::array();
  for (const auto& stage : told.stages) {
    example::json kept = example::json::array();
    for (std::size_t i = 0; i < stage.kept.size() && i < n; ++i)
      kept.push_back({{"id", stage.kept[i].id}, {"logit", stage.kept[i].logit}, {"p", stage.kept[i].probability}});
    stages.push_back({{"step", stage.step},
                      {"n_before", stage.n_before},
                      {"n_after", stage.n_after},
                      {"mass_removed", stage.mass_removed},
                      {"entropy_nats", stage.entropy},
                      {"temperature", stage.temperature},
                      {"candidates", kept}});
  }
  return {{"seed", seed},
          {"stages", stages},
          {"token", told.token},
          {"p", told.probability},
          {"mass_before", told.mass_before},
          {"draw", told.draw ? example::json(*told.draw) : example::json()}};
}

// One rung: what was there before the step, with what became of it.
static void print_rung(const SamplingStage& before, const SamplingStage& after, const example::LogitSource& source,
                       std::size_t n_shown) {
  std::cout << '\n' << coloured(after.step, Colour::bold) << "   ";
  if (after.n_after < after.n_before)
    std::cout << after.n_after << " of " << after.n_before << " stay, " << percent(after.mass_removed)
              << " of the mass goes";
  else
    std::cout << (after.n_after == 1 ? "1 candidate" : concat(after.n_after, " candidates"));
  std::cout << ", entropy " << fixed(after.entropy, 2) << " nats\n";
  double cumulative = 0;
  for (std::size_t i = 0; i < before.kept.size() && i < n_shown; ++i) {
    const Token id = before.kept[i].id;
    const auto is_it = [&](const TokenProbability& c) { return c.id == id; };
    const auto now = std::find_if(after.kept.begin(), after.kept.end(), is_it);
    const bool stays = now != after.kept.end();
    const double p = stays ? now->probability : before.kept[i].probability;
    if (stays) cumulative += p;
    const std::string name = example::shortened(source.label(id), 16);
    std::cout << "  " << name << std::string(std::size_t(17 - example::text_width(name)), ' ')
              << coloured(example::bar(p, example::columns() - 40), stays ? Colour::green : Colour::grey) << ' '
              << coloured(percent(p), stays ? Colour::none : Colour::grey)
              << (stays ? "" : coloured(" dropped", Colour::grey))
              << (stays ? concat("  (up to ", fixed(cumulative, 3), ")") : "") << '\n';
  }
}

// The cumulative distribution as a line of one segment per candidate, and the random number as a needle on it.
static void print_needle(const SamplingStage& last, double draw) {
  const int width = example::columns() - 4;
  std::cout << "\nthe draw\n  ";
  double cumulative = 0;
  int column = 0;
  for (std::size_t i = 0; i < last.kept.size() && column < width; ++i) {
    cumulative += last.kept[i].probability;
    const int end = i + 1 == last.kept.size() ? width : std::min(width, int(std::lround(cumulative * width)));
    std::string segment;
    for (; column < end; ++column) segment += i % 2 == 0 ? "█" : "░";
    std::cout << coloured(segment, i % 2 == 0 ? Colour::green : Colour::blue);
  }
  const int place = std::min(width - 1, int(draw * width));
  std::cout << "\n  " << std::string(std::size_t(place), ' ') << coloured("▲", Colour::red) << "\n  0"
            << std::string(std::size_t(width - 2), ' ') << "1\n";
}

static void show(const example::Arguments& args) {
  auto options = example::sampling_options(args);
  example::only_draws(args, example::is_drawn(options), "with a --temperature above 0");
  bool chosen = args.has("top_k") || args.has("preset");
  for (const auto& argument : example::drawing_arguments) chosen = chosen || args.has(argument.name);
  if (!chosen) {
    options.temperature = 0.8;
    options.top_k = 6;
    options.top_p = 0.9;
  }
  const auto source = example::read_logits(args);
  const auto n_shown = std::size_t(args.get<int>("show", 1, 1000));
  vitrine::Sampler sampler(options, std::int64_t(source.logits.size()));
  sampler.begin(std::int64_t(source.prompt.size()));
  const auto position = args.get<std::int64_t>("position", 0, std::int64_t(1) << 60);
  const auto told = sampler.explain(source.logits, source.prompt, position + std::int64_t(source.prompt.size()));
  if (args.json()) return example::print_json(to_json(told, sampler.seed(), n_shown));

  std::cout << vitrine::describe(sampler.chain()) << "   seed " << sampler.seed() << '\n';
  for (std::size_t i = 0; i < told.stages.size(); ++i)
    print_rung(told.stages[i == 0 ? 0 : i - 1], told.stages[i], source, n_shown);
  const auto& last = told.stages.back();
  if (told.draw) print_needle(last, *told.draw);

  const auto& first = told.stages.front();
  const auto raw = std::find_if(first.kept.begin(), first.kept.end(), [&](auto& c) { return c.id == told.token; });
  const std::string where =
      told.draw ? concat("the number ", fixed(*told.draw, 4), " falls between ", fixed(told.mass_before, 4), " and ",
                         fixed(told.mass_before + told.probability, 4), ": ")
                : std::string("nothing is drawn: ");
  example::what_to_notice(concat("Of ", first.n_after, " candidates ", last.n_after, last.n_after == 1 ? " is" : " are",
                                 " left, and ", where, source.label(told.token), ", number ", told.place + 1,
                                 " of them. The model gave it ", percent(raw->probability), ", the chain made that ",
                                 percent(told.probability), "."));
}

int main(int argc, char** argv) {
  const auto options = [](cxxopts::OptionAdder add) {
    example::add_logit_options(add, "4,3.4,3,2.6,2,1.2,0.5,-1");
    example::add_sampling_options(add);
    add("position", "of the token; each has a random number of its own",
        cxxopts::value<std::int64_t>()->default_value("0"), "N");
    add("show", "at most so many candidates are listed", cxxopts::value<int>()->default_value("10"), "N");
  };
  return example::run(argc, argv, {"sampling", "The ladder from logits to the chosen token", options, show});
}
