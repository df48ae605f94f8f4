// Logits to look at: given on the command line, or those of a model after a text.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/model.hpp"

namespace example {

struct LogitSource {
  std::vector<float> logits;
  std::function<std::string(Token)> label;
  std::vector<Token> prompt;  // empty if the logits were given
};

inline void add_logit_options(cxxopts::OptionAdder& add, const std::string& logits) {
  add("logits", "logits to look at", cxxopts::value<std::string>()->default_value(logits), "LIST");
  add("prompt", "a text whose next token is looked at instead, with --model", cxxopts::value<std::string>(), "TEXT");
}

inline LogitSource read_logits(const Arguments& args) {
  const bool of_model = args.has("prompt");
  expect(!(of_model && args.has("logits")), "--logits and --prompt: expected one of them, got both");
  for (const char* name : {"model", "threads", "image_folder"}) args.only(name, of_model, "with --prompt");
  LogitSource source;
  if (!of_model) {
    for (const double value : args.numbers("logits", -1e30, 1e30)) source.logits.push_back(float(value));
    source.label = [](Token id) { return "token " + std::to_string(id); };
    return source;
  }
  const auto model = load_model(args);
  vitrine::Session session(model, {.n_threads = args.threads()});
  source.prompt = model->tokenizer().encode(args.get<std::string>("prompt"));
  expect(!source.prompt.empty(), "--prompt: expected a text of at least one token");
  check_room(session, source.prompt.size(), 0, "take a shorter --prompt");
  const auto logits = session.prefill(source.prompt);
  source.logits.assign(logits.begin(), logits.end());
  source.label = [model](Token id) { return token_text(*model, id); };
  return source;
}

}  // namespace example
