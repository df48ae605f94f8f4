// Speculative decoding: whatever is guessed, the tokens are those of plain decoding.
#include <functional>
#include <map>

#include "support/bits.hpp"
#include "vitrine/engine/drafter.hpp"
#include "vitrine/engine/speculation.hpp"
#include "vitrine/sample/random.hpp"

using namespace support;
using Catch::Matchers::Contains;

namespace {

std::shared_ptr<const Model> one_layer() {
  static const auto loaded = Model::load(data("tiny/llama_gqa/model-f32.gguf"), {.n_layers = 1});
  return loaded;
}

// Guesses what it is told to.
struct Guesser final : Drafter {
  using Guess = std::function<Token(std::span<const Token> history, std::int64_t i)>;
  explicit Guesser(Guess make) : make_guess(std::move(make)) {}
  void begin(const Model&, const SamplingOptions&, std::int64_t) override {}
  std::int64_t guess(std::span<const Token> history, std::span<Token> guesses) override {
    for (std::size_t i = 0; i < guesses.size(); ++i) guesses[i] = make_guess(history, std::int64_t(i));
    return std::int64_t(guesses.size());
  }
  Guess make_guess;
};

// The right tokens, with a wrong one now and then.
std::shared_ptr<Drafter> mostly_right(std::vector<Token> answer, std::size_t n_prompt) {
  return std::make_shared<Guesser>(
      [answer = std::move(answer), n_prompt](std::span<const Token> history, std::int64_t i) {
        const auto at = history.size() - n_prompt + std::size_t(i);
        return at >= answer.size() || at % 7 == 3 ? Token(at % 384) : answer[at];
      });
}

std::shared_ptr<Drafter> at_random() {
  return std::make_shared<Guesser>([n = std::uint64_t(0)](std::span<const Token>, std::int64_t) mutable {
    return Token(random_uniform(9, n++) * 384);
  });
}

struct Outcome {
  GenerateResult result;
  std::int64_t length;
  std::vector<float> next;  // of a token that follows: the session goes on from where it should
};

Outcome outcome(const std::vector<Token>& prompt, const GenerateOptions& options, SessionOptions of_session = {}) {
  of_session.n_context = 100;
  of_session.n_threads = 1;
  Session session(tiny(), std::move(of_session));
  Outcome outcome{generate(session, prompt, options, go_on), session.length(), {}};
  if (session.length() < session.context()) outcome.next = copy(session.decode(7));
  return outcome;
}

void check_same(const Outcome& plain, const Outcome& guessed) {
  CHECK(guessed.result.tokens == plain.result.tokens);
  CHECK(guessed.result.text == plain.result.text);
  CHECK(guessed.result.reason == plain.result.reason);
  CHECK(guessed.result.stop_string == plain.result.stop_string);
  CHECK(guessed.length == plain.length);
  CHECK(same_bits(guessed.next, plain.next));
}

GenerateOptions greedy(std::int64_t n) {
  return {.sampling = {.temperature = 0}, .max_new_tokens = n, .ignore_end = true};
}
GenerateOptions sampled(std::int64_t n) {
  return {.sampling = {.top_k = 40, .repetition_penalty = 1.1, .seed = 11}, .max_new_tokens = n, .ignore_end = true};
}

}  // namespace

TEST_CASE("speculation: every drafter and number of guesses gives the tokens of plain decoding, greedy and sampled") {
  const auto prompt = some_tokens(12);
  for (const auto& plain_options : {greedy(40), sampled(40)}) {
    const auto plain = outcome(prompt, plain_options);
    REQUIRE(plain.result.tokens.size() == 40);
    const std::map<std::string, std::function<std::shared_ptr<Drafter>()>> drafters = {
        {"the same model", [] { return draft_model(tiny(), 1); }},
        {"one layer of it", [] { return draft_model(one_layer(), 1); }},
        {"n-grams", [] { return prompt_lookup({.longest = 3, .shortest = 1}); }},
        {"mostly right", [&] { return mostly_right(plain.result.tokens, prompt.size()); }},
        {"at random", [] { return at_random(); }},
        {"no tokens",
         [] { return std::make_shared<Guesser>([](auto, std::int64_t i) { return Token(i % 2 ? 3 : 384); }); }}};
    for (const auto& [name, make] : drafters)
      for (std::int64_t max_guesses = 1; max_guesses <= 8; ++max_guesses)
        for (const bool adapt : {false, true}) {
          if ((adapt || is_sanitized) && max_guesses % 4 != 0) continue;
          INFO(name << ", " << max_guesses << " guesses, adapt " << adapt);
          auto options = plain_options;
          options.speculation = {.drafter = make(), .max_guesses = max_guesses, .adapt = adapt};
          const auto guessed = outcome(prompt, options);
          check_same(plain, guessed);
          const auto& of = guessed.result.speculation;
          CHECK(of.n_accepted <= of.n_judged);
          CHECK(of.n_judged <= of.n_guesses);
          if (name == "the same model") {
            CHECK(of.n_accepted == of.n_guesses);  // all of them: its logits have the same bits
            CHECK(of.n_accepted > 0);
            CHECK(of.acceptance() == 1);
          }
          if (name == "mostly right" && !adapt) CHECK(of.n_accepted > 10);
          if (name == "at random") CHECK(of.acceptance() < 0.1);
        }
  }
}

