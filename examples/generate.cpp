// Text from a model, token by token as it comes, and how long each part took.
//
// The options are named as in Hugging Face's generate(); as there, decoding is greedy unless --do_sample is given.
// --chat puts the question into the model's own chat template, as it was trained; --prompt is continued as it stands.
// The prompt is prefilled in one go, all its tokens through each layer together; every further token is a pass of its
// own (compare `prefill_vs_decode`).
//
//   generate --chat "Why is the sky blue?"
//   generate --prompt "Once upon a time" --do_sample --temperature 0.8 --top_p 0.95 --seed 7
#include "vitrine/engine/generate.hpp"

#include <algorithm>
#include <csignal>
#include <stop_token>
#include <string>
#include <vector>

#include "common/chat.hpp"
#include "common/model.hpp"
#include "common/sampling_args.hpp"
#include "common/table.hpp"
#include "vitrine/engine/session.hpp"

using example::fixed;
using vitrine::Token;

static std::stop_source interrupted;

static std::vector<Token> prompt_tokens(const vitrine::Tokenizer& tokenizer, const example::Arguments& args) {
  if (args.has("prompt")) return tokenizer.encode(args.get<std::string>("prompt"));
  std::vector<vitrine::ChatMessage> messages;
  if (args.has("system")) messages.push_back({"system", args.get<std::string>("system")});
  messages.push_back({"user", args.has("chat") ? args.get<std::string>("chat") : "Why is the sky blue?"});
  return example::chat_prompt(example::chat_template(args, tokenizer), tokenizer, messages);
}

// What cannot be meant together, or would have no effect.
static void check_combination(const example::Arguments& args, const vitrine::SamplingOptions& sampling) {
  example::expect(!(args.has("chat") && args.has("prompt")), "--chat and --prompt: expected one of them, got both");
  for (const char* name : {"system", "chat_template"})
    args.only(name, !args.has("prompt"), "with --chat, not with --prompt, which is continued as it stands");
  args.only("log_probabilities", args.json(), "with --json");
  const bool samples = args.get<bool>("do_sample"), draws = example::is_drawn(sampling);
  args.only("temperature", samples, "with --do_sample");
  example::only_draws(args, samples, "with --do_sample");
  example::only_draws(args, draws, "with a --temperature above 0");
  args.only("do_sample", draws, "with a --temperature above 0");
}

