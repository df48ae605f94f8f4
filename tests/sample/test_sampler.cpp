// Boundary values and failures of the choice of a token.
#include <xmmintrin.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cfenv>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "sample/sampling_tools.hpp"
#include "vitrine/simd/dispatch.hpp"

using namespace vitrine;

using namespace sampling_tools;

TEST_CASE("temperature 0 and tiny temperatures give the arg-max, ties to the lowest id") {
  for (const double temperature : {0.0, 1e-6, 1e-40, 1e-300}) {
    CHECK(Sampler({.temperature = temperature}, 2).sample(std::vector<float>{1, 2}, {}, 0) == 1);
    CHECK(kept({.temperature = 0}, {5, 5, 5}) == std::vector<Token>{0});
  }
  CHECK(Sampler({.temperature = 0}, 3).sample(std::vector<float>{5, 5, 5}, {}, 0) == 0);
  CHECK(Sampler({.temperature = 0}, 4).is_greedy());
  CHECK_FALSE(Sampler({.temperature = 1e-40}, 4).is_greedy());
  // Equal logits stay equally likely however small the temperature, also where the division underflows.
  Sampler twice({Temperature{1e-38}, Temperature{1e-300}}, 1, 3);
  const std::vector<float> three = {5, 5, 4};
  const auto last = twice.explain(three).stages.back();
  CHECK(last.kept[0].probability == 0.5);
  CHECK(last.kept[1].probability == 0.5);
  Sampler hot(SamplingChain(9, Temperature{3e38}), 1, 3);
  CHECK(hot.explain(std::vector<float>{1, -inf, -1}).stages.back().kept[1].probability == 0.5);
}

TEST_CASE("a host that flushes subnormals to zero does not change the choice") {
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);  // flush to zero, denormals are zero
  Sampler sampler({.temperature = 1e-310, .seed = 3}, 3);
  const Token token = sampler.sample(std::vector<float>{1e-42f, 3e-42f, 2e-42f}, {}, 0);
  _mm_setcsr(before);
  CHECK(token == 1);
}

TEST_CASE("parameters outside their range are named") {
  const double bad_temperatures[] = {-1.0, -3.0, not_a_number, infinite, -infinite, 1e39};
  for (const double value : bad_temperatures)
    check_error(ErrorKind::bad_argument, "temperature", [&] { Sampler({.temperature = value}, 4); });
  for (const double value : {-0.1, 7.0, not_a_number})
    check_error(ErrorKind::bad_argument, "top_p", [&] { Sampler({.top_p = value}, 4); });
  for (const double value : {-0.1, 2.0, not_a_number})
    check_error(ErrorKind::bad_argument, "min_p", [&] { Sampler({.min_p = value}, 4); });
  for (const double value : {0.0, -1.0, not_a_number, infinite, 5e-324, 1e-300, 1e-38, 3.5e38, 1e300})
    check_error(ErrorKind::bad_argument, "repetition_penalty: expected 1.17549e-38 to 3.40282e+38, got ",
                [&] { Sampler({.repetition_penalty = value}, 4); });
  check_error(ErrorKind::bad_argument, "temperature: expected 0 to 3.40282e+38, got 1e+300",
              [] { Sampler({.temperature = 1e300}, 4); });
  check_error(ErrorKind::bad_argument, "repetition_window", [] { Sampler({.repetition_window = -1}, 4); });
  check_error(ErrorKind::bad_argument, "repetition_penalty: expected among the first steps", [] {
    Sampler({Temperature{0.5}, RepetitionPenalty{2}}, 1, 4);
  });
  check_error(ErrorKind::bad_argument,
              "mirostat: expected as the last step, got the chain mirostat(5, 0.1) -> top_k(3)", [] {
                Sampler({Mirostat{5}, TopK{3}}, 1, 4);
              });
  check_error(ErrorKind::bad_argument, "n_vocab", [] { Sampler(SamplingOptions{}, 0); });
}

