// Reasons to end, token by token, and generations that end by stop strings and time; log-probabilities of both.
#include "sample/sampling_tools.hpp"
#include "support/bits.hpp"
#include "vitrine/engine/stop_rules.hpp"
#include "vitrine/text/utf8.hpp"

using namespace support;

namespace {

// One token for each byte, then "<end>", "<turn>" (both special) and "the".
Tokenizer bytes_and_more() {
  TokenizerSpec spec;
  for (int byte = 0; byte < 256; ++byte) spec.tokens.push_back({std::string(1, char(byte)), TokenKind::normal});
  spec.tokens.push_back({"<end>", TokenKind::control});
  spec.tokens.push_back({"<turn>", TokenKind::control});
  spec.tokens.push_back({"the", TokenKind::normal});
  spec.end = {256};
  return Tokenizer(spec);
}

struct Answer {
  std::string text;
  FinishReason reason = FinishReason::none;
  std::size_t n_tokens = 0;
  std::string stop_string;
};

Answer answer(const GenerateOptions& options, const std::vector<Token>& tokens, std::size_t room = 1000,
              double seconds = 0) {
  StopRules rules(bytes_and_more(), 259, options, 'x');
  Answer result;
  for (const Token token : tokens) {
    std::string text;
    const auto [reason, in_answer] = rules.push(token, seconds, result.n_tokens + 1 < room, text);
    result.text += text;
    result.n_tokens += in_answer;
    result.reason = reason;
    if (reason != FinishReason::none) break;
  }
  if (result.reason == FinishReason::none) rules.finish(result.text);
  result.stop_string = rules.stop_string();
  return result;
}

std::vector<Token> spelled(const std::string& text, std::vector<Token> more = {}) {
  std::vector<Token> tokens;
  for (const char c : text) tokens.push_back(Token(static_cast<unsigned char>(c)));
  tokens.insert(tokens.end(), more.begin(), more.end());
  return tokens;
}

std::shared_ptr<const Model> qwen2() { return model(data("tiny/qwen2/model-f32.gguf")); }
std::vector<Token> prompt() { return {3, 1, 4, 1, 5, 9, 2, 6}; }
}  // namespace

TEST_CASE("each reason to end, and what is shown by then") {
  const auto stop = answer({.stop_strings = {"END", "or"}}, spelled("words END"));
  CHECK(stop.reason == FinishReason::stop_string);
  CHECK(stop.text == "w");
  CHECK(stop.n_tokens == 3);  // tokens that hold the stop string were drawn, and count
  CHECK(stop.stop_string == "or");

  // What waited comes with the end, whatever the end is.
  const auto by_model = answer({.stop_strings = {"ENDS"}}, spelled("an END", {256, 'x'}));
  CHECK(by_model.reason == FinishReason::end_token);
  CHECK(by_model.text == "an END");
  CHECK(by_model.n_tokens == 6);
  CHECK(by_model.stop_string.empty());
  const auto by_length = answer({.max_new_tokens = 5, .stop_strings = {"ENDS"}}, spelled("an ENDS"));
  CHECK(by_length.reason == FinishReason::length);
  CHECK(by_length.text == "an EN");
  const auto by_room = answer({.stop_strings = {"ENDS"}}, spelled("an ENDS"), 4);
  CHECK(by_room.reason == FinishReason::context_full);
  CHECK(by_room.text == "an E");
  const auto by_time = answer({.stop_strings = {"an E"}, .time_limit = 2}, spelled("an E"), 1000, 2.5);
  CHECK(by_time.reason == FinishReason::time_limit);
  CHECK(by_time.text == "a");
  CHECK(answer({.time_limit = 2}, spelled("an E"), 1000, 1.5).reason == FinishReason::none);
  CHECK(answer({.stop_strings = {"ENDS"}}, spelled("an EN")).text == "an EN");  // cancelled

  // A shorter one had to wait for a longer one that never came.
  const auto late = answer({.stop_strings = {"abcd", "bc"}}, spelled("xabc", {256}));
  CHECK(late.reason == FinishReason::stop_string);
  CHECK(late.text == "xa");
  CHECK(late.stop_string == "bc");
  // The last token of all completes one: the string is the reason.
  CHECK(answer({.max_new_tokens = 3, .stop_strings = {"abc"}}, spelled("abc")).reason == FinishReason::stop_string);
}

