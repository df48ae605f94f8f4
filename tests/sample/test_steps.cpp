// Every step against the same step as a textbook writes it, on random logits of many sizes, and its boundaries.
#include <catch2/catch.hpp>
#include <functional>

#include "sample/naive_steps.hpp"
#include "sample/sampling_tools.hpp"

using namespace vitrine;
using namespace sampling_tools;

namespace {

std::vector<Token> any_history(std::int64_t n, std::int64_t n_vocab, std::uint64_t seed) {
  std::vector<Token> history;
  for (std::int64_t i = 0; i < n; ++i)
    history.push_back(Token(random_uniform(seed, std::uint64_t(i)) * double(n_vocab)));
  return history;
}

// What the chain leaves, and with which probabilities, is what the textbook says.
void check_same(const SamplingChain& chain, const std::vector<float>& logits, const naive::Logits& expected,
                std::span<const Token> history = {}) {
  Sampler sampler(chain, 1, size(logits));
  const auto explanation = sampler.explain(logits, history);
  const auto& kept = explanation.stages.back().kept;
  const auto order = naive::order(expected);
  INFO(describe(chain) << ", " << logits.size() << " tokens");
  REQUIRE(kept.size() == order.size());
  const auto p = naive::probabilities(expected);
  double worst = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i].id != order[i]) REQUIRE(p[std::size_t(kept[i].id)] == Approx(p[std::size_t(order[i])]).epsilon(1e-9));
    worst = std::max(worst, std::fabs(kept[i].probability - p[std::size_t(kept[i].id)]));
  }
  CHECK(worst < 1e-6);
  CHECK(explanation.stages.back().entropy == Approx(naive::entropy(expected)).margin(2e-5));
}

struct StepCase {
  SamplingStep step;
  std::function<void(naive::Logits&)> naive;
};

const std::vector<StepCase>& step_cases() {
  using naive::Logits;
  static const std::vector<StepCase> all = {
      {Temperature{0.7}, [](Logits& z) { naive::temperature(z, 0.7); }},
      {DynamicTemperature{1.1, 0.6, 0.8}, [](Logits& z) { naive::dynamic_temperature(z, 1.1, 0.6, 0.8); }},
      {DynamicTemperature{0.5, 0.9, 1}, [](Logits& z) { naive::dynamic_temperature(z, 0.5, 0.9, 1); }},
      {TopK{9}, [](Logits& z) { naive::top_k(z, 9); }},
      {TopP{0.83}, [](Logits& z) { naive::top_p(z, 0.83); }},
      {MinP{0.04}, [](Logits& z) { naive::min_p(z, 0.04); }},
      {Typical{0.3}, [](Logits& z) { naive::typical(z, 0.3); }},
      {Typical{0.9}, [](Logits& z) { naive::typical(z, 0.9); }},
      {TopNSigma{1.2}, [](Logits& z) { naive::top_n_sigma(z, 1.2); }},
      {EpsilonCutoff{0.003}, [](Logits& z) { naive::epsilon(z, 0.003); }},
      {EtaCutoff{0.01}, [](Logits& z) { naive::eta(z, 0.01); }},
      {Xtc{1, 0.1}, [](Logits& z) { naive::xtc(z, 0.1); }},
      {Xtc{1, 0.01}, [](Logits& z) { naive::xtc(z, 0.01); }},
  };
  return all;
}

}  // namespace

TEST_CASE("each step, and each pair of steps, does what its definition says") {
  for (const std::int64_t n : {2, 5, 17, 100, 1000}) {
    const auto logits = wavy_logits(n, std::uint64_t(n));
    for (const auto& first : step_cases()) {
      naive::Logits once(logits.begin(), logits.end());
      first.naive(once);
      check_same({first.step}, logits, once);
      for (const auto& second : step_cases()) {
        if (naive::order(once).size() == 1) continue;
        auto twice = once;
        second.naive(twice);
        check_same({first.step, second.step}, logits, twice);
      }
    }
  }
}