TEST_CASE("logits that are no numbers are a failure with a name, never a token") {
  const std::vector<std::vector<float>> failing = {{1, nan_, 3, -inf}, {nan_, 0, 0},  {0, 0, nan_},  {-inf, -inf, -inf},
                                                   {nan_, nan_, nan_}, {inf, 0, inf}, {inf, 0, nan_}};
  for (const auto& options : {SamplingOptions{}, SamplingOptions{.temperature = 0}, SamplingOptions{.top_k = 2},
                              SamplingOptions{.top_p = 0.9}, SamplingOptions{.repetition_penalty = 1.5}}) {
    for (const auto& logits : failing) {
      Sampler sampler(options, size(logits));
      const std::vector<Token> history = {0, 2};
      check_error(ErrorKind::numeric_failure, "logits", [&] { sampler.sample(logits, history, 0); });
      check_error(ErrorKind::numeric_failure, "logits", [&] { sampler.explain(logits, history); });
      // The sampler is as good as new afterwards.
      CHECK(sampler.sample(std::vector<float>(logits.size(), 0), {}, 0) < size(logits));
    }
    Sampler sampler(options, 3);
    CHECK(sampler.sample(std::vector<float>{0, inf, 0}, {}, 0) == 1);
    CHECK(sampler.sample(std::vector<float>{-inf, -inf, -3}, {}, 0) == 2);
  }
  // NaN is found wherever it hides, and so is the only admissible token.
  for (std::size_t n : {1u, 15u, 16u, 17u, 63u, 64u, 65u, 1000u}) {
    Sampler sampler(SamplingOptions{}, std::int64_t(n));
    for (std::size_t place = 0; place < n; place += n < 100 ? 1 : 37) {
      std::vector<float> logits(n, 0.0f);
      logits[place] = nan_;
      check_error(ErrorKind::numeric_failure, "NaN", [&] { sampler.sample(logits, {}, 0); });
      std::fill(logits.begin(), logits.end(), -inf);
      logits[place] = -80;
      CHECK(sampler.sample(logits, {}, 0) == Token(place));
    }
  }
}

TEST_CASE("the number of logits and the ids of the history are checked") {
  Sampler sampler({.repetition_penalty = 2}, 4);
  const std::vector<float> logits = {1, 2, 3, 4};
  check_error(ErrorKind::bad_argument, "logits", [&] { sampler.sample({}, {}, 0); });
  check_error(ErrorKind::bad_argument, "expected 4", [&] { sampler.sample(std::vector<float>{1, 2, 3}, {}, 0); });
  for (const Token id : {-1, 4, 2147483647}) {
    const std::vector<Token> history = {0, id};
    check_error(ErrorKind::bad_argument, "history", [&] { sampler.sample(logits, history, 0); });
  }
}

TEST_CASE("top_k at its boundaries") {
  const std::vector<float> logits = {0, 1, 2, 3, 4, 5};
  const std::vector<Token> all = {5, 4, 3, 2, 1, 0};
  for (const std::int32_t k : {0, -1, 6, 7, 2147483647, std::numeric_limits<std::int32_t>::min()})
    CHECK(kept({.top_k = k}, logits) == all);
  CHECK(kept({.top_k = 1}, logits) == std::vector<Token>{5});
  CHECK(Sampler({.top_k = 1}, 6).is_greedy());
  CHECK(kept({.top_k = 2}, {1, 3, 2, 3, 3}) == std::vector<Token>{1, 3});
}

TEST_CASE("top_p at its boundaries: the smallest set whose mass is at least p, never empty") {
  const auto logits = log_of({0.5, 0.3, 0.2});
  CHECK(kept({.top_p = 0}, logits) == std::vector<Token>{0});
  CHECK(kept({.top_p = 1e-9}, logits) == std::vector<Token>{0});
  CHECK(kept({.top_p = 0.49}, logits) == std::vector<Token>{0});
  CHECK(kept({.top_p = 0.79}, logits) == std::vector<Token>{0, 1});
  CHECK(kept({.top_p = 1 - 1e-7}, logits) == std::vector<Token>{0, 1, 2});
  CHECK(kept({.top_p = 1}, logits) == std::vector<Token>{0, 1, 2});
  const std::vector<float> equal(128256, 2.5f);
  CHECK(kept({.top_p = 1}, equal).size() == equal.size());
  const auto half = kept({.top_p = 0.5}, equal);
  REQUIRE(half.size() == equal.size() / 2);
  CHECK(half.front() == 0);  // the lowest ids
  CHECK(half.back() == Token(equal.size() / 2 - 1));
}

