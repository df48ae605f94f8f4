// Speculative decoding: guess some tokens, compute them all in one pass, keep the right ones. The text is the same.
//
// Guesses come from the text itself (where the last tokens occurred before, what followed them?), or from a quicker
// model with the same vocabulary: the first layers of the same one, or another file. Accepted guesses are green, the
// wrong ones red and in braces; a bar begins each pass of the model.
//
//   speculative
//   speculative --draft layers --layers 10
//   speculative --draft model --draft_model COARSER.gguf --prompt "Once upon a time"
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/chat.hpp"
#include "common/model.hpp"
#include "common/sample_text.hpp"
#include "common/table.hpp"
#include "vitrine/engine/drafter.hpp"
#include "vitrine/engine/generate.hpp"

using example::coloured, example::Colour, example::fixed, example::percent, example::rounded;
using vitrine::Token;

// A drafter that remembers what it guessed, and where.
struct Recorder final : vitrine::Drafter {
  explicit Recorder(std::shared_ptr<Drafter> of) : inner(std::move(of)) {}
  void begin(const vitrine::Model& target, const vitrine::SamplingOptions& sampling, std::int64_t n_prompt) override {
    inner->begin(target, sampling, n_prompt);
  }
  std::int64_t guess(std::span<const Token> history, std::span<Token> guesses) override {
    const auto n = inner->guess(history, guesses);
    if (n > 0) calls.emplace_back(history.size(), std::vector<Token>(guesses.begin(), guesses.begin() + n));
    return n;
  }
  double cost() const override { return inner->cost(); }

  std::shared_ptr<Drafter> inner;
  std::vector<std::pair<std::size_t, std::vector<Token>>> calls;  // position of the first guess, guesses
};

struct Run {
  vitrine::GenerateResult result;
  std::vector<std::string> texts;  // of the tokens
  double tokens_per_second() const { return result.timings.decode_tokens_per_second(); }
};

static Run generate(const std::shared_ptr<const vitrine::Model>& model, const example::Arguments& args,
                    const std::vector<Token>& prompt, std::shared_ptr<vitrine::Drafter> drafter) {
  vitrine::Session session(model, {.n_threads = args.threads()});
  const int n = args.get<int>("new_tokens", 2, 1 << 20);
  example::check_room(session, prompt.size(), n, "take fewer --new_tokens, or a shorter --prompt");
  vitrine::GenerateOptions options{
      .sampling = {.temperature = args.get<double>("temperature", 0, 100), .seed = args.get<std::uint64_t>("seed")},
      .max_new_tokens = n};
  options.speculation = {.drafter = std::move(drafter), .max_guesses = args.get<int>("guesses", 1, 15)};
  Run run;
  run.result = vitrine::generate(session, prompt, options, [&](const vitrine::GeneratedToken& token) {
    run.texts.emplace_back(token.text);
    return true;
  });
  return run;
}

static void print_passes(const vitrine::Model& model, const Run& run, const Recorder& recorder, std::size_t n_prompt) {
  const auto& tokens = run.result.tokens;
  std::vector<bool> accepted(tokens.size());
  std::vector<Token> wrong(tokens.size(), -1);
  for (const auto& [position, guesses] : recorder.calls)
    for (std::size_t i = 0; i < guesses.size() && position - n_prompt + i < tokens.size(); ++i) {
      const auto at = position - n_prompt + i;
      accepted[at] = guesses[i] == tokens[at];
      if (!accepted[at]) wrong[at] = guesses[i];
      if (!accepted[at]) break;
    }
  // A guess that was accepted saves the pass of the token behind it.
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i == 0 || !accepted[i - 1]) std::cout << coloured("|", Colour::grey);
    if (wrong[i] >= 0)
      std::cout << coloured("{" + model.tokenizer().decode(std::span(&wrong[i], 1), false) + "}", Colour::red);
    std::cout << coloured(i < run.texts.size() ? run.texts[i] : "", accepted[i] ? Colour::green : Colour::none);
  }
  std::cout << "\n\n";
}