TEST_CASE("steps over a large vocabulary, where sums run in lanes") {
  const auto logits = wavy_logits(20000, 3);
  for (const auto& test : step_cases()) {
    naive::Logits expected(logits.begin(), logits.end());
    test.naive(expected);
    check_same({test.step}, logits, expected);
  }
}

TEST_CASE("typical keeps equals at the border, on either side") {
  // Probabilities 1/2, 1/8 four times: entropy 2 bits; the four lie 1 bit above it, the first 1 bit below.
  const auto logits = log_of({0.125, 0.5, 0.125, 0.125, 0.125});
  CHECK(kept({.typical_p = 0.55}, log_of({0.4, 0.3, 0.3})).size() == 2);
  CHECK(kept({.typical_p = 0}, log_of({0.4, 0.3, 0.3})).size() == 2);
  CHECK(kept({.typical_p = 1}, logits).size() == 5);
  CHECK(kept({.typical_p = 0.9}, {5}) == std::vector<Token>{0});
}

TEST_CASE("XTC drops the likely ones but the least of them, as often as its probability says") {
  const auto logits = log_of({0.3, 0.4, 0.2, 0.06, 0.04});
  CHECK(kept({.xtc_probability = 1, .xtc_threshold = 0.1}, logits) == std::vector<Token>{2, 3, 4});
  CHECK(kept({.xtc_probability = 1, .xtc_threshold = 0.35}, logits).size() == 5);  // one is likely: it stays
  CHECK(kept({.xtc_probability = 1, .xtc_threshold = 0}, logits) == std::vector<Token>{4});
  Sampler sampler({.xtc_probability = 0.3, .xtc_threshold = 0.1, .seed = 5}, 5);
  int n_struck = 0;
  for (std::int64_t position = 0; position < 10000; ++position)
    n_struck += sampler.explain(logits, {}, position).stages.back().n_after == 3;
  CHECK(std::abs(n_struck - 3000) < 4 * std::sqrt(10000 * 0.3 * 0.7));
  // Its number is another one than the token's: what is drawn stays independent of whether it struck.
  CHECK(random_uniform(5, 7, random_stream::xtc) != random_uniform(5, 7, random_stream::token));
  // The first candidate is gone: greedy takes the first one left.
  Sampler greedy({Xtc{1, 0.1}, Temperature{0}}, 1, 5);
  CHECK_FALSE(greedy.is_greedy());
  CHECK(greedy.sample(logits, {}, 0) == 2);
  // A low temperature afterwards weighs against the first one left, not against one that is gone.
  Sampler cold({Xtc{1, 0.1}, Temperature{1e-4}}, 1, 5);
  CHECK(cold.explain(logits).stages.back().kept[0].probability == Approx(1));
}

TEST_CASE("dynamic temperature is cold where the model is certain and hot where it is not") {
  const auto temperature_of = [](const std::vector<double>& p) {
    Sampler sampler({.temperature = 1, .dynatemp_range = 0.5}, std::int64_t(p.size()));
    return sampler.explain(log_of(p)).stages.back().temperature;
  };
  CHECK(temperature_of({0.25, 0.25, 0.25, 0.25}) == Approx(1.5));
  CHECK(temperature_of({0.9999999, 5e-8, 5e-8}) == Approx(0.5).margin(1e-4));
  CHECK(temperature_of({0.5, 0.25, 0.125, 0.125}) == Approx(0.5 + 1.75 / 2));
  // Down to 0, which is greedy, without an entropy.
  CHECK(kept({.temperature = 1, .dynatemp_range = 1}, {200, 0, 0}) == std::vector<Token>{0});
}

