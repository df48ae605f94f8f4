// What explain() tells, log-probabilities, presets; and that nothing depends on the kernels.
#include <catch2/catch.hpp>
#include <string>

#include "sample/naive_steps.hpp"
#include "sample/sampling_tools.hpp"
#include "vitrine/simd/dispatch.hpp"

using namespace vitrine;
using namespace sampling_tools;

TEST_CASE("explain says what each step did and where the draw fell") {
  const auto logits = log_of({0.4, 0.3, 0.2, 0.1});
  Sampler sampler({.temperature = 1, .top_k = 3, .top_p = 0.7, .logit_bias = {{3, -inf}}, .seed = 4}, 4);
  for (std::int64_t position = 0; position < 200; ++position) {
    const auto told = sampler.explain(logits, {}, position);
    REQUIRE(told.stages.size() == 4);
    const auto &raw = told.stages[0], &bias = told.stages[1], &top_k = told.stages[2], &top_p = told.stages[3];
    CHECK(raw.step == "logits");
    CHECK(raw.n_before == 4);
    CHECK(raw.n_after == 4);
    CHECK(raw.entropy == Approx(1.2798542).margin(1e-6));
    CHECK(bias.step == "logit_bias(1 token)");
    CHECK(bias.n_before == 4);
    CHECK(bias.n_after == 3);
    CHECK(bias.mass_removed == Approx(0.1).margin(1e-6));
    CHECK(top_k.n_after == 3);
    CHECK(top_k.mass_removed == 0);
    CHECK(top_p.step == "top_p(0.7)");
    CHECK(top_p.n_before == 3);
    CHECK(top_p.n_after == 2);
    CHECK(top_p.mass_removed == Approx(0.2 / 0.9).margin(1e-6));
    CHECK(top_p.kept[0].probability == Approx(4.0 / 7).margin(1e-6));
    CHECK(top_p.entropy == Approx(0.6829081).margin(1e-6));

    REQUIRE(told.draw.has_value());
    CHECK(*told.draw == random_uniform(4, std::uint64_t(position)));
    CHECK(told.mass_before <= *told.draw);
    CHECK(*told.draw < told.mass_before + told.probability);
    CHECK(told.token == top_p.kept[std::size_t(told.place)].id);
    CHECK(told.probability == top_p.kept[std::size_t(told.place)].probability);
    CHECK(sampler.sample(logits, {}, position) == told.token);
  }
  // Lists are cut, numbers are not; where one candidate is left nothing is drawn.
  const auto first = sampler.explain(logits, {}, 0, 1);
  CHECK(first.stages[0].kept.size() == 1);
  CHECK(first.stages[3].n_after == 2);
  Sampler greedy({.temperature = 0, .top_k = 3}, 4);
  const auto told = greedy.explain(logits);
  CHECK(told.token == 0);
  CHECK_FALSE(told.draw.has_value());
  CHECK(told.stages[1].mass_removed == Approx(0.6).margin(1e-6));
  CHECK(told.probability == 1);
  Sampler xtc({.xtc_probability = 1, .xtc_threshold = 0.15}, 4);
  CHECK(xtc.explain(logits).stages[1].mass_removed == Approx(0.7).margin(1e-6));
}

TEST_CASE("banned end tokens are a stage like any other, and have no processed probability") {
  const auto logits = log_of({0.4, 0.3, 0.2, 0.1});  // the end tokens are the likeliest and the third
  Sampler sampler({.top_p = 0.7, .ignore_end = true, .end_tokens = {0, 2}, .seed = 4}, 4);
  const auto told = sampler.explain(logits);
  REQUIRE(told.stages.size() == 3);
  const auto& ban = told.stages[1];
  CHECK(ban.step == "ignore_end(2 tokens)");
  CHECK(ban.n_before == 4);
  CHECK(ban.n_after == 2);
  CHECK(ban.mass_removed == Approx(0.6).margin(1e-6));
  CHECK(ban.kept[0].id == 1);
  CHECK(ban.kept[0].probability == Approx(0.75).margin(1e-6));
  CHECK(describe(sampler.chain()) == "ignore_end(2 tokens) -> top_p(0.7)");
  CHECK(sampler.sample(logits, {}, 0) == 1);
  const auto end = sampler.log_probabilities(logits, 0, 4);
  CHECK(end.raw.of_token == Approx(std::log(0.4)).margin(1e-6));
  CHECK(end.raw.top[0].id == 0);
  CHECK(end.processed.of_token == -infinite);
  REQUIRE(end.processed.top.size() == 1);
  CHECK(end.processed.top[0].id == 1);
}

