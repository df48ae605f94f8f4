// The reference's distributions (Hugging Face transformers, float64) for every case.
#include <catch2/catch.hpp>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "vitrine/sample/sampler.hpp"

using namespace vitrine;
using nlohmann::json;

namespace {

float number(const json& value) {
  if (value.is_string()) {
    REQUIRE(value == "-inf");
    return -std::numeric_limits<float>::infinity();
  }
  return float(value.get<double>());
}

SamplingStep step_of(const json& step) {
  const std::string op = step["op"];
  if (op == "frequency_presence") return PresenceFrequency{step["presence"], step["frequency"]};
  const double value = step["value"];
  if (op == "repetition_penalty") return RepetitionPenalty{value};
  if (op == "no_repeat_ngram") return NoRepeatNgram{std::int64_t(value)};
  if (op == "temperature") return Temperature{value};
  if (op == "top_k") return TopK{std::int64_t(value)};
  if (op == "top_p") return TopP{value};
  if (op == "min_p") return MinP{value};
  if (op == "typical") return Typical{value};
  if (op == "epsilon") return EpsilonCutoff{value};
  if (op == "eta") return EtaCutoff{value};
  REQUIRE(op == "top_h");
  return TopH{value};
}

}  // namespace

TEST_CASE("distributions are the reference's") {
  std::ifstream file(VITRINE_TEST_DATA "/samplers/cases.json");
  REQUIRE(file);
  int checked = 0;
  const json data = json::parse(file);
  for (const auto& test : data["cases"]) {
    SamplingChain chain;
    for (const auto& step : test["steps"]) chain.push_back(step_of(step));
    ++checked;
    INFO(test["name"]);
    std::vector<float> logits;
    for (const auto& value : test["logits"]) logits.push_back(number(value));
    const auto history = test["prev_ids"].get<std::vector<Token>>();
    Sampler sampler(chain, 1, std::int64_t(logits.size()));
    auto stage = sampler.explain(logits, history).stages.back();
    while (stage.kept.back().probability == 0) stage.kept.pop_back();  // the reference does not list these

    // At a tie across the k-th place we keep exactly k, lowest ids first.
    const char* prefix = test.contains("alt_kept_ids") ? "alt_kept_" : "kept_";
    const auto ids = test[std::string(prefix) + "ids"].get<std::vector<Token>>();
    const auto probabilities = test[std::string(prefix) + "probs"].get<std::vector<double>>();
    std::map<Token, double> expected;
    for (std::size_t i = 0; i < ids.size(); ++i) expected[ids[i]] = probabilities[i];
    REQUIRE(stage.kept.size() == expected.size());
    for (const auto& candidate : stage.kept) {
      REQUIRE(expected.count(candidate.id) == 1);
      CHECK(candidate.probability == Approx(expected[candidate.id]).margin(1e-6).epsilon(0));
    }
    CHECK(stage.kept.front().id == test["argmax"].get<Token>());

    chain.push_back(Temperature{0});
    Sampler greedy(chain, {}, std::int64_t(logits.size()));
    CHECK(greedy.sample(logits, history, 0) == test["argmax"].get<Token>());
  }
  CHECK(checked == 65);
}