TEST_CASE("stop strings look at characters across tokens, and at special tokens of their text") {
  CHECK(answer({.stop_strings = {"é"}}, spelled("caf\xC3\xA9 au lait")).text == "caf");
  CHECK(answer({.stop_strings = {"he"}}, spelled("a ", {258, 'q'})).text == "a t");
  const auto turn = answer({.stop_strings = {"<turn>"}}, spelled("a", {257, 'b'}));
  CHECK(turn.reason == FinishReason::stop_string);
  CHECK(turn.text == "a");
  CHECK(turn.n_tokens == 1);
  CHECK(turn.stop_string == "<turn>");
  CHECK(answer({.stop_strings = {"<turn>"}}, spelled("a<turn>b")).text == "a");  // spelled out, too
  CHECK(answer({}, spelled("a", {257, 'b'})).text == "ab");
  CHECK(answer({.extra_end = {'b'}}, spelled("abc")).text == "a");
  // Half a character at the end becomes U+FFFD, once.
  CHECK(answer({.max_new_tokens = 2}, spelled("a\xC3\xA9")).text == "a\xEF\xBF\xBD");
}

TEST_CASE("stop strings and time limits that make no sense are refused by name") {
  const auto refused = [](const GenerateOptions& options, const std::string& words) {
    sampling_tools::check_error(ErrorKind::bad_argument, words, [&] { answer(options, {}); });
  };
  refused({.stop_strings = {"a", ""}}, "stop string 1");
  refused({.time_limit = -1}, "time_limit");
  refused({.sampling = {.min_new_tokens = 6}, .max_new_tokens = 5},
          "min_new_tokens: expected at most max_new_tokens, 5, got 6");
  refused({.time_limit = sampling_tools::not_a_number}, "time_limit");
  refused({.extra_end = {1, 259}}, "extra_end[1]: expected ids from 0 to 258, got 259");
  refused({.max_new_tokens = 0}, "max_new_tokens");
}

TEST_CASE("a generation ends at a stop string, at any place of its text") {
  Session session(qwen2());
  const GenerateOptions options{.sampling = {.temperature = 1, .seed = 7}, .max_new_tokens = 30, .ignore_end = true};
  const auto whole = generate(session, prompt(), options, go_on);
  REQUIRE(whole.text.size() > 30);
  int n_stopped = 0;
  for (std::size_t begin = 0; begin + 5 < whole.text.size(); begin += 3) {
    const std::string stop = whole.text.substr(begin, 5);
    if (utf8::valid_prefix(stop) != stop.size()) continue;
    session.reset();
    auto with_stop = options;
    with_stop.stop_strings = {stop};
    Generation generation(session, prompt(), with_stop);
    std::string streamed;
    for (const auto& token : generation) streamed += token.text;
    const auto& result = generation.result();
    CHECK(result.reason == FinishReason::stop_string);
    CHECK(result.stop_string == stop);
    CHECK(result.text == whole.text.substr(0, whole.text.find(stop)));
    CHECK(streamed == result.text);
    CHECK(std::equal(result.tokens.begin(), result.tokens.end(), whole.tokens.begin()));
    ++n_stopped;
  }
  CHECK(n_stopped > 5);
  // In the prompt it is none.
  session.reset();
  const auto text = qwen2()->tokenizer().decode(prompt());
  auto of_prompt = options;
  of_prompt.stop_strings = {text.substr(text.size() - 2)};
  if (whole.text.find(of_prompt.stop_strings[0]) == std::string::npos)
    CHECK(generate(session, prompt(), of_prompt, go_on).tokens == whole.tokens);
}

TEST_CASE("held-back text comes with the last token, or with the end token") {
  Session session(qwen2());
  const GenerateOptions options{.sampling = {.temperature = 1, .seed = 7}, .max_new_tokens = 12, .ignore_end = true};
  const auto whole = generate(session, prompt(), options, go_on);
  auto holding = options;
  holding.stop_strings = {whole.text.substr(whole.text.size() - 3) + "never"};
  if (utf8::valid_prefix(holding.stop_strings[0]) != holding.stop_strings[0].size())
    holding.stop_strings = {whole.text.substr(whole.text.size() - 1) + "never"};
  for (const bool by_end_token : {false, true}) {
    session.reset();
    auto run = holding;
    if (by_end_token) {
      session.reset();
      auto longer = options;
      longer.max_new_tokens = 13;
      run.ignore_end = false;
      run.extra_end = {generate(session, prompt(), longer, go_on).tokens.back()};
      run.max_new_tokens = 20;
      session.reset();
    }
    Generation generation(session, prompt(), run);
    std::string streamed;
    std::size_t n = 0;
    for (const auto& token : generation) {
      streamed += token.text;
      ++n;
    }
    const auto& result = generation.result();
    if (by_end_token && result.tokens.size() != 12) continue;  // the model's own end, or an earlier one
    CHECK(streamed == whole.text);
    CHECK(result.text == whole.text);
    CHECK(result.reason == (by_end_token ? FinishReason::end_token : FinishReason::length));
    CHECK(n == (by_end_token ? 13 : 12));
  }
}