TEST_CASE("speculation: every ending inside an accepted run ends as plain decoding does") {
  const auto prompt = some_tokens(12);
  const auto whole = outcome(prompt, greedy(40));
  const auto& answer = whole.result.tokens;
  const auto compare = [&](GenerateOptions options) {
    const auto plain = outcome(prompt, options);
    options.speculation = {.drafter = mostly_right(answer, prompt.size()), .adapt = false};
    const auto guessed = outcome(prompt, options);
    check_same(plain, guessed);
    options.speculation = {.drafter = draft_model(tiny(), 1), .max_guesses = 6, .adapt = false};
    check_same(plain, outcome(prompt, options));
    return plain.result.reason;
  };
  for (std::int64_t n = 1; n <= 20; ++n) CHECK(compare(greedy(n)) == FinishReason::length);
  for (std::size_t at = 1; at < 20; ++at) {
    auto options = greedy(40);
    options.ignore_end = false;
    options.extra_end = {answer[at]};
    CHECK(compare(options) == FinishReason::end_token);
    options = greedy(40);
    const auto piece = std::string(tiny()->tokenizer().piece(answer[at]));
    if (piece.empty() || piece[0] & 0x80) continue;
    options.stop_strings = {piece};
    compare(options);
  }
  // A full context.
  const auto long_prompt = some_tokens(90);
  const auto plain = outcome(long_prompt, greedy(40));
  CHECK(plain.result.reason == FinishReason::context_full);
  auto options = greedy(40);
  options.speculation = {.drafter = draft_model(tiny(), 1), .adapt = false};
  check_same(plain, outcome(long_prompt, options));
}

TEST_CASE("speculation: right guesses save passes, wrong ones are given up") {
  const auto prompt = some_tokens(12);
  const auto answer = outcome(prompt, greedy(60)).result.tokens;
  const auto passes = [&](std::shared_ptr<Drafter> drafter) {
    Session session(tiny(), {.n_context = 100});
    auto options = greedy(60);
    options.speculation = {.drafter = std::move(drafter)};
    const auto result = generate(session, prompt, options, go_on);
    CHECK(result.speculation.plain_pass_seconds > 0);
    CHECK(session.n_passes() == 60 - result.speculation.n_accepted);
    return session.n_passes();
  };
  const auto always = std::make_shared<Guesser>(
      [&](std::span<const Token> history, std::int64_t i) { return answer[history.size() - 12 + std::size_t(i)]; });
  CHECK(passes(always) <= 10);
  CHECK(passes(at_random()) == 60);
  GuessCount count(8, true);
  CHECK(count.next(0) > 0);
  for (int i = 0; i < 40; ++i) count.judged(false);
  std::int64_t n_tried = 0;
  for (int i = 0; i < 160; ++i) n_tried += count.next(0);
  CHECK(n_tried == 10);  // one in sixteen passes, to see whether things have changed
  for (int i = 0; i < 100; ++i) count.judged(true);
  CHECK(count.next(0) == 8);
  CHECK(count.next(0.9) == 0);  // guesses that cost nearly a pass do not pay
  GuessCount fixed(5, false);
  for (int i = 0; i < 40; ++i) fixed.judged(false);
  CHECK(fixed.next(1) == 5);
}