TEST_CASE("mirostat 2 follows its definition from token to token, and explain changes nothing") {
  constexpr double tau = 3, eta = 0.2;
  const std::int64_t n = 500;
  Sampler sampler({.mirostat_tau = tau, .mirostat_eta = eta, .seed = 21}, n);
  double surprise = 0;
  constexpr std::int64_t n_tokens = 3000;
  for (int run = 0; run < 2; ++run) {
    sampler.begin(0);
    double mu = 2 * tau;
    surprise = 0;
    for (std::int64_t position = 0; position < n_tokens; ++position) {
      const auto logits = wavy_logits(n, std::uint64_t(position % 40));
      naive::Logits z(logits.begin(), logits.end());
      const auto before = naive::probabilities(z);
      naive::keep_if(z, [&](std::size_t i, double) { return -std::log2(before[i]) <= mu; });
      const auto p = naive::probabilities(z);
      const double u = random_uniform(21, std::uint64_t(position));
      double sum = 0;
      Token expected = 0;
      for (const Token id : naive::order(z)) {
        expected = id;
        if ((sum += p[std::size_t(id)]) > u) break;
      }
      if (position % 100 == 0) REQUIRE(sampler.explain(logits, {}, position).token == expected);
      REQUIRE(sampler.sample(logits, {}, position) == expected);
      const double observed = -std::log2(p[std::size_t(expected)]);
      surprise += observed;
      mu -= eta * (observed - tau);
    }
  }
  CHECK(surprise / n_tokens == Approx(tau).epsilon(0.02));  // what it is for
}

TEST_CASE("DRY is its author's, whatever repeats") {
  const std::int64_t n_vocab = 6;
  const auto logits = wavy_logits(n_vocab, 8);
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    auto history = any_history(std::int64_t(1 + seed % 50), seed % 3 == 0 ? 2 : n_vocab, seed);
    if (seed % 5 == 0) history.insert(history.end(), history.begin(), history.end());
    for (const std::vector<Token>& breakers : {std::vector<Token>{}, std::vector<Token>{1}, std::vector<Token>{0, 4}})
      for (const std::int64_t allowed : {1, 2, 4})
        for (const std::int64_t window : {0, 7}) {
          naive::Logits expected(logits.begin(), logits.end());
          const auto seen = window == 0
                                ? std::span<const Token>(history)
                                : std::span<const Token>(history).last(std::min<std::size_t>(7, history.size()));
          naive::dry(expected, seen, 0.8, 1.75, allowed, breakers);
          check_same({Dry{0.8, 1.75, allowed, window, breakers}}, logits, expected, history);
        }
  }
  // However long a repetition grows, something can still be chosen.
  const std::vector<Token> same(3000, 2);
  Sampler sampler({.dry_multiplier = 0.8}, n_vocab);
  const auto stage = sampler.explain(logits, same).stages.back();
  CHECK(stage.kept.back().id == 2);
  CHECK(stage.kept.back().logit == -std::numeric_limits<float>::max());
  CHECK(Sampler({.dry_multiplier = 0.8}, 3).sample(std::vector<float>{-inf, -inf, 1}, same, 3000) == 2);
}

TEST_CASE("presence and frequency count generated tokens only") {
  const std::vector<float> logits = {1, 1, 1, 1};
  const std::vector<Token> history = {0, 0, 1, 2, 1, 1};
  Sampler sampler({.presence_penalty = 0.5, .frequency_penalty = 0.25}, 4);
  sampler.begin(3);
  auto last = sampler.explain(logits, history).stages.back().kept;
  std::sort(last.begin(), last.end(), [](auto& a, auto& b) { return a.id < b.id; });
  CHECK(last[0].logit == 1);
  CHECK(last[1].logit == 0);
  CHECK(last[2].logit == 0.25f);
  CHECK(last[3].logit == 1);
}

