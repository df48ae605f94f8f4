// Conversations as prompts, by the model's own chat template.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "common/program.hpp"
#include "vitrine/engine/session.hpp"
#include "vitrine/text/chat_template.hpp"

namespace example {

inline void add_chat_template_option(cxxopts::OptionAdder& add) {
  add("chat_template", "a file to use instead of the model's own template", cxxopts::value<std::string>(), "PATH");
}

inline vitrine::ChatTemplate chat_template(const Arguments& args, const vitrine::Tokenizer& tokenizer) {
  const auto text = args.has("chat_template") ? std::optional(args.file("chat_template")) : std::nullopt;
  const auto name = text ? args.get<std::string>("chat_template") + ": " : std::string();
  try {
    return text ? vitrine::ChatTemplate(tokenizer, *text) : vitrine::ChatTemplate(tokenizer);
  } catch (const vitrine::Error& error) {
    throw vitrine::Error(error.kind(), vitrine::concat("--chat_template: ", name, error.what()));
  }
}

inline std::vector<vitrine::Token> chat_prompt(const vitrine::ChatTemplate& chat, const vitrine::Tokenizer& tokenizer,
                                               const std::vector<vitrine::ChatMessage>& messages) {
  return vitrine::encode(tokenizer, chat.render({.messages = vitrine::chat_messages(messages)}));
}

// Makes the session hold as much of the prompt's beginning as it does already, and returns the rest, at least one
// token: what is left to compute.
inline std::vector<vitrine::Token> keep_beginning(vitrine::Session& session,
                                                  const std::vector<vitrine::Token>& prompt) {
  const auto held = session.tokens();
  const auto most = std::min(held.size(), prompt.size() - 1);
  const auto n = std::mismatch(held.begin(), held.begin() + std::ptrdiff_t(most), prompt.begin()).first - held.begin();
  session.truncate(n);
  return {prompt.begin() + n, prompt.end()};
}

}  // namespace example
