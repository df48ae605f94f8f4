// A conversation in the terminal, by the model's own chat template, and what each turn costs.
//
// What does not fit into the context is refused with its numbers, or makes the oldest turns go if --drop_oldest allows
// it. Ctrl-C ends an answer, Ctrl-D the conversation.
//
//   chat --system "Answer in one sentence."
//   chat --temperature 0.7 --seed 1
//   printf 'Why is the sky blue?\n/stats\n' | chat
#include <csignal>
#include <optional>
#include <stop_token>
#include <string>

#include "common/dialogue.hpp"
#include "common/line_reader.hpp"
#include "common/model.hpp"
#include "common/table.hpp"

using example::Arguments, example::coloured, example::Colour, example::Dialogue, example::fixed, example::json;
using vitrine::concat, vitrine::ErrorKind, vitrine::FinishReason;

static std::stop_source interrupted;  // replaced only while no signal comes here
static bool quiet = false;            // nothing but JSON, at the end

static const char* const commands =
    "  /stats        what the last turn cost, part by part\n"
    "  /system TEXT  another system message; without one: none\n"
    "  /temp X       0: the most probable token; more: livelier\n"
    "  /seed N       draw the same tokens again; without a number: a fresh one\n"
    "  /reset        forget what was said\n"
    "  /help         this list\n"
    "  /quit         end (or Ctrl-D)\n";

static void note(const std::string& text, Colour colour = Colour::grey) {
  if (!quiet) example::print_wrapped(coloured("(" + text + ")", colour));
}

static void print_stats(const Dialogue& chat) {
  if (chat.n_turns == 0) return note("nothing was asked yet");
  example::Table table({"part of the prompt", "tokens"});
  for (const auto& part : chat.built.parts)
    if (part.tokens > 0) table.row({vitrine::request_part_name(part.part), std::to_string(part.tokens)});
  table.row({"all", std::to_string(chat.built.tokens.size())});
  table.row({"of these held from before", std::to_string(chat.n_kept)});
  if (!quiet) table.print();
  const auto& timings = chat.result.timings;
  note(concat(chat.session().length(), " of ", chat.session().context(), " tokens in use; first token after ",
              fixed(1000 * timings.ttft_seconds, 0), " ms, then ", fixed(timings.decode_tokens_per_second(), 1),
              " tokens/s; seed ", chat.result.seed));
}

// False to end.
static bool obey(const std::string& line, Dialogue& chat) {
  const auto space = std::min(line.find(' '), line.size());
  const std::string name = line.substr(0, space), value = line.substr(std::min(space + 1, line.size()));
  const auto number = example::as_number(value);
  if (name == "/quit") return false;
  if (name == "/stats") {
    print_stats(chat);
  } else if (name == "/system") {
    chat.request.system = value;
    note(value.empty() ? "no system message from now on" : "from the next turn on");
  } else if (name == "/temp" && number && *number >= 0 && *number <= 100) {
    chat.options.sampling.temperature = *number;
  } else if (name == "/seed" && (value.empty() || example::as_whole_number(value))) {
    chat.options.sampling.seed = example::as_whole_number(value);
  } else if (name == "/reset") {
    chat.forget();
    note("forgotten, but for the system message");
  } else {
    if (name != "/help") note("not understood: " + line, Colour::yellow);
    if (!quiet) std::cout << commands;
  }
  return true;
}

static json ask(const std::string& question, Dialogue& chat) {
  interrupted = std::stop_source();
  chat.options.stop = interrupted.get_token();
  std::signal(SIGINT, [](int) { interrupted.request_stop(); });
  const auto begin = [&] {
    for (const auto& change : chat.changes()) note(change, Colour::yellow);
  };
  const auto see = [&](const vitrine::GeneratedToken& token) {
    if (!quiet) std::cout << example::harmless(token.text);
    example::check_output();
  };
  try {
    chat.ask(question, begin, see);
  } catch (const vitrine::Error& error) {  // too long, or refused by the template: nothing was said
    if (error.kind() == ErrorKind::io) throw;
    const bool full = error.kind() == ErrorKind::context_full;
    note(error.what() + std::string(full ? "; /reset, --drop_oldest or a larger --context help" : ""), Colour::red);
    return {{"question", question}, {"error", error.what()}};
  }
  if (!quiet) std::cout << '\n';
  if (chat.result.reason == FinishReason::context_full)
    note(concat("cut: ", chat.session().context(), " tokens fill the context"), Colour::yellow);
  if (chat.result.reason == FinishReason::length)
    note(concat("cut after ", chat.options.max_new_tokens, " tokens, see --max_new_tokens"), Colour::yellow);
  return chat.to_json();
}

static void converse(const Arguments& args) {
  vitrine::GenerateOptions options;
  options.max_new_tokens = args.get<std::int64_t>("max_new_tokens", 1, 1 << 30);
  options.sampling.temperature = args.get<double>("temperature", 0, 100);
  options.sampling.top_p = args.get<double>("top_p", 0, 1);
  if (args.has("seed")) options.sampling.seed = args.get<std::uint64_t>("seed");
  vitrine::check_sampling(options.sampling);  // before the model is loaded
  if (options.sampling.temperature == 0 && (args.has("top_p") || args.has("seed")))
    std::cerr << "chat: nothing is drawn, by --top_p or --seed, before /temp has set a temperature above 0\n";
  const auto model = example::load_model(args);
  Dialogue chat(model, example::chat_template(args, model->tokenizer()),
                {.n_context = args.get<std::int64_t>("context", 0, 1 << 30), .n_threads = args.threads()});
  chat.options = options;
  chat.request.system = args.get<std::string>("system");
  chat.request.drop_oldest_turns = args.get<bool>("drop_oldest");

  json turns = json::array();
  quiet = args.json();
  while (const auto line = example::read_line("> ", Colour::green, quiet)) {
    if (line->starts_with('/')) {
      if (!obey(*line, chat)) break;
    } else if (!line->empty()) {
      turns.push_back(ask(*line, chat));
    }
    std::signal(SIGINT, SIG_DFL);  // ends the program
  }
  if (quiet) return example::print_json({{"turns", turns}});
  if (chat.n_turns == 0) return;
  example::what_to_notice(concat("The prompts of ", vitrine::counted(chat.n_turns, "turn"), " had ",
                                 chat.n_prompt_in_all, " tokens, of which ", chat.n_kept_in_all, " (",
                                 example::percent(double(chat.n_kept_in_all) / double(chat.n_prompt_in_all)),
                                 ") were in the session's cache from the turns before and were not computed again."));
}

int main(int argc, char** argv) {
  const auto options = [](cxxopts::OptionAdder add) {
    add("system", "a system message", cxxopts::value<std::string>()->default_value(""), "TEXT");
    add("temperature", "0: always the most probable token", cxxopts::value<double>()->default_value("0"), "X");
    add("top_p", "draw from the most probable of this mass", cxxopts::value<double>()->default_value("1"), "X");
    add("seed", "of the random numbers; none: a fresh one each turn", cxxopts::value<std::uint64_t>(), "S");
    add("max_new_tokens", "at most so many per answer", cxxopts::value<std::int64_t>()->default_value("512"), "N");
    add("context", "room in tokens; 0: the library's choice", cxxopts::value<std::int64_t>()->default_value("0"), "N");
    add("drop_oldest", "leave out the oldest turns to fit", cxxopts::value<bool>()->default_value("false"));
    example::add_chat_template_option(add);
  };
  return example::run(argc, argv, {"chat", "A conversation with a language model", options, converse});
}