TEST_CASE("biases, bans, forced tokens and a minimum hold in greedy decoding, too") {
  const std::vector<float> logits = {5, 1, 0};
  const auto choice = [&](SamplingOptions options, std::vector<Token> history = {}, std::int64_t n_prompt = 0) {
    options.temperature = 0;
    Sampler sampler(options, 3);
    sampler.begin(n_prompt);
    const Token token = sampler.sample(logits, history, std::int64_t(history.size()));
    CHECK(sampler.explain(logits, history).token == token);
    return token;
  };
  CHECK(choice({}) == 0);
  CHECK(choice({.logit_bias = {{0, -100}}}) == 1);
  CHECK(choice({.logit_bias = {{2, 100}}}) == 2);
  CHECK(choice({.logit_bias = {{0, -inf}}}) == 1);
  CHECK(choice({.suppress_tokens = {0, 1}}) == 2);
  CHECK(choice({.bad_words = {{2, 0}}}, {1}) == 0);
  CHECK(choice({.bad_words = {{2, 0}}}, {2}) == 1);
  CHECK(choice({.bad_words = {{1, 2, 0}}}, {2}) == 0);
  CHECK(choice({.forced_tokens = {{0, 2}, {2, 1}}}, {1, 1}, 2) == 2);
  CHECK(choice({.forced_tokens = {{0, 2}, {2, 1}}}, {1, 1, 2}, 2) == 0);
  CHECK(choice({.forced_tokens = {{0, 2}, {2, 1}}}, {1, 1, 2, 0}, 2) == 1);
  // As in generate() of Hugging Face, forcing comes behind biases, bad words and the minimum, and overrules them.
  CHECK(choice({.bad_words = {{2}}, .forced_tokens = {{0, 2}}}) == 2);
  CHECK(choice({.logit_bias = {{2, -inf}}, .forced_tokens = {{0, 2}}}) == 2);
  CHECK(choice({.forced_tokens = {{1, 2}}, .min_new_tokens = 5, .end_tokens = {2}}, {1, 1, 1}, 2) == 2);
  CHECK(Sampler({.forced_tokens = {{0, 2}}, .min_new_tokens = 5, .end_tokens = {2}}, 3)
            .explain(std::vector<float>{3, 2, 1}, {}, 0, 3)
            .stages.back()
            .step == "forced(1 token, over any ban)");
  CHECK(choice({.min_new_tokens = 2, .end_tokens = {0}}, {1, 1, 1}, 2) == 1);
  CHECK(choice({.min_new_tokens = 2, .end_tokens = {0}}, {1, 1, 1, 1}, 2) == 0);
  CHECK(choice({.ignore_end = true, .end_tokens = {0}}, {1, 1, 1, 1}, 2) == 1);
  CHECK(choice({.ignore_end = true, .end_tokens = {0, 1}}) == 2);
  CHECK(choice({.logit_bias = {{0, 100}}, .ignore_end = true, .end_tokens = {0}}) == 1);
  CHECK(choice({.forced_tokens = {{0, 2}}, .ignore_end = true, .end_tokens = {0}}) == 2);
  CHECK(choice({.end_tokens = {0}}) == 0);
  CHECK(choice({.ignore_end = true}) == 0);
  CHECK(choice({.no_repeat_ngram_size = 1}, {0}) == 1);
  CHECK(choice({.no_repeat_ngram_size = 2}, {0}) == 0);
  CHECK(choice({.no_repeat_ngram_size = 2}, {0, 0}) == 1);
  // Nothing left to choose is a failure that says so.
  check_error(ErrorKind::numeric_failure, "no admissible token", [&] { choice({.suppress_tokens = {0, 1, 2}}); });
  check_error(ErrorKind::numeric_failure, "no admissible token", [&] {
    choice({.no_repeat_ngram_size = 1}, {0, 1, 2});
  });
  check_error(ErrorKind::numeric_failure, "no admissible token", [&] {
    choice({.ignore_end = true, .end_tokens = {0, 1, 2}});
  });
  // A ban holds for +inf, a bias does not hide a NaN.
  Sampler banned({.logit_bias = {{1, -inf}}}, 3);
  CHECK(banned.sample(std::vector<float>{-inf, inf, 0}, {}, 0) == 2);
  Sampler forced({.forced_tokens = {{0, 1}}}, 3);
  check_error(ErrorKind::numeric_failure, "NaN", [&] { forced.sample(std::vector<float>{0, 0, nan_}, {}, 0); });
  check_error(ErrorKind::numeric_failure, "logit_bias(1 token) takes the logit", [] {
    Sampler({.logit_bias = {{0, 3e38f}}}, 2).sample(std::vector<float>{3e38f, 0}, {}, 0);
  });
}

