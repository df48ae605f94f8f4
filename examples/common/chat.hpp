// A conversation as a prompt, by the model's own chat template.
#pragma once

#include <vector>

#include "vitrine/text/chat_template.hpp"

namespace example {

inline std::vector<vitrine::Token> chat_prompt(const vitrine::Tokenizer& tokenizer,
                                               const std::vector<vitrine::ChatMessage>& messages) {
  const vitrine::ChatTemplate chat(tokenizer);
  return vitrine::encode(tokenizer, chat.render({.messages = vitrine::chat_messages(messages)}));
}

}  // namespace example