TEST_CASE("min_p 1 keeps the most probable alone, with its equals") {
  CHECK(kept({.min_p = 1}, {1, 3, 2, 3}) == std::vector<Token>{1, 3});
  CHECK(kept({.min_p = 0}, {1, -200, 2}) == std::vector<Token>{2, 0, 1});
}

TEST_CASE("the order of the chain is explicit, and matters") {
  const std::vector<float> logits = {3, 2, 1};
  Sampler temperature_first({.temperature = 0.5, .top_p = 0.8}, 3);
  CHECK(describe(temperature_first.chain()) == "temperature(0.5) -> top_p(0.8)");
  CHECK(temperature_first.explain(logits).stages.back().n_after == 1);
  Sampler truncate_first({TopP{0.8}, Temperature{0.5}}, 1, 3);
  const auto stages = truncate_first.explain(logits).stages;
  REQUIRE(stages.size() == 3);
  CHECK(stages[0].kept[0].probability == Approx(0.66524096));
  CHECK(stages[0].kept[2].probability == Approx(0.09003057));
  CHECK(stages[1].n_after == 2);
  CHECK(stages[1].mass_removed == Approx(1 - 0.66524096 - 0.24472847));
  CHECK(stages[2].n_after == 2);
  CHECK(stages[2].mass_removed == 0);
  CHECK(describe(sampling_chain({.temperature = 0.7,
                                 .top_k = 40,
                                 .top_p = 0.9,
                                 .min_p = 0.05,
                                 .repetition_penalty = 1.1,
                                 .repetition_window = 64})) ==
        "repetition_penalty(1.1, last 64) -> temperature(0.7) -> top_k(40) -> top_p(0.9) -> min_p(0.05)");
  CHECK(sampling_chain({}).empty());
}

TEST_CASE("the repetition penalty looks at the sign and at each token once") {
  const std::vector<float> logits = {2.0f, -1.0f, 0.5f};
  const std::vector<Token> history = {0, 1, 1};
  Sampler sampler({.repetition_penalty = 1.5}, 3);
  auto stage = sampler.explain(logits, history).stages.back();
  std::sort(stage.kept.begin(), stage.kept.end(), [](auto& a, auto& b) { return a.id < b.id; });
  CHECK(stage.kept[0].logit == float(2.0 / 1.5));
  CHECK(stage.kept[1].logit == -1.5f);
  CHECK(stage.kept[2].logit == 0.5f);
  // 1 changes no bit; only the last tokens count in a window.
  CHECK(Sampler({.repetition_penalty = 1}, 3).chain().empty());
  Sampler window({.repetition_penalty = 1.5, .repetition_window = 2}, 3);
  CHECK(window.explain(logits, history).stages.back().kept[0].logit == 2.0f);
  // Where it would end in infinity, it is the penalty that is named, not the model.
  for (const double penalty : {1.2e-38, 3.4e38})
    check_error(ErrorKind::numeric_failure, concat("repetition_penalty(", penalty, ") takes the logit "), [&] {
      Sampler({.repetition_penalty = penalty}, 3).sample(std::vector<float>{9, -9, 0}, history, 0);
    });
  CHECK(Sampler({.repetition_penalty = 3.4e38}, 3).sample(std::vector<float>{9, 0, -inf}, {}, 0) < 2);
  // Greedy decoding is penalised as well.
  CHECK(Sampler({.temperature = 0, .repetition_penalty = 8}, 3).sample(logits, history, 0) == 2);
}