static void show(const example::Arguments& args) {
  const auto draft = args.get<std::string>("draft");
  example::expect(draft == "lookup" || draft == "layers" || draft == "model",
                  "--draft: expected lookup, layers or model, got '" + draft + "'");
  example::expect((draft == "model") == args.has("draft_model"), "--draft_model: expected with --draft model");
  args.only("layers", draft == "layers", "with --draft layers");
  args.only("seed", args.get<double>("temperature") != 0, "with a --temperature above 0");
  const auto n_layers = args.get<std::int64_t>("layers", 1, 1000);
  const auto model = example::load_model(args);
  const auto prompt = args.has("prompt") ? model->tokenizer().encode(args.get<std::string>("prompt"))
                                         : example::chat_prompt(vitrine::ChatTemplate(model->tokenizer()),
                                                                model->tokenizer(), {{"user", example::copy_task}});
  std::shared_ptr<vitrine::Drafter> drafter = vitrine::prompt_lookup();
  if (draft == "layers")
    drafter = draft_model(vitrine::Model::load(args.model(), {.n_layers = n_layers}), args.threads());
  if (draft == "model")
    drafter =
        draft_model(vitrine::Model::load(example::find_model(args.get<std::string>("draft_model"))), args.threads());
  const auto recorder = std::make_shared<Recorder>(drafter);
  const auto plain = generate(model, args, prompt, nullptr), guessed = generate(model, args, prompt, recorder);
  const auto& of = guessed.result.speculation;
  const auto n_plain = std::int64_t(plain.result.timings.inter_token_seconds.size()), n = n_plain - of.n_accepted;
  const bool same = plain.result.tokens == guessed.result.tokens;

  if (args.json())
    return example::print_json({{"same_tokens", same},
                                {"text", guessed.result.text},
                                {"passes", {{"plain", n_plain}, {"speculative", n}}},
                                {"guesses", of.n_guesses},
                                {"judged", of.n_judged},
                                {"accepted", of.n_accepted},
                                {"acceptance", of.acceptance()},
                                {"saved_seconds", of.saved_seconds()},
                                {"plain_tokens_per_second", plain.tokens_per_second()},
                                {"speculative_tokens_per_second", guessed.tokens_per_second()}});
  print_passes(*model, guessed, *recorder, prompt.size());
  example::Table table({"decoding", "passes", "tokens per pass", "tokens/s"});
  for (const auto& [name, passes, run] : {std::tuple("plain", n_plain, &plain), {"speculative", n, &guessed}})
    table.row({name, std::to_string(passes), fixed(double(n_plain) / double(std::max<std::int64_t>(passes, 1)), 2),
               fixed(run->tokens_per_second(), 1)});
  table.print();
  example::what_to_notice(vitrine::concat(
      "Of ", of.n_judged, " guesses ", of.n_accepted, " were right (", percent(of.acceptance()), "), so ", n,
      " passes gave ", same ? "the very tokens" : "OTHER TOKENS than those", " for which plain decoding needs ",
      n_plain, ", ", rounded(guessed.tokens_per_second() / plain.tokens_per_second()), " times as fast."));
}

int main(int argc, char** argv) {
  const auto options = [](cxxopts::OptionAdder add) {
    add("draft", "what guesses: lookup (the text so far), layers, model",
        cxxopts::value<std::string>()->default_value("lookup"), "NAME");
    add("layers", "how many layers guess", cxxopts::value<std::int64_t>()->default_value("1"), "N");
    add("draft_model", "another model that guesses", cxxopts::value<std::string>(), "PATH");
    add("guesses", "guesses per pass at most, up to 15", cxxopts::value<int>()->default_value("8"), "N");
    add("prompt", "a text to continue, instead of one to copy", cxxopts::value<std::string>(), "TEXT");
    add("new_tokens", "tokens to generate", cxxopts::value<int>()->default_value("96"), "N");
    add("temperature", "0: greedy", cxxopts::value<double>()->default_value("0"), "T");
    add("seed", "of the draws", cxxopts::value<std::uint64_t>()->default_value("1"), "N");
  };
  return example::run(argc, argv, {"speculative", "Several tokens per pass, by guessing", options, show});
}