TEST_CASE("ids and numbers of the steps that are out of range are named") {
  const auto refused = [](SamplingOptions options, const std::string& words) {
    check_error(ErrorKind::bad_argument, words, [&] { Sampler(options, 4); });
  };
  refused({.logit_bias = {{4, 1}}}, "logit_bias[0]: expected a token from 0 to 3, got 4");
  refused({.logit_bias = {{0, 1}, {-1, 1}}}, "logit_bias[1]: expected a token from 0 to 3, got -1");
  refused({.logit_bias = {{0, 1}, {1, 1}, {0, 2}}}, "logit_bias: expected each token once, got token 0 twice");
  refused({.logit_bias = {{0, nan_}}}, "logit_bias: expected a finite bias or -inf for token 0, got nan");
  refused({.logit_bias = {{0, inf}}}, "logit_bias");
  refused({.suppress_tokens = {9}}, "suppress_tokens[0]: expected a token from 0 to 3, got 9");
  refused({.bad_words = {{1}, {}}}, "bad_words[1]: expected at least 1 token");
  refused({.bad_words = {{1, 4}}}, "bad_words[0][1]: expected a token from 0 to 3, got 4");
  check_error(ErrorKind::bad_argument, "banned[0][0]: expected a token from 0 to 3",
              [&] { Sampler(SamplingChain{BannedTokens{{{4}}}}, 0, 4); });
  refused({.forced_tokens = {{0, 4}}}, "forced[0]");
  refused({.forced_tokens = {{-1, 0}}}, "forced: index");
  refused({.forced_tokens = {{1, 0}, {1, 2}}}, "one token for each index, got two for 1");
  refused({.min_new_tokens = 1, .end_tokens = {7}}, "end_tokens[0]");
  refused({.min_new_tokens = -1}, "min_new_tokens");
  refused({.ignore_end = true, .end_tokens = {-1}}, "end_tokens[0]");
  refused({.forced_tokens = {{0, 1}, {4, 2}}, .ignore_end = true, .end_tokens = {3, 2}},
          "forced: expected no end token, since ignore_end bans them, got token 2 for index 4");
  refused({.suppress_tokens = {3, 2}, .forced_tokens = {{0, 1}, {4, 2}}},
          "forced: expected no token of suppress_tokens, got token 2 for index 4");
  refused({.no_repeat_ngram_size = -2}, "no_repeat_ngram_size");
  refused({.dry_multiplier = 1, .dry_breakers = {4}}, "dry_breakers[0]");
  refused({.dry_multiplier = 1, .dry_breakers = {2, 1}}, "dry_breakers: expected ascending");
  refused({.dry_base = 0.5}, "dry_base: expected 1 to");  // though it is off
  refused({.dry_allowed_length = 0}, "dry_allowed_length");
  refused({.dry_window = -1}, "dry_window");
  refused({.order = SamplingOrder(7)}, "SamplingOrder(7)");
  for (const double value : {-0.1, 2.5, not_a_number}) {
    refused({.typical_p = value}, "typical_p");
    refused({.epsilon_cutoff = value}, "epsilon_cutoff");
    refused({.eta_cutoff = value}, "eta_cutoff");
    refused({.top_h = value}, "top_h");
    refused({.xtc_probability = value}, "xtc_probability");
    refused({.xtc_threshold = value}, "xtc_threshold");
    refused({.mirostat_eta = value}, "mirostat_eta");
  }
  for (const double value : {-1.0, infinite, not_a_number}) {
    refused({.dynatemp_range = value}, "dynatemp_range");
    refused({.dynatemp_exponent = value}, "dynatemp_exponent");
    refused({.top_n_sigma = value}, "top_n_sigma");
    refused({.mirostat_tau = value}, "mirostat_tau");
    refused({.dry_multiplier = value}, "dry_multiplier");
  }
  for (const double value : {100.0, -2.1, not_a_number}) {
    refused({.presence_penalty = value}, "presence_penalty: expected -2 to 2");
    refused({.frequency_penalty = value}, "frequency_penalty: expected -2 to 2");
  }
}