TEST_CASE("guesses of a session: free as long as they are followed, and without trace when not") {
  for (const auto kind : all_cache_kinds) {
    for (const bool use_cache : {true, false}) {
      const SessionOptions options{.n_context = 40, .cache = kind, .use_cache = use_cache};
      Session plain(tiny(), options), guessing(tiny(), options);
      const auto prompt = some_tokens(20);
      plain.prefill(prompt);
      guessing.prefill(prompt);
      const std::vector<Token> guesses = {11, 12, 13, 14};
      const auto same = [&](Token token, std::span<const Token> ahead = {}) {
        const auto logits = copy(guessing.decode(token, ahead));
        CHECK(same_bits(plain.decode(token), logits));
        CHECK(guessing.length() == plain.length());
        CHECK(std::equal(plain.tokens().begin(), plain.tokens().end(), guessing.tokens().begin()));
      };
      same(10, guesses);
      CHECK(guessing.n_ahead() == (use_cache ? 4 : 0));
      const auto n_passes = guessing.n_passes();
      same(11);
      same(12);
      CHECK(guessing.n_passes() == (use_cache ? n_passes : n_passes + 2));
      auto fork = guessing.fork();
      CHECK(fork.n_ahead() == 0);
      CHECK(same_bits(fork.decode(13), guessing.decode(13)));
      plain.decode(13);
      same(99);  // not what was guessed
      CHECK(guessing.n_ahead() == 0);
      same(10, guesses);
      guessing.truncate(22);
      plain.truncate(22);
      CHECK(guessing.n_ahead() == 0);
      same(5, guesses);
      CHECK(same_bits(guessing.prefill(std::vector<Token>{1, 2}), plain.prefill(std::vector<Token>{1, 2})));
      while (plain.length() < 40) same(3, guesses);  // as many guesses as there is room for
      CHECK(guessing.n_ahead() == 0);
    }
  }
  Session session(tiny());
  session.prefill(some_tokens(3));
  CHECK_THROWS_WITH(session.decode(1, std::vector<Token>{2, 384}), Contains("384"));
  CHECK(session.length() == 3);
}

TEST_CASE("the first layers of a model are a model, from GGUF and safetensors alike") {
  CHECK(one_layer()->config().n_layer == 1);
  CHECK(one_layer()->weights().bytes() < tiny()->weights().bytes());
  const auto from_folder = Model::load(data("tiny/llama_gqa"), {.n_layers = 1});
  Session a(one_layer(), {.kv_type = DType::f32}), b(from_folder, {.kv_type = DType::f32});
  CHECK(same_bits(a.prefill(some_tokens(9)), b.prefill(some_tokens(9))));
  for (const std::int64_t bad : {-1, 4})
    CHECK_THROWS_WITH(Model::load(data("tiny/llama_gqa"), {.n_layers = bad}), Contains("n_layers: expected 1 to 3"));
}

TEST_CASE("speculation: options and drafters that do not fit are refused by name") {
  Session session(tiny());
  const auto refused = [&](const SpeculationOptions& speculation, const std::string& named,
                           SamplingOptions sampling = {}) {
    CHECK_THROWS_WITH(generate(session, some_tokens(3), {.sampling = sampling, .speculation = speculation}, go_on),
                      Contains(named));
    CHECK(session.length() == 0);
  };
  refused({.drafter = prompt_lookup(), .max_guesses = 0}, "max_guesses");
  refused({.drafter = prompt_lookup(), .max_guesses = 16}, "max_guesses");
  refused({.drafter = prompt_lookup(), .rule = AcceptRule(7)}, "rule");
  refused({.drafter = prompt_lookup(), .rule = AcceptRule::probability_ratio}, "Mirostat", {.mirostat_tau = 3});
  refused({.drafter = draft_model(model(data("tiny/qwen2/model-f32.gguf")), 1)}, "vocabulary");
  CHECK_THROWS_WITH(prompt_lookup({.longest = 1, .shortest = 2}), Contains("prompt_lookup"));
}

TEST_CASE("n-grams: the longest match and the latest place count") {
  const auto drafter = prompt_lookup({.longest = 3, .shortest = 1});
  std::vector<Token> guesses(4);
  const auto guess = [&](const std::vector<Token>& history) {
    const auto n = drafter->guess(history, guesses);
    return std::vector<Token>(guesses.begin(), guesses.begin() + n);
  };
  using Tokens = std::vector<Token>;
  CHECK(guess({1, 2, 3, 9, 8, 7, 6, 1, 2, 3}) == Tokens{9, 8, 7, 6});
  CHECK(guess({2, 3, 5, 1, 2, 3, 9, 3, 6, 1, 2, 3}) == Tokens{9, 3, 6, 1});  // three tokens, though two are nearer
  CHECK(guess({3, 1, 3, 2, 3}) == Tokens{2, 3});                             // the latest; no more follows it
  CHECK(guess({1, 2, 3, 4}).empty());
  CHECK(guess({1}).empty());
}