TEST_CASE("time ends a generation, in the prompt as well as between tokens") {
  Session session(qwen2(), {.chunk = 2});
  const auto at_once = generate(session, prompt(), {.time_limit = 1e-9}, go_on);
  CHECK(at_once.reason == FinishReason::time_limit);
  CHECK(at_once.tokens.empty());
  CHECK(session.length() == 0);
  const auto later = generate(session, {3}, {.ignore_end = true, .time_limit = 1e-9}, go_on);
  CHECK(later.reason == FinishReason::time_limit);
  CHECK(later.tokens.size() == 1);
}

TEST_CASE("log-probabilities of generated tokens and of the prompt are the logits'") {
  Session session(qwen2());
  const GenerateOptions options{.sampling = {.temperature = 0.8, .top_k = 5, .seed = 9},
                                .max_new_tokens = 6,
                                .ignore_end = true,
                                .log_probabilities = 3,
                                .prompt_log_probabilities = 2};
  Generation generation(session, prompt(), options);
  for (const auto& token : generation) {
    REQUIRE(token.log_probabilities != nullptr);
    CHECK(token.log_probabilities->raw.top.size() == 3);
    CHECK(token.log_probabilities->processed.top.size() == 3);
    CHECK(token.log_probabilities->processed.of_token > -3);
  }
  const auto& result = generation.result();
  REQUIRE(result.log_probabilities.size() == 6);
  REQUIRE(result.prompt_log_probabilities.size() == 7);

  auto sequence = prompt();
  sequence.insert(sequence.end(), result.tokens.begin(), result.tokens.end());
  Session again(qwen2());
  again.prefill_logits(sequence, [&](std::int64_t position, std::span<const float> logits) {
    const auto next = std::size_t(position) + 1;
    if (next == sequence.size()) return;
    double largest = -1e30, sum = 0;
    for (const float z : logits) largest = std::max(largest, double(z));
    for (const float z : logits) sum += std::exp(double(z) - largest);
    const double expected = double(logits[std::size_t(sequence[next])]) - largest - std::log(sum);
    const auto& got = next < 8 ? result.prompt_log_probabilities[next - 1] : result.log_probabilities[next - 8].raw;
    CHECK(got.of_token == Approx(expected).margin(1e-5));
    CHECK(got.top[0].id == best(logits));
    CHECK(got.top.size() == (next < 8 ? 2 : 3));
  });
  // Asking for them changes no token.
  auto plain = options;
  plain.log_probabilities.reset();
  plain.prompt_log_probabilities.reset();
  session.reset();
  CHECK(generate(session, prompt(), plain, go_on).tokens == result.tokens);
}

TEST_CASE("twenty runs of one request are alike, with every kind of step") {
  const std::vector<SamplingOptions> all = {
      {.temperature = 0},
      {.temperature = 1.3, .top_p = 0.95, .repetition_penalty = 1.1, .presence_penalty = 0.5, .seed = 1},
      {.temperature = 1.5, .xtc_probability = 0.5, .mirostat_tau = 4, .dry_multiplier = 0.8, .seed = 2}};
  for (const auto& sampling : all) {
    std::vector<Token> first;
    for (int run = 0; run < 20; ++run) {
      Session session(qwen2(), {.n_threads = 1 + run % 2});
      const auto tokens =
          generate(session, prompt(), {.sampling = sampling, .max_new_tokens = 24, .ignore_end = true}, go_on).tokens;
      if (run == 0) first = tokens;
      CHECK(tokens == first);
    }
  }
}

TEST_CASE("a minimum of tokens holds the model's end tokens back, the prompt not counted") {
  Session session(qwen2());
  const GenerateOptions options{.sampling = {.temperature = 0}, .max_new_tokens = 10, .ignore_end = true};
  const auto free_run = generate(session, prompt(), options, go_on);
  session.reset();
  auto ending = options;
  ending.ignore_end = false;
  ending.extra_end = {free_run.tokens[0]};
  CHECK(generate(session, prompt(), ending, go_on).tokens.empty());
  session.reset();
  ending.sampling.min_new_tokens = 3;
  CHECK(generate(session, prompt(), ending, go_on).tokens.size() >= 3);
}
