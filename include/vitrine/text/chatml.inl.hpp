#pragma once

#include "vitrine/core/error.hpp"
#include "vitrine/text/chatml.hpp"

VITRINE_NAMESPACE_BEGIN

VITRINE_INLINE std::string chatml_default_system(std::string_view chat_template) {
  // In the template's source the line end may be written as \n or be one.
  for (const std::string_view start : {"<|im_start|>system\\n", "<|im_start|>system\n"}) {
    for (auto at = chat_template.find(start); at != std::string_view::npos; at = chat_template.find(start, at + 1)) {
      const std::string_view rest = chat_template.substr(at + start.size());
      const std::string_view message = rest.substr(0, rest.find("<|im_end|>"));
      // A quote, a brace or another marker within: the message is put together from parts, not written out.
      if (message.empty() || message.size() == rest.size() || message.find_first_of("'\"{}<") != std::string_view::npos)
        continue;
      std::string text;
      for (std::size_t i = 0; i < message.size(); ++i) {
        const bool escaped_line_end = message.substr(i, 2) == "\\n";
        text += escaped_line_end ? '\n' : message[i];
        i += escaped_line_end;
      }
      return text;
    }
  }
  return {};
}

VITRINE_INLINE std::vector<Token> chatml_prompt(const Tokenizer& tokenizer, std::span<const ChatMessage> messages,
                                                const ChatMlOptions& options) {
  const auto marker = [&](std::string_view text) {
    const auto id = tokenizer.find(text);
    check(id && tokenizer.kind(*id) != TokenKind::normal, ErrorKind::unsupported, "the vocabulary has no token ", text,
          ": this model does not speak ChatML");
    return *id;
  };
  const Token start = marker("<|im_start|>"), end = marker("<|im_end|>");
  std::vector<Token> prompt;
  const auto put_text = [&](std::string_view text) {
    const auto ids = tokenizer.encode(text, {.add_special = false, .parse_special = false});
    prompt.insert(prompt.end(), ids.begin(), ids.end());
  };
  const auto put_message = [&](const std::string& role, const std::string& content) {
    prompt.push_back(start);
    put_text(role + "\n" + content);
    prompt.push_back(end);
    put_text("\n");
  };
  if (messages.empty() || messages.front().role != "system") {
    const std::string system = options.default_system.value_or(chatml_default_system(tokenizer.chat_template()));
    if (!system.empty()) put_message("system", system);
  }
  for (const ChatMessage& message : messages) put_message(message.role, message.content);
  if (options.add_generation_prompt) {
    prompt.push_back(start);
    put_text("assistant\n");
  }
  return prompt;
}

VITRINE_NAMESPACE_END
