// Without end tokens: they are banned, and not passed over, in each way to generate.
#include "support/bits.hpp"
#include "vitrine/engine/drafter.hpp"
#include "vitrine/engine/engine.hpp"

using namespace support;
using Catch::Matchers::Contains;

namespace {

// The model's own end tokens and two more, all of them far likelier than anything else.
struct Ends {
  std::vector<Token> extra = {9, 17}, all = extra;
  Ends() {
    const auto& own = tiny()->tokenizer().end_tokens();
    REQUIRE_FALSE(own.empty());
    all.insert(all.end(), own.begin(), own.end());
  }
  bool has(Token token) const { return std::find(all.begin(), all.end(), token) != all.end(); }

  GenerateOptions options(double temperature) const {
    GenerateOptions options{.sampling = {.temperature = temperature, .seed = 5},
                            .max_new_tokens = 16,
                            .extra_end = extra,
                            .log_probabilities = 3};
    for (const Token end : all) options.sampling.logit_bias.push_back({end, 1000});
    return options;
  }
  GenerateOptions without(double temperature) const {
    auto options = this->options(temperature);
    options.ignore_end = true;
    return options;
  }
};

GenerateResult alone(const GenerateOptions& options) {
  Session session(tiny());
  return generate(session, some_tokens(7), options, go_on);
}

// Guesses an end token each time.
struct GuessEnd final : Drafter {
  explicit GuessEnd(Token id) : end(id) {}
  void begin(const Model&, const SamplingOptions&, std::int64_t) override {}
  std::int64_t guess(std::span<const Token>, std::span<Token> guesses) override {
    std::fill(guesses.begin(), guesses.end(), end);
    return std::int64_t(guesses.size());
  }
  Token end;
};

}  // namespace

TEST_CASE("ignore_end: no end token comes, however likely it is") {
  const Ends ends;
  for (const double temperature : {0.0, 1.0}) {
    const auto ended = alone(ends.options(temperature));
    CHECK(ended.reason == FinishReason::end_token);
    CHECK(ended.tokens.empty());

    const auto result = alone(ends.without(temperature));
    CHECK(result.reason == FinishReason::length);
    REQUIRE(result.tokens.size() == 16);
    for (const Token token : result.tokens) CHECK_FALSE(ends.has(token));
    CHECK_THAT(result.sampling, Contains(concat("ignore_end(", ends.all.size(), " tokens)")));
    for (const auto& each : result.log_probabilities) {
      CHECK(each.processed.of_token > -20);
      for (const auto& top : each.processed.top) CHECK_FALSE(ends.has(top.id));
    }
    // It is what banning each of them gives.
    auto banned = ends.options(temperature);
    banned.sampling.suppress_tokens = ends.all;
    CHECK(alone(banned).tokens == result.tokens);
  }
}

TEST_CASE("ignore_end: in an engine, each request for itself") {
  const Ends ends;
  Engine engine(tiny());
  for (const double temperature : {0.0, 1.0}) {
    auto with = engine.submit(some_tokens(7), ends.options(temperature));
    auto without = engine.submit(some_tokens(7), ends.without(temperature));
    CHECK(with.wait().reason == FinishReason::end_token);
    CHECK(with.wait().tokens.empty());
    CHECK(without.wait().reason == FinishReason::length);
    CHECK(without.wait().tokens == alone(ends.without(temperature)).tokens);
    CHECK(without.wait().sampling == alone(ends.without(temperature)).sampling);
  }
}

TEST_CASE("ignore_end: guesses of end tokens are wrong, and a draft model makes none") {
  const Ends ends;
  for (const double temperature : {0.0, 1.0}) {
    const auto plain = alone(ends.without(temperature));
    const auto check = [&](std::shared_ptr<Drafter> drafter, AcceptRule rule) {
      auto options = ends.without(temperature);
      options.speculation = {.drafter = std::move(drafter), .rule = rule, .max_guesses = 4, .adapt = false};
      const auto result = alone(options);
      REQUIRE(result.tokens.size() == 16);
      for (const Token token : result.tokens) CHECK_FALSE(ends.has(token));
      if (rule == AcceptRule::same_token) CHECK(result.tokens == plain.tokens);
      return result.speculation;
    };
    CHECK(check(std::make_shared<GuessEnd>(ends.all.back()), AcceptRule::same_token).n_accepted == 0);
    CHECK(check(std::make_shared<GuessEnd>(ends.extra[0]), AcceptRule::same_token).n_accepted == 0);
    CHECK(check(draft_model(tiny(), 1), AcceptRule::same_token).acceptance() == 1);
    check(draft_model(tiny(), 1, true), AcceptRule::probability_ratio);

    Engine engine(tiny());
    auto options = ends.without(temperature);
    options.speculation = {.drafter = draft_model(tiny(), 1), .adapt = false};
    CHECK(engine.submit(some_tokens(7), options).wait().tokens == plain.tokens);
  }
}

TEST_CASE("ignore_end: an end token that is forced at the same time is refused, wherever it is named") {
  const Ends ends;
  Engine engine(tiny());
  for (const Token end : ends.all) {
    auto options = ends.without(0);
    options.sampling.forced_tokens = {{0, 3}, {2, end}};
    const auto words = Contains(concat("ignore_end bans them, got token ", end, " for index 2"));
    CHECK_THAT(error_of([&] { alone(options); }).what(), words);
    CHECK_THAT(error_of([&] { engine.submit(some_tokens(7), options); }).what(), words);
    options.ignore_end = false;  // then it ends there
    options.sampling.logit_bias.clear();
    options.sampling.forced_tokens = {{0, 3}, {1, 3}, {2, end}};
    CHECK(alone(options).tokens == std::vector<Token>{3, 3});
  }
  auto options = ends.without(0);
  options.extra_end = {1, -1};
  CHECK_THAT(error_of([&] { engine.submit(some_tokens(7), options); }).what(), Contains("extra_end[1]"));
}