static void generate(const example::Arguments& args) {
  vitrine::GenerateOptions options;
  options.sampling = example::sampling_options(args);  // this and the next: before the model is loaded
  check_combination(args, options.sampling);
  if (!args.get<bool>("do_sample")) options.sampling.temperature = 0;
  options.max_new_tokens = args.get<std::int64_t>("max_new_tokens", 1, 1 << 30);
  options.sampling.min_new_tokens = args.get<std::int64_t>("min_new_tokens", 0, 1 << 30);
  example::expect(options.sampling.min_new_tokens <= options.max_new_tokens,
                  vitrine::concat("--min_new_tokens: expected at most --max_new_tokens, ", options.max_new_tokens,
                                  ", got ", options.sampling.min_new_tokens));
  options.ignore_end = args.get<bool>("ignore_eos");
  options.time_limit = args.get<double>("max_time", 0, 1e9);
  if (args.has("stop_strings")) options.stop_strings = example::stop_strings(args.get<std::string>("stop_strings"));
  if (args.has("log_probabilities")) options.log_probabilities = args.get<std::int64_t>("log_probabilities", 0, 1000);
  const auto model = example::load_model(args);
  if (options.sampling.dry_multiplier > 0) options.sampling.dry_breakers = example::dry_breakers(model->tokenizer());
  vitrine::Session session(model,
                           {.n_context = args.get<std::int64_t>("context", 0, 1 << 30), .n_threads = args.threads()});
  const auto prompt = prompt_tokens(model->tokenizer(), args);
  example::check_room(session, prompt.size(), 1,
                      vitrine::concat("max_new_tokens is ", options.max_new_tokens,
                                      "; make more room with --context, or take a shorter text"));

  options.stop = interrupted.get_token();  // asked within each layer, of a long prompt's prefill too
  // Ctrl-C ends the text, not the report. (Without callbacks a stop request is only an atomic store.)
  std::signal(SIGINT, [](int) { interrupted.request_stop(); });
  auto generation = vitrine::generate(session, prompt, options);
  const auto& result = generation.result();
  try {
    for (const auto& token : generation) {
      if (args.json()) continue;
      std::cout << token.text;
      example::check_output();  // nobody waits for a text that cannot be written: this ends it
    }
  } catch (...) {
    if (!args.json() && !result.tokens.empty()) std::cout << '\n';  // what went wrong gets a line of its own
    throw;
  }
  const auto& timings = result.timings;

  if (args.json())
    return example::print_json({{"text", result.text},
                                {"tokens", result.tokens},
                                {"finish_reason", vitrine::finish_reason_name(result.reason)},
                                {"stop_string", result.stop_string},
                                {"seed", result.seed},
                                {"sampling", result.sampling},
                                {"log_probabilities", example::to_json(result.log_probabilities, model->tokenizer())},
                                {"prompt_tokens", prompt.size()},
                                {"load_seconds", timings.load_seconds},
                                {"prefill_seconds", timings.prefill_seconds},
                                {"ttft_seconds", timings.ttft_seconds},
                                {"inter_token_seconds", timings.inter_token_seconds},
                                {"prefill_tokens_per_second", timings.prefill_tokens_per_second()},
                                {"decode_tokens_per_second", timings.decode_tokens_per_second()}});

  std::cout << "\n\n"
            << coloured(
                   vitrine::concat(vitrine::counted(std::int64_t(prompt.size()), "token"), " in, ",
                                   result.tokens.size(), " out (", vitrine::finish_reason_name(result.reason), ")"),
                   example::Colour::grey)
            << '\n';
  example::Table table({"phase", "time", "tokens/s"});
  table.row({"load", fixed(timings.load_seconds, 3) + " s", ""});
  table.row({"prefill", fixed(timings.prefill_seconds, 3) + " s", fixed(timings.prefill_tokens_per_second(), 1)});
  table.row({"first token (TTFT)", fixed(timings.ttft_seconds, 3) + " s", ""});
  table.row({"each further token", fixed(1000 * timings.tpot_seconds(), 2) + " ms",
             fixed(timings.decode_tokens_per_second(), 1)});
  table.print();
  if (options.sampling.temperature > 0) std::cout << "seed " << result.seed << " draws the same tokens again\n";
  if (prompt.size() < 2 || result.tokens.size() < 2) return;  // nothing to compare
  const double of_prompt = timings.prefill_seconds / double(prompt.size()), generated = timings.tpot_seconds();
  example::what_to_notice(vitrine::concat(
      "A token of the prompt took ", fixed(1000 * of_prompt, 2), " ms, a generated one ", fixed(1000 * generated, 2),
      of_prompt < generated
          ? " ms: prefill reads the weights once for all tokens of the prompt, decoding once for each token."
          : " ms. That prefill reads the weights once for all tokens of the prompt saved no time in this run."));
}

int main(int argc, char** argv) {
  const auto options = [](cxxopts::OptionAdder add) {
    add("chat", "a question; default: why the sky is blue", cxxopts::value<std::string>(), "TEXT");
    add("system", "a system message for --chat", cxxopts::value<std::string>(), "TEXT");
    example::add_chat_template_option(add);
    add("prompt", "a text to continue", cxxopts::value<std::string>(), "TEXT");
    add("max_new_tokens", "at most so many tokens", cxxopts::value<std::int64_t>()->default_value("256"), "N");
    add("do_sample", "draw tokens; otherwise the most probable is taken",
        cxxopts::value<bool>()->default_value("false"));
    example::add_sampling_options(add);
    add("min_new_tokens", "no end token before so many", cxxopts::value<std::int64_t>()->default_value("0"), "N");
    add("max_time", "ends after so many seconds; 0: never", cxxopts::value<double>()->default_value("0"), "S");
    add("stop_strings", "a text that ends the answer, or a list of them in JSON", cxxopts::value<std::string>(),
        "TEXT");
    add("log_probabilities", "in the JSON, with so many of the best", cxxopts::value<std::int64_t>(), "N");
    add("ignore_eos", "never choose a token that ends the text", cxxopts::value<bool>()->default_value("false"));
    add("context", "room for so many tokens; 0: the library's choice",
        cxxopts::value<std::int64_t>()->default_value("0"), "N");
  };
  return example::run(argc, argv, {"generate", "Text from a language model", options, generate});
}