TEST_CASE("large vocabularies: the lazily sorted candidates are those of a full sort") {
  for (const std::int64_t n : {1, 63, 64, 65, 1000, 5000, 40000}) {
    std::vector<float> logits;
    for (std::int64_t i = 0; i < n; ++i)  // few distinct values: many ties
      logits.push_back(i % 97 == 5 ? -inf : std::floor(float(random_uniform(1, std::uint64_t(i)) * 500)) / 20);
    std::vector<Token> expected;
    for (std::int64_t i = 0; i < n; ++i)
      if (logits[std::size_t(i)] != -inf) expected.push_back(Token(i));
    std::stable_sort(expected.begin(), expected.end(),
                     [&](Token a, Token b) { return logits[std::size_t(a)] > logits[std::size_t(b)]; });
    Candidates candidates(n);
    for (const std::int64_t step : {std::int64_t(1), std::int64_t(70), n}) {
      candidates.reset(logits);
      REQUIRE(candidates.size() == std::int64_t(expected.size()));
      CHECK(candidates.best() == expected[0]);
      for (std::int64_t i = step - 1; i < candidates.size(); i += step)
        CHECK(candidates.id(i) == expected[std::size_t(i)]);
    }
  }
}

TEST_CASE("every instruction set sums and scans alike, and right") {
  for (const std::int64_t n : {1, 15, 16, 17, 64, 100, 1023, 1024, 1025, 50000}) {
    std::vector<float> logits;
    double sum = 0;
    const float largest = 9.5f, temperature = 1.7f;
    for (std::int64_t i = 0; i < n; ++i) {
      logits.push_back(i % 13 == 7 ? -inf : float(random_uniform(4, std::uint64_t(i)) * 30 - 20.5));
      if (i == n / 2) logits.back() = largest;
      sum += exact::exp((double(logits.back()) - largest) / temperature);
    }
    double moment = 0, mean = 0, squares = 0;
    const auto is_finite = [](float z) { return z > -inf; };
    const auto n_finite = double(std::count_if(logits.begin(), logits.end(), is_finite));
    for (const float z : logits) {
      const double d = (double(z) - largest) / temperature;
      moment += is_finite(z) ? d * exact::exp(d) : 0;
      mean += is_finite(z) ? double(z) / n_finite : 0;
    }
    for (const float z : logits) squares += is_finite(z) ? (double(z) - mean) * (double(z) - mean) : 0;
    std::vector<double> masses, moments, sums;
    for (const Isa isa : available_isas()) {
      const auto& entries = kernels(isa).sampling;
      masses.push_back(entries.mass(logits.data(), n, largest, temperature));
      CHECK(masses.back() == masses.front());
      CHECK(masses.back() == Approx(sum).epsilon(1e-6));
      moments.push_back(entries.moment(logits.data(), n, largest, temperature));
      CHECK(moments.back() == moments.front());
      CHECK(moments.back() == Approx(moment).epsilon(1e-6));
      const auto spread = entries.spread(logits.data(), n, float(mean));
      sums.push_back(spread.sum_of_squares + spread.sum);
      CHECK(sums.back() == sums.front());
      CHECK(spread.sum / n_finite == Approx(0).margin(1e-5));
      CHECK(spread.sum_of_squares == Approx(squares).epsilon(1e-5).margin(1e-9));
      std::vector<float> block_max(std::size_t((n + 63) / 64));
      const auto facts = entries.scan(logits.data(), n, block_max.data());
      CHECK(facts.largest == largest);
      CHECK(facts.n_nan == 0);
      CHECK(facts.n_admissible == std::count_if(logits.begin(), logits.end(), [](float z) { return z > -inf; }));
      for (std::size_t b = 0; b < block_max.size(); ++b) {
        const auto begin = logits.begin() + std::int64_t(b) * 64;
        CHECK(block_max[b] == *std::max_element(begin, begin + (std::min)(std::int64_t(64), logits.end() - begin)));
      }
      auto broken = logits;
      broken.back() = nan_;
      CHECK(entries.scan(broken.data(), n, block_max.data()).n_nan == 1);
    }
  }
}
