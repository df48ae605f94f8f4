// What temperature, top-k and top-p do to the distribution from which the next token is drawn.
//
//   p_i = exp(z_i / T) / sum_j exp(z_j / T)
//
// Temperature changes how far apart the probabilities are, never their order. top-k keeps a fixed number of candidates,
// top-p as many as are needed for a given mass, so its number follows the shape of the distribution. The same code
// chooses the tokens in `generate`; see vitrine/sample/sampler.hpp.
//
//   temperature --logits 2,1,0              the textbook table
//   temperature --prompt "The sky is"       the logits of a real model
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "common/logit_source.hpp"
#include "common/plot.hpp"
#include "common/table.hpp"
#include "vitrine/sample/sampler.hpp"

using example::fixed, example::percent;
using vitrine::Sampler, vitrine::SamplingOptions, vitrine::SamplingStage, vitrine::Token;

// One row of what is shown: the distribution at a temperature, and what the two cuts leave of it.
struct Row {
  SamplingStage all, top_k, top_p;
  double temperature;
};

static SamplingStage last_stage(const example::LogitSource& input, const SamplingOptions& options) {
  return Sampler(options, std::int64_t(input.logits.size())).explain(input.logits).stages.back();
}

static Row look(const example::LogitSource& input, double temperature, int top_k, double top_p) {
  Row row{last_stage(input, {.temperature = temperature}),
          last_stage(input, {.temperature = temperature, .top_k = top_k}),
          last_stage(input, {.temperature = temperature, .top_p = top_p}), temperature};
  return row;
}

static example::json to_json(const SamplingStage& stage, std::size_t n) {
  example::json list = example::json::array();
  for (std::size_t i = 0; i < stage.kept.size() && i < n; ++i)
    list.push_back({{"id", stage.kept[i].id}, {"logit", stage.kept[i].logit}, {"p", stage.kept[i].probability}});
  return {{"n_kept", stage.n_after}, {"mass", 1 - stage.mass_removed}, {"candidates", list}};
}

// What the numbers shown bear out: equal logits have no order to keep, a share may look the same at both ends.
static std::string notice(const Row& cold, const Row& hot, const std::vector<float>& logits) {
  const std::string first = percent(cold.all.kept[0].probability), last = percent(hot.all.kept[0].probability);
  const bool one_row = cold.temperature == hot.temperature, greedy = cold.temperature == 0 || hot.temperature == 0;
  const bool equal = std::all_of(logits.begin(), logits.end(), [&](float logit) { return logit == logits[0]; });
  std::string text;
  if (logits.size() == 1) {
    text = "A single candidate has all of the mass at any temperature";
  } else if (equal && !greedy) {
    text = vitrine::concat("Equal logits stay equally probable at any temperature above 0, each of ", logits.size(),
                           " candidates has ", first);
  } else if (one_row || first == last) {
    text =
        vitrine::concat(one_row ? "" : vitrine::concat("From T=", cold.temperature, " to "), one_row ? "At " : "",
                        "T=", hot.temperature, " the most probable candidate ", one_row ? "has " : "stays at ", last);
  } else {
    text = vitrine::concat("From T=", cold.temperature, " to T=", hot.temperature,
                           " the most probable candidate goes from ", first, " to ", last,
                           equal ? "" : ", yet no candidate overtakes another");
  }
  const auto both = [&](std::int64_t a, std::int64_t b) {
    return one_row ? vitrine::concat(a) : vitrine::concat(a, " and ", b);
  };
  return vitrine::concat(text, ". top-k keeps ", both(cold.top_k.n_after, hot.top_k.n_after), " candidates, top-p ",
                         both(cold.top_p.n_after, hot.top_p.n_after),
                         ": the first counts candidates, the second counts mass.");
}

static void show(const example::Arguments& args) {
  const auto input = example::read_logits(args);
  const int top_k = args.get<int>("top_k", 1, 1 << 30);
  const double top_p = args.get<double>("top_p", 0, 1);
  const auto n_shown = std::size_t(args.get<int>("show", 1, 1000));
  std::vector<Row> rows;
  for (const double temperature : args.numbers("temperatures")) rows.push_back(look(input, temperature, top_k, top_p));

  if (args.json()) {
    example::json out = example::json::array();
    for (const auto& row : rows)
      out.push_back({{"temperature", row.temperature},
                     {"entropy_nats", row.all.entropy},
                     {"all", to_json(row.all, n_shown)},
                     {"top_k", to_json(row.top_k, n_shown)},
                     {"top_p", to_json(row.top_p, n_shown)}});
    return example::print_json({{"top_k", top_k}, {"top_p", top_p}, {"temperatures", out}});
  }

  std::vector<std::string> head = {"candidate", "logit"};
  for (const auto& row : rows) head.push_back(vitrine::concat("T=", row.temperature));
  example::Table table(head);
  // The order is the same at every temperature, but greedy rows keep a single candidate: take one that keeps the most.
  const auto kept_less = [](const Row& a, const Row& b) { return a.all.kept.size() < b.all.kept.size(); };
  const auto& order = std::max_element(rows.begin(), rows.end(), kept_less)->all.kept;
  for (std::size_t i = 0; i < order.size() && i < n_shown; ++i) {
    std::vector<std::string> cells = {example::shortened(input.label(order[i].id), 24), fixed(order[i].logit, 2)};
    for (const auto& row : rows) cells.push_back(i < row.all.kept.size() ? fixed(row.all.kept[i].probability, 4) : "0");
    table.row(cells);
  }
  table.print();

  for (const auto& row : rows) {
    std::cout << "\nT=" << row.temperature << "   entropy " << fixed(row.all.entropy, 3) << " nats: as uncertain as "
              << fixed(std::exp(row.all.entropy), 1) << " equally likely candidates\n";
    for (std::size_t i = 0; i < row.all.kept.size() && i < n_shown; ++i) {
      const auto& candidate = row.all.kept[i];
      const bool in_k = std::int64_t(i) < row.top_k.n_after, in_p = std::int64_t(i) < row.top_p.n_after;
      const std::string name = example::shortened(input.label(candidate.id), 16);
      std::cout << "  " << name << std::string(std::size_t(17 - example::text_width(name)), ' ') << (in_k ? "k" : "·")
                << (in_p ? "p " : "· ")
                << example::coloured(example::bar(candidate.probability, example::columns() - 32),
                                     in_k && in_p ? example::Colour::green : example::Colour::grey)
                << " " << percent(candidate.probability) << '\n';
    }
    std::cout << "  k: top-k " << top_k << " keeps " << row.top_k.n_after << ", " << percent(1 - row.top_k.mass_removed)
              << " of the mass;   p: top-p " << top_p << " keeps " << row.top_p.n_after << ", "
              << percent(1 - row.top_p.mass_removed) << '\n';
  }

  example::what_to_notice(notice(rows.front(), rows.back(), input.logits));
}

int main(int argc, char** argv) {
  const auto options = [](cxxopts::OptionAdder add) {
    example::add_logit_options(add, "2,1,0");
    add("temperatures", "temperatures to try; 0 is greedy", cxxopts::value<std::string>()->default_value("0.5,1,2"),
        "LIST");
    add("top_k", "how many candidates top-k keeps", cxxopts::value<int>()->default_value("2"), "N");
    add("top_p", "how much mass top-p keeps", cxxopts::value<double>()->default_value("0.9"), "P");
    add("show", "at most so many candidates are listed", cxxopts::value<int>()->default_value("10"), "N");
  };
  return example::run(argc, argv,
                      {"temperature", "What temperature, top-k and top-p do to a distribution", options, show});
}