namespace {

std::int64_t n_exp, n_mass, n_moment, n_scan;

// The best kernels, counting what they are asked.
KernelTable counting() {
  static KernelTable best = kernels();
  auto table = best;
  table.elementwise.exp = [](const float* x, float* y, std::int64_t n) {
    n_exp += n;
    best.elementwise.exp(x, y, n);
  };
  table.sampling.scan = [](const float* x, std::int64_t n, float* block_max) {
    ++n_scan;
    return best.sampling.scan(x, n, block_max);
  };
  table.sampling.mass = [](const float* x, std::int64_t n, float largest, float temperature) {
    ++n_mass;
    return best.sampling.mass(x, n, largest, temperature);
  };
  table.sampling.moment = [](const float* x, std::int64_t n, float largest, float temperature) {
    ++n_moment;
    return best.sampling.moment(x, n, largest, temperature);
  };
  return table;
}

}  // namespace

TEST_CASE("what explain needs costs nothing where it is not asked for") {
  const auto logits = wavy_logits(30000);
  const auto table = counting();
  Sampler sampler({.temperature = 0.7, .top_k = 40, .top_p = 0.9, .seed = 3}, size(logits), table);
  const auto told = sampler.explain(logits);
  CHECK(n_moment == 2);  // entropies of the whole vocabulary, before and after temperature
  n_exp = n_mass = n_moment = n_scan = 0;
  CHECK(sampler.sample(logits, {}, 0) == told.token);
  CHECK(n_scan == 1);  // one pass over the vocabulary
  CHECK(n_exp + n_mass + n_moment == 0);
}

TEST_CASE("log-probabilities, raw and processed, of the chosen and the most probable") {
  const std::int64_t n = 3000;
  const auto logits = wavy_logits(n, 5);
  const naive::Logits z(logits.begin(), logits.end());
  const auto raw = naive::probabilities(z);
  const auto order = naive::order(z);
  Sampler sampler({.temperature = 0.5, .top_k = 3, .logit_bias = {{order[0], -inf}}, .seed = 6}, n);
  auto cut = z;
  cut[std::size_t(order[0])] = naive::gone;
  naive::temperature(cut, 0.5);
  naive::top_k(cut, 3);
  const auto processed = naive::probabilities(cut);
  for (std::int64_t position = 0; position < 20; ++position) {
    const Token token = sampler.sample(logits, {}, position);
    const auto both = sampler.log_probabilities(logits, token, 5);
    CHECK(both.raw.of_token == Approx(std::log(raw[std::size_t(token)])).margin(1e-6));
    CHECK(both.processed.of_token == Approx(std::log(processed[std::size_t(token)])).margin(1e-6));
    CHECK(order[std::size_t(both.raw.rank)] == token);
    CHECK(both.processed.rank == both.raw.rank - 1);
    REQUIRE(both.raw.top.size() == 5);
    REQUIRE(both.processed.top.size() == 3);  // no more are left
    for (std::size_t i = 0; i < 5; ++i) {
      CHECK(both.raw.top[i].id == order[i]);
      CHECK(both.raw.top[i].log_probability == Approx(std::log(raw[std::size_t(order[i])])).margin(1e-6));
    }
    for (std::size_t i = 0; i < 3; ++i) CHECK(both.processed.top[i].id == order[i + 1]);
  }
  const auto dropped = sampler.log_probabilities(logits, order[0], 0);
  CHECK(dropped.raw.of_token == Approx(std::log(raw[std::size_t(order[0])])).margin(1e-6));
  CHECK(dropped.raw.rank == 0);
  CHECK(dropped.processed.of_token == -infinite);
  CHECK(dropped.raw.top.empty());

  Sampler greedy({.temperature = 0}, n);
  CHECK(greedy.sample(logits, {}, 0) == order[0]);
  const auto sure = greedy.log_probabilities(logits, order[0], 4);
  CHECK(sure.processed.of_token == 0);
  CHECK(sure.processed.top.size() == 1);
  CHECK(sure.raw.of_token < -1);
  check_error(ErrorKind::bad_argument, "token: expected 0 to 2999, got 3000",
              [&] { greedy.log_probabilities(logits, Token(n), 1); });
  check_error(ErrorKind::bad_argument, "n_top", [&] { greedy.log_probabilities(logits, 1, -1); });
  // Far below what a probability can say, a log-probability still does.
  const std::vector<float> far = {0, -2000};
  Sampler two({.temperature = 1}, 2);
  check_error(ErrorKind::bad_argument, "expected after sample()", [&] { two.log_probabilities(far, 1, 0); });
  two.sample(far, {}, 0);
  CHECK(two.log_probabilities(far, 1, 0).raw.of_token == -2000);
}

