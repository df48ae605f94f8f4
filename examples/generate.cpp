// Text from a model, token by token as it comes, and how long each part took.
//
// The options are named as in Hugging Face's generate(); as there, decoding is greedy unless --do_sample is given.
// --chat puts the question into the turns of ChatML, as chat models were trained; --prompt is continued as it stands.
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

#include "common/model.hpp"
#include "common/table.hpp"
#include "vitrine/engine/session.hpp"
#include "vitrine/text/chatml.hpp"

using example::fixed;
using vitrine::Token;

static std::stop_source interrupted;

static std::vector<Token> prompt_tokens(const vitrine::Tokenizer& tokenizer, const example::Arguments& args) {
  if (args.has("prompt")) return tokenizer.encode(args.get<std::string>("prompt"));
  std::vector<vitrine::ChatMessage> messages;
  if (args.has("system")) messages.push_back({"system", args.get<std::string>("system")});
  messages.push_back({"user", args.has("chat") ? args.get<std::string>("chat") : "Why is the sky blue?"});
  return vitrine::chatml_prompt(tokenizer, messages);
}

static vitrine::SamplingOptions sampling_options(const example::Arguments& args) {
  vitrine::SamplingOptions options{.temperature = args.get<double>("temperature"),
                                   .top_k = args.get<std::int32_t>("top_k"),
                                   .top_p = args.get<double>("top_p"),
                                   .min_p = args.get<double>("min_p"),
                                   .repetition_penalty = args.get<double>("repetition_penalty")};
  if (args.has("seed")) options.seed = args.get<std::uint64_t>("seed");
  vitrine::check_sampling(options);
  if (!args.get<bool>("do_sample")) options.temperature = 0;
  return options;
}

// What cannot be meant together, or would have no effect.
static void check_combination(const example::Arguments& args) {
  example::expect(!(args.has("chat") && args.has("prompt")), "--chat and --prompt: expected one of them, got both");
  example::expect(!(args.has("system") && args.has("prompt")),
                  "--system: expected with --chat, got it with --prompt, which is continued as it stands");
  for (const char* name : {"temperature", "top_k", "top_p", "min_p", "seed"})
    example::expect(!args.has(name) || args.get<bool>("do_sample"),
                    vitrine::concat("--", name, ": expected with --do_sample, got it without, where nothing is drawn"));
}

static void generate(const example::Arguments& args) {
  vitrine::GenerateOptions options;
  options.sampling = sampling_options(args);  // this and the next: before the model is loaded
  check_combination(args);
  options.max_new_tokens = args.get<std::int64_t>("max_new_tokens", 1, 1 << 30);
  options.ignore_end = args.get<bool>("ignore_eos");
  const auto model = example::load_model(args);
  vitrine::Session session(model,
                           {.n_context = args.get<std::int64_t>("context", 0, 1 << 30), .n_threads = args.threads()});
  const auto prompt = prompt_tokens(model->tokenizer(), args);
  example::check_room(session, prompt.size(), 1, "make more room with --context, or take a shorter text");

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
                                {"seed", result.seed},
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
  if (result.tokens.size() < 2) return;  // nothing to compare
  example::what_to_notice(vitrine::concat(
      "A token of the prompt took ", fixed(1000 * timings.prefill_seconds / double(prompt.size()), 2),
      " ms, a generated one ", fixed(1000 * timings.tpot_seconds(), 2),
      " ms: prefill reads the weights once for all tokens of the prompt, decoding once for each token."));
}

int main(int argc, char** argv) {
  const auto options = [](cxxopts::OptionAdder add) {
    add("chat", "a question; default: why the sky is blue", cxxopts::value<std::string>(), "TEXT");
    add("system", "a system message for --chat", cxxopts::value<std::string>(), "TEXT");
    add("prompt", "a text to continue", cxxopts::value<std::string>(), "TEXT");
    add("max_new_tokens", "at most so many tokens", cxxopts::value<std::int64_t>()->default_value("256"), "N");
    add("do_sample", "draw tokens; otherwise the most probable is taken",
        cxxopts::value<bool>()->default_value("false"));
    add("temperature", "logits are divided by it", cxxopts::value<double>()->default_value("1"), "T");
    add("top_k", "draw from the k most probable; 0: all", cxxopts::value<std::int32_t>()->default_value("50"), "K");
    add("top_p", "draw from the most probable of this mass", cxxopts::value<double>()->default_value("1"), "P");
    add("min_p", "drop what is less than this part of the best", cxxopts::value<double>()->default_value("0"), "P");
    add("repetition_penalty", "makes seen tokens less likely; 1: off", cxxopts::value<double>()->default_value("1"),
        "R");
    add("seed", "of the random numbers; none: a fresh one, reported", cxxopts::value<std::uint64_t>(), "S");
    add("ignore_eos", "go on after the token that ends the text", cxxopts::value<bool>()->default_value("false"));
    add("context", "room for so many tokens; 0: the library's choice",
        cxxopts::value<std::int64_t>()->default_value("0"), "N");
  };
  return example::run(argc, argv, {"generate", "Text from a language model", options, generate});
}