TEST_CASE("ratio rule: tokens are distributed as the target has it, whatever is guessed") {
  // Chi-square against p; 16.27, 18.47 and so on are far below these limits, at a level of 1e-4.
  const std::map<std::size_t, double> limit = {{1, 15.14}, {2, 18.42}};
  const auto chi_square = [&](const TokenDistribution& p, const TokenDistribution* q, Token certain) {
    constexpr int n = 200000;
    std::vector<int> counts(3);
    int n_accepted = 0;
    for (std::uint64_t i = 0; i < n; ++i) {
      Token guess = certain;
      if (q) {
        double u = random_uniform(1, i, 5);
        std::size_t k = 0;
        while (k + 1 < q->ids.size() && u >= q->probabilities[k]) u -= q->probabilities[k++];
        guess = q->ids[k];
      }
      const auto token = accept_or_replace(p, q, guess, random_uniform(1, i, 6), random_uniform(1, i, 7));
      n_accepted += token == guess;
      ++counts[std::size_t(token)];
    }
    double sum = 0, accepted = 0;
    std::size_t degrees = 0;
    for (Token id = 0; id < 3; ++id) {
      const double expected = n * p.of(id), of_q = q ? q->of(id) : double(id == certain);
      accepted += std::min(p.of(id), of_q);
      if (expected == 0) CHECK(counts[std::size_t(id)] == 0);
      if (expected == 0) continue;
      ++degrees;
      sum += (counts[std::size_t(id)] - expected) * (counts[std::size_t(id)] - expected) / expected;
    }
    CHECK(sum < limit.at(degrees - 1));
    // A replacement never equals the guess, since it comes from what p has more than q.
    CHECK(double(n_accepted) / n == Approx(accepted).margin(0.006));
    return accepted;
  };
  const TokenDistribution p{{0, 1, 2}, {.7, .2, .1}}, q{{0, 1, 2}, {.3, .6, .1}};
  CHECK(chi_square(p, &q, 0) == Approx(0.6));
  CHECK(chi_square(p, &p, 0) == Approx(1));
  CHECK(chi_square({{0, 1}, {.5, .5}}, &q, 0) == Approx(0.8));  // q where p has nothing
  const TokenDistribution narrow{{1, 2}, {.5, .5}};
  CHECK(chi_square(p, &narrow, 0) == Approx(0.3));  // and the reverse
  CHECK(chi_square(p, nullptr, 1) == Approx(0.2));  // a certain guess, as n-grams make
}

TEST_CASE("ratio rule: a whole generation is distributed as plain decoding is, with every step of the chain on") {
  // The fourth token over many seeds; the first pass that guesses is the second one.
  const auto prompt = some_tokens(6);
  constexpr int n_seeds = 3000;
  const auto counts = [&](const std::function<SpeculationOptions()>& speculation) {
    const auto options = speculation();
    std::map<Token, double> result;
    Session session(tiny(), {.n_context = 16, .n_threads = 1});
    std::int64_t n_accepted = 0, n_judged = 0;
    for (std::uint64_t seed = 0; seed < n_seeds; ++seed) {
      session.reset();
      const auto got =
          generate(session, prompt,
                   {.sampling = {.temperature = 1.5, .top_k = 3, .top_p = 0.95, .min_p = 0.01, .seed = seed},
                    .max_new_tokens = 4,
                    .ignore_end = true,
                    .speculation = options},
                   go_on);
      ++result[got.tokens.back()];
      n_accepted += got.speculation.n_accepted;
      n_judged += got.speculation.n_judged;
    }
    if (options.drafter) {
      CHECK(n_judged > n_seeds / 2);
      CHECK(n_accepted > 0);
      CHECK(n_accepted < n_judged);
    }
    return result;
  };
  const auto plain = counts([] { return SpeculationOptions{}; });
  const auto ratio = counts([] {
    return SpeculationOptions{.drafter = draft_model(one_layer(), 1, true),
                              .rule = AcceptRule::probability_ratio,
                              .max_guesses = 2,
                              .adapt = false};
  });
  // Two samples of the same size: the sum of (a - b)^2 / (a + b); rare tokens go together.
  double sum = 0, rest_a = 0, rest_b = 0;
  int degrees = 0;
  std::map<Token, std::pair<double, double>> both;
  for (const auto& [id, n] : plain) both[id].first = n;
  for (const auto& [id, n] : ratio) both[id].second = n;
  const auto add = [&](double a, double b) {
    if (a + b == 0) return;
    sum += (a - b) * (a - b) / (a + b);
    ++degrees;
  };
  for (const auto& [id, n] : both) {
    if (n.first + n.second >= 20) {
      add(n.first, n.second);
    } else {
      rest_a += n.first;
      rest_b += n.second;
    }
  }
  add(rest_a, rest_b);
  INFO(degrees << " classes, chi-square " << sum);
  CHECK(degrees >= 3);
  // The 1e-4 point by Wilson and Hilferty: d (1 - 2/(9 d) + 3.72 sqrt(2/(9 d)))^3.
  const double d = degrees - 1, root = 1 - 2 / (9 * d) + 3.72 * std::sqrt(2 / (9 * d));
  CHECK(sum < d * root * root * root);
}