TEST_CASE("presets have the order and the values of the program they name") {
  SamplingOptions all{.temperature = 0.9,
                      .top_k = 10,
                      .top_p = 0.9,
                      .min_p = 0.1,
                      .typical_p = 0.8,
                      .top_n_sigma = 2,
                      .epsilon_cutoff = 0.01,
                      .eta_cutoff = 0.02,
                      .xtc_probability = 0.5,
                      .repetition_penalty = 1.1,
                      .presence_penalty = 0.5,
                      .dry_multiplier = 0.8};
  CHECK(describe(sampling_chain(all)) ==
        "repetition_penalty(1.1) -> presence_frequency(0.5, 0) -> dry(0.8, 1.75, 2) -> temperature(0.9) -> top_k(10) "
        "-> top_p(0.9) -> min_p(0.1) -> typical_p(0.8) -> epsilon_cutoff(0.01) -> eta_cutoff(0.02) -> top_n_sigma(2) "
        "-> xtc(0.5, 0.1)");
  all.order = SamplingOrder::llama_cpp;
  CHECK(describe(sampling_chain(all)) ==
        "repetition_penalty(1.1) -> presence_frequency(0.5, 0) -> dry(0.8, 1.75, 2) -> top_n_sigma(2) -> top_k(10) -> "
        "typical_p(0.8) -> top_p(0.9) -> min_p(0.1) -> epsilon_cutoff(0.01) -> eta_cutoff(0.02) -> xtc(0.5, 0.1) -> "
        "temperature(0.9)");
  all.order = SamplingOrder::openai;
  CHECK(describe(sampling_chain(all)).starts_with("presence_frequency(0.5, 0) -> repetition_penalty(1.1) -> "));

  CHECK(describe(sampling_chain(sampling_preset("huggingface"))) == "top_k(50)");
  CHECK(describe(sampling_chain(sampling_preset("llama.cpp"))) ==
        "top_k(40) -> top_p(0.95) -> min_p(0.05) -> temperature(0.8)");
  CHECK(describe(sampling_chain(sampling_preset("openai"))) == "none");
  for (const char* name : {"huggingface", "llama.cpp", "openai"})
    CHECK(sampling_order_name(sampling_preset(name).order) == std::string(name));
  check_error(ErrorKind::bad_argument, "preset: expected huggingface, llama.cpp or openai, got 'ollama'",
              [] { sampling_preset("ollama"); });
  // The same parameters keep other candidates: the textbook case of the two orders.
  const std::vector<float> logits = {3, 2, 1};
  CHECK(kept({.temperature = 0.5, .top_p = 0.8}, logits) == std::vector<Token>{0});
  CHECK(kept({.temperature = 0.5, .top_p = 0.8, .order = SamplingOrder::llama_cpp}, logits) ==
        std::vector<Token>{0, 1});
}

TEST_CASE("every instruction set draws the same tokens and tells the same") {
  const std::int64_t n = 9000;
  const std::vector<Token> history = {4, 8, 15, 16, 23, 42, 4, 8, 15};
  const std::vector<SamplingOptions> all = {
      {.seed = 1},
      {.temperature = 3, .top_p = 0.97, .seed = 2},
      {.temperature = 1.2, .dynatemp_range = 0.4, .typical_p = 0.9, .repetition_penalty = 1.3, .seed = 3},
      {.temperature = 2,
       .top_n_sigma = 1,
       .eta_cutoff = 1e-3,
       .xtc_probability = 0.5,
       .xtc_threshold = 1e-3,
       .seed = 4},
      {.temperature = 1.5, .mirostat_tau = 6, .dry_multiplier = 1, .seed = 5}};
  for (const auto& options : all) {
    std::vector<std::vector<Token>> runs;
    std::vector<double> entropies;
    for (const Isa isa : available_isas()) {
      Sampler sampler(options, n, kernels(isa));
      std::vector<Token> tokens;
      for (std::int64_t position = 0; position < 60; ++position)
        tokens.push_back(sampler.sample(wavy_logits(n, std::uint64_t(position)), history, position));
      runs.push_back(tokens);
      const auto logits = wavy_logits(n);
      entropies.push_back(sampler.explain(logits, history, 0, 1).stages.back().entropy);
      CHECK(runs.back() == runs.front());
      CHECK(entropies.back() == entropies.front());
    }
  }
}
