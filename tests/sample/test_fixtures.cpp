// The reference's distributions (Hugging Face transformers, float64) for every case made of our steps.
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

}  // namespace

TEST_CASE("distributions are the reference's") {
  const std::map<std::string, SamplingOp> ours = {{"repetition_penalty", SamplingOp::repetition_penalty},
                                                  {"temperature", SamplingOp::temperature},
                                                  {"top_k", SamplingOp::top_k},
                                                  {"top_p", SamplingOp::top_p},
                                                  {"min_p", SamplingOp::min_p}};
  std::ifstream file(VITRINE_TEST_DATA "/samplers/cases.json");
  REQUIRE(file);
  int checked = 0;
  const json data = json::parse(file);
  for (const auto& test : data["cases"]) {
    std::vector<SamplingStep> chain;
    bool known = true;
    for (const auto& step : test["steps"]) {
      const auto op = ours.find(step["op"]);
      if (op == ours.end()) {
        known = false;
        break;
      }
      chain.push_back({op->second, step["value"].get<double>()});
    }
    if (!known) continue;
    ++checked;
    INFO(test["name"]);
    std::vector<float> logits;
    for (const auto& value : test["logits"]) logits.push_back(number(value));
    const auto history = test["prev_ids"].get<std::vector<Token>>();
    Sampler sampler(chain, 1, std::int64_t(logits.size()));
    auto stage = sampler.distribution(logits, history).back();
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

    chain.push_back({SamplingOp::temperature, 0});
    Sampler greedy(chain, {}, std::int64_t(logits.size()));
    CHECK(greedy.is_greedy());
    CHECK(greedy.sample(logits, history, 0) == test["argmax"].get<Token>());
  }
  CHECK(checked == 44);
}
